-- SPDX-License-Identifier: Apache-2.0
-- 2-index.sql: in a distributed database
-- min_module: @VERSION@

-- step: index contact_name_length_idx
CREATE INDEX CONCURRENTLY contact_name_length_idx
    ON crmapi.contact (workspace_id, name_length, id);

-- step: transaction: take the length, too
CREATE FUNCTION crmapi.key_look_up(hash bytea, shortest integer)
RETURNS TABLE (key_id uuid, workspace_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    RETURN QUERY SELECT f.key_id, f.workspace_id FROM crmapi.key_look_up(hash) f
    WHERE octet_length(hash) >= shortest;
END
$$;

-- step: transaction: nobody else
REVOKE EXECUTE ON FUNCTION crmapi.key_look_up(bytea, integer) FROM PUBLIC;

-- step: transaction: but the API
GRANT EXECUTE ON FUNCTION crmapi.key_look_up(bytea, integer) TO crmapi_api;
