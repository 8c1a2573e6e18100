-- SPDX-License-Identifier: Apache-2.0
-- 0014-keys.sql: limits, expiry and networks of API keys (contract 14.5), and a
-- second key for links
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

-- step: transaction: two keys for links side by side
-- The functions below bind hmac() when they are created.
SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname),
                  true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto';

ALTER TABLE crmapi.link_key
    ADD COLUMN old_key bytea,                   -- verifies, does not sign
    ADD COLUMN old_key_until timestamptz(3);    -- until then
ALTER TABLE crmapi.link_key ADD CONSTRAINT link_key_old
    CHECK ((old_key IS NULL) = (old_key_until IS NULL)
           AND octet_length(old_key) = 32) NOT VALID;

-- The same as token_mac() by the key before, NULL if it verifies no more.
-- Internal.
CREATE FUNCTION crmapi.token_old_mac(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT hmac(head, k.old_key, 'sha256') FROM crmapi.link_key k
    WHERE k.workspace_id = CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END
        AND k.old_key_until > now();
END;

-- Whether MAC is the signature of HEAD, by the key of its workspace or by the
-- one before. Hashes are compared, so that the time reveals nothing about the
-- signature. For the API.
CREATE OR REPLACE FUNCTION crmapi.token_signed(head bytea, mac bytea)
    RETURNS boolean
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN coalesce(sha256(crmapi.token_mac(head)) = sha256(mac), false)
        OR coalesce(sha256(crmapi.token_old_mac(head)) = sha256(mac), false);

-- Give WORKSPACE a new key for its links. The one before verifies until UNTIL.
-- False if one before still does: links signed with it would die. For the
-- owner.
CREATE FUNCTION crmapi.link_key_rotate(workspace uuid, until timestamptz)
    RETURNS boolean
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    WITH changed AS (
        UPDATE crmapi.link_key k
        SET old_key = k.key, old_key_until = link_key_rotate.until,
            key = sha256(uuid_send(gen_random_uuid())
                || uuid_send(gen_random_uuid())
                || uuid_send(gen_random_uuid()))
        WHERE k.workspace_id = link_key_rotate.workspace
            AND (k.old_key_until IS NULL OR k.old_key_until <= now())
        RETURNING 1)
    SELECT EXISTS (SELECT FROM changed)
$$;

-- End the old key of WORKSPACE's links. For the owner.
CREATE FUNCTION crmapi.link_key_drop(workspace uuid) RETURNS void
    LANGUAGE sql VOLATILE
BEGIN ATOMIC
    UPDATE crmapi.link_key k SET old_key = NULL, old_key_until = NULL
    WHERE k.workspace_id = link_key_drop.workspace;
END;

REVOKE EXECUTE ON FUNCTION crmapi.token_old_mac, crmapi.link_key_rotate,
    crmapi.link_key_drop FROM PUBLIC;

-- step: index api_key_by_terms: how a request finds its key
CREATE UNIQUE INDEX CONCURRENTLY api_key_by_terms
    ON crmapi.api_key (workspace_id, coalesce(terms, id));

-- step: alone: check the workspaces of before
ALTER TABLE crmapi.workspace VALIDATE CONSTRAINT workspace_limits;

-- step: alone: check the keys of before
ALTER TABLE crmapi.api_key VALIDATE CONSTRAINT api_key_terms;

-- step: alone: check the keys of links of before
ALTER TABLE crmapi.link_key VALIDATE CONSTRAINT link_key_old;
