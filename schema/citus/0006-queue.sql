-- SPDX-License-Identifier: Apache-2.0
-- 0006-queue.sql: the worker's queue

-- No server but the coordinator is listened to.
DROP TRIGGER notify ON crmapi.job;
DROP TRIGGER notify_again ON crmapi.job;

-- Citus locks rows on one server only. So these look for the workspaces that
-- have something to do, on all servers and without locks. Then one statement for
-- a workspace locks its jobs that still are what was looked for.

-- The jobs that meet CONDITION, the first MOST in the order SORTED, by workspace,
-- and the earliest time for which one was planned. CONDITION is SQL without "%";
-- values in it are quoted. If a server is lost, those of the others: then each
-- shard is asked on a connection of its own. Internal.
CREATE FUNCTION crmapi.job_where(condition text, sorted text, most integer)
    RETURNS TABLE (workspace_id uuid, ids bigint[], first_at timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rows_of CONSTANT text := format('SELECT workspace_id, id, run_at FROM %%s'
        ' WHERE %s ORDER BY %s LIMIT %s', condition, sorted, most);
    of_all CONSTANT text := format('SELECT f.workspace_id, array_agg(f.id),'
        ' min(f.run_at) FROM (SELECT r.* FROM (%%s) r ORDER BY %s LIMIT %s) f'
        ' GROUP BY 1 ORDER BY 1', sorted, most);
BEGIN
    RETURN QUERY EXECUTE format(of_all, format(rows_of, 'crmapi.job'));
EXCEPTION WHEN connection_failure THEN
    RETURN QUERY EXECUTE format(of_all,
        'SELECT j.* FROM run_command_on_shards(''crmapi.job'', $1) s,'
        ' jsonb_to_recordset(CASE WHEN s.success THEN s.result::jsonb'
        ' ELSE ''[]'' END) j (workspace_id uuid, id bigint, run_at timestamptz)')
        USING format('SELECT coalesce(jsonb_agg(r), ''[]'') FROM (%s) r',
                     rows_of);
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.job_where FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.job_where TO crmapi_worker;

-- Mark as due what is due at MOMENT in LANES, up to 1,000 jobs, the earliest
-- first; jobs that another transaction has locked are skipped. Returns for each
-- lane whether a job can be claimed, and in how many microseconds the next
-- becomes due (null: none waits). For the worker.
CREATE OR REPLACE FUNCTION crmapi.job_poll(lanes text[], moment timestamptz)
    RETURNS TABLE (lane text, ready boolean, wait bigint)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    waiting CONSTANT text := 'state = ''ready'' AND NOT is_due AND lane = ';
    at timestamptz := coalesce(moment, statement_timestamp());
    workspace uuid;
    due bigint[];
BEGIN
    FOR workspace, due IN
        SELECT f.workspace_id, f.ids FROM crmapi.job_where(
            waiting || format('ANY (%L) AND run_at <= %L', lanes, at),
            'run_at, id', 1000) f
    LOOP
        UPDATE crmapi.job j SET is_due = true
        WHERE j.workspace_id = workspace AND j.id IN (
            SELECT r.id FROM crmapi.job r
            WHERE r.workspace_id = workspace AND r.id = ANY (due)
              AND r.state = 'ready' AND NOT r.is_due
            FOR UPDATE SKIP LOCKED);
    END LOOP;
    FOREACH lane IN ARRAY lanes LOOP
        ready := EXISTS (SELECT FROM crmapi.job_where(
            format('state = ''ready'' AND is_due AND lane = %L', lane),
            'run_at, id', 1));
        wait := (SELECT (greatest(extract(epoch FROM f.first_at
                    - clock_timestamp()), 0) * 1000000)::bigint
            FROM crmapi.job_where(waiting || quote_literal(lane),
                                  'run_at, id', 1) f);
        RETURN NEXT;
    END LOOP;
END
$$;

-- Claim the first job of LANE that is due at MOMENT, for OWNER and the time
-- LEASE. Workspaces take turns: it is a job of the next workspace AFTER (null:
-- of any) in the order of ids; after the last comes the first. Jobs that
-- another transaction has locked are skipped. The workspaces that are held are
-- read once, when the next one has nothing that can be claimed. Locks: job. For
-- the worker.
CREATE OR REPLACE FUNCTION crmapi.job_claim(lane text, owner text,
        lease interval, moment timestamptz, after uuid DEFAULT NULL)
    RETURNS TABLE (workspace_id uuid, id bigint, kind text, payload jsonb,
                   attempts integer, taken_at timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    at CONSTANT timestamptz := coalesce(moment, statement_timestamp());
    until CONSTANT timestamptz := statement_timestamp() + lease;
    turn uuid := coalesce(after, first_id);
    whole boolean := turn = first_id;   -- no workspace is before TURN
    bound uuid := last_id;
    held uuid[];
    workspace uuid;
BEGIN
    IF (SELECT i.held_at IS NOT NULL FROM crmapi.instance i WHERE i.one) THEN
        RETURN;
    END IF;
    LOOP
        workspace := (SELECT f.workspace_id FROM crmapi.job_where(format(
            'state = ''ready'' AND is_due AND lane = %L AND workspace_id > %L'
            ' AND workspace_id < %L AND run_at <= %L', lane, turn, bound, at),
            'workspace_id, run_at, id', 1) f);
        IF workspace IS NOT NULL THEN
            RETURN QUERY UPDATE crmapi.job j
            SET state = 'leased', attempts = j.attempts + 1,
                leased_by = job_claim.owner, leased_until = until
            WHERE j.workspace_id = workspace AND j.id = (
                SELECT r.id FROM crmapi.job r
                WHERE r.workspace_id = workspace AND r.state = 'ready'
                  AND r.is_due AND r.lane = job_claim.lane AND r.run_at <= at
                  AND NOT EXISTS (SELECT FROM crmapi.workspace_hold h
                                  WHERE h.workspace_id = workspace)
                ORDER BY r.run_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING j.workspace_id, j.id, j.kind::text, j.payload::jsonb,
                      j.attempts, at;
            EXIT WHEN FOUND;
            BEGIN
                held := coalesce(held, ARRAY(SELECT h.workspace_id
                                             FROM crmapi.workspace_hold h));
            EXCEPTION WHEN connection_failure THEN
                held := '{}';   -- a server is lost: one by one
            END;
            turn := workspace;
        ELSIF bound < last_id THEN
            turn := bound;
        ELSE
            EXIT WHEN whole;
            whole := true;
            turn := first_id;
        END IF;
        bound := coalesce((SELECT h.id FROM unnest(held) h(id)
                           WHERE h.id > turn ORDER BY h.id LIMIT 1), last_id);
    END LOOP;
END
$$;
