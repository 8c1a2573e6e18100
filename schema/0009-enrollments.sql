-- SPDX-License-Identifier: Apache-2.0
-- 0009-enrollments.sql: pacing, stops, approval, review, generation
--
-- Each function here that changes an enrollment, its steps or its jobs locks
-- the enrollment first. The functions that the API and the worker call are
-- SECURITY DEFINER; neither role may change the tables itself.

-- ---- pacing (contract 11.8) ------------------------------------------------

-- The first time from MOMENT on at which PACING permits sending:
-- {"time_zone": "Europe/Berlin", "from": "09:00", "to": "17:00",
-- "days": [1, 2, 3, 4, 5]}, days by ISO 8601; without "days" any time. The
-- window's bounds are local times, also on days of a clock change: where the clock
-- jumps over one of them, or shows it twice, the clock decides.
CREATE FUNCTION crmapi.pacing_fit(pacing jsonb, moment timestamptz)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    zone text := coalesce(pacing ->> 'time_zone', 'UTC');
    today date := (moment AT TIME ZONE zone)::date;
    clock tsrange;
    begins timestamptz;
    ends timestamptz;
    opens timestamptz[];
    fits timestamptz;
BEGIN
    IF pacing -> 'days' IS NULL THEN
        RETURN moment;
    END IF;
    FOR day IN 0..14 LOOP       -- one of them may be left out in spring
        CONTINUE WHEN NOT pacing -> 'days'
            @> to_jsonb(extract(isodow FROM today + day)::integer);
        clock := tsrange(today + day + (pacing ->> 'from')::interval,
                         today + day + (pacing ->> 'to')::interval);
        opens := ARRAY[lower(clock) AT TIME ZONE zone];
        begins := opens[1] - interval '3 hours';
        ends := upper(clock) AT TIME ZONE zone;
        IF ends AT TIME ZONE zone - begins AT TIME ZONE zone <> ends - begins
        THEN
            -- it changes: it may jump into the window, and show it twice
            opens := ARRAY(SELECT m FROM generate_series(begins, ends,
                                                         interval '1 minute') m
                WHERE m AT TIME ZONE zone <@ clock AND NOT clock
                    @> ((m - interval '1 minute') AT TIME ZONE zone)
                ORDER BY m);
        END IF;
        FOREACH fits IN ARRAY opens LOOP
            fits := greatest(moment, fits);
            IF fits AT TIME ZONE zone <@ clock THEN
                RETURN fits;
            END IF;
        END LOOP;
    END LOOP;
    RAISE EXCEPTION 'no day is left in %', pacing
        USING ERRCODE = 'invalid_parameter_value';
END
$$;

-- Set scheduled_for of an enrollment's steps after number AFTER: of the first
-- of them its delay after MOMENT, of each later one its delay after the one
-- before. Step 1 has no delay (specification). MOMENT is cut to milliseconds: a step
-- whose time was rounded up would be due only later, when job_poll() marks it, behind
-- all that came before. The caller has locked the enrollment. Internal.
CREATE FUNCTION crmapi.steps_schedule(workspace uuid, enrollment uuid,
                                      after integer, moment timestamptz)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    paced jsonb;
    due timestamptz := date_trunc('milliseconds', moment);
    step record;
BEGIN
    SELECT e.pacing INTO paced FROM crmapi.enrollment e
    WHERE e.workspace_id = steps_schedule.workspace
      AND e.id = steps_schedule.enrollment;
    FOR step IN
        SELECT s.id, s.sort_order, s.delay_seconds
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = steps_schedule.workspace
          AND s.enrollment_id = steps_schedule.enrollment
          AND s.sort_order > after AND s.status = 'scheduled'
        ORDER BY s.sort_order
    LOOP
        IF step.sort_order > 1 THEN
            due := due + step.delay_seconds * interval '1 second';
        END IF;
        due := crmapi.pacing_fit(paced, due);
        UPDATE crmapi.enrollment_step s SET scheduled_for = due
        WHERE s.workspace_id = steps_schedule.workspace AND s.id = step.id;
    END LOOP;
END
$$;

