-- SPDX-License-Identifier: Apache-2.0
-- 0010-worker.sql: what the worker's functions do on several servers

-- The coordinator's place is that of the database: instance_place() is only there.

-- Compare this database with KNOWN, and with where it was. WHY is null if all
-- is well, otherwise the reason to hold it. MARKS are its present numbers. The
-- first call records where it is. For the worker.
CREATE OR REPLACE FUNCTION crmapi.instance_look(known bigint[], OUT why text,
                                                OUT marks bigint[])
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here record;
    noted record;
BEGIN
    SELECT p.* INTO here FROM crmapi.instance_place() p;
    SELECT i.system_id, i.database_id INTO noted FROM crmapi.instance i;
    IF noted.system_id IS NULL THEN     -- a write needs all servers
        UPDATE crmapi.instance i SET system_id = here.system_id,
            database_id = here.database_id
        WHERE i.one;
        noted := here;
    END IF;
    IF crmapi.mark_behind(known) THEN
        why := 'an older state of the database was restored';
    ELSIF noted IS DISTINCT FROM here THEN
        why := 'the database was restored or copied from another one';
    END IF;
    marks := (SELECT array_agg(m.n ORDER BY m.slot) FROM crmapi.send_mark m);
END
$$;

-- End the hold of WORKSPACE, or that of the database if it is null, and with
-- WORKSPACES those of all workspaces, too. Daemons are told. A database that is
-- released is at home where it is now. Returns how many holds ended. For the
-- owner.
CREATE OR REPLACE FUNCTION crmapi.release(workspace uuid, workspaces boolean)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here record;
    n bigint := 0;
    m bigint := 0;
BEGIN
    IF workspaces THEN
        DELETE FROM crmapi.workspace_hold h;
        GET DIAGNOSTICS n = ROW_COUNT;
    ELSIF workspace IS NOT NULL THEN
        DELETE FROM crmapi.workspace_hold h
        WHERE h.workspace_id = release.workspace;
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = NULL, held_reason = NULL
        WHERE i.held_at IS NOT NULL;
        GET DIAGNOSTICS m = ROW_COUNT;
        SELECT p.* INTO here FROM crmapi.instance_place() p;
        UPDATE crmapi.instance i SET system_id = here.system_id,
            database_id = here.database_id
        WHERE i.one;
    END IF;
    PERFORM pg_notify('crmapi_job', l.lane)
    FROM unnest('{sequence,webhook}'::text[]) l(lane);
    RETURN n + m;
END
$$;

-- The totals of WORKSPACE that differ from the number of its rows, as
-- counter_verify(). One server answers, with one snapshot. Internal.
CREATE FUNCTION crmapi.counter_verify_of(workspace uuid)
    RETURNS TABLE (kind text, parent uuid, counted bigint, actual bigint)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    zero CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    RETURN QUERY WITH owned AS (
        SELECT 'contact' AS kind, r.bot_id FROM crmapi.contact r
        WHERE r.workspace_id = workspace
        UNION ALL
        SELECT 'company', r.bot_id FROM crmapi.company r
        WHERE r.workspace_id = workspace
        UNION ALL
        SELECT 'conversation', r.bot_id FROM crmapi.conversation r
        WHERE r.workspace_id = workspace AND r.deleted IS NOT TRUE),
    truth AS (
        SELECT o.kind, coalesce(o.bot_id, zero) AS parent, count(*) AS n
        FROM owned o GROUP BY GROUPING SETS ((1), (1, o.bot_id))
        UNION ALL
        SELECT 'pipeline_card', zero, count(*) FROM crmapi.pipeline_card r
        WHERE r.workspace_id = workspace AND r.archived_at IS NULL),
    totals AS (
        SELECT c.kind, c.parent, sum(c.n)::bigint AS n FROM crmapi.counter c
        WHERE c.workspace_id = workspace GROUP BY 1, 2)
    SELECT kind, parent, coalesce(c.n, 0), coalesce(t.n, 0)
    FROM truth t FULL JOIN totals c USING (kind, parent)
    WHERE coalesce(c.n, 0) <> coalesce(t.n, 0);
END
$$;

-- Add to the totals that differ what they lack, and return them as
-- counter_verify() does. That may see a row on one server and not its total, so
-- each workspace that it names is looked at again. What other transactions add
-- meanwhile stays correct. For the worker.
CREATE OR REPLACE FUNCTION crmapi.counter_mend()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    named CONSTANT uuid[] := ARRAY(SELECT v.workspace_id
                                   FROM crmapi.counter_verify() v);
BEGIN
    FOR workspace_id IN SELECT w.id FROM crmapi.workspace w
        WHERE w.id = ANY (named) ORDER BY 1
    LOOP
        FOR kind, parent, counted, actual IN
            SELECT v.* FROM crmapi.counter_verify_of(
                counter_mend.workspace_id) v
        LOOP
            INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot,
                                             n)
            VALUES (counter_mend.workspace_id, counter_mend.kind,
                    counter_mend.parent, -2,
                    counter_mend.actual - counter_mend.counted)
            ON CONFLICT ON CONSTRAINT counter_pkey
            DO UPDATE SET n = c.n + excluded.n;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.counter_verify_of FROM PUBLIC;

