-- SPDX-License-Identifier: Apache-2.0
-- distribute.sql: what crmapictl distribute does to a migrated database, in one
-- transaction, so that Citus keeps each workspace on one of several servers
-- (contract 16.4, docs/scaling.md)
--
-- Each table of workspaces is distributed by workspace, and all in the same way,
-- so that the rows of a workspace are together. Statements and triggers of a
-- workspace run on its server. Here is what differs from other databases; the
-- rules of schema/README ("One workspace") make it so little.

-- All triggers write rows of their row's workspace only.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
-- The servers get objects when tables need them, in their final form.
SET LOCAL citus.enable_ddl_propagation = off;

-- ---- what is unique across workspaces --------------------------------------
-- Reference tables, which each server has. crmapictl writes them together with
-- the rows that they lead to: a trigger on one server could not.

-- The workspace of a key or token.
CREATE TABLE crmapi.key_home (
    key_hash bytea PRIMARY KEY,
    workspace_id uuid NOT NULL
);
INSERT INTO crmapi.key_home
    SELECT k.key_hash, k.workspace_id FROM crmapi.api_key k
    UNION ALL
    SELECT k.key_hash, k.workspace_id FROM crmapi.intake_key k;
ALTER TABLE crmapi.api_key DROP CONSTRAINT api_key_key_hash_key,
    ADD UNIQUE (workspace_id, key_hash);
ALTER TABLE crmapi.intake_key DROP CONSTRAINT intake_key_key_hash_key,
    ADD UNIQUE (workspace_id, key_hash);

-- The workspace of a slug.
CREATE TABLE crmapi.slug_home (
    slug text COLLATE "C" PRIMARY KEY,
    workspace_id uuid NOT NULL
);
INSERT INTO crmapi.slug_home SELECT w.slug, w.id FROM crmapi.workspace w;
ALTER TABLE crmapi.workspace DROP CONSTRAINT workspace_slug_key;

-- ---- references that are set null ------------------------------------------
-- Citus has no ON DELETE SET NULL for a key with workspace_id. The trigger of
-- the row that leaves does the same.

-- Set the references to the row that leaves null. The trigger's arguments are
-- pairs: the table and its column. A trigger function.
CREATE FUNCTION crmapi.forget_references() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    FOR i IN 0 .. TG_NARGS - 1 BY 2 LOOP
        EXECUTE format('UPDATE crmapi.%I t SET %I = NULL
            WHERE t.workspace_id = $1 AND t.%I = $2', TG_ARGV[i],
            TG_ARGV[i + 1], TG_ARGV[i + 1]) USING OLD.workspace_id, OLD.id;
    END LOOP;
    RETURN OLD;
END
$$;

-- "zz": after the triggers that need the references.
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.contact FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('pipeline_card', 'contact_id',
        'activity', 'contact_id', 'conversation', 'contact_id',
        'submission', 'contact_id');
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.company FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('contact', 'company_id',
        'activity', 'company_id');
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.pipeline_stage FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('contact', 'pipeline_stage_id',
        'company', 'pipeline_stage_id');

-- ---- sequences -------------------------------------------------------------
-- A sequence travels with the default of a column. Each server counts in a range
-- of its own.
CREATE TABLE crmapi.number_home (
    workspace_id uuid PRIMARY KEY,
    event bigint NOT NULL DEFAULT nextval('crmapi.event_number'),
    intake bigint NOT NULL DEFAULT nextval('crmapi.intake_order')
);

-- ---- values ----------------------------------------------------------------

-- Citus evaluates a bind before it knows whether there is a row.
ALTER DOMAIN crmapi.addresses DROP CONSTRAINT addresses_check;
ALTER DOMAIN crmapi.addresses ADD CONSTRAINT addresses_check
    CHECK (VALUE IS NULL OR CASE WHEN jsonb_typeof(VALUE) = 'array'
           THEN jsonb_array_length(VALUE) <= 50 ELSE false END);

-- ---- functions -------------------------------------------------------------

-- Forced plans have no values to find the server by.
ALTER FUNCTION crmapi.intake RESET plan_cache_mode;

-- ---- totals ----------------------------------------------------------------
-- A transition table is only where its trigger runs: it is read first, and then
-- rows of the workspace are written.

