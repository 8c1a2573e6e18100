-- SPDX-License-Identifier: Apache-2.0
-- 0001-get.sql: one row is read by a statement of one table
--
-- Citus plans a statement of one table without sub-selects once, and others each
-- time. So what GET of a row asks of other tables is a call. The row's server makes
-- it and reads its own shards of them: those of a workspace are on one server. A
-- statement of the tables themselves would be planned by Citus there, each time.

-- Whether the key with TERMS may do an operation in WORKSPACE: with WRITES one that
-- writes, with SEQUENCES one of sequences. ROW_ID is the id of the row that is read:
-- because of that column its server makes the call. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_may(row_id uuid, workspace uuid,
        terms uuid, writes boolean, sequences boolean) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    may boolean;
BEGIN
    -- the condition is that of live_key, which is not on each server
    EXECUTE format('SELECT k.%I AND k.%I FROM crmapi.api_key_%s k'
            ' WHERE k.workspace_id = $1 AND coalesce(k.terms, k.id) = $2'
            ' AND k.revoked_at IS NULL'
            ' AND (k.expires_at IS NULL OR k.expires_at > now())',
            CASE WHEN writes THEN 'can_write' ELSE 'can_read' END,
            CASE WHEN sequences THEN 'plan_sequences' ELSE 'plan_api' END,
            get_shard_id_for_distribution_column('crmapi.api_key', workspace))
        INTO may USING workspace, terms;
    RETURN may;
END
$$;

-- When the contact ID of WORKSPACE was contacted last. For the API.
CREATE OR REPLACE FUNCTION crmapi.contact_last_contacted_at(workspace uuid,
                                                            id uuid)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    at timestamptz;
BEGIN
    EXECUTE format('SELECT max(a.created_at) FROM crmapi.activity_%s a'
            ' WHERE a.workspace_id = $1 AND a.contact_id = $2',
            get_shard_id_for_distribution_column('crmapi.activity', workspace))
        INTO at USING workspace, id;
    RETURN at;
END
$$;

-- Why the contact ID of WORKSPACE is not written to: contact_suppressed(). For the
-- API.
CREATE OR REPLACE FUNCTION crmapi.contact_suppressed_of(workspace uuid, id uuid)
    RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    reasons jsonb;
BEGIN
    EXECUTE format('SELECT coalesce(jsonb_object_agg(CASE s.kind'
            ' WHEN ''email'' THEN ''email'' ELSE ''sms'' END,'
            ' coalesce(s.reason, ''suppressed'')), ''{}'')'
            ' FROM crmapi.contact_%s c JOIN crmapi.suppression_%s s'
            ' ON s.workspace_id = c.workspace_id'
            ' AND (s.kind = ''email'' AND s.address = c.email_key'
            ' OR s.kind = ''phone'' AND s.address = c.phone_key)'
            ' WHERE c.workspace_id = $1 AND c.id = $2',
            get_shard_id_for_distribution_column('crmapi.contact', workspace),
            get_shard_id_for_distribution_column('crmapi.suppression', workspace))
        INTO reasons USING workspace, id;
    RETURN reasons;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.key_may, crmapi.contact_last_contacted_at,
    crmapi.contact_suppressed_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.key_may, crmapi.contact_last_contacted_at,
    crmapi.contact_suppressed_of TO crmapi_api;
