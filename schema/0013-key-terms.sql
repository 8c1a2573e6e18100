-- SPDX-License-Identifier: Apache-2.0
-- 0013-key-terms.sql: limits, expiry and networks of API keys (contract 14.5)
-- min_module: 12
--
-- The module remembers a key with its terms: its limits and networks. The id of
-- the terms is what the statement of a request looks the key up by. Whoever
-- changes terms gives them a new id, so the next statement finds no key and the
-- module reads the terms again. That costs a request nothing.

-- step: transaction: the columns, and what keeps terms fresh
ALTER TABLE crmapi.workspace
    ADD COLUMN read_limit integer,      -- null: the virtual host's
    ADD COLUMN write_limit integer;
ALTER TABLE crmapi.workspace ADD CONSTRAINT workspace_limits
    CHECK (read_limit BETWEEN 1 AND 1000000
           AND write_limit BETWEEN 1 AND 1000000) NOT VALID;

ALTER TABLE crmapi.api_key
    ADD COLUMN read_limit integer,      -- null: the workspace's
    ADD COLUMN write_limit integer,
    ADD COLUMN expires_at timestamptz(3),
    ADD COLUMN networks cidr[],         -- null: any address
    ADD COLUMN terms uuid;              -- null: those that it began with
ALTER TABLE crmapi.api_key ADD CONSTRAINT api_key_terms
    CHECK (read_limit BETWEEN 1 AND 1000000
           AND write_limit BETWEEN 1 AND 1000000
           AND cardinality(networks) BETWEEN 1 AND 32
           AND array_position(networks, NULL) IS NULL) NOT VALID;

-- Give a key whose terms change a new id of them. A trigger function.
CREATE FUNCTION crmapi.api_key_terms() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.terms := gen_random_uuid();
    RETURN NEW;
END
$$;
CREATE TRIGGER terms BEFORE UPDATE OF read_limit, write_limit, networks
    ON crmapi.api_key
    FOR EACH ROW WHEN ((NEW.read_limit, NEW.write_limit, NEW.networks)
                       IS DISTINCT FROM
                       (OLD.read_limit, OLD.write_limit, OLD.networks))
    EXECUTE FUNCTION crmapi.api_key_terms();

-- The same for the keys of a workspace whose limits change. A key that is being
-- created has locked the workspace: api_key_plan(). Locks: workspace, key. A
-- trigger function.
CREATE FUNCTION crmapi.workspace_terms() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.api_key k SET terms = gen_random_uuid()
    WHERE k.workspace_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER terms AFTER UPDATE OF read_limit, write_limit
    ON crmapi.workspace
    FOR EACH ROW WHEN ((NEW.read_limit, NEW.write_limit)
                       IS DISTINCT FROM (OLD.read_limit, OLD.write_limit))
    EXECUTE FUNCTION crmapi.workspace_terms();

-- The keys that are neither revoked nor expired and what they permit.
CREATE OR REPLACE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug,
           k.can_read AS read, k.can_write AS write,
           k.plan_api, k.plan_sequences,
           coalesce(k.terms, k.id) AS terms,
           coalesce(k.read_limit, w.read_limit) AS read_limit,
           coalesce(k.write_limit, w.write_limit) AS write_limit,
           k.networks
    FROM crmapi.api_key k
    LEFT JOIN crmapi.workspace w ON w.id = k.workspace_id
    WHERE k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now());

-- The live key with the hash HASH and its terms: one row or none. NETWORKS are
-- separated by spaces. For the API.
CREATE FUNCTION crmapi.key_look_up(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text, terms uuid,
                   read_limit integer, write_limit integer, networks text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
BEGIN ATOMIC
    SELECT k.key_id, k.workspace_id, k.slug, k.terms, k.read_limit,
           k.write_limit, array_to_string(k.networks, ' ')
    FROM crmapi.live_key k WHERE k.key_hash = key_look_up.hash;
END;

GRANT SELECT (terms) ON crmapi.live_key TO crmapi_api;
REVOKE EXECUTE ON FUNCTION crmapi.key_look_up FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.key_look_up TO crmapi_api;

-- step: index api_key_by_terms: how a request finds its key
CREATE UNIQUE INDEX CONCURRENTLY api_key_by_terms
    ON crmapi.api_key (workspace_id, coalesce(terms, id));

-- step: alone: check the workspaces of before
ALTER TABLE crmapi.workspace VALIDATE CONSTRAINT workspace_limits;

-- step: alone: check the keys of before
ALTER TABLE crmapi.api_key VALIDATE CONSTRAINT api_key_terms;