-- Insert the job that sends the next step of an enrollment. Returns whether a
-- step is left. The caller has locked the enrollment. Internal.
CREATE FUNCTION crmapi.step_queue(workspace uuid, enrollment uuid)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
    SELECT s.workspace_id, 'sequence.step', jsonb_build_object(
        'enrollment_id', s.enrollment_id, 'step_id', s.id), s.scheduled_for
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_queue.workspace
      AND s.enrollment_id = step_queue.enrollment AND s.status = 'scheduled'
    ORDER BY s.sort_order LIMIT 1;
    RETURN FOUND;
END
$$;

-- ---- the end of an enrollment ----------------------------------------------

-- End an enrollment that is live as OUTCOME because of REASON: scheduled steps
-- and ready jobs are cancelled. A step that is being sent, and its job, are
-- left to the worker, which has handed it over. Returns the status
-- before, NULL if there is no such enrollment. Locks: enrollment, step, job.
-- Internal.
CREATE FUNCTION crmapi.enrollment_end(workspace uuid,
        enrollment uuid, outcome text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment FOR UPDATE;
    IF had IS NULL OR NOT crmapi.enrollment_is_live(had) THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment e SET status = outcome,
        stop_reason = CASE WHEN outcome <> 'failed' THEN reason END,
        generation_error = CASE WHEN outcome = 'failed' THEN reason END
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment;
    UPDATE crmapi.enrollment_step s SET status = 'cancelled'
    WHERE s.workspace_id = enrollment_end.workspace
      AND s.enrollment_id = enrollment_end.enrollment
      AND s.status = 'scheduled';
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = crmapi.now_ms()
    WHERE j.workspace_id = enrollment_end.workspace AND j.state = 'ready'
      AND j.payload ->> 'enrollment_id' = enrollment_end.enrollment::text
      AND NOT EXISTS (SELECT FROM crmapi.enrollment_step s
          WHERE s.workspace_id = enrollment_end.workspace
            AND s.status = 'sending'
            AND s.id = (j.payload ->> 'step_id')::uuid);
    RETURN had;
END
$$;

-- Stop an enrollment at a user's request because of REASON. Returns as
-- enrollment_end(). Locks: enrollment, step, job. For the API and the worker.
CREATE FUNCTION crmapi.enrollment_stop(workspace uuid, enrollment uuid,
                                       reason text) RETURNS text
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                 reason);

-- A contact has replied: stop its live enrollments whose template has
-- stop_on_reply. Returns how many stopped. Locks: enrollment, step, job. For the
-- API and the worker.
CREATE FUNCTION crmapi.contact_replied(workspace uuid, contact uuid)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrollment uuid;
    n bigint := 0;
BEGIN
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        JOIN crmapi.sequence q
            ON q.workspace_id = e.workspace_id AND q.id = e.sequence_id
        JOIN crmapi.sequence_template p
            ON p.workspace_id = q.workspace_id AND p.id = q.template_id
        WHERE e.workspace_id = contact_replied.workspace
          AND e.contact_id = contact_replied.contact
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND p.stop_on_reply
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_reply', 'reply')) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- ---- approval --------------------------------------------------------------

-- Approve an enrollment at MOMENT (null: now): its first step is due then.
-- Returns the status before, NULL if there is no such enrollment; nothing
-- changes unless it was pending_approval. Locks: enrollment, step. For the API
-- and the worker.
CREATE FUNCTION crmapi.enrollment_approve(workspace uuid, enrollment uuid,
                                          moment timestamptz DEFAULT NULL)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    at timestamptz := date_trunc('milliseconds',
                                 coalesce(moment, statement_timestamp()));
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_approve.workspace
      AND e.id = enrollment_approve.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment e SET status = 'approved', approved_at = at
    WHERE e.workspace_id = enrollment_approve.workspace
      AND e.id = enrollment_approve.enrollment;
    PERFORM crmapi.steps_schedule(workspace, enrollment, 0, at);
    PERFORM crmapi.step_queue(workspace, enrollment);
    RETURN had;
END
$$;

