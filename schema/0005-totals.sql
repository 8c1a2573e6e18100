-- SPDX-License-Identifier: Apache-2.0
-- 0005-totals.sql: exact totals of lists without filters and of lists by agent
--
-- The total of KIND is the sum of n over the slots: for the agent PARENT, or
-- for the whole workspace where PARENT is all zeros. Counted are contacts,
-- companies, conversations that are not deleted, and cards that are not
-- archived (cards for the whole workspace only).
--
-- A transaction adds in a slot that few others use, so that writers rarely
-- wait for each other, and in sorted order, so that they never deadlock. A
-- long transaction such as an import sets crmapi.counter_slot to a number
-- other than 0 to 15.

CREATE TABLE crmapi.counter (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind text COLLATE "C" NOT NULL,
    parent uuid NOT NULL,
    slot smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (workspace_id, kind, parent, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- The slot of this transaction.
CREATE FUNCTION crmapi.counter_slot() RETURNS smallint
    LANGUAGE sql STABLE PARALLEL RESTRICTED
    RETURN coalesce(nullif(current_setting('crmapi.counter_slot', true), '')
                    ::smallint, (pg_backend_pid() % 16)::smallint);

-- ---- inserts and deletes ---------------------------------------------------
-- The transition table "changed" has the rows of the statement. In the cascade
-- of a workspace there is nothing to count. A workspace that another
-- transaction is deleting blocks us until it is gone, or we block that
-- transaction.

-- Count contacts or companies: the trigger's argument says which. A trigger
-- function.
CREATE FUNCTION crmapi.counter_owned() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT d.workspace_id, TG_ARGV[0],
           coalesce(d.bot_id, '00000000-0000-0000-0000-000000000000'),
           crmapi.counter_slot(),
           CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END
    FROM (SELECT r.workspace_id, r.bot_id, count(*) AS n FROM changed r
          GROUP BY GROUPING SETS ((1), (1, 2))) d
    WHERE EXISTS (SELECT FROM crmapi.workspace w WHERE w.id = d.workspace_id)
    ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, kind, parent, slot)
    DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END
$$;

-- Count conversations that are not deleted. A trigger function.
CREATE FUNCTION crmapi.counter_conversation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT d.workspace_id, 'conversation',
           coalesce(d.bot_id, '00000000-0000-0000-0000-000000000000'),
           crmapi.counter_slot(),
           CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END
    FROM (SELECT r.workspace_id, r.bot_id, count(*) AS n FROM changed r
          WHERE r.deleted IS NOT TRUE
          GROUP BY GROUPING SETS ((1), (1, 2))) d
    WHERE EXISTS (SELECT FROM crmapi.workspace w WHERE w.id = d.workspace_id)
    ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, kind, parent, slot)
    DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END
$$;

-- Count cards that are not archived. A trigger function.
CREATE FUNCTION crmapi.counter_pipeline_card() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT d.workspace_id, 'pipeline_card',
           '00000000-0000-0000-0000-000000000000', crmapi.counter_slot(),
           CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END
    FROM (SELECT r.workspace_id, count(*) AS n FROM changed r
          WHERE r.archived_at IS NULL GROUP BY 1) d
    WHERE EXISTS (SELECT FROM crmapi.workspace w WHERE w.id = d.workspace_id)
    ORDER BY 1
    ON CONFLICT (workspace_id, kind, parent, slot)
    DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END
$$;

DO $$
DECLARE
    name text;
    call text;
