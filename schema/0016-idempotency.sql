-- SPDX-License-Identifier: Apache-2.0
-- 0016-idempotency.sql: answers to writes with an Idempotency-Key
-- (contract 13.1)

-- The answer to a write, inserted by the transaction of the write. Keys count
-- for 24 hours; upkeep deletes older rows. The table is about as large as the
-- answers of a day: values of more than 2 kB are compressed by TOAST. It has
-- neither CHECKs, which are parsed anew for each INSERT, nor a foreign key, whose
-- check would be a third of what an INSERT costs: mod_crmapi/rest/crm_idempotency.c
-- alone inserts here, and the trigger zz_idempotency does what a cascade would do.
CREATE TABLE crmapi.idempotent_answer (
    workspace_id uuid NOT NULL,
    -- SHA-256 of the key, which may contain anything
    key bytea NOT NULL,
    -- SHA-256 of method, path and body
    request bytea NOT NULL,
    status smallint NOT NULL,
    location text COLLATE "C",
    -- The body of an answer with one row: {"name": "value", ...}, the fields in
    -- their order, with the values as PostgreSQL writes them. The module makes
    -- the same JSON from them as from the row itself, so the statement of the
    -- write can store them.
    fields json,
    -- Any other body.
    body text COLLATE "C",
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);

-- answers that upkeep deletes
CREATE INDEX idempotent_answer_old ON crmapi.idempotent_answer (created_at);

CREATE TRIGGER zz_idempotency AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_forget('idempotent_answer');
