-- SPDX-License-Identifier: Apache-2.0
-- 0019-skip.sql: a release that leaves out what was due before a time
--
-- Who releases what was restored may know better than the database: until the
-- time of the failure steps were sent that it knows nothing of. The release then
-- has a bound. It is kept, because such a step may appear later: the next one of
-- a step that was handed over, or the first one of an enrollment that is not
-- generated yet.
--
-- min_module: 12

-- step: transaction: bounds

-- Steps of the workspace that were due before due_before are skipped, not sent.
CREATE TABLE crmapi.step_bound (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    due_before timestamptz(3) NOT NULL,
    released_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms()
);

-- The same as release() without DUE_BEFORE. In the workspaces that it releases,
-- steps that were due before that time are skipped. A later bound of before
-- stays. For the owner.
CREATE FUNCTION crmapi.release(workspace uuid, workspaces boolean,
                               due_before timestamptz) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.step_bound AS b (workspace_id, due_before)
    SELECT w.id, release.due_before FROM crmapi.workspace w
    CROSS JOIN crmapi.instance i
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = w.id
    WHERE (release.workspace IS NULL OR w.id = release.workspace)
      AND CASE WHEN h.workspace_id IS NOT NULL
          THEN workspaces OR release.workspace IS NOT NULL
          ELSE release.workspace IS NULL AND i.held_at IS NOT NULL END
    ON CONFLICT ON CONSTRAINT step_bound_pkey DO UPDATE
        SET due_before = greatest(b.due_before, excluded.due_before),
            released_at = excluded.released_at;
    RETURN crmapi.release(workspace, workspaces);
END
$$;

-- Skip the step TAKEN of ENROLLED if it was due before the bound of its
-- workspace, as if it had been sent when it was due: the next one is scheduled
-- its delay after that, and without one the enrollment is complete. Returns
-- whether it was skipped. The first step of an enrollment that was approved
-- without a user, but not before the release, was due when the sequence was
-- started. The caller has locked the enrollment and the step. Internal.
CREATE FUNCTION crmapi.step_skip(enrolled crmapi.enrollment,
                                 taken crmapi.enrollment_step) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound crmapi.step_bound;
    due timestamptz := taken.scheduled_for;
BEGIN
    SELECT b.* INTO bound FROM crmapi.step_bound b
    WHERE b.workspace_id = enrolled.workspace_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF taken.sort_order = 1 AND enrolled.approved_at >= bound.released_at
       AND (SELECT q.auto_approve FROM crmapi.sequence q
            WHERE q.workspace_id = enrolled.workspace_id
              AND q.id = enrolled.sequence_id) THEN
        due := crmapi.pacing_fit(enrolled.pacing, enrolled.created_at);
    END IF;
    IF (due < bound.due_before) IS NOT TRUE THEN
        RETURN false;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'skipped',
        error = 'due before the time that the release was given'
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    PERFORM crmapi.steps_schedule(enrolled.workspace_id, enrolled.id,
                                  taken.sort_order, due);
    IF NOT crmapi.step_queue(enrolled.workspace_id, enrolled.id) THEN
        UPDATE crmapi.enrollment e SET status = 'completed'
        WHERE e.workspace_id = enrolled.workspace_id AND e.id = enrolled.id;
    END IF;
    RETURN true;
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
--   skipped  it was due before the bound of its workspace. Daemons of before
--            take this for gone, which is the same to the job
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
    ELSIF taken.status = 'scheduled'
          AND crmapi.step_skip(enrolled, taken) THEN
        verdict := 'skipped';
    ELSIF taken.status = 'scheduled' THEN
        SELECT p.verdict, p.until INTO verdict, until
        FROM crmapi.step_permit(enrolled, taken, moment, daily_limit) p;
    ELSIF enrolled.status IN ('approved', 'running') THEN
        verdict := 'again';
    END IF;
END
$$;

-- The table of bounds is the owner's: step_take() reads it with his rights.
REVOKE EXECUTE ON FUNCTION crmapi.release(uuid, boolean, timestamptz),
    crmapi.step_skip FROM PUBLIC;
