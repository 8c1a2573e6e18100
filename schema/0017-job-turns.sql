-- SPDX-License-Identifier: Apache-2.0
-- 0017-job-turns.sql: workspaces take turns in having their jobs done
--
-- A claim took the first job of all workspaces, so that one that had many made
-- all others wait. Now it takes the first one of the next workspace.

-- ---- what is due ------------------------------------------------------------

-- IS_DUE: the job's time has come, as far as somebody has noticed (job_poll()).
-- Only such jobs are claimed, so that a claim passes over no workspace that
-- merely waits for a time to come. Jobs of before are noticed like any other.
ALTER TABLE crmapi.job ADD COLUMN is_due boolean NOT NULL DEFAULT false;
ALTER TABLE crmapi.job ALTER COLUMN is_due SET DEFAULT true;

DROP INDEX crmapi.job_ready;
-- claims
CREATE INDEX job_due ON crmapi.job (lane, workspace_id, run_at, id)
    WHERE state = 'ready' AND is_due;
-- what becomes due, and when
CREATE INDEX job_waiting ON crmapi.job (lane, run_at, id)
    WHERE state = 'ready' AND NOT is_due;

CREATE FUNCTION crmapi.job_due() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_due := NEW.run_at <= statement_timestamp();
    RETURN NEW;
END
$$;
CREATE TRIGGER due BEFORE INSERT ON crmapi.job FOR EACH ROW
    WHEN (NEW.run_at > statement_timestamp())
    EXECUTE FUNCTION crmapi.job_due();
CREATE TRIGGER due_anew BEFORE UPDATE OF state, run_at ON crmapi.job
    FOR EACH ROW WHEN (NEW.state = 'ready'
        AND NEW.is_due <> (NEW.run_at <= statement_timestamp()))
    EXECUTE FUNCTION crmapi.job_due();

-- ---- waking workers ---------------------------------------------------------

-- Daemons are told the lane of what is due, and nothing ('') of what will be
-- within two seconds, the longest "poll": of all else they hear when they look.
CREATE OR REPLACE FUNCTION crmapi.job_notify() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job', d.notice)
    FROM (SELECT DISTINCT CASE WHEN m.is_due THEN m.lane ELSE '' END AS notice
          FROM made m
          WHERE m.run_at <= statement_timestamp() + interval '2 seconds') d;
    RETURN NULL;
END
$$;

-- A job that is to be tried again, or sooner.
CREATE FUNCTION crmapi.job_notify_anew() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job',
                      CASE WHEN NEW.is_due THEN NEW.lane ELSE '' END);
    RETURN NULL;
END
$$;
CREATE TRIGGER notify_anew AFTER UPDATE OF state, run_at ON crmapi.job
    FOR EACH ROW WHEN (NEW.state = 'ready'
        AND NEW.run_at <= statement_timestamp() + interval '2 seconds')
    EXECUTE FUNCTION crmapi.job_notify_anew();

-- ---- what a daemon asks -----------------------------------------------------

-- Notice what is due at MOMENT (null: now) in LANES, up to a thousand jobs of
-- each, the earliest first. Returns for each lane whether there is something to
-- claim and in how many microseconds there will be more (null: not foreseen).
-- The planner must not be led astray, as in job_claim().
CREATE FUNCTION crmapi.job_poll(lanes text[], moment timestamptz)
    RETURNS TABLE (lane text, ready boolean, wait bigint)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_bitmapscan = off
    SET enable_sort = off SET enable_incremental_sort = off
    SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    UPDATE crmapi.job j SET is_due = true
    FROM unnest(lanes) l(lane) CROSS JOIN LATERAL (
        SELECT r.workspace_id, r.id FROM crmapi.job r
        WHERE r.state = 'ready' AND NOT r.is_due AND r.lane = l.lane
          AND r.run_at <= at
        ORDER BY r.run_at, r.id LIMIT 1000
        FOR UPDATE SKIP LOCKED) come
    WHERE j.workspace_id = come.workspace_id AND j.id = come.id;
    -- LIMIT, and the whole order: else other indexes or all rows are read
    RETURN QUERY
    SELECT l.lane,
           (SELECT true FROM crmapi.job r
            WHERE r.state = 'ready' AND r.is_due AND r.lane = l.lane
            ORDER BY r.workspace_id, r.run_at, r.id LIMIT 1) IS NOT NULL,
           (SELECT (greatest(extract(epoch FROM r.run_at - clock_timestamp()),
                             0) * 1000000)::bigint
            FROM crmapi.job r
            WHERE r.state = 'ready' AND NOT r.is_due AND r.lane = l.lane
            ORDER BY r.run_at, r.id LIMIT 1)
    FROM unnest(lanes) l(lane);
END
$$;

-- Take the first job of LANE that is due at MOMENT for OWNER, for as long as
-- LEASE: of the workspace that comes next AFTER (null: of any) in the order of
-- their ids, and after the last one the first again. MOMENT null: what time it
-- is. Jobs that others are taking are passed over.
-- The planner must not be led astray by what the table was like when a
-- session began: the index is always right.
DROP FUNCTION crmapi.job_claim(text, text, interval, timestamptz);
CREATE FUNCTION crmapi.job_claim(lane text, owner text, lease interval,
                                 moment timestamptz,
                                 after uuid DEFAULT NULL)
    RETURNS TABLE (workspace_id uuid, id bigint, kind text, payload jsonb,
                   attempts integer, taken_at timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_bitmapscan = off
    SET enable_sort = off SET enable_incremental_sort = off
AS $$
#variable_conflict use_column
DECLARE
    nobody CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    turn uuid := coalesce(after, nobody);
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    LOOP
        RETURN QUERY UPDATE crmapi.job j
        SET state = 'leased', attempts = j.attempts + 1,
            leased_by = job_claim.owner,
            leased_until = statement_timestamp() + job_claim.lease
        FROM (SELECT r.workspace_id, r.id FROM crmapi.job r
              WHERE r.state = 'ready' AND r.is_due AND r.lane = job_claim.lane
                AND r.workspace_id > turn AND r.run_at <= at
              ORDER BY r.workspace_id, r.run_at, r.id LIMIT 1
              FOR UPDATE SKIP LOCKED) first
        WHERE j.workspace_id = first.workspace_id AND j.id = first.id
        RETURNING j.workspace_id, j.id, j.kind::text, j.payload::jsonb,
                  j.attempts, at;
        EXIT WHEN FOUND OR turn = nobody;
        turn := nobody;
    END LOOP;
END
$$;
