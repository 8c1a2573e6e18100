-- SPDX-License-Identifier: Apache-2.0
-- 0009-tables.sql: the tables go to the servers

-- Foreign keys and triggers are added again when all tables are distributed: the
-- rows that move to the servers would need other tables there.

SET LOCAL citus.enable_ddl_propagation = on;
CREATE TEMPORARY TABLE key_of ON COMMIT DROP AS
    SELECT c.conrelid::regclass::text AS child, c.conname,
           regexp_replace(pg_get_constraintdef(c.oid), ' ON DELETE SET NULL.*',
                          '') AS definition
    FROM pg_constraint c
    WHERE c.connamespace = 'crmapi'::regnamespace AND c.contype = 'f';
CREATE TEMPORARY TABLE trigger_of ON COMMIT DROP AS
    SELECT t.tgrelid::regclass::text AS of, t.tgname,
           pg_get_triggerdef(t.oid) AS definition
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'crmapi'::regnamespace AND NOT t.tgisinternal;

DO $$
DECLARE
    name text;
    key record;
    follower record;
    of regprocedure;
    -- a call of these runs on the server of its workspace
    delegated CONSTANT regprocedure[] := ARRAY[
        'crmapi.intake(uuid, bytea, jsonb)', 'crmapi.event_log(uuid, boolean)',
        'crmapi.event_log_wait(uuid)'];
BEGIN
    -- the servers get its type before functions with an array of it
    PERFORM create_distributed_function(
        'crmapi.intake_texts(crmapi.intake_item)');
    FOR follower IN SELECT * FROM trigger_of LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', follower.tgname, follower.of);
    END LOOP;
    FOR key IN SELECT * FROM key_of LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.child,
                       key.conname);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['plan', 'key_home', 'slug_home', 'instance'] LOOP
        PERFORM create_reference_table(format('crmapi.%I', name));
    END LOOP;
    PERFORM create_distributed_table('crmapi.workspace', 'id',
                                     colocate_with => 'none');
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnotnull
        WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r'
          AND c.relname NOT IN ('key_home', 'slug_home')
        ORDER BY 1 LOOP
        PERFORM create_distributed_table(format('crmapi.%I', name),
            'workspace_id', colocate_with => 'crmapi.workspace');
    END LOOP;
    -- the coordinator's place is that of the database, and its marks
    FOR of IN SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND p.proname NOT IN ('mark_behind', 'mark_refuses', 'instance_place')
          AND p.oid <> ALL (delegated) LOOP
        PERFORM create_distributed_function(of);
    END LOOP;
    FOREACH of IN ARRAY delegated LOOP
        PERFORM create_distributed_function(of, 'workspace',
                                            'crmapi.workspace');
    END LOOP;
    FOR key IN SELECT * FROM key_of LOOP
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', key.child,
                       key.conname, key.definition);
    END LOOP;
    FOR follower IN SELECT * FROM trigger_of LOOP
        EXECUTE follower.definition;
    END LOOP;
END
$$;

-- Rights on columns do not travel with a table.
GRANT SELECT (id, workspace_id, can_read, can_write, plan_api, plan_sequences, closed,
              terms, read_limit, write_limit, networks, revoked_at, expires_at,
              last_used_at), UPDATE (last_used_at)
    ON crmapi.api_key TO crmapi_api;
