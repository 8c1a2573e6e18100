-- SPDX-License-Identifier: Apache-2.0
-- 0017-dump.sql: dumping and restoring a workspace (contract 14.3)
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
-- - enrollment_begin() and enrollment_transition() let rows of a dump pass. They ask
--   is_restored() only for rows that they would refuse.
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
-- A dump lacks counter and contact_change (triggers fill them from what is restored), workspace_hold (what is restored is held, whatever was before)
-- and erasure (what a database knows of erasures is no state of the workspace);
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
            api_key.plan_sequences,api_key.closed,job.is_due,job.leased_by,job.leased_until,company.domain_key,company.search,
            company.tag_keys,company.indexed_fields,contact.email_key,
            contact.phone_key,contact.phone_digits,contact.search,
            contact.tag_keys,conversation.search}'::text[])),
    own AS (
        SELECT c.oid, c.relname, a.attnum AS key_number, a.attname AS key
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            AND a.attname = CASE c.relname WHEN 'workspace' THEN 'id'
                            ELSE 'workspace_id' END
        WHERE c.relnamespace = 'crmapi'::regnamespace
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.relname !~ '^(counter|contact_change|workspace_hold|erasure)$'),
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

-- ---- what has changed since a dump -----------------------------------------
-- A workspace moves to another database while it is written: a dump, which is
-- restored there, and then what has changed since. Its writers wait for the changes
-- only.