-- Reject an enrollment: it stops. Returns as enrollment_approve(). Locks:
-- enrollment, step, job. For the API and the worker.
CREATE FUNCTION crmapi.enrollment_reject(workspace uuid, enrollment uuid)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_reject.workspace
      AND e.id = enrollment_reject.enrollment FOR UPDATE;
    IF had = 'pending_approval' THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                      'rejected');
    END IF;
    RETURN had;
END
$$;

-- Change the texts of a step of an enrollment that waits for approval, which the
-- caller has locked. A null text keeps the old one; a text that the step's channel
-- does not have is ignored. Locks: step. Internal.
CREATE FUNCTION crmapi.step_edit(workspace uuid, enrollment uuid, step uuid,
                                 subject text, body text, objective text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.enrollment_step s SET
        email_subject = CASE WHEN s.channel = 'email'
            THEN coalesce(step_edit.subject, s.email_subject)
            ELSE s.email_subject END,
        email_body = CASE WHEN s.channel = 'email'
            THEN coalesce(step_edit.body, s.email_body)
            ELSE s.email_body END,
        sms_body = CASE WHEN s.channel = 'sms'
            THEN coalesce(step_edit.body, s.sms_body) ELSE s.sms_body END,
        voice_script = CASE WHEN s.channel = 'voice'
            THEN coalesce(step_edit.body, s.voice_script)
            ELSE s.voice_script END,
        voice_objective = CASE WHEN s.channel = 'voice'
            THEN coalesce(step_edit.objective, s.voice_objective)
            ELSE s.voice_objective END
    WHERE s.workspace_id = step_edit.workspace AND s.id = step_edit.step
      AND s.enrollment_id = step_edit.enrollment;
END
$$;

-- ---- the review page -------------------------------------------------------

-- A hash of the texts of an enrollment's steps. It changes with each of them:
-- a page approves what it showed. For the API.
CREATE FUNCTION crmapi.review_digest(workspace uuid,
                                     enrollment uuid)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT encode(sha256(convert_to(coalesce(jsonb_agg(
            jsonb_build_array(s.id, s.channel, s.to_identifier,
            s.email_subject, s.email_body, s.sms_body, s.voice_objective,
            s.voice_script) ORDER BY s.sort_order)::text, ''), 'UTF8')), 'hex')
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = review_digest.workspace
          AND s.enrollment_id = review_digest.enrollment);
END
$$;