-- The contacts of a workspace with the address EMAIL or PHONE (the other is
-- null), as the primary or another one. Internal.
CREATE OR REPLACE FUNCTION crmapi.contacts_with(workspace uuid, email text,
                                                phone text)
    RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail CONSTANT text := crmapi.fold(email);
    digits CONSTANT text := crmapi.digits(phone);
    number CONSTANT text := crmapi.phone_fold(phone);
BEGIN
    IF mail IS NOT NULL THEN
        RETURN QUERY SELECT c.id FROM crmapi.contact c
        WHERE c.workspace_id = contacts_with.workspace
          AND c.search LIKE '%' || replace(replace(replace(mail, '\', '\\'),
                  '%', '\%'), '_', '\_') || '%'
          AND mail = ANY (crmapi.email_keys(c.emails));
    END IF;
    IF number IS NOT NULL THEN
        RETURN QUERY SELECT c.id FROM crmapi.contact c
        WHERE c.workspace_id = contacts_with.workspace
          AND c.phone_digits LIKE '%' || digits || '%'
          AND number = ANY (crmapi.phone_keys(c.phone_numbers));
    END IF;
END
$$;

-- Never write to EMAIL or PHONE (the other is null) again, because of REASON:
-- the live enrollments of contacts with the address stop. Returns how many
-- stopped. An address may be suppressed already; of "unsubscribed" and what
-- forbids answers as well, "bounced" or "complaint", the latter stays. For the
-- API and the worker.
CREATE OR REPLACE FUNCTION crmapi.suppress(workspace uuid, email text,
                                           phone text, reason text)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made CONSTANT uuid := gen_random_uuid();
    contacts uuid[];
    enrollment uuid;
    n bigint := 0;
BEGIN
    INSERT INTO crmapi.suppression AS s (id, workspace_id, email, phone_number,
                                    reason)
    VALUES (made, suppress.workspace, suppress.email, suppress.phone,
            suppress.reason)
    ON CONFLICT ON CONSTRAINT suppression_workspace_id_kind_address_key
    DO UPDATE SET reason = excluded.reason
    WHERE s.reason = 'unsubscribed'
      AND excluded.reason IN ('bounced', 'complaint');
    contacts := ARRAY(SELECT crmapi.contacts_with(workspace, email, phone));
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = suppress.workspace
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND e.contact_id = ANY (contacts)
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_unsubscribed', reason)) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- Citus takes only immutable functions in a CASE or COALESCE, and in an UPDATE no
-- CASE of a value with a domain; and jobs are found by job_where(). These functions
-- are as before but for a variable, which has the time, for conditions, and for how
-- the jobs are found.
DO $$
DECLARE
    change record;
    body text;
BEGIN
    FOR change IN SELECT * FROM (VALUES
        ('step_edit', 'CASE s.channel WHEN ''email''',
         'CASE WHEN s.channel = ''email'''),
        ('step_edit', 'CASE s.channel WHEN ''sms''',
         'CASE WHEN s.channel = ''sms'''),
        ('step_edit', 'CASE s.channel WHEN ''voice''',
         'CASE WHEN s.channel = ''voice'''),
        ('enrollment_generated',
         'DECLARE', 'DECLARE
    at timestamptz := date_trunc(''milliseconds'', moment);'),
        ('enrollment_generated',
         'THEN date_trunc(''milliseconds'', moment) END', 'THEN at END'),
        ('webhook_wait',
         'BEGIN', 'DECLARE
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN'),
        ('webhook_wait',
         'run_at = coalesce(moment, statement_timestamp())', 'run_at = at'),
        ('webhook_disable',
         'BEGIN', 'DECLARE
    at timestamptz := crmapi.now_ms();
BEGIN'),
        ('webhook_disable',
         'coalesce(e.disabled_at, crmapi.now_ms())',
         'coalesce(e.disabled_at, at)'),
        ('job_reap',
         $a$SELECT j.workspace_id, array_agg(j.id) FROM crmapi.job j
        WHERE j.state = 'leased' AND j.leased_until < at
        GROUP BY j.workspace_id$a$,
         $a$SELECT f.workspace_id, f.ids FROM crmapi.job_where(
            format('state = ''leased'' AND leased_until < %L', at),
            'run_at, id', 1000) f$a$),
        ('worker_beat',
         'BEGIN', 'DECLARE
    until CONSTANT timestamptz := statement_timestamp() + lease;
    workspace uuid;
    mine bigint[];
BEGIN'),
        ('worker_beat',
         $a$UPDATE crmapi.job j
    SET leased_until = statement_timestamp() + worker_beat.lease
    WHERE j.state = 'leased' AND j.leased_by = worker_beat.worker
      AND j.id = ANY (worker_beat.jobs);$a$,
         $a$FOR workspace, mine IN
        SELECT f.workspace_id, f.ids FROM crmapi.job_where(
            format('state = ''leased'' AND leased_by = %L AND id = ANY (%L)',
                   worker, jobs), 'run_at, id', 1000) f
    LOOP
        UPDATE crmapi.job j SET leased_until = until
        WHERE j.workspace_id = workspace AND j.id = ANY (mine)
          AND j.state = 'leased' AND j.leased_by = worker_beat.worker;
    END LOOP;$a$)) c(name, before, after)
    LOOP
        body := pg_get_functiondef(('crmapi.' || change.name)::regproc);
        ASSERT strpos(body, change.before) > 0, change.name;
        EXECUTE replace(body, change.before, change.after);
    END LOOP;
END
$$;
