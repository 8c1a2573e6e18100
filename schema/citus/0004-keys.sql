-- SPDX-License-Identifier: Apache-2.0
-- 0004-keys.sql: API keys and tokens

-- The live key with the hash HASH and its terms: one row or none. NETWORKS are
-- separated by spaces. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_look_up(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text, terms uuid,
                   read_limit integer, write_limit integer, networks text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    home uuid := (SELECT h.workspace_id FROM crmapi.key_home h
                  WHERE h.key_hash = key_look_up.hash);
BEGIN
    IF home IS NOT NULL THEN
        RETURN QUERY SELECT k.key_id, k.workspace_id, w.slug, k.terms,
            coalesce(h.read_limit, w.read_limit),
            coalesce(h.write_limit, w.write_limit),
            array_to_string(h.networks, ' ')
        FROM crmapi.live_key k
        JOIN crmapi.api_key h ON h.workspace_id = k.workspace_id
            AND h.id = k.key_id
        JOIN crmapi.workspace w ON w.id = k.workspace_id
        WHERE k.workspace_id = home AND h.key_hash = key_look_up.hash;
    END IF;
END
$$;

-- The live token with the hash HASH: one row or none, as key_look_up(). For the
-- API.
CREATE OR REPLACE FUNCTION crmapi.intake_key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    home uuid := (SELECT h.workspace_id FROM crmapi.key_home h
                  WHERE h.key_hash = intake_key_find.hash);
BEGIN
    IF home IS NOT NULL THEN
        RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug
        FROM crmapi.live_intake k
        WHERE k.workspace_id = home AND k.key_hash = intake_key_find.hash;
    END IF;
END
$$;

-- As before, from a table that each server has. It has revoked ones, too, which
-- the module looks up then. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_roll() RETURNS bytea
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT string_agg(substr(h.key_hash, 1, 8), '')
            FROM crmapi.key_home h);
END
$$;

-- The keys that are neither revoked nor expired and what they permit. It is read
-- with the caller's rights on each server, so it has no hash. It is in each
-- request's statement, and Citus plans that each time: so it has one table only.
DROP VIEW crmapi.live_key;
CREATE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.id AS key_id,
           k.can_read AS read, k.can_write AS write,
           k.plan_api AND NOT k.closed AS plan_api,
           k.plan_sequences AND NOT k.closed AS plan_sequences, k.closed,
           coalesce(k.terms, k.id) AS terms, k.name, k.expires_at
    FROM crmapi.api_key k
    WHERE k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now());
GRANT SELECT ON crmapi.live_key TO crmapi_api;

-- A plan is on each server, and its keys are on all of them: a trigger cannot reach
-- them. So only crmapictl, which calls plan_follow(), changes what a plan permits. A
-- trigger function.
CREATE OR REPLACE FUNCTION crmapi.plan_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('crmapi.plan_set', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'keys would not follow the plan %', NEW.name
            USING ERRCODE = 'feature_not_supported',
                HINT = 'Use crmapictl plan set.';
    END IF;
    RETURN NULL;
END
$$;

-- What the plan NAME permits. Rows that are on each server cannot be locked by a
-- trigger on one. Internal.
CREATE OR REPLACE FUNCTION crmapi.plan_rights(name text, OUT api boolean,
                                              OUT sequences boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.api, p.api AND p.sequences FROM crmapi.plan p
    WHERE p.name = plan_rights.name
$$;

-- Give the keys of all workspaces with the plan NAME its rights, which the
-- transaction has changed. A transaction that adds a key locks its workspace:
-- this one waits for it, or it for this one. For the owner.
CREATE FUNCTION crmapi.plan_follow(name text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE crmapi.workspace w SET plan = w.plan
    WHERE w.plan = plan_follow.name;
    UPDATE crmapi.api_key k
    SET plan_api = p.api, plan_sequences = p.api AND p.sequences
    FROM crmapi.workspace w JOIN crmapi.plan p ON p.name = w.plan
    WHERE w.plan = plan_follow.name AND k.workspace_id = w.id;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.plan_follow FROM PUBLIC;