-- Add N rows of KIND to the total of WORKSPACE and, unless it is null, of the
-- agent BOT. Internal.
CREATE OR REPLACE FUNCTION crmapi.counter_add(workspace uuid, kind text,
                                              bot uuid, n bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    own smallint := crmapi.counter_slot();
    zero CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    VALUES (counter_add.workspace, counter_add.kind, zero, own,
            counter_add.n)
    ON CONFLICT ON CONSTRAINT counter_pkey DO UPDATE SET n = c.n + excluded.n;
    IF bot IS NOT NULL THEN
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        VALUES (counter_add.workspace, counter_add.kind, counter_add.bot, own,
                counter_add.n)
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n;
    END IF;
END
$$;

-- Add N rows of KIND to the total of PARENT, if WORKSPACE exists: in its cascade
-- there is nothing to count. Internal.
CREATE FUNCTION crmapi.counter_put(workspace uuid, kind text, parent uuid,
                                   n bigint) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    own smallint := crmapi.counter_slot();
BEGIN
    IF EXISTS (SELECT FROM crmapi.workspace w
               WHERE w.id = counter_put.workspace) THEN
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        VALUES (counter_put.workspace, counter_put.kind, counter_put.parent,
                own, counter_put.n)
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n;
    END IF;
END
$$;

-- Count contacts or companies: the trigger's argument says which. A trigger
-- function.
CREATE OR REPLACE FUNCTION crmapi.counter_owned() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id,
            coalesce(r.bot_id, '00000000-0000-0000-0000-000000000000')
                AS parent, count(*) AS n
        FROM changed r GROUP BY GROUPING SETS ((1), (1, r.bot_id)) ORDER BY 1, 2
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, TG_ARGV[0], d.parent,
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;

-- Count conversations that are not deleted. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.counter_conversation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id,
            coalesce(r.bot_id, '00000000-0000-0000-0000-000000000000')
                AS parent, count(*) AS n
        FROM changed r WHERE r.deleted IS NOT TRUE
        GROUP BY GROUPING SETS ((1), (1, r.bot_id)) ORDER BY 1, 2
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, 'conversation', d.parent,
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;

-- Count cards that are not archived. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.counter_pipeline_card() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id, count(*) AS n FROM changed r
        WHERE r.archived_at IS NULL GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, 'pipeline_card',
            '00000000-0000-0000-0000-000000000000',
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.counter_put FROM PUBLIC;

-- ---- keys ------------------------------------------------------------------

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
        RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug, k.terms,
            k.read_limit, k.write_limit, array_to_string(k.networks, ' ')
        FROM crmapi.live_key k
        JOIN crmapi.api_key h ON h.workspace_id = k.workspace_id
            AND h.id = k.key_id
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

-- The keys that are neither revoked nor expired and what they permit. It is read
-- with the caller's rights on each server, so it has no hash.
DROP VIEW crmapi.live_key;
CREATE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.id AS key_id, w.slug,
           k.can_read AS read, k.can_write AS write,
           k.plan_api, k.plan_sequences,
           coalesce(k.terms, k.id) AS terms,
           coalesce(k.read_limit, w.read_limit) AS read_limit,
           coalesce(k.write_limit, w.write_limit) AS write_limit,
           k.networks
    FROM crmapi.api_key k
    LEFT JOIN crmapi.workspace w ON w.id = k.workspace_id
    WHERE k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now());
GRANT SELECT ON crmapi.live_key TO crmapi_api;

-- ---- times -----------------------------------------------------------------
-- An UPDATE of a program has infinity for the time of the change, because Citus
-- takes no volatile function there.

-- Put the time in place of infinity: updated_at always grows (contract 6.6). A
-- trigger function.
CREATE FUNCTION crmapi.set_times() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    IF NEW.updated_at = 'infinity' THEN
        NEW.updated_at := greatest(moment,
                                   OLD.updated_at + interval '1 millisecond');
    END IF;
    RETURN NEW;
END
$$;
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attname = 'updated_at'
        WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r' LOOP
        EXECUTE format('CREATE TRIGGER aa_times BEFORE UPDATE OF updated_at
            ON crmapi.%I FOR EACH ROW EXECUTE FUNCTION crmapi.set_times()',
            name);
    END LOOP;
END
$$;

-- The same for the other times of a conversation. A trigger function.
CREATE FUNCTION crmapi.set_conversation_times() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    IF NEW.assigned_at = 'infinity' THEN
        NEW.assigned_at := moment;
    END IF;
    IF NEW.archived_at = 'infinity' THEN
        NEW.archived_at := moment;
    END IF;
    IF NEW.deleted_at = 'infinity' THEN
        NEW.deleted_at := moment;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER aa_conversation_times
    BEFORE UPDATE OF assigned_at, archived_at, deleted_at ON crmapi.conversation
    FOR EACH ROW EXECUTE FUNCTION crmapi.set_conversation_times();

-- Functions update rows, too.
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prokind = 'f'
          AND p.prosrc ~ ' updated_at = greatest' LOOP
        EXECUTE regexp_replace(definition, ' updated_at = greatest\(crmapi'
            || '\.now_ms\(\),\s*\w+\.updated_at \+ interval ''1 millisecond''\)',
            ' updated_at = ''infinity''::timestamptz', 'g');
    END LOOP;
END
$$;

-- ---- plans -----------------------------------------------------------------

-- A plan is on each server, and its keys are on all of them.
DROP TRIGGER rights ON crmapi.plan;

-- ---- the worker ------------------------------------------------------------

-- No server but the coordinator is listened to.
DROP TRIGGER notify ON crmapi.job;
DROP TRIGGER notify_again ON crmapi.job;

-- ---- distribution ----------------------------------------------------------
-- Foreign keys are added again when both of their tables are distributed.

SET LOCAL citus.enable_ddl_propagation = on;
CREATE TEMPORARY TABLE key_of ON COMMIT DROP AS
    SELECT c.conrelid::regclass::text AS child, c.conname,
           regexp_replace(pg_get_constraintdef(c.oid), ' ON DELETE SET NULL.*',
                          '') AS definition
    FROM pg_constraint c
    WHERE c.connamespace = 'crmapi'::regnamespace AND c.contype = 'f';

DO $$
DECLARE
    name text;
    key record;
    of regprocedure;
BEGIN
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
    FOR of IN SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND p.proname NOT IN ('mark_behind', 'instance_place')
          AND p.proname !~ '^intake' LOOP
        PERFORM create_distributed_function(of);
    END LOOP;
    FOR key IN SELECT * FROM key_of LOOP
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', key.child,
                       key.conname, key.definition);
    END LOOP;
END
$$;

-- Rights on columns do not travel with a table.
GRANT SELECT (id, workspace_id, can_read, can_write, plan_api, plan_sequences,
              terms, read_limit, write_limit, networks, revoked_at, expires_at,
              last_used_at), UPDATE (last_used_at)
    ON crmapi.api_key TO crmapi_api;
