-- SPDX-License-Identifier: Apache-2.0
-- 0006-worker.sql: lanes of jobs, leases, daemons, upkeep

-- ---- lanes ------------------------------------------------------------------

-- What a kind says before its dot. Each lane has threads of its own in a
-- worker, so that webhooks to a host that hangs hold up no sequence.
ALTER TABLE crmapi.job ADD COLUMN lane text COLLATE "C" NOT NULL
    GENERATED ALWAYS AS (split_part(kind, '.', 1)) STORED;

DROP INDEX crmapi.job_ready;
CREATE INDEX job_ready ON crmapi.job (lane, run_at, id)
    WHERE state = 'ready';
-- what upkeep trims
CREATE INDEX job_finished ON crmapi.job (finished_at)
    WHERE state IN ('done', 'cancelled');
-- what an operator looks at
CREATE INDEX job_dead ON crmapi.job (finished_at) WHERE state = 'dead';

-- Only what is due wakes workers, and only those of its lane.
DROP TRIGGER notify ON crmapi.job;
CREATE OR REPLACE FUNCTION crmapi.job_notify() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job', d.lane)
    FROM (SELECT DISTINCT m.lane FROM made m
          WHERE m.run_at <= statement_timestamp()) d;
    RETURN NULL;
END
$$;
CREATE TRIGGER notify AFTER INSERT ON crmapi.job
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.job_notify();

-- ---- leases (design 7) ------------------------------------------------------