-- The mark of a dump with the checksum SHA256 that this transaction takes: the oldest
-- transaction that its snapshot may lack, the cluster, and which dump it is. For the
-- owner.
CREATE FUNCTION crmapi.dump_mark(sha256 text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('%s.%s.%s', pg_snapshot_xmin(pg_current_snapshot()),
        c.system_identifier, left(sha256, 16))
    FROM pg_control_system() c;
END;

-- Whether MARK is a dump_mark() of this cluster, of less than 2^30 transactions ago.
-- dump_changes() is then about what was written since. For the owner.
CREATE FUNCTION crmapi.dump_since(mark text) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now CONSTANT numeric := pg_snapshot_xmax(pg_current_snapshot())::text;
    since CONSTANT text := split_part(mark, '.', 1);
BEGIN
    IF mark !~ '^[0-9]{1,18}\.[0-9]{1,20}\.[0-9a-f]{16}$' THEN
        RETURN false;
    END IF;
    PERFORM set_config('crmapi.dump_since', since, true);
    RETURN since::numeric BETWEEN now - 1073741824 AND now
        AND split_part(mark, '.', 2) = (SELECT c.system_identifier::text
                                        FROM pg_control_system() c);
END
$$;

-- What a dump of changes has of each table of dump_table(), in its order: the primary
-- keys of all rows, and the rows that a transaction has written since
-- crmapi.dump_since; more is no harm. Feeds are always there, because a restore of
-- changes deletes them.
--   keys_out, rows_out   read them
--   keys_make, keys_in, rows_make, rows_in   take them, in temporary tables
--   clear     deletes the rows of the workspace $1
--   remove    deletes those that have no key
--   put       writes those that differ
--   lacks     has a row if, after these, there is a key without a row
-- For the owner.
CREATE FUNCTION crmapi.dump_changes()
    RETURNS TABLE (name text, columns json, keys_out text, rows_out text,
                   keys_make text, keys_in text, rows_make text, rows_in text,
                   clear text, remove text, put text, lacks text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH shape AS (
        SELECT d.*, 'keys_' || d.name AS keys, 'rows_' || d.name AS rows,
            CASE d.name WHEN 'workspace' THEN 'id' ELSE 'workspace_id' END AS own,
            k.list AS key, k.same, c.list, c.old, c.new, c.changes
        FROM ROWS FROM (crmapi.dump_table()) WITH ORDINALITY
            d(name, columns, copy_out, copy_in, shared, n)
        CROSS JOIN LATERAL (
            SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
                    AS list,
                array_agg(a.attname) AS names,
                string_agg(format('k.%1$I = t.%1$I', a.attname), ' AND '
                    ORDER BY a.attnum) AS same
            FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                AND a.attnum = ANY (i.indkey::int2[])
            WHERE i.indrelid = format('crmapi.%I', d.name)::regclass
              AND i.indisprimary) k
        CROSS JOIN LATERAL (
            SELECT string_agg(format('%I', m), ', ' ORDER BY o) AS list,
                string_agg(format('t.%I', m), ', ' ORDER BY o) AS old,
                string_agg(format('k.%I', m), ', ' ORDER BY o) AS new,
                string_agg(format('%1$I = excluded.%1$I', m), ', ' ORDER BY o)
                    FILTER (WHERE m <> ALL (k.names)) AS changes
            FROM json_array_elements_text(d.columns) WITH ORDINALITY e(m, o)) c)
    SELECT s.name, s.columns,
        format('COPY (SELECT %s FROM crmapi.%I WHERE %I = current_setting('
            '''crmapi.dump_workspace'')::uuid) TO STDOUT', s.key, s.name, s.own),
        CASE s.name WHEN 'event_feed' THEN s.copy_out ELSE
            replace(s.copy_out, ' ORDER BY ', ' AND age(t.xmin) <= age('
                'current_setting(''crmapi.dump_since'')::xid8::xid) ORDER BY ') END,
        format('CREATE TEMPORARY TABLE %I ON COMMIT DROP AS SELECT %s'
            ' FROM crmapi.%I WHERE false', s.keys, s.key, s.name),
        format('COPY pg_temp.%I FROM STDIN', s.keys),
        format('CREATE TEMPORARY TABLE %I ON COMMIT DROP AS SELECT %I, %s'
            ' FROM crmapi.%I WHERE false', s.rows, s.own, s.list, s.name),
        format('COPY pg_temp.%I FROM STDIN', s.rows),
        format('DELETE FROM crmapi.%I WHERE %I = $1::uuid', s.name, s.own),
        format('DELETE FROM crmapi.%I t WHERE t.%I = $1::uuid AND NOT EXISTS'
            ' (SELECT FROM pg_temp.%I k WHERE %s)', s.name, s.own, s.keys, s.same),
        format('INSERT INTO crmapi.%1$I (%2$I, %3$s) OVERRIDING SYSTEM VALUE'
            ' SELECT $1::uuid, %4$s FROM pg_temp.%5$I k WHERE k.%2$I = $1::uuid AND'
            ' NOT EXISTS (SELECT FROM crmapi.%1$I t WHERE t.%2$I = $1::uuid AND %6$s'
            ' AND ROW(%7$s)::text = ROW(%4$s)::text)'
            ' ON CONFLICT (%8$s) DO UPDATE SET %9$s', s.name, s.own, s.list, s.new,
            s.rows, s.same, s.old, s.key, s.changes),
        format('SELECT WHERE (SELECT count(*) FROM pg_temp.%I) <> (SELECT count(*)'
            ' FROM crmapi.%I WHERE %I = $1::uuid)', s.keys, s.name, s.own)
    FROM shape s ORDER BY s.n;
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
-- them. Those of readers that have seen more are found by events_lost. A dump with a
-- number above 2^40 is refused, so that no forged one uses up a sequence that all
-- workspaces share; 1,000 a second take 34 years to get there. Locks: instance. For
-- the owner.
CREATE FUNCTION crmapi.restore_numbers(workspace uuid) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job bigint := (SELECT max(j.id) FROM crmapi.job j
                   WHERE j.workspace_id = restore_numbers.workspace);
    -- 60 bits around the version; earlier versions had ids that were random
    event bigint := (
        SELECT max(('x' || left(replace(v.id::text, '-', ''), 12)
            || substr(v.id::text, 16, 3))::bit(60)::bigint)
        FROM ((SELECT e.id FROM crmapi.event e
               WHERE e.workspace_id = restore_numbers.workspace
                 AND substr(e.id::text, 15, 1) = '8'
               ORDER BY e.id DESC LIMIT 1)
              UNION ALL
              SELECT f.since FROM crmapi.event_feed f
              WHERE f.workspace_id = restore_numbers.workspace
                AND substr(f.since::text, 15, 1) = '8') v);
BEGIN
    IF greatest(job, event) > 1099511627776 THEN
        RAISE EXCEPTION 'a job or an event has a number above 2^40'
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM crmapi.sequence_raise('crmapi.job_id_seq', job),
        crmapi.sequence_raise('crmapi.event_number', event);
    UPDATE crmapi.instance i SET events_lost = greatest(i.events_lost,
        (SELECT n.last_value FROM crmapi.event_number n))
    WHERE i.one;
END
$$;
