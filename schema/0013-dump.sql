-- SPDX-License-Identifier: Apache-2.0
-- 0013-dump.sql: dumping and restoring a workspace (contract 14.2)
--
-- crmapictl writes the rows of a dump with the triggers of their tables in
-- force: they compute columns and count, as for any other row. A setting that
-- all triggers ask would cost each write something, and to disable them takes
-- locks that stop all writers. Three things make it right:
--
-- - The order of dump_table(): a workspace gets its event_feed last, and while it
--   has none, no trigger writes an event or a delivery.
-- - What triggers make is not in the dump (counter, computed columns), or is
--   deleted before the dump's rows come (link_key, event_feed).
-- - enrollment_begin() lets rows of a dump pass. It is called for no other row.
--
-- In the end the rows are read again and compared with the dump: a trigger that
-- changes more than these fails a restore. t/65-dump.t restores all tables.

-- The tables with rows of a workspace, each after those that it refers to. They
-- come from the catalog, so that a later migration's table is not forgotten.
--   columns   what a dump has of a row
--   copy_out  reads the rows of the workspace in the setting
--             crmapi.dump_workspace, by their primary key. Texts have the order
--             of their bytes, so that it is the same in every database.
--   copy_in   takes rows with the workspace's id before COLUMNS
--   shared    some values are unique in the whole database: hashes of keys
-- A dump lacks counter and contact_change (triggers fill them from what is
-- restored) and workspace_hold (what is restored is held, whatever was before);
-- of each row the workspace's id, generated columns, and those in "derived",
-- which defaults or triggers fill in: so they are what this database makes of the
-- others, by its own plans and its own ICU. A migration that adds such a column
-- or table replaces this function. A leased job is in the dump as job_reap()
-- leaves one whose daemon died. For the owner.
CREATE FUNCTION crmapi.dump_table()
    RETURNS TABLE (name text, columns json, copy_out text, copy_in text,
                   shared boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE derived (col) AS (
        SELECT unnest('{agent.known_at,form.known_at,api_key.plan_api,
            api_key.plan_sequences,job.is_due,job.leased_by,job.leased_until,company.domain_key,company.search,
            company.tag_keys,contact.email_key,contact.phone_key,
            contact.phone_digits,contact.search,contact.tag_keys,
            conversation.search}'::text[])),
    own AS (
        SELECT c.oid, c.relname, a.attnum AS key_number, a.attname AS key
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            AND a.attname = CASE c.relname WHEN 'workspace' THEN 'id'
                            ELSE 'workspace_id' END
        WHERE c.relnamespace = 'crmapi'::regnamespace
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.relname NOT IN ('counter', 'contact_change', 'workspace_hold')),
    path AS (       -- more than 64 foreign keys in a row are a circle
        SELECT o.oid, 0 AS n FROM own o
        UNION
        SELECT k.conrelid, p.n + 1 FROM path p
        JOIN pg_constraint k ON k.confrelid = p.oid AND k.contype = 'f'
            AND k.conrelid <> k.confrelid
        WHERE p.n < 64),
    shape AS (
        SELECT o.*, (SELECT max(p.n) FROM path p WHERE p.oid = o.oid) AS depth,
            c.names, c.list, c.shown,
            (SELECT string_agg(format('t.%I', a.attname) || CASE
                WHEN a.attcollation <> 0 THEN ' COLLATE "C"' ELSE '' END, ', '
                ORDER BY array_position(i.indkey::int2[], a.attnum))
             FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                AND a.attnum = ANY (i.indkey::int2[])
             WHERE i.indrelid = o.oid AND i.indisprimary) AS sorted,
            EXISTS (SELECT FROM pg_index i WHERE i.indrelid = o.oid
                AND i.indisunique AND i.indkey[0] <> o.key_number
                AND o.relname <> 'workspace') AS shared
        FROM own o CROSS JOIN LATERAL (
            SELECT json_agg(a.attname ORDER BY a.attnum) AS names,
                string_agg(format(', %I', a.attname), '' ORDER BY a.attnum)
                    AS list,
                string_agg(CASE WHEN (o.relname, a.attname) = ('job', 'state')
                    THEN 'CASE t.state WHEN ''leased'' THEN ''ready'''
                        ' ELSE t.state END'
                    ELSE format('t.%I', a.attname) END, ', '
                    ORDER BY a.attnum) AS shown
            FROM pg_attribute a WHERE a.attrelid = o.oid AND a.attnum > 0
              AND NOT a.attisdropped AND a.attgenerated = ''
              AND a.attname <> o.key AND o.relname || '.' || a.attname
                  NOT IN (SELECT d.col FROM derived d)) c)
    SELECT s.relname, s.names,
        format('COPY (SELECT %s FROM crmapi.%I t WHERE t.%I = current_setting('
            '''crmapi.dump_workspace'')::uuid ORDER BY %s) TO STDOUT', s.shown,
            s.relname, s.key, s.sorted),
        format('COPY crmapi.%I (%I%s) FROM STDIN', s.relname, s.key, s.list),
        s.shared
    FROM shape s ORDER BY s.relname <> 'workspace', s.relname = 'event_feed',
        s.depth, s.relname;
END;

-- ---- numbers above those of a dump -----------------------------------------

-- Wait until no other transaction has a ticket that is more than 2^28 numbers below
-- N, the last one that was taken. Internal.
CREATE FUNCTION crmapi.event_ticket_wait(n bigint) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    WHILE EXISTS (
        SELECT FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 2
          AND l.mode = 'ShareLock' AND l.pid <> pg_backend_pid()
          AND l.database = (SELECT d.oid FROM pg_database d
                            WHERE d.datname = current_database())
          AND n - crmapi.event_ticket(n, l.objid::bigint) > 268435456)
    LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;

-- Have NUMBERS, a sequence, continue above UPTO. It never goes back: a small gap
-- is closed by taking numbers, a larger one by steps to what no other session can
-- reach meanwhile; sessions that do so take turns. Readers of events know a ticket
-- only up to 2^30 numbers below the last one (event_ticket()), so a step of 2^29
-- waits for those that are far below, whoever made the step before. Locks: the
-- advisory one of NUMBERS. Internal.
CREATE FUNCTION crmapi.sequence_raise(numbers regclass, upto bigint)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    small CONSTANT bigint := 100000;
    ahead CONSTANT bigint := 16777216;
    large CONSTANT bigint := 536870912;
    n bigint := nextval(numbers);
BEGIN
    IF upto - n > small THEN
        PERFORM pg_advisory_xact_lock(
            hashtextextended('sequence:' || numbers, 0));
        n := nextval(numbers);
    END IF;
    WHILE upto - n > small LOOP
        IF numbers = 'crmapi.event_number'::regclass THEN
            PERFORM crmapi.event_ticket_wait(n);
            n := nextval(numbers);
        END IF;
        PERFORM setval(numbers, least(greatest(n, upto) + ahead, n + large));
        n := nextval(numbers);
    END LOOP;
    PERFORM nextval(numbers) FROM generate_series(n, upto);
END
$$;

-- Have jobs and events of this database get numbers above those of WORKSPACE,
-- which was restored: cursors of its readers stay valid, and what comes is behind
-- them. A dump with a number above 2^40 is refused, so that no forged one uses up
-- a sequence that all workspaces share; 1,000 a second take 34 years to get
-- there. For the owner.
CREATE FUNCTION crmapi.restore_numbers(workspace uuid) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job bigint := (SELECT max(j.id) FROM crmapi.job j
                   WHERE j.workspace_id = restore_numbers.workspace);
    -- 60 bits around the version; earlier versions had ids that were random
    event bigint := (
        SELECT max(('x' || left(replace(v.id::text, '-', ''), 12)
            || substr(v.id::text, 16, 3))::bit(60)::bigint)
        FROM (SELECT e.id FROM crmapi.event e
              WHERE e.workspace_id = restore_numbers.workspace
              UNION ALL
              SELECT f.since FROM crmapi.event_feed f
              WHERE f.workspace_id = restore_numbers.workspace) v
        WHERE substr(v.id::text, 15, 1) = '8');
BEGIN
    IF greatest(job, event) > 1099511627776 THEN
        RAISE EXCEPTION 'a job or an event has a number above 2^40'
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM crmapi.sequence_raise('crmapi.job_id_seq', job),
        crmapi.sequence_raise('crmapi.event_number', event);
END
$$;
