-- SPDX-License-Identifier: Apache-2.0
-- 0011-tool.sql: what crmapictl calls

-- Delete the workspace TARGET, all its rows, and what leads to it. For the owner.
CREATE OR REPLACE FUNCTION crmapi.workspace_delete(target uuid) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM crmapi.key_home h
    WHERE h.workspace_id = workspace_delete.target;
    DELETE FROM crmapi.slug_home h
    WHERE h.workspace_id = workspace_delete.target;
    DELETE FROM crmapi.workspace w WHERE w.id = workspace_delete.target;
END
$$;

-- A dump is that of any database: it can be restored in one that is not
-- distributed, and the other way round. So it has no tables of this folder. Ids of
-- jobs contain the number of the server that made them: where there are such ids,
-- a dump has 1, 2, 3 ... instead, in their order. COPY has the workspace as a
-- value, so that it reads from its server only. For the owner.
ALTER FUNCTION crmapi.dump_table RENAME TO dump_table_plain;
CREATE FUNCTION crmapi.dump_table()
    RETURNS TABLE (name text, columns json, copy_out text, copy_in text,
                   shared boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace CONSTANT uuid := current_setting('crmapi.dump_workspace')::uuid;
    of_server CONSTANT boolean := EXISTS (SELECT FROM crmapi.job j
        WHERE j.workspace_id = workspace AND j.id >= 281474976710656);
    numbered CONSTANT text := '(SELECT j.workspace_id, j.id,'
        ' row_number() OVER (ORDER BY j.id) AS n FROM crmapi.job j'
        ' WHERE j.workspace_id = %1$L) n'
        ' ON n.workspace_id = t.workspace_id AND n.id = t.%2$s';
BEGIN
    RETURN QUERY SELECT d.name, d.columns,
        replace(CASE WHEN of_server AND d.name = 'job'
            THEN replace(replace(d.copy_out, '(SELECT t.id,', '(SELECT n.n,'),
                'crmapi.job t', 'crmapi.job t JOIN '
                    || format(numbered, workspace, 'id'))
            WHEN of_server AND d.name = 'webhook_delivery'
            THEN replace(replace(d.copy_out, ' t.job_id,', ' coalesce(n.n, 0),'),
                'crmapi.webhook_delivery t', 'crmapi.webhook_delivery t LEFT JOIN '
                    || format(numbered, workspace, 'job_id'))
            ELSE d.copy_out END,
            'current_setting(''crmapi.dump_workspace'')',
            quote_literal(workspace)),
        d.copy_in, d.name IN ('api_key', 'intake_key')
    FROM crmapi.dump_table_plain() d
    WHERE d.name NOT IN ('key_home', 'slug_home', 'number_home',
        'event_home');
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.dump_table FROM PUBLIC;
