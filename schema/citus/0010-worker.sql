-- SPDX-License-Identifier: Apache-2.0
-- 0010-worker.sql: what the worker's functions do on several servers

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

-- Jobs are found by job_where(). These functions are as before but for that, and for
-- variables.
DO $$
DECLARE
    change record;
    body text;
BEGIN
    FOR change IN SELECT * FROM (VALUES
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