BEGIN
    FOR name, call IN VALUES
        ('contact', 'counter_owned(''contact'')'),
        ('company', 'counter_owned(''company'')'),
        ('conversation', 'counter_conversation()'),
        ('pipeline_card', 'counter_pipeline_card()') LOOP
        EXECUTE format('CREATE TRIGGER counter_insert
            AFTER INSERT ON crmapi.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION crmapi.%s', name, call);
        EXECUTE format('CREATE TRIGGER counter_delete
            AFTER DELETE ON crmapi.%I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION crmapi.%s', name, call);
    END LOOP;
END
$$;

-- ---- updates ---------------------------------------------------------------
-- Every UPDATE would fill a transition table; it cannot be limited to columns.
-- A row trigger costs nothing unless its columns are set, and little unless
-- the value that counts has changed.

-- Add N rows of KIND to the total of WORKSPACE and, unless it is null, of the
-- agent BOT. Internal.
CREATE FUNCTION crmapi.counter_add(workspace uuid, kind text,
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

-- Count a contact or company that has another agent now: the trigger's argument
-- says which. A trigger function.
CREATE FUNCTION crmapi.counter_bot_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.counter_add(OLD.workspace_id, TG_ARGV[0], OLD.bot_id, -1);
    PERFORM crmapi.counter_add(NEW.workspace_id, TG_ARGV[0], NEW.bot_id, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER counter_update AFTER UPDATE OF bot_id ON crmapi.contact
    FOR EACH ROW WHEN (NEW.bot_id IS DISTINCT FROM OLD.bot_id)
    EXECUTE FUNCTION crmapi.counter_bot_change('contact');
CREATE TRIGGER counter_update AFTER UPDATE OF bot_id ON crmapi.company
    FOR EACH ROW WHEN (NEW.bot_id IS DISTINCT FROM OLD.bot_id)
    EXECUTE FUNCTION crmapi.counter_bot_change('company');

-- Count a conversation that was deleted or restored, or has another agent now.
-- A trigger function.
CREATE FUNCTION crmapi.counter_conversation_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF OLD.deleted IS NOT TRUE THEN
        PERFORM crmapi.counter_add(OLD.workspace_id, 'conversation',
                                   OLD.bot_id, -1);
    END IF;
    IF NEW.deleted IS NOT TRUE THEN
        PERFORM crmapi.counter_add(NEW.workspace_id, 'conversation',
                                   NEW.bot_id, 1);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER counter_update
    AFTER UPDATE OF deleted, bot_id ON crmapi.conversation
    FOR EACH ROW WHEN ((NEW.deleted IS TRUE) <> (OLD.deleted IS TRUE)
                       OR NEW.bot_id IS DISTINCT FROM OLD.bot_id)
    EXECUTE FUNCTION crmapi.counter_conversation_change();

-- Count a card that was archived or restored. A trigger function.
CREATE FUNCTION crmapi.counter_pipeline_card_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.counter_add(NEW.workspace_id, 'pipeline_card', NULL,
        CASE WHEN NEW.archived_at IS NULL THEN 1 ELSE -1 END);
    RETURN NULL;
END
$$;
CREATE TRIGGER counter_update AFTER UPDATE OF archived_at
    ON crmapi.pipeline_card FOR EACH ROW
    WHEN ((NEW.archived_at IS NULL) <> (OLD.archived_at IS NULL))
    EXECUTE FUNCTION crmapi.counter_pipeline_card_change();

-- ---- truncates -------------------------------------------------------------

-- Refuse a TRUNCATE, which would not change the totals. A trigger function.
CREATE FUNCTION crmapi.refuse_truncate() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'crmapi.% is counted: use DELETE', TG_TABLE_NAME;
END
$$;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['contact', 'company', 'conversation',
        'pipeline_card'] LOOP
        EXECUTE format('CREATE TRIGGER counter_truncate
            BEFORE TRUNCATE ON crmapi.%I
            FOR EACH STATEMENT EXECUTE FUNCTION crmapi.refuse_truncate()',
            name);
    END LOOP;
END
$$;

-- ---- checking and repairing ------------------------------------------------

-- The totals that differ from the number of rows: no row if all are correct.
-- It counts everything, in one snapshot. For the owner.
CREATE FUNCTION crmapi.counter_verify()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH owned AS (
        SELECT r.workspace_id, 'contact' AS kind, r.bot_id
        FROM crmapi.contact r
        UNION ALL
        SELECT r.workspace_id, 'company', r.bot_id FROM crmapi.company r
        UNION ALL
        SELECT r.workspace_id, 'conversation', r.bot_id
        FROM crmapi.conversation r WHERE r.deleted IS NOT TRUE),
    truth AS (
        SELECT o.workspace_id, o.kind,
               coalesce(o.bot_id, '00000000-0000-0000-0000-000000000000')
                   AS parent, count(*) AS n
        FROM owned o GROUP BY GROUPING SETS ((1, 2), (1, 2, o.bot_id))
        UNION ALL
        SELECT r.workspace_id, 'pipeline_card',
               '00000000-0000-0000-0000-000000000000', count(*)
        FROM crmapi.pipeline_card r WHERE r.archived_at IS NULL GROUP BY 1),
    totals AS (
        SELECT c.workspace_id, c.kind, c.parent, sum(c.n)::bigint AS n
        FROM crmapi.counter c GROUP BY 1, 2, 3)
    SELECT workspace_id, kind, parent, coalesce(c.n, 0), coalesce(t.n, 0)
    FROM truth t FULL JOIN totals c USING (workspace_id, kind, parent)
    WHERE coalesce(c.n, 0) <> coalesce(t.n, 0);
END
$$;

-- Add to the totals that differ what they lack, and return them as
-- counter_verify() does. Both use one snapshot, so that what other
-- transactions add meanwhile stays correct. For the worker.
CREATE FUNCTION crmapi.counter_mend()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH differing AS MATERIALIZED (
        SELECT v.* FROM crmapi.counter_verify() v),
    mended AS (
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        SELECT w.workspace_id, w.kind, w.parent, -2, w.actual - w.counted
        FROM differing w
        WHERE EXISTS (SELECT FROM crmapi.workspace s
                      WHERE s.id = w.workspace_id)
        ORDER BY 1, 2, 3
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n)
    SELECT w.workspace_id, w.kind, w.parent, w.counted, w.actual
    FROM differing w;
END
$$;

-- Delete the counters that are zero; return how many. For the worker.
CREATE FUNCTION crmapi.counter_trim() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    done bigint;
BEGIN
    DELETE FROM crmapi.counter c WHERE c.n = 0;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;
