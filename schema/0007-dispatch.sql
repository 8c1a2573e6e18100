-- SPDX-License-Identifier: Apache-2.0
-- 0007-dispatch.sql: what moves enrollments: approval, stops, sending
--
-- Every change of an enrollment takes its row's lock first, then its steps',
-- then its jobs' (schema/README). The functions are SECURITY DEFINER: the API
-- and the worker may call them and nothing else.

-- ---- columns ----------------------------------------------------------------

-- When steps may be sent, as it was at generation (contract 11.8).
ALTER TABLE crmapi.enrollment
    ADD COLUMN pacing crmapi.object NOT NULL DEFAULT '{}';
ALTER TABLE crmapi.enrollment_step
    ADD COLUMN delay_seconds bigint NOT NULL DEFAULT 0
        CHECK (delay_seconds >= 0),
    ADD COLUMN provider_id crmapi.line,
    ADD COLUMN error crmapi.prose;

-- ---- people and secrets -----------------------------------------------------

-- Who is asked to review what is to be sent.
CREATE TABLE crmapi.admin (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    email crmapi.title NOT NULL,
    name crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    email_key text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (crmapi.fold(email)) STORED,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email_key)
);

-- What links in mails are signed with: 32 random bytes for each workspace.
-- gen_random_uuid() is PostgreSQL's strong source of randomness.
CREATE TABLE crmapi.link_key (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);
CREATE FUNCTION crmapi.link_key_make() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.link_key (workspace_id, key)
    VALUES (NEW.id, sha256(uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
    RETURN NULL;
END
$$;
CREATE TRIGGER link_key AFTER INSERT ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.link_key_make();
INSERT INTO crmapi.link_key (workspace_id, key)
SELECT w.id, sha256(uuid_send(gen_random_uuid())
    || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
FROM crmapi.workspace w;

-- How much an agent has sent on a day of its workspace.
CREATE TABLE crmapi.send_count (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    day date NOT NULL,
    n integer NOT NULL,
    PRIMARY KEY (workspace_id, bot_id, day)
) WITH (fillfactor = 50);

-- ---- when (pacing) ----------------------------------------------------------

-- The first moment from MOMENT on at which PACING lets something be sent:
-- {"time_zone": "Europe/Berlin", "from": "09:00", "to": "17:00",
-- "days": [1, 2, 3, 4, 5]}, days as ISO 8601 counts them; without "days"
-- always. The days of a change of the clock are as long as they are there.
CREATE FUNCTION crmapi.pacing_fit(pacing jsonb, moment timestamptz)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    zone text := coalesce(pacing ->> 'time_zone', 'UTC');
    today date := (moment AT TIME ZONE zone)::date;
    opens timestamptz;
    closes timestamptz;
BEGIN
    IF pacing -> 'days' IS NULL THEN
        RETURN moment;
    END IF;
    FOR day IN 0..7 LOOP
        CONTINUE WHEN NOT pacing -> 'days'
            @> to_jsonb(extract(isodow FROM today + day)::integer);
        opens := (today + day + (pacing ->> 'from')::interval)
            AT TIME ZONE zone;
        closes := (today + day + (pacing ->> 'to')::interval)
            AT TIME ZONE zone;
        IF moment < closes THEN
            RETURN greatest(opens, moment);
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no day is left in %', pacing
        USING ERRCODE = 'invalid_parameter_value';
END
$$;

-- Set when the steps behind number AFTER of an enrollment are due, the first
-- of them its delay after MOMENT; a first step at MOMENT (specification).
CREATE FUNCTION crmapi.steps_pace(workspace uuid, enrollment uuid,
                                  after integer, moment timestamptz)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    paced jsonb;
    due timestamptz := moment;
    step record;
BEGIN
    SELECT e.pacing INTO paced FROM crmapi.enrollment e
    WHERE e.workspace_id = steps_pace.workspace
      AND e.id = steps_pace.enrollment;
    FOR step IN
        SELECT s.id, s.sort_order, s.delay_seconds
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = steps_pace.workspace
          AND s.enrollment_id = steps_pace.enrollment
          AND s.sort_order > after AND s.status = 'scheduled'
        ORDER BY s.sort_order
    LOOP
        IF step.sort_order > 1 THEN
            due := due + step.delay_seconds * interval '1 second';
        END IF;
        due := crmapi.pacing_fit(paced, due);
        UPDATE crmapi.enrollment_step s SET scheduled_for = due
        WHERE s.workspace_id = steps_pace.workspace AND s.id = step.id;
    END LOOP;
END
$$;

-- Have the next step of an enrollment sent when it is due. Returns whether
-- there is one.
CREATE FUNCTION crmapi.step_next(workspace uuid, enrollment uuid)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
    SELECT s.workspace_id, 'sequence.step', jsonb_build_object(
        'enrollment_id', s.enrollment_id, 'step_id', s.id), s.scheduled_for
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_next.workspace
      AND s.enrollment_id = step_next.enrollment AND s.status = 'scheduled'
    ORDER BY s.sort_order LIMIT 1;
    RETURN FOUND;
END
$$;

-- ---- the moves of an enrollment (contract 11.7) -----------------------------

CREATE FUNCTION crmapi.enrollment_is_live(status text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN status IN ('generating', 'pending_approval', 'approved',
                      'running');

-- End an enrollment as OUTCOME because of REASON, unless it has ended before:
-- what has not been sent never is. Returns the status it had, null if there
-- is no such. A step that is being sent, and its job, are the worker's: it was
-- handed over before this.
CREATE FUNCTION crmapi.enrollment_end(workspace uuid, enrollment uuid,
                                      outcome text, reason text) RETURNS text
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
          WHERE s.workspace_id = j.workspace_id AND s.status = 'sending'
            AND s.id = (j.payload ->> 'step_id')::uuid);
    RETURN had;
END
$$;

-- A contact that is deleted: as in 0004, by the function above.
CREATE OR REPLACE FUNCTION crmapi.contact_leaves() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    one uuid;
BEGIN
    -- In the cascade of a workspace everything goes by itself.
    IF pg_trigger_depth() > 1 AND NOT EXISTS (
        SELECT FROM crmapi.workspace w WHERE w.id = OLD.workspace_id) THEN
        RETURN OLD;
    END IF;
    PERFORM FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.contact_id = OLD.id
      AND a.company_id IS NOT NULL
    ORDER BY a.id FOR UPDATE;
    DELETE FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.contact_id = OLD.id
      AND a.company_id IS NULL;
    UPDATE crmapi.pipeline_card c SET contact_id = NULL,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = OLD.workspace_id AND c.contact_id = OLD.id;
    FOR one IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = OLD.workspace_id AND e.contact_id = OLD.id
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
        ORDER BY e.id
    LOOP
        PERFORM crmapi.enrollment_end(OLD.workspace_id, one, 'stopped_user',
                                      'contact_deleted');
    END LOOP;
    RETURN OLD;
END
$$;

-- A user stops an enrollment, or rejects one that waits for approval.
CREATE FUNCTION crmapi.enrollment_stop(workspace uuid, enrollment uuid,
                                       reason text) RETURNS text
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                 reason);

-- A user rejects one that waits for approval, and only such a one.
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

-- Approve an enrollment that waits for it, at MOMENT (null: now): its first
-- step is due then. Returns the status it had, null if there is no such;
-- nothing has changed unless that was pending_approval.
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
    PERFORM crmapi.steps_pace(workspace, enrollment, 0, at);
    PERFORM crmapi.step_next(workspace, enrollment);
    RETURN had;
END
$$;

-- Change the texts of a step of an enrollment that waits for approval. A text
-- that is null stays, and so does one that the step's channel has not.
-- Returns the enrollment's status, null if there is no such step; nothing
-- has changed unless that is pending_approval.
CREATE FUNCTION crmapi.step_edit(workspace uuid, enrollment uuid, step uuid,
                                 subject text, body text, objective text)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_edit.workspace
      AND e.id = step_edit.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment_step s SET
        email_subject = CASE s.channel WHEN 'email'
            THEN coalesce(step_edit.subject, s.email_subject)
            ELSE s.email_subject END,
        email_body = CASE s.channel WHEN 'email'
            THEN coalesce(step_edit.body, s.email_body)
            ELSE s.email_body END,
        sms_body = CASE s.channel WHEN 'sms'
            THEN coalesce(step_edit.body, s.sms_body) ELSE s.sms_body END,
        voice_script = CASE s.channel WHEN 'voice'
            THEN coalesce(step_edit.body, s.voice_script)
            ELSE s.voice_script END,
        voice_objective = CASE s.channel WHEN 'voice'
            THEN coalesce(step_edit.objective, s.voice_objective)
            ELSE s.voice_objective END
    WHERE s.workspace_id = step_edit.workspace AND s.id = step_edit.step
      AND s.enrollment_id = step_edit.enrollment;
    RETURN CASE WHEN FOUND THEN had END;
END
$$;

-- ---- what stops enrollments from outside ------------------------------------

-- A contact has replied: those of its live enrollments whose template wants
-- it stop. Returns how many.
CREATE FUNCTION crmapi.contact_replied(workspace uuid, contact uuid)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    one uuid;
    n bigint := 0;
BEGIN
    FOR one IN
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
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace, one,
               'stopped_reply', 'reply')) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- The contacts of a workspace that have the address EMAIL or PHONE (the other
-- is null), the primary one or any other.
CREATE FUNCTION crmapi.contacts_with(workspace uuid, email text, phone text)
    RETURNS SETOF uuid
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT c.id FROM crmapi.contact c
    WHERE contacts_with.email IS NOT NULL
      AND c.workspace_id = contacts_with.workspace
      AND c.search LIKE '%' || replace(replace(replace(
              crmapi.fold(contacts_with.email), '\', '\\'), '%', '\%'), '_',
              '\_') || '%'
      AND crmapi.fold(contacts_with.email) = ANY (crmapi.email_keys(c.emails))
    UNION ALL
    SELECT c.id FROM crmapi.contact c
    WHERE contacts_with.phone IS NOT NULL
      AND c.workspace_id = contacts_with.workspace
      AND c.phone_digits LIKE '%' || crmapi.digits(contacts_with.phone) || '%'
      AND crmapi.phone_fold(contacts_with.phone)
          = ANY (crmapi.phone_keys(c.phone_numbers));
END;

-- Never write to EMAIL or PHONE (the other is null) again, because of REASON:
-- live enrollments of those who have the address stop. Returns how many did;
-- that the address was suppressed before is no error.
CREATE FUNCTION crmapi.suppress(workspace uuid, email text, phone text,
                                reason text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    one uuid;
    n bigint := 0;
BEGIN
    INSERT INTO crmapi.suppression (id, workspace_id, email, phone_number,
                                    reason)
    VALUES (gen_random_uuid(), suppress.workspace, suppress.email,
            suppress.phone, suppress.reason)
    ON CONFLICT ON CONSTRAINT suppression_workspace_id_kind_address_key
    DO NOTHING;
    FOR one IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = suppress.workspace
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND e.contact_id IN (SELECT crmapi.contacts_with(
              suppress.workspace, suppress.email, suppress.phone))
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace, one,
               'stopped_unsubscribed', reason)) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- EMAIL or PHONE (the other is null) may be written to again. Returns how many
-- entries there were: one or none.
CREATE FUNCTION crmapi.suppress_lift(workspace uuid, email text, phone text)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    DELETE FROM crmapi.suppression s
    WHERE s.workspace_id = suppress_lift.workspace
      AND s.kind = CASE WHEN suppress_lift.email IS NOT NULL
                   THEN 'email' ELSE 'phone' END
      AND s.address = coalesce(crmapi.fold(suppress_lift.email),
                               crmapi.phone_fold(suppress_lift.phone));
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;

-- Whether the address that CHANNEL uses is suppressed.
CREATE FUNCTION crmapi.is_suppressed(workspace uuid, channel text,
                                     address text) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    RETURN EXISTS (SELECT FROM crmapi.suppression s
        WHERE s.workspace_id = is_suppressed.workspace
          AND s.kind = CASE is_suppressed.channel WHEN 'email' THEN 'email'
                       ELSE 'phone' END
          AND s.address = CASE is_suppressed.channel WHEN 'email'
              THEN crmapi.fold(is_suppressed.address)
              ELSE crmapi.phone_fold(is_suppressed.address) END);

-- ---- sending (contract 11.10, 11.11) ----------------------------------------

-- Take a step for sending, under the locks of its enrollment, itself and the
-- job whose lease OWNER and ATTEMPT name. VERDICT:
--   send     it is "sending" now, and nobody else will touch it
--   again    it was so before: a worker has died, and nobody knows whether it
--            was sent
--   lost     the same, and the enrollment has ended since
--   gone     it is not to be sent, or no longer
--   wait     not before UNTIL: the agent has sent DAILY_LIMIT (0: no limit)
--            today, or the window of its pacing is closed
--   stopped  its address has been suppressed, so that the enrollment ended
CREATE FUNCTION crmapi.step_take(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
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
        verdict := CASE WHEN enrolled.status IN ('approved', 'running')
                   THEN 'again' ELSE 'lost' END;
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

-- Put a step off until LATER: the job is done, another one is made.
CREATE FUNCTION crmapi.step_wait(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
                                 later timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = step_wait.workspace
      AND e.id = step_wait.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET scheduled_for = later
    WHERE s.workspace_id = step_wait.workspace AND s.id = step_wait.step
      AND s.status = 'scheduled';
    IF FOUND THEN
        PERFORM crmapi.step_next(workspace, enrollment);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- A step was sent at MOMENT: what comes after it is due accordingly. The
-- first of several makes the enrollment running, the last completed. That the
-- enrollment was stopped meanwhile changes nothing of what was sent.
CREATE FUNCTION crmapi.step_sent(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
                                 moment timestamptz, provider text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    place integer;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_sent.workspace
      AND e.id = step_sent.enrollment FOR UPDATE;
    PERFORM FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_sent.workspace AND s.id = step_sent.step
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET status = 'sent', sent_at =
        date_trunc('milliseconds', moment), provider_id = left(provider, 1000)
    WHERE s.workspace_id = step_sent.workspace AND s.id = step_sent.step
      AND s.status = 'sending'
    RETURNING s.sort_order INTO place;
    IF FOUND AND crmapi.enrollment_is_live(had) THEN
        IF had = 'approved' AND place > 1 THEN
            UPDATE crmapi.enrollment e SET status = 'running'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
        PERFORM crmapi.steps_pace(workspace, enrollment, place, moment);
        IF NOT crmapi.step_next(workspace, enrollment) THEN
            UPDATE crmapi.enrollment e SET status = 'completed'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- A step was not sent because of REASON. AFTER: it is tried again then, if
-- its enrollment still lives; null: never, and the enrollment fails.
CREATE FUNCTION crmapi.step_failed(workspace uuid, job bigint, owner text,
                                   attempt integer, enrollment uuid,
                                   step uuid, reason text, after interval)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    live boolean;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_failed.workspace
      AND e.id = step_failed.enrollment FOR UPDATE;
    live := crmapi.enrollment_is_live(had);
    PERFORM FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_failed.workspace AND s.id = step_failed.step
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET error = left(reason, 2000),
        status = CASE WHEN after IS NULL THEN 'failed'
                 WHEN live THEN 'scheduled' ELSE 'cancelled' END
    WHERE s.workspace_id = step_failed.workspace AND s.id = step_failed.step
      AND s.status = 'sending';
    IF after IS NULL THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed',
                                      reason);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt,
        CASE WHEN after IS NOT NULL AND live THEN 'ready' ELSE 'done' END,
        reason, after);
END
$$;

-- ---- generation -------------------------------------------------------------

-- Store the STEPS of an enrollment (an array of objects with the columns'
-- names) and its PACING. AUTO: it is approved at MOMENT and its first step
-- due; otherwise it waits, and each admin of the workspace is asked. Returns
-- the status it has now; nothing has changed if that was not generating.
CREATE FUNCTION crmapi.enrollment_generated(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, steps jsonb,
        pacing jsonb, moment timestamptz)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
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
    SELECT gen_random_uuid(), enrollment_generated.workspace,
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
        approved_at = CASE WHEN auto
            THEN date_trunc('milliseconds', moment) END,
        pacing = enrollment_generated.pacing
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment;
    PERFORM crmapi.steps_pace(workspace, enrollment, 0, moment);
    IF auto THEN
        PERFORM crmapi.step_next(workspace, enrollment);
        RETURN 'approved';
    END IF;
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    SELECT a.workspace_id, 'sequence.review', jsonb_build_object('enrollment_id',
        enrollment_generated.enrollment, 'admin_id', a.id)
    FROM crmapi.admin a
    WHERE a.workspace_id = enrollment_generated.workspace;
    RETURN 'pending_approval';
END
$$;

-- Generation, or what came after it, has failed for good because of REASON.
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

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    name text;
    shared text[] := ARRAY['enrollment_stop', 'enrollment_reject',
        'enrollment_approve', 'step_edit', 'contact_replied', 'suppress',
        'suppress_lift'];
    worker text[] := ARRAY['enrollment_end', 'step_take', 'step_wait',
        'step_sent', 'step_failed', 'enrollment_generated',
        'enrollment_failed'];
BEGIN
    FOREACH name IN ARRAY shared || worker LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION crmapi.%I FROM PUBLIC',
                       name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION crmapi.%I TO %s', name,
            CASE WHEN name = ANY (shared) THEN 'crmapi_api, crmapi_worker'
                 ELSE 'crmapi_worker' END);
    END LOOP;
END
$$;
GRANT SELECT ON crmapi.admin, crmapi.link_key TO crmapi_worker;
GRANT SELECT ON crmapi.link_key TO crmapi_api;
GRANT SELECT, DELETE ON crmapi.send_count TO crmapi_worker;
-- From now on only the functions move enrollments and their steps.
REVOKE UPDATE ON crmapi.enrollment, crmapi.enrollment_step FROM crmapi_worker;
REVOKE UPDATE (status, generation_error, approved_at, stop_reason, updated_at)
    ON crmapi.enrollment FROM crmapi_worker;
REVOKE INSERT ON crmapi.enrollment_step FROM crmapi_worker;
