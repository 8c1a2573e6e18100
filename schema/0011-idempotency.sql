-- SPDX-License-Identifier: Apache-2.0
-- 0011-idempotency.sql: answers to writes with an Idempotency-Key
-- (contract 13.1)

-- The answer to a write, inserted by the transaction of the write. Keys count
-- for 24 hours; upkeep deletes older rows. The table is about as large as the
-- answers of a day: values of more than 2 kB are compressed by TOAST.
CREATE TABLE crmapi.idempotent_answer (
    -- Without a foreign key: its check would be a third of what an INSERT costs.
    -- idempotency_forget() does what a cascade would do.
    workspace_id uuid NOT NULL,
    -- SHA-256 of the key, which may contain anything
    key bytea NOT NULL CHECK (octet_length(key) = 32),
    -- SHA-256 of method, path and body
    request bytea NOT NULL CHECK (octet_length(request) = 32),
    status smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
    location text COLLATE "C",
    -- The body of an answer with one row: {"name": "value", ...}, the fields in
    -- their order, with the values as PostgreSQL writes them. The module makes
    -- the same JSON from them as from the row itself, so the statement of the
    -- write can store them.
    fields json,
    -- Any other body.
    body text COLLATE "C" CHECK (octet_length(body) <= 8388608),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, key),
    CHECK (fields IS NULL OR body IS NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);

-- answers that upkeep deletes
CREATE INDEX idempotent_answer_old ON crmapi.idempotent_answer (created_at);

-- Delete the answers of a workspace that goes. "zz": after the cascades, which
-- wait for the workspace's last writes. A trigger function.
CREATE FUNCTION crmapi.idempotency_forget() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM crmapi.idempotent_answer a WHERE a.workspace_id = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER zz_idempotency AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.idempotency_forget();

-- Delete up to BATCH answers that are older than 24 hours. Returns their number.
-- Locks: answer, skipping locked ones. For the worker.
CREATE FUNCTION crmapi.idempotency_trim(batch integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n integer;
BEGIN
    DELETE FROM crmapi.idempotent_answer a
    WHERE (a.workspace_id, a.key) IN (
        SELECT o.workspace_id, o.key FROM crmapi.idempotent_answer o
        WHERE o.created_at <= now() - interval '24 hours'
        LIMIT batch FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;

-- ---- rights ----------------------------------------------------------------

GRANT SELECT, INSERT, UPDATE ON crmapi.idempotent_answer TO crmapi_api;

REVOKE EXECUTE ON FUNCTION crmapi.idempotency_trim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.idempotency_trim TO crmapi_worker;
