-- SPDX-License-Identifier: Apache-2.0
-- 0018-suppressed-again.sql: no second hand-over to a suppressed address
--
-- A step whose fate is unknown is handed over again where that makes one
-- message of two. If its address had been suppressed since, and was the
-- contact's no longer, so that the suppression had stopped nothing, it went
-- there none the less (contract 11.10).

-- Take a step for sending, under the locks of its enrollment, itself and the
-- job whose lease OWNER and ATTEMPT name. VERDICT:
--   send     it is "sending" now, and nobody else will touch it
--   again    it was so before: a worker has died, and nobody knows whether it
--            was sent
--   lost     the same, and the enrollment has ended since, or ends here because
--            its address has been suppressed
--   gone     it is not to be sent, or no longer
--   wait     not before UNTIL: the agent has sent DAILY_LIMIT (0: no limit)
--            today, or the window of its pacing is closed
--   stopped  its address has been suppressed, so that the enrollment ended
CREATE OR REPLACE FUNCTION crmapi.step_take(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, step uuid,
        moment timestamptz, daily_limit integer,
        OUT verdict text, OUT until timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrolled crmapi.enrollment;
    taken crmapi.enrollment_step;
    sender uuid;
    zone text;
BEGIN
    verdict := 'gone';
    SELECT e.* INTO enrolled FROM crmapi.enrollment e
    WHERE e.workspace_id = step_take.workspace
      AND e.id = step_take.enrollment FOR UPDATE;
    SELECT s.* INTO taken FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_take.workspace AND s.id = step_take.step
      AND s.enrollment_id = step_take.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    IF taken.status = 'sending' THEN
        verdict := 'lost';
        IF crmapi.is_suppressed(workspace, taken.channel, taken.to_identifier)
        THEN
            PERFORM crmapi.enrollment_end(workspace, enrollment,
                'stopped_unsubscribed', 'suppressed');
        ELSIF enrolled.status IN ('approved', 'running') THEN
            verdict := 'again';
        END IF;
        RETURN;
    END IF;
    IF taken.status IS DISTINCT FROM 'scheduled'
        OR enrolled.status NOT IN ('approved', 'running') THEN
        RETURN;
    END IF;
    IF crmapi.is_suppressed(workspace, taken.channel, taken.to_identifier)
    THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment,
            'stopped_unsubscribed', 'suppressed');
        verdict := 'stopped';
        RETURN;
    END IF;
    until := crmapi.pacing_fit(enrolled.pacing, moment);
    IF until > moment THEN
        verdict := 'wait';
        RETURN;
    END IF;
    SELECT q.bot_id, w.time_zone INTO sender, zone FROM crmapi.sequence q
    JOIN crmapi.workspace w ON w.id = q.workspace_id
    WHERE q.workspace_id = step_take.workspace
      AND q.id = enrolled.sequence_id;
    IF daily_limit > 0 THEN
        INSERT INTO crmapi.send_count AS c (workspace_id, bot_id, day, n)
        VALUES (step_take.workspace, sender,
                (moment AT TIME ZONE zone)::date, 1)
        ON CONFLICT ON CONSTRAINT send_count_pkey
        DO UPDATE SET n = c.n + 1 WHERE c.n < daily_limit;
        IF NOT FOUND THEN
            verdict := 'wait';
            until := crmapi.pacing_fit(enrolled.pacing,
                ((moment AT TIME ZONE zone)::date + 1) AT TIME ZONE zone);
            RETURN;
        END IF;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'sending', error = NULL
    WHERE s.workspace_id = step_take.workspace AND s.id = step_take.step;
    verdict := 'send';
    until := NULL;
END
$$;
