-- SPDX-License-Identifier: Apache-2.0
-- 0006-jobs.sql: the worker's queue, leases, daemons

-- ---- the queue -------------------------------------------------------------

-- Work for the worker, inserted by the transaction that causes it. STATE:
--   ready      waits for run_at, or to be claimed
--   leased     a worker has it until leased_until
--   done, dead, cancelled
-- A claim raises attempts: leased_by and attempts identify the lease, and a
-- result counts only while both are unchanged (design 7). payload says what
-- the job is for; its enrollment_id, if any, cancels the job when that
-- enrollment ends.
CREATE TABLE crmapi.job (
    id bigint GENERATED ALWAYS AS IDENTITY,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind crmapi.line NOT NULL,
    -- The part of kind before the dot. A worker has threads for each lane, so
    -- that webhooks to a host that hangs, or a slow generator, delay no sequence.
    lane text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (split_part(kind, '.', 1)) STORED,
    payload crmapi.object NOT NULL DEFAULT '{}',
    state crmapi.line NOT NULL DEFAULT 'ready'
        CHECK (state IN ('ready', 'leased', 'done', 'dead', 'cancelled')),
    -- daemons subtract it from the present time
    run_at timestamptz NOT NULL DEFAULT statement_timestamp()
        CHECK (isfinite(run_at)),
    -- run_at has passed, as a trigger or job_poll() has noticed. Claims take
    -- such jobs only, so that they skip no workspace that merely waits.
    is_due boolean NOT NULL DEFAULT true,
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    last_error crmapi.prose,
    leased_by crmapi.line,
    leased_until timestamptz,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    finished_at timestamptz(3),
    PRIMARY KEY (workspace_id, id),
    CHECK ((state = 'leased')
           = (leased_by IS NOT NULL AND leased_until IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);

-- The row that a job with PAYLOAD is about: an enrollment, a conversation or, of an
-- erasure, a contact.
CREATE FUNCTION crmapi.job_about(payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(payload ->> 'enrollment_id', payload ->> 'conversation_id',
                    payload ->> 'contact_id', payload #>> '{contact_ids,0}');

-- The worker serves all workspaces, so most of these do not start with
-- workspace_id. Each has one state only and stays small, however many jobs are
-- finished.
-- claims
CREATE INDEX job_due ON crmapi.job (lane, workspace_id, run_at, id)
    WHERE state = 'ready' AND is_due;
-- jobs that become due
CREATE INDEX job_waiting ON crmapi.job (lane, run_at, id)
    WHERE state = 'ready' AND NOT is_due;
-- jobs of an enrollment that ends
CREATE INDEX job_enrollment ON crmapi.job
    (workspace_id, (payload ->> 'enrollment_id')) WHERE state = 'ready';
-- jobs of a person who is erased; those of webhooks are found by their deliveries
CREATE INDEX job_about ON crmapi.job (workspace_id, crmapi.job_about(payload))
    WHERE lane <> 'webhook';
-- leases that have expired
CREATE INDEX job_leased ON crmapi.job (leased_until) WHERE state = 'leased';
-- leases of a worker
CREATE INDEX job_leased_by ON crmapi.job (leased_by) WHERE state = 'leased';
-- jobs that upkeep deletes
CREATE INDEX job_finished ON crmapi.job (finished_at)
    WHERE state IN ('done', 'cancelled');
-- jobs that an operator looks at
CREATE INDEX job_dead ON crmapi.job (finished_at) WHERE state = 'dead';

CREATE TRIGGER id_fixed BEFORE UPDATE OF workspace_id, id ON crmapi.job
    FOR EACH ROW
    WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
    EXECUTE FUNCTION crmapi.refuse_change('an id');

-- Set is_due from run_at. A trigger function.
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
CREATE TRIGGER due_again BEFORE UPDATE OF state, run_at ON crmapi.job
    FOR EACH ROW WHEN (NEW.state = 'ready'
        AND NEW.is_due <> (NEW.run_at <= statement_timestamp()))
    EXECUTE FUNCTION crmapi.job_due();

-- Notify "crmapi_job" of new jobs: with the lane of those that are due, with
-- an empty payload if some will be within two seconds, the longest "poll".
-- Daemons find later ones when they poll. A trigger function.
CREATE FUNCTION crmapi.job_notify() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job', d.notice)
    FROM (SELECT DISTINCT CASE WHEN m.is_due THEN m.lane ELSE '' END AS notice
          FROM made m
          WHERE m.run_at <= statement_timestamp() + interval '2 seconds') d;
    RETURN NULL;
END
$$;
CREATE TRIGGER notify AFTER INSERT ON crmapi.job
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.job_notify();

-- Likewise of a job that is retried, or whose run_at changes. A trigger
-- function.
CREATE FUNCTION crmapi.job_notify_again() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job',
                      CASE WHEN NEW.is_due THEN NEW.lane ELSE '' END);
    RETURN NULL;
END
$$;
CREATE TRIGGER notify_again AFTER UPDATE OF state, run_at ON crmapi.job
    FOR EACH ROW WHEN (NEW.state = 'ready'
        AND NEW.run_at <= statement_timestamp() + interval '2 seconds')
    EXECUTE FUNCTION crmapi.job_notify_again();

-- ---- daemons ---------------------------------------------------------------

-- The daemons that run, for the operator and for each other. No workspace owns
-- them.
CREATE TABLE crmapi.worker (
    id text COLLATE "C" PRIMARY KEY,    -- leased_by of its leases
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

-- Record a daemon's heartbeat, and extend by LEASE its leases of JOBS, the
-- jobs that it works at. It does not know of a claim whose answer was lost, so
-- that lease expires. For the worker.
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

-- ---- polling and claiming --------------------------------------------------
-- A null MOMENT is the present. The settings keep the planner on the partial
-- indexes: its statistics may be of a time when the queue was empty.

-- Mark as due what is due at MOMENT in LANES, up to 1,000 jobs of each, the
-- earliest first. Returns for each lane whether a job can be claimed, and in how
-- many microseconds the next becomes due (null: none waits). Locks: job, skipping
-- locked ones. For the worker.
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
    WITH come AS MATERIALIZED (
        SELECT f.* FROM unnest(lanes) l(lane) CROSS JOIN LATERAL (
            SELECT r.workspace_id, r.id FROM crmapi.job r
            WHERE r.state = 'ready' AND NOT r.is_due AND r.lane = l.lane
              AND r.run_at <= at
            ORDER BY r.run_at, r.id LIMIT 1000
            FOR UPDATE SKIP LOCKED) f)
    UPDATE crmapi.job j SET is_due = true FROM come
    WHERE j.workspace_id = come.workspace_id AND j.id = come.id;
    -- LIMIT and the complete order: otherwise another index is used, or all
    -- rows are read
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

-- Claim the first job of LANE that is due at MOMENT, for OWNER and the time
-- LEASE. Workspaces take turns: it is a job of the next workspace AFTER (null:
-- of any) in the order of ids; after the last comes the first. An UPDATE looks
-- no further than the next workspace that is held, and the next one begins after
-- it: so a claim never reads the jobs of one that is held, however many. The first
-- job is a value, which is read once: a table in FROM may be read again for each
-- row, and locks another job each time. Locks: job, skipping locked ones. For the
-- worker.
CREATE FUNCTION crmapi.job_claim(lane text, owner text,
        lease interval, moment timestamptz, after uuid DEFAULT NULL)
    RETURNS TABLE (workspace_id uuid, id bigint, kind text, payload jsonb,
                   attempts integer, taken_at timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_bitmapscan = off
    SET enable_sort = off SET enable_incremental_sort = off
AS $$
#variable_conflict use_column
DECLARE
    first_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    turn uuid := coalesce(after, first_id);
    whole boolean := turn = first_id;   -- no workspace is before TURN
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    LOOP
        RETURN QUERY UPDATE crmapi.job j
        SET state = 'leased', attempts = j.attempts + 1,
            leased_by = job_claim.owner,
            leased_until = statement_timestamp() + job_claim.lease
        WHERE (j.workspace_id, j.id) = (
            SELECT r.workspace_id, r.id FROM crmapi.job r
            WHERE r.state = 'ready' AND r.is_due AND r.lane = job_claim.lane
              AND r.workspace_id > turn AND r.workspace_id < coalesce(
                  (SELECT h.workspace_id FROM crmapi.workspace_hold h
                   WHERE h.workspace_id > turn
                   ORDER BY h.workspace_id LIMIT 1), last_id)
              AND r.run_at <= at
              AND (SELECT i.held_at IS NULL FROM crmapi.instance i WHERE i.one)
            ORDER BY r.workspace_id, r.run_at, r.id LIMIT 1
            FOR UPDATE SKIP LOCKED)
        RETURNING j.workspace_id, j.id, j.kind::text, j.payload::jsonb,
                  j.attempts, at;
        EXIT WHEN FOUND;
        turn := (SELECT h.workspace_id FROM crmapi.workspace_hold h
                 WHERE h.workspace_id > turn
                 ORDER BY h.workspace_id LIMIT 1);
        EXIT WHEN turn IS NULL AND whole;
        whole := whole OR turn IS NULL;
        turn := coalesce(turn, first_id);
    END LOOP;
END
$$;

-- ---- leases (design 7) -----------------------------------------------------
-- OWNER and ATTEMPT identify the lease of JOB.

-- Lock the job until the end of the transaction, or fail with CRM01 if the
-- lease is lost: another worker has the job, or it was cancelled. Locks: job. For
-- the worker.
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

-- End the job in the state OUTCOME: done, dead, cancelled, or ready again
-- AFTER from now. A REASON that is not null is stored. Returns whether the
-- lease was still held; otherwise nothing changes. Locks: job. For the worker.
CREATE FUNCTION crmapi.job_end(workspace uuid, job bigint,
        owner text, attempt integer, outcome text, reason text,
        after interval) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    again CONSTANT timestamptz := CASE WHEN outcome = 'ready'
        THEN statement_timestamp() + after END;
    finished CONSTANT timestamptz := CASE WHEN outcome <> 'ready'
        THEN crmapi.now_ms() END;
BEGIN
    UPDATE crmapi.job j
    SET state = outcome, leased_by = NULL, leased_until = NULL,
        last_error = coalesce(left(reason, 2000), j.last_error),
        run_at = coalesce(again, j.run_at), finished_at = finished
    WHERE j.workspace_id = job_end.workspace AND j.id = job_end.job
      AND j.state = 'leased' AND j.leased_by = job_end.owner
      AND j.attempts = job_end.attempt;
    RETURN FOUND;
END
$$;

-- Give back a job that was claimed before its workspace was held: it is as
-- before the claim. Locks: job (lost lease: CRM01). For the worker.
CREATE FUNCTION crmapi.job_return(workspace uuid, job bigint, owner text,
                                  attempt integer) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.job j SET state = 'ready', leased_by = NULL,
        leased_until = NULL, attempts = j.attempts - 1
    WHERE j.workspace_id = job_return.workspace AND j.id = job_return.job;
END
$$;
