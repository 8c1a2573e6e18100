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
