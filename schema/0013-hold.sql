-- SPDX-License-Identifier: Apache-2.0
-- 0013-hold.sql: what is held sends nothing (contract 14.2)
--
-- A workspace is held, or the whole database: after a restore, on a clone, or
-- because an operator wants so. Its jobs stay as they are, also those that are
-- due, but job_claim() takes none of them. A job that is claimed already asks
-- once more before it sends, and goes back. Everything else works as always.
--
-- min_module: 12

-- step: transaction: hold and release

-- ---- tables ----------------------------------------------------------------

-- The workspaces that are held.
CREATE TABLE crmapi.workspace_hold (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    held_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    reason crmapi.line NOT NULL
);

-- This database: one row. No workspace owns it. id is its name, which copies
-- and restored dumps of it share. system_id and database_id say where it is:
-- the cluster and the database, as a daemon found them first, or the last
-- release. In a copy they are those of the original.
CREATE TABLE crmapi.instance (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    system_id bigint,
    database_id oid,
    held_at timestamptz(3),             -- null: it is not held
    held_reason crmapi.line,
    CHECK ((held_at IS NULL) = (held_reason IS NULL))
);
INSERT INTO crmapi.instance DEFAULT VALUES;

-- Numbers that count what daemons have done here: each message and each
-- heartbeat, in the transaction that permits it. A daemon keeps the highest
-- ones that it has seen outside of the database (its mark). If those here are
-- lower, this is an older state. Rows, because a row is restored as of the same
-- moment as all others: positions of the WAL and transaction ids go on
-- otherwise in another cluster or timeline, and pg_dump reads a sequence at
-- another moment than the tables. A standby that takes over has the rows if it
-- has the messages. A backend adds in the slot "its pid modulo 16".
CREATE TABLE crmapi.send_mark (
    slot integer PRIMARY KEY CHECK (slot BETWEEN 0 AND 15),
    n bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO crmapi.send_mark (slot, n)
SELECT slot, 0 FROM generate_series(0, 15) slot;

-- What daemons handed over to a relay after the state that was restored, from
-- their journals. part is the number of a step, or the id of an admin who was
-- asked for a review: unlike ids of steps, which generation makes, they are the
-- same again. state: sent, free (certainly not sent), or unknown.
CREATE TABLE crmapi.past_send (
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    enrollment_id uuid NOT NULL,
    part crmapi.line NOT NULL,
    state crmapi.line NOT NULL CHECK (state IN ('sent', 'free', 'unknown')),
    sent_at timestamptz(3) NOT NULL,
    provider_id text,
    PRIMARY KEY (workspace_id, enrollment_id, part),
    FOREIGN KEY (workspace_id, enrollment_id) REFERENCES crmapi.enrollment
        ON DELETE CASCADE
);

-- ---- hold and release ------------------------------------------------------

-- Since when WORKSPACE is held, and why; no row if it is not. If the database
-- is held as well, the workspace's own hold is shown. For the worker.
CREATE FUNCTION crmapi.hold_of(workspace uuid)
    RETURNS TABLE (held_at timestamptz, reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
BEGIN ATOMIC
    SELECT coalesce(h.held_at, i.held_at),
           coalesce(h.reason::text, i.held_reason::text)
    FROM crmapi.instance i
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = hold_of.workspace
    WHERE h.workspace_id IS NOT NULL OR i.held_at IS NOT NULL;
END;

-- Where this database is. Internal.
CREATE FUNCTION crmapi.instance_place()
    RETURNS TABLE (system_id bigint, database_id oid)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
BEGIN ATOMIC
    SELECT c.system_identifier, d.oid
    FROM pg_control_system() c, pg_database d
    WHERE d.datname = current_database();
END;

-- Hold WORKSPACE, or the database if it is null, because of REASON. One that is
-- held keeps its time and its reason. What is being sent at this moment is
-- finished: returns how many such jobs there are. For the owner.
CREATE FUNCTION crmapi.hold(workspace uuid, reason text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = crmapi.now_ms(),
            held_reason = hold.reason
        WHERE i.held_at IS NULL;
    ELSE
        INSERT INTO crmapi.workspace_hold AS h (workspace_id, reason)
        VALUES (hold.workspace, hold.reason)
        ON CONFLICT ON CONSTRAINT workspace_hold_pkey DO NOTHING;
    END IF;
    RETURN (SELECT count(*) FROM crmapi.job j
            WHERE j.state = 'leased' AND j.kind <> 'sequence.generate'
              AND (workspace IS NULL OR j.workspace_id = workspace));
END
$$;

-- End the hold of WORKSPACE, or that of the database if it is null, and with
-- WORKSPACES those of all workspaces, too. Daemons are told. A database that is
-- released is at home where it is now. Returns how many holds ended. For the
-- owner.
CREATE FUNCTION crmapi.release(workspace uuid, workspaces boolean)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n bigint;
    m bigint := 0;
BEGIN
    DELETE FROM crmapi.workspace_hold h
    WHERE h.workspace_id = release.workspace OR workspaces;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = NULL, held_reason = NULL
        WHERE i.held_at IS NOT NULL;
        GET DIAGNOSTICS m = ROW_COUNT;
        UPDATE crmapi.instance i SET system_id = p.system_id,
            database_id = p.database_id
        FROM crmapi.instance_place() p;
    END IF;
    PERFORM pg_notify('crmapi_job', l.lane)
    FROM unnest('{sequence,webhook}'::text[]) l(lane);
    RETURN n + m;
END
$$;

-- ---- older states ----------------------------------------------------------
-- KNOWN is the mark of a daemon: the highest number of each slot that it has
-- seen, from slot 0 on.

-- Whether this database is older than KNOWN. For the worker.
CREATE FUNCTION crmapi.mark_behind(known bigint[]) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    RETURN EXISTS (SELECT FROM crmapi.send_mark m
                   WHERE m.n < known[m.slot + 1]);

-- Take the next number, as a part of the transaction that permits a message.
-- Returns it times 16, plus its slot. Fails with CRM02 if this database is
-- older than KNOWN. Locks: send_mark. For the worker.
CREATE FUNCTION crmapi.mark_next(known bigint[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mine integer := pg_backend_pid() % 16;
    taken bigint;
BEGIN
    IF crmapi.mark_behind(known) THEN
        RAISE EXCEPTION 'the database is older than what was sent from it'
            USING ERRCODE = 'CRM02';
    END IF;
    UPDATE crmapi.send_mark m SET n = m.n + 1 WHERE m.slot = mine
    RETURNING m.n INTO taken;
    RETURN taken * 16 + mine;
END
$$;

-- Compare this database with KNOWN, and with where it was. WHY is null if all
-- is well, otherwise the reason to hold it. MARKS are its present numbers. The
-- first call records where it is. For the worker.
CREATE FUNCTION crmapi.instance_look(known bigint[], OUT why text,
                                     OUT marks bigint[])
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.instance i SET system_id = p.system_id,
        database_id = p.database_id
    FROM crmapi.instance_place() p WHERE i.system_id IS NULL;
    why := CASE WHEN crmapi.mark_behind(known)
        THEN 'an older state of the database was restored'
        ELSE (SELECT 'the database was restored or copied from another one'
              FROM crmapi.instance i, crmapi.instance_place() p
              WHERE (i.system_id, i.database_id)
                    IS DISTINCT FROM (p.system_id, p.database_id)) END;
    marks := (SELECT array_agg(m.n ORDER BY m.slot)
              FROM crmapi.send_mark m);
END
$$;

-- Hold the database because of WHY, unless it is held. A KNOWN that is not null
-- raises the numbers to it: the daemon has told all that it knows, and after
-- the next release this is no older state any more. Locks: instance,
-- send_mark. For the worker.
CREATE FUNCTION crmapi.instance_hold(why text, known bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.instance i SET held_at = crmapi.now_ms(), held_reason = why
    WHERE i.held_at IS NULL;
    UPDATE crmapi.send_mark m SET n = known[m.slot + 1]
    WHERE m.n < known[m.slot + 1];
END
$$;

-- Add SENDS, lines of a daemon's journal in its order, to what was sent. A
-- later line goes before an earlier one of the same message. Enrollments that
-- do not exist here, or have ended, are left out. Returns how many were taken.
-- For the worker.
CREATE FUNCTION crmapi.past_add(sends jsonb) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    INSERT INTO crmapi.past_send AS p (workspace_id, enrollment_id, part,
                                       state, sent_at, provider_id)
    SELECT DISTINCT ON (e.workspace_id, e.id, s.line ->> 'part')
           e.workspace_id, e.id, s.line ->> 'part', s.line ->> 'state',
           (s.line ->> 'at')::timestamptz, s.line ->> 'provider_id'
    FROM jsonb_array_elements(sends) WITH ORDINALITY s(line, place)
    JOIN crmapi.enrollment e
        ON e.workspace_id = (s.line ->> 'workspace_id')::uuid
       AND e.id = (s.line ->> 'enrollment_id')::uuid
       AND crmapi.enrollment_is_live(e.status)
    ORDER BY e.workspace_id, e.id, s.line ->> 'part', s.place DESC
    ON CONFLICT ON CONSTRAINT past_send_pkey DO UPDATE
        SET state = excluded.state, sent_at = excluded.sent_at,
            provider_id = excluded.provider_id;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;

-- Record a step that was handed over before the database was restored: it is
-- sent, or it is unknown whether it is. Ends JOB. Returns whether it was handed
-- over. The caller has locked the enrollment, the step and the job. Internal.
CREATE FUNCTION crmapi.step_past(workspace uuid, job bigint, owner text,
                                 attempt integer, taken crmapi.enrollment_step)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    past crmapi.past_send;
BEGIN
    SELECT p.* INTO past FROM crmapi.past_send p
    WHERE p.workspace_id = step_past.workspace
      AND p.enrollment_id = taken.enrollment_id
      AND p.part = taken.sort_order::text AND p.state <> 'free';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'sending', error = NULL
    WHERE s.workspace_id = step_past.workspace AND s.id = taken.id;
    IF past.state = 'sent' THEN
        PERFORM crmapi.step_sent(workspace, job, owner, attempt,
            taken.enrollment_id, taken.id, past.sent_at, past.provider_id);
    ELSE
        PERFORM crmapi.step_failed(workspace, job, owner, attempt,
            taken.enrollment_id, taken.id, 'delivery_unknown', NULL);
    END IF;
    RETURN true;
END
$$;

-- ---- jobs ------------------------------------------------------------------

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

-- Claim the first job of LANE that is due at MOMENT, for OWNER and the time
-- LEASE. Workspaces take turns: it is a job of the next workspace AFTER (null:
-- of any) in the order of ids; after the last comes the first. Jobs that
-- another transaction has locked are skipped. An UPDATE looks no further than
-- the next workspace that is held, and the next one begins after it: so a claim
-- never reads the jobs of one that is held, however many. Locks: job. For the
-- worker.
CREATE OR REPLACE FUNCTION crmapi.job_claim(lane text, owner text,
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
        FROM (SELECT r.workspace_id, r.id FROM crmapi.job r
              WHERE r.state = 'ready' AND r.is_due AND r.lane = job_claim.lane
                AND r.workspace_id > turn AND r.workspace_id < coalesce(
                    (SELECT h.workspace_id FROM crmapi.workspace_hold h
                     WHERE h.workspace_id > turn
                     ORDER BY h.workspace_id LIMIT 1), last_id)
                AND r.run_at <= at
                AND (SELECT i.held_at IS NULL FROM crmapi.instance i
                     WHERE i.one)
              ORDER BY r.workspace_id, r.run_at, r.id LIMIT 1
              FOR UPDATE SKIP LOCKED) first
        WHERE j.workspace_id = first.workspace_id AND j.id = first.id
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

-- ---- sending (contract 11.10, 11.11) ---------------------------------------

-- Whether a step that TAKEN and ENROLLED say may be sent is sent at MOMENT: the
-- verdict "wait" with its time, or "send". Locks: send_count. Internal.
CREATE FUNCTION crmapi.step_permit(enrolled crmapi.enrollment,
        taken crmapi.enrollment_step, moment timestamptz, daily_limit integer,
        OUT verdict text, OUT until timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    until := crmapi.pacing_fit(enrolled.pacing, moment);
    IF until <= moment AND daily_limit > 0 THEN
        until := crmapi.step_limit(enrolled.workspace_id,
            enrolled.sequence_id, enrolled.pacing, moment, daily_limit);
    END IF;
    IF until > moment THEN
        verdict := 'wait';
        RETURN;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'sending', error = NULL
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    verdict := 'send';
    until := NULL;
END
$$;

-- Take a step for sending. VERDICT:
--   send     the step is "sending" now; no other worker takes it
--   again    it was "sending": a worker has died, and nothing tells whether it
--            was sent
--   lost     the same, and its enrollment has ended, or ends now because its
--            address is suppressed
--   gone     it must not be sent, or no longer
--   wait     not before UNTIL: the agent has sent DAILY_LIMIT (0: no limit)
--            today, or the window of its pacing is closed
--   held     not before its workspace is released: the job is given back
--   past     it was handed over before the database was restored, and is
--            recorded as that; the job has ended
--   stopped  its address is suppressed, so the enrollment has ended
-- Locks: enrollment, step, job (lost lease: CRM01), send_count. For the
-- worker.
CREATE OR REPLACE FUNCTION crmapi.step_take(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, step uuid,
        moment timestamptz, daily_limit integer, OUT verdict text,
        OUT until timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrolled crmapi.enrollment;
    taken crmapi.enrollment_step;
BEGIN
    SELECT e.* INTO enrolled FROM crmapi.enrollment e
    WHERE e.workspace_id = step_take.workspace
      AND e.id = step_take.enrollment FOR UPDATE;
    SELECT s.* INTO taken FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_take.workspace AND s.id = step_take.step
      AND s.enrollment_id = step_take.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    verdict := CASE taken.status WHEN 'sending' THEN 'lost' ELSE 'gone' END;
    IF taken.status IS NULL OR taken.status NOT IN ('scheduled', 'sending')
       OR (taken.status = 'scheduled'
           AND enrolled.status NOT IN ('approved', 'running')) THEN
        RETURN;
    END IF;
    IF crmapi.is_suppressed(workspace, taken.channel, taken.to_identifier)
    THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment,
            'stopped_unsubscribed', 'suppressed');
        IF taken.status = 'scheduled' THEN
            verdict := 'stopped';
        END IF;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM crmapi.hold_of(workspace)) THEN
        PERFORM crmapi.job_return(workspace, job, owner, attempt);
        verdict := 'held';
    ELSIF crmapi.step_past(workspace, job, owner, attempt, taken) THEN
        verdict := 'past';
    ELSIF taken.status = 'scheduled' THEN
        SELECT p.verdict, p.until INTO verdict, until
        FROM crmapi.step_permit(enrolled, taken, moment, daily_limit) p;
    ELSIF enrolled.status IN ('approved', 'running') THEN
        verdict := 'again';
    END IF;
END
$$;

-- ---- rights ----------------------------------------------------------------

GRANT SELECT ON crmapi.workspace_hold, crmapi.instance, crmapi.send_mark,
    crmapi.past_send TO crmapi_worker;

REVOKE EXECUTE ON FUNCTION crmapi.hold_of, crmapi.hold, crmapi.release,
    crmapi.instance_place, crmapi.mark_behind, crmapi.mark_next,
    crmapi.instance_look, crmapi.instance_hold, crmapi.past_add,
    crmapi.step_past, crmapi.job_return, crmapi.step_permit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.hold_of, crmapi.mark_behind,
    crmapi.mark_next, crmapi.instance_look, crmapi.instance_hold,
    crmapi.past_add, crmapi.job_return TO crmapi_worker;