-- Do ACTION (approve, reject, save) with an enrollment that waits for
-- approval, after EDITS of its steps: an array of {"step": id, "subject",
-- "body", "objective"}, as step_edit() takes them. SEEN is the digest that the
-- page showed. Returns the status before, NULL if there is no such enrollment,
-- "changed" if the texts differ from SEEN; nothing changes unless it returns
-- pending_approval, and then there is a row of crmapi.audit: ADMIN did it, at the
-- address ORIGIN. Locks: enrollment, step, job (reject only). For the API.
CREATE FUNCTION crmapi.review_act(workspace uuid, enrollment uuid, seen text,
        action text, edits jsonb, admin uuid, origin text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    edit jsonb;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = review_act.workspace
      AND e.id = review_act.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    IF action <> 'reject' AND crmapi.review_digest(workspace, enrollment)
        IS DISTINCT FROM seen THEN
        RETURN 'changed';
    END IF;
    PERFORM crmapi.audit_add(workspace, 'admin', admin::text, origin,
        'enrollment ' || action, 'enrollment', enrollment::text,
        jsonb_build_object('edited', jsonb_array_length(edits)));
    IF action = 'reject' THEN
        RETURN crmapi.enrollment_reject(workspace, enrollment);
    END IF;
    FOR edit IN SELECT v FROM jsonb_array_elements(edits) v LOOP
        PERFORM crmapi.step_edit(workspace, enrollment,
            (edit ->> 'step')::uuid, edit ->> 'subject', edit ->> 'body',
            edit ->> 'objective');
    END LOOP;
    IF action = 'approve' THEN
        RETURN crmapi.enrollment_approve(workspace, enrollment);
    END IF;
    RETURN had;
END
$$;

-- The times of an enrollment's steps: sent_at, else scheduled_for; of one that
-- waits for approval, the times if it were approved at MOMENT. For the API.
CREATE FUNCTION crmapi.review_times(workspace uuid, enrollment uuid,
                                    moment timestamptz)
    RETURNS TABLE (step uuid, due timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    enrolled crmapi.enrollment;
    s crmapi.enrollment_step;
BEGIN
    SELECT e.* INTO enrolled FROM crmapi.enrollment e
    WHERE e.workspace_id = review_times.workspace
      AND e.id = review_times.enrollment;
    due := moment;
    FOR s IN SELECT t.* FROM crmapi.enrollment_step t
             WHERE t.workspace_id = review_times.workspace
               AND t.enrollment_id = review_times.enrollment
             ORDER BY t.sort_order
    LOOP
        step := s.id;
        IF enrolled.status = 'pending_approval' THEN
            IF s.sort_order > 1 THEN
                due := due + s.delay_seconds * interval '1 second';
            END IF;
            due := crmapi.pacing_fit(enrolled.pacing, due);
        ELSE
            due := coalesce(s.sent_at, s.scheduled_for);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- ---- generation (contract 11.8) --------------------------------------------

-- Store the STEPS of an enrollment, an array of objects with the columns'
-- names, and its PACING. If its sequence has auto_approve, it is approved at
-- MOMENT and its first step due; otherwise it waits, and a job asks each admin
-- of the workspace to review it. Ends JOB. Returns the new status; only the
-- job changes if the enrollment was not generating. Locks: enrollment, job. For
-- the worker.
CREATE FUNCTION crmapi.enrollment_generated(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, steps jsonb,
        pacing jsonb, moment timestamptz)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at timestamptz := date_trunc('milliseconds', moment);
    ids CONSTANT uuid[] := ARRAY(SELECT crmapi.uuid_v7(moment)
                                 FROM jsonb_array_elements(steps));
    had text;
    auto boolean;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
    IF had IS DISTINCT FROM 'generating' THEN
        RETURN had;
    END IF;
    INSERT INTO crmapi.enrollment_step (id, workspace_id, enrollment_id,
        sort_order, channel, to_identifier, delay_seconds, voice_objective,
        voice_script, email_subject, email_body, sms_body)
    SELECT ids[t.n], enrollment_generated.workspace,
           enrollment_generated.enrollment, t.n, t.step ->> 'channel',
           t.step ->> 'to_identifier', (t.step ->> 'delay_seconds')::bigint,
           t.step ->> 'voice_objective', t.step ->> 'voice_script',
           t.step ->> 'email_subject', t.step ->> 'email_body',
           t.step ->> 'sms_body'
    FROM jsonb_array_elements(steps) WITH ORDINALITY t(step, n);
    SELECT q.auto_approve INTO auto FROM crmapi.sequence q
    JOIN crmapi.enrollment e ON e.workspace_id = q.workspace_id
        AND e.sequence_id = q.id
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment;
    UPDATE crmapi.enrollment e SET status = CASE WHEN auto
            THEN 'approved' ELSE 'pending_approval' END,
        approved_at = CASE WHEN auto THEN at END,
        pacing = enrollment_generated.pacing
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment;
    PERFORM crmapi.steps_schedule(workspace, enrollment, 0, moment);
    IF auto THEN
        PERFORM crmapi.step_queue(workspace, enrollment);
        RETURN 'approved';
    END IF;
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    SELECT a.workspace_id, 'sequence.review', jsonb_build_object(
        'enrollment_id', enrollment_generated.enrollment, 'admin_id', a.id)
    FROM crmapi.admin a
    WHERE a.workspace_id = enrollment_generated.workspace;
    RETURN 'pending_approval';
END
$$;

-- Fail an enrollment for good because of REASON, during generation or after
-- it. Ends JOB. Locks: enrollment, job, step. For the worker.
CREATE FUNCTION crmapi.enrollment_failed(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, reason text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_failed.workspace
      AND e.id = enrollment_failed.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', reason,
                           NULL);
    UPDATE crmapi.enrollment_step s SET status = 'failed',
        error = left(reason, 2000)
    WHERE s.workspace_id = enrollment_failed.workspace
      AND s.enrollment_id = enrollment_failed.enrollment
      AND s.status = 'sending';
    PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed', reason);
END
$$;