-- Take the first job of LANE that is due at MOMENT for OWNER, for as long as
-- LEASE. MOMENT null: what time it is. Jobs that others are taking are passed
-- over.
-- The planner must not be led astray by what the table was like when a
-- session began: the index is always right.
CREATE FUNCTION crmapi.job_claim(lane text, owner text, lease interval,
                                 moment timestamptz)
    RETURNS TABLE (workspace_id uuid, id bigint, kind text, payload jsonb,
                   attempts integer, taken_at timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY UPDATE crmapi.job j
    SET state = 'leased', attempts = j.attempts + 1,
        leased_by = job_claim.owner,
        leased_until = statement_timestamp() + job_claim.lease
    FROM (SELECT r.workspace_id, r.id FROM crmapi.job r
          WHERE r.state = 'ready' AND r.lane = job_claim.lane
            AND r.run_at <= coalesce(job_claim.moment, statement_timestamp())
          ORDER BY r.run_at, r.id LIMIT 1
          FOR UPDATE SKIP LOCKED) first
    WHERE j.workspace_id = first.workspace_id AND j.id = first.id
    RETURNING j.workspace_id, j.id, j.kind::text, j.payload::jsonb,
              j.attempts, coalesce(job_claim.moment, statement_timestamp());
END
$$;

-- Hold the lease of a job until the end of the transaction, or fail: the work
-- was given to somebody else in the meantime, or is no longer wanted.
CREATE FUNCTION crmapi.job_hold(workspace uuid, job bigint, owner text,
                                attempt integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM crmapi.job j
    WHERE j.workspace_id = job_hold.workspace AND j.id = job_hold.job
      AND j.state = 'leased' AND j.leased_by = job_hold.owner
      AND j.attempts = job_hold.attempt
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease of job % is lost', job
            USING ERRCODE = 'CRM01';
    END IF;
END
$$;

-- End a job whose lease is still OWNER's in the state OUTCOME: done, dead,
-- cancelled, or ready again AFTER from now. REASON is kept.
CREATE FUNCTION crmapi.job_end(workspace uuid, job bigint, owner text,
                               attempt integer, outcome text, reason text,
                               after interval) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE crmapi.job j
    SET state = outcome, leased_by = NULL, leased_until = NULL,
        last_error = coalesce(left(reason, 2000), j.last_error),
        run_at = CASE WHEN outcome = 'ready'
            THEN statement_timestamp() + after ELSE j.run_at END,
        finished_at = CASE WHEN outcome <> 'ready' THEN crmapi.now_ms() END
    WHERE j.workspace_id = job_end.workspace AND j.id = job_end.job
      AND j.state = 'leased' AND j.leased_by = job_end.owner
      AND j.attempts = job_end.attempt;
    RETURN FOUND;
END
$$;

-- Give the work of daemons that have fallen silent to others. Returns how
-- many jobs there were. After a start of the server all of them get time to
-- say that they live.
CREATE FUNCTION crmapi.job_reap() RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n bigint;
BEGIN
    WITH silent AS (
        SELECT j.workspace_id, j.id FROM crmapi.job j
        WHERE j.state = 'leased' AND j.leased_until < statement_timestamp()
          AND pg_postmaster_start_time()
              < statement_timestamp() - interval '10 seconds'
        FOR UPDATE SKIP LOCKED)
    UPDATE crmapi.job j SET state = 'ready', leased_by = NULL,
        leased_until = NULL, run_at = statement_timestamp(),
        last_error = 'the worker ' || j.leased_by || ' fell silent'
    FROM silent s WHERE j.workspace_id = s.workspace_id AND j.id = s.id;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;

-- ---- daemons ----------------------------------------------------------------

-- Those that run, for the operator and for each other. Belongs to no
-- workspace.
CREATE TABLE crmapi.worker (
    id text COLLATE "C" PRIMARY KEY,    -- what its leases say
    name crmapi.title NOT NULL,
    host crmapi.line NOT NULL,
    pid integer NOT NULL,
    version crmapi.line NOT NULL,
    threads integer NOT NULL,
    busy integer NOT NULL DEFAULT 0,
    stopping boolean NOT NULL DEFAULT false,
    started_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    heartbeat_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms()
);

-- Say that a daemon lives, and lengthen its leases of JOBS, those it knows that
-- it works at, by LEASE. A claim whose answer was lost on its way is not among
-- them.
CREATE FUNCTION crmapi.worker_beat(worker text, name text, host text,
                                   pid integer, version text,
                                   threads integer, busy integer,
                                   stopping boolean, lease interval,
                                   jobs bigint[])
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.worker AS w (id, name, host, pid, version, threads,
                                    busy, stopping)
    VALUES (worker_beat.worker, worker_beat.name, worker_beat.host,
            worker_beat.pid, worker_beat.version, worker_beat.threads,
            worker_beat.busy, worker_beat.stopping)
    ON CONFLICT ON CONSTRAINT worker_pkey DO UPDATE SET busy = excluded.busy,
        threads = excluded.threads, stopping = excluded.stopping,
        heartbeat_at = crmapi.now_ms();
    UPDATE crmapi.job j
    SET leased_until = statement_timestamp() + worker_beat.lease
    WHERE j.state = 'leased' AND j.leased_by = worker_beat.worker
      AND j.id = ANY (worker_beat.jobs);
END
$$;
CREATE INDEX job_leased_by ON crmapi.job (leased_by) WHERE state = 'leased';

-- ---- upkeep -----------------------------------------------------------------

-- What is done from time to time, by one daemon at a time. Belongs to no
-- workspace.
CREATE TABLE crmapi.upkeep (
    task text COLLATE "C" PRIMARY KEY,
    begun_at timestamptz(3) NOT NULL,
    ended_at timestamptz(3),
    result crmapi.prose
);

-- Return whether TASK is due: nobody has begun it for as long as EVERY. Then
-- it has begun now.
CREATE FUNCTION crmapi.upkeep_begin(task text, every interval,
                                    moment timestamptz) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    INSERT INTO crmapi.upkeep AS u (task, begun_at)
    VALUES (upkeep_begin.task, at)
    ON CONFLICT ON CONSTRAINT upkeep_pkey DO UPDATE
        SET begun_at = excluded.begun_at, ended_at = NULL
        WHERE u.begun_at <= at - every;
    RETURN FOUND;
END
$$;

-- A conversation that somebody has opened again stays so for as long as one
-- that was active at that moment.
ALTER TABLE crmapi.conversation ADD COLUMN activated_at timestamptz(3);
CREATE FUNCTION crmapi.conversation_activates() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.activated_at := crmapi.now_ms();
    RETURN NEW;
END
$$;
CREATE TRIGGER activates BEFORE UPDATE OF active ON crmapi.conversation
    FOR EACH ROW WHEN (NEW.active AND NOT OLD.active)
    EXECUTE FUNCTION crmapi.conversation_activates();

-- When something last happened in a conversation.
CREATE FUNCTION crmapi.conversation_moved(last_active_at timestamptz,
        last_message_at timestamptz, activated_at timestamptz,
        created_at timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(last_active_at, last_message_at, activated_at,
                    created_at);
CREATE INDEX conversation_idle ON crmapi.conversation
    (crmapi.conversation_moved(last_active_at, last_message_at, activated_at,
                               created_at)) WHERE active;

-- At most N of the active conversations in which nothing has happened since
-- BEFORE are so no longer; returns how many.
CREATE FUNCTION crmapi.conversation_idle(before timestamptz, n integer)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    WITH idle AS (
        SELECT c.workspace_id, c.id FROM crmapi.conversation c
        WHERE c.active AND crmapi.conversation_moved(c.last_active_at,
            c.last_message_at, c.activated_at, c.created_at) < before
        LIMIT n FOR UPDATE SKIP LOCKED)
    UPDATE crmapi.conversation c SET active = false FROM idle i
    WHERE c.workspace_id = i.workspace_id AND c.id = i.id;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;

-- Add to the totals that are wrong what they lack, and return them as
-- counter_verify() does. Both go by one snapshot, so that what others add
-- meanwhile stays right.
CREATE FUNCTION crmapi.counter_mend()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH wrong AS MATERIALIZED (SELECT v.* FROM crmapi.counter_verify() v),
    mended AS (
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        SELECT w.workspace_id, w.kind, w.parent, -2, w.actual - w.counted
        FROM wrong w
        WHERE EXISTS (SELECT FROM crmapi.workspace s
                      WHERE s.id = w.workspace_id)
        ORDER BY 1, 2, 3
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n)
    SELECT w.workspace_id, w.kind, w.parent, w.counted, w.actual
    FROM wrong w;
END;

-- Rows of the totals' table that say nothing. Returns how many there were.
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

-- ---- rights -----------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION crmapi.counter_mend(), crmapi.counter_trim()
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.counter_mend(), crmapi.counter_trim()
    TO crmapi_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON crmapi.worker, crmapi.upkeep
    TO crmapi_worker;
