-- SPDX-License-Identifier: Apache-2.0
-- 2-index.sql: an index, and a function with a new signature
-- min_module: @VERSION@

-- step: index contact_name_length_idx
CREATE INDEX CONCURRENTLY contact_name_length_idx
    ON crmapi.contact (workspace_id, name_length, id);

-- step: transaction: take the length, too
CREATE FUNCTION crmapi.key_look_up(hash bytea, shortest integer)
RETURNS TABLE (key_id uuid, workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
    SELECT k.key_id, k.workspace_id FROM crmapi.live_key k
    WHERE k.key_hash = hash AND octet_length(hash) >= shortest
$$;
REVOKE EXECUTE ON FUNCTION crmapi.key_look_up(bytea, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.key_look_up(bytea, integer) TO crmapi_api;
