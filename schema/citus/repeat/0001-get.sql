-- SPDX-License-Identifier: Apache-2.0
-- 0001-get.sql: one row is read by a statement of one table
--
-- Citus plans a statement of one table without sub-selects once, and others each
-- time. So what GET of a row asks of other tables is a call. The row's server makes
-- it and reads its own rows: those of a workspace are on one server.

-- Whether the key with TERMS may do an operation in WORKSPACE: with WRITES one that
-- writes, with SEQUENCES one of sequences. ROW_ID is the id of the row that is read:
-- because of that column its server makes the call. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_may(row_id uuid, workspace uuid, terms uuid,
                               writes boolean, sequences boolean)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET citus.allow_nested_distributed_execution = on
AS $$
DECLARE
    may boolean;
BEGIN
    -- as live_key, which is a sub-select
    SELECT CASE WHEN key_may.writes THEN k.can_write ELSE k.can_read END
        AND CASE WHEN key_may.sequences THEN k.plan_sequences
            ELSE k.plan_api END
    INTO may FROM crmapi.api_key k
    WHERE k.workspace_id = key_may.workspace
      AND coalesce(k.terms, k.id) = key_may.terms AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now());
    RETURN may;
END
$$;

-- When the contact ID of WORKSPACE was contacted last. For the API.
CREATE OR REPLACE FUNCTION crmapi.contact_last_contacted_at(workspace uuid, id uuid)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET citus.allow_nested_distributed_execution = on
AS $$
DECLARE
    at timestamptz;
BEGIN
    SELECT max(a.created_at) INTO at FROM crmapi.activity a
    WHERE a.workspace_id = contact_last_contacted_at.workspace
      AND a.contact_id = contact_last_contacted_at.id;
    RETURN at;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.key_may, crmapi.contact_last_contacted_at
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.key_may, crmapi.contact_last_contacted_at
    TO crmapi_api;
