-- SPDX-License-Identifier: Apache-2.0
-- 0006-queue.sql: the worker's queue

-- No server but the coordinator is listened to.
DROP TRIGGER notify ON crmapi.job;
DROP TRIGGER notify_again ON crmapi.job;

-- Citus locks rows on one server only. So these look for the workspaces that
-- have something to do, on all servers and without locks. Then one statement for
-- a workspace locks its jobs that still are what was looked for.

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
    at timestamptz := coalesce(moment, statement_timestamp());
    workspace uuid;
    ids bigint[];
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.id) FROM (
            SELECT r.workspace_id, r.id FROM crmapi.job r
            WHERE r.state = 'ready' AND NOT r.is_due AND r.lane = ANY (lanes)
              AND r.run_at <= at
            ORDER BY r.run_at, r.id LIMIT 1000) f
        GROUP BY f.workspace_id ORDER BY 1
    LOOP
        UPDATE crmapi.job j SET is_due = true
        WHERE j.workspace_id = workspace AND j.id IN (
            SELECT r.id FROM crmapi.job r
            WHERE r.workspace_id = workspace AND r.id = ANY (ids)
              AND r.state = 'ready' AND NOT r.is_due
            FOR UPDATE SKIP LOCKED);
    END LOOP;
    FOREACH lane IN ARRAY lanes LOOP
        ready := (SELECT true FROM crmapi.job r
            WHERE r.state = 'ready' AND r.is_due AND r.lane = job_poll.lane
            LIMIT 1) IS NOT NULL;
        wait := (SELECT (greatest(extract(epoch FROM r.run_at
                    - clock_timestamp()), 0) * 1000000)::bigint
            FROM (SELECT r.run_at FROM crmapi.job r
                  WHERE r.state = 'ready' AND NOT r.is_due
                    AND r.lane = job_poll.lane
                  ORDER BY r.run_at, r.id LIMIT 1) r);
        RETURN NEXT;
    END LOOP;
END
$$;

-- The first workspace after TURN, and before BOUND, that has a job of LANE which
-- is due at MOMENT. Internal.
CREATE FUNCTION crmapi.job_next(lane text, moment timestamptz, turn uuid,
                                bound uuid) RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT r.workspace_id FROM crmapi.job r
            WHERE r.state = 'ready' AND r.is_due AND r.lane = job_next.lane
              AND r.workspace_id > turn AND r.workspace_id < bound
              AND r.run_at <= moment
            ORDER BY r.workspace_id, r.run_at, r.id LIMIT 1);
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.job_next FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.job_next TO crmapi_worker;

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
        workspace := crmapi.job_next(lane, at, turn, bound);
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
            held := coalesce(held, ARRAY(SELECT h.workspace_id
                                         FROM crmapi.workspace_hold h));
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
