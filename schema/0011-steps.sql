-- SPDX-License-Identifier: Apache-2.0
-- 0011-steps.sql: sending the steps of enrollments
--
-- Each function here that changes an enrollment, its steps or its jobs locks
-- the enrollment first. The functions that the API and the worker call are
-- SECURITY DEFINER; neither role may change the tables itself.

-- ---- sending (contract 11.10, 11.11) ---------------------------------------

-- Count the step TAKEN of ENROLLED, to be sent at MOMENT, against DAILY_LIMIT of
-- its agent: once on a day, however many attempts it takes. Returns NULL if the
-- limit permits it, otherwise the first time that its pacing permits from the next
-- day on, in the workspace's time zone. The caller has locked the step. Locks:
-- send_count, step. Internal.
CREATE FUNCTION crmapi.step_limit(enrolled crmapi.enrollment,
        taken crmapi.enrollment_step, moment timestamptz, daily_limit integer)
    RETURNS timestamptz
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sender uuid;
    zone text;
    today date;
BEGIN
    SELECT q.bot_id, w.time_zone INTO sender, zone FROM crmapi.sequence q
    JOIN crmapi.workspace w ON w.id = q.workspace_id
    WHERE q.workspace_id = enrolled.workspace_id
      AND q.id = enrolled.sequence_id;
    today := (moment AT TIME ZONE zone)::date;
    IF taken.counted = today THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.send_count AS c (workspace_id, bot_id, day, n)
    VALUES (enrolled.workspace_id, sender, today, 1)
    ON CONFLICT ON CONSTRAINT send_count_pkey
    DO UPDATE SET n = c.n + 1 WHERE c.n < daily_limit;
    IF NOT FOUND THEN
        -- a date itself would be one in the session's time zone
        RETURN crmapi.pacing_fit(enrolled.pacing,
                                 (today + 1)::timestamp AT TIME ZONE zone);
    END IF;
    UPDATE crmapi.enrollment_step s SET counted = today
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    RETURN NULL;
END
$$;

-- Whether a step that TAKEN and ENROLLED say may be sent is sent at MOMENT: the
-- verdict "wait" with its time, or "send". Locks: send_count, step. Internal.
CREATE FUNCTION crmapi.step_permit(enrolled crmapi.enrollment,
        taken crmapi.enrollment_step, moment timestamptz, daily_limit integer,
        OUT verdict text, OUT until timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    until := crmapi.pacing_fit(enrolled.pacing, moment);
    IF until <= moment AND daily_limit > 0 THEN
        until := crmapi.step_limit(enrolled, taken, moment, daily_limit);
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

-- Skip the step TAKEN of ENROLLED if it was due before the bound of its workspace.
-- What follows is as if it had been sent when it was due: the next step is scheduled
-- its delay after that; without a next step the enrollment is complete. Returns
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
--   skipped  it was due before the bound of its workspace
--   stopped  its address is suppressed, so the enrollment has ended
-- WIRE: the spelling of the address that goes over the wire (contract 17.3).
-- Locks: enrollment, step, job (lost lease: CRM01), send_count. For the
-- worker.
CREATE FUNCTION crmapi.step_take(workspace uuid, job bigint, owner text,
        attempt integer, enrollment uuid, step uuid, moment timestamptz,
        daily_limit integer, wire text, OUT verdict text,
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
       OR crmapi.is_suppressed(workspace, taken.channel, wire) THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment,
            'stopped_unsubscribed', 'suppressed');
        IF taken.status = 'scheduled' THEN
            verdict := 'stopped';
        END IF;
        RETURN;
    END IF;
    IF crmapi.sends_held(workspace) THEN
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

-- Postpone a step until LATER: JOB ends, and another one is inserted. Locks:
-- enrollment, job, step. For the worker.
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
        PERFORM crmapi.step_queue(workspace, enrollment);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- The conversation in which STEP, which is being sent, becomes a message: that of
-- an earlier step of its enrollment and channel, else the open one of the contact
-- with its agent on that channel, as intake_open() finds it. NULL: there is none
-- yet. It is locked before the enrollment, as intake does. Locks: a contact's
-- advisory one, conversation. Internal.
CREATE FUNCTION crmapi.step_talk(workspace uuid, enrollment uuid, step uuid)
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of record;
    talk uuid;
BEGIN
    SELECT s.sort_order, s.channel, e.contact_id, q.bot_id INTO of
    FROM crmapi.enrollment_step s
    JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
        AND e.id = s.enrollment_id
    JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id
        AND q.id = e.sequence_id
    WHERE s.workspace_id = step_talk.workspace AND s.id = step_talk.step;
    PERFORM pg_advisory_xact_lock(hashtextextended(workspace || ':c:'
        || of.contact_id, 0));
    SELECT m.conversation_id INTO talk FROM crmapi.enrollment_step s
    JOIN crmapi.message m ON m.workspace_id = s.workspace_id
        AND m.step_id = s.id
    JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
        AND c.id = m.conversation_id
    WHERE s.workspace_id = step_talk.workspace
      AND s.enrollment_id = step_talk.enrollment AND s.channel = of.channel
      AND s.sort_order < of.sort_order AND c.deleted IS NOT TRUE
    ORDER BY s.sort_order DESC LIMIT 1;
    IF talk IS NULL THEN
        SELECT c.id INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = step_talk.workspace
          AND c.contact_id = of.contact_id AND c.bot_id = of.bot_id
          AND c.type = crmapi.step_type(of.channel) AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL AND c.visitor_id IS NULL AND NOT c.internal
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    END IF;
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = step_talk.workspace AND c.id = talk
    FOR NO KEY UPDATE;
    RETURN talk;
END
$$;

-- The type of the conversations of a step's CHANNEL. Internal.
CREATE FUNCTION crmapi.step_type(channel text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE channel WHEN 'email' THEN 4 WHEN 'sms' THEN 3 ELSE 2
        END::smallint;

-- A new conversation for STEP with its contact, of the time AT. NULL: the contact
-- was deleted, or a transaction that is waited for has done so. Internal.
CREATE FUNCTION crmapi.step_open(workspace uuid, step uuid, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of record;
    talk CONSTANT uuid := crmapi.uuid_v7(at);
BEGIN
    SELECT c.id, q.bot_id, crmapi.step_type(s.channel) AS type,
        CASE s.channel WHEN 'email' THEN s.to_identifier END AS email,
        CASE s.channel WHEN 'email' THEN NULL ELSE s.to_identifier END AS phone,
        s.email_subject AS subject INTO of
    FROM crmapi.enrollment_step s
    JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
        AND e.id = s.enrollment_id
    JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id
        AND q.id = e.sequence_id
    JOIN crmapi.contact c ON c.workspace_id = e.workspace_id
        AND c.id = e.contact_id
    WHERE s.workspace_id = step_open.workspace AND s.id = step_open.step
    FOR KEY SHARE OF c;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
        email, phone_number, subject, created_at)
    VALUES (talk, step_open.workspace, of.bot_id, of.id, of.type, of.email,
        of.phone, of.subject, at);
    RETURN talk;
END
$$;

-- Add STEP, which was sent at MOMENT, to the conversation TALK as a message; to a
-- new one if TALK is null and its contact is there. The caller has locked both.
-- Return the agent of a new one, which the caller has to count. Internal.
CREATE FUNCTION crmapi.step_message(workspace uuid, talk uuid, step uuid,
                                    moment timestamptz) RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_new CONSTANT boolean := talk IS NULL;
    bot uuid;
    at CONSTANT timestamptz := date_trunc('milliseconds', moment);
    made CONSTANT uuid := crmapi.uuid_v7(at);
    s crmapi.enrollment_step;
    said text;
BEGIN
    talk := coalesce(talk, crmapi.step_open(workspace, step, at));
    IF talk IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT t.* INTO s FROM crmapi.enrollment_step t
    WHERE t.workspace_id = step_message.workspace AND t.id = step_message.step;
    said := coalesce(CASE s.channel WHEN 'email' THEN s.email_body
        WHEN 'sms' THEN s.sms_body
        ELSE coalesce(s.voice_script, s.voice_objective) END, '');
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, content,
        content_type, status, created_at, external_id, metadata, step_id,
        to_identifier, handed_over, provider_id)
    VALUES (made, s.workspace_id, talk, 'assistant', said, 'text/plain', 'sent',
        at, coalesce(s.message_id, s.provider_id),
        jsonb_strip_nulls(jsonb_build_object('enrollment_id', s.enrollment_id,
            'step_id', s.id, 'subject', s.email_subject)),
        s.id, s.to_identifier, true, s.provider_id);
    UPDATE crmapi.conversation c SET active = true,
        email = CASE s.channel WHEN 'email'
            THEN coalesce(c.email, s.to_identifier) ELSE c.email END,
        phone_number = CASE s.channel WHEN 'email' THEN c.phone_number
            ELSE coalesce(c.phone_number, s.to_identifier) END,
        subject = coalesce(c.subject, s.email_subject),
        last_message = CASE WHEN said <> ''
                AND at >= coalesce(c.last_message_at, '-infinity')
            THEN left(said, 255) ELSE c.last_message END,
        last_message_at = greatest(c.last_message_at, at),
        last_active_at = greatest(c.last_active_at, at),
        unanswered = c.unanswered
            AND at < coalesce(c.last_message_at, '-infinity')
    WHERE c.workspace_id = step_message.workspace AND c.id = talk
    RETURNING c.bot_id INTO bot;
    RETURN CASE WHEN is_new THEN bot END;
END
$$;

-- Record that a step was sent at MOMENT under the provider's id PROVIDER, add it
-- to the contact's conversation as a message (contract 19.3), and schedule the
-- next one. The first of several steps leaves the enrollment approved, the second
-- makes it running, the last completed. If it was stopped meanwhile, only the step
-- changes. Ends JOB. Locks: a contact's advisory one, conversation, enrollment,
-- step, job, agent. For the worker.
CREATE FUNCTION crmapi.step_sent(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
                                 moment timestamptz, provider text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    talk CONSTANT uuid := crmapi.step_talk(workspace, enrollment, step);
    had text;
    place integer;
    opened uuid;
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
    IF FOUND THEN
        opened := crmapi.step_message(workspace, talk, step, moment);
    END IF;
    IF place IS NOT NULL AND crmapi.enrollment_is_live(had) THEN
        IF had = 'approved' AND place > 1 THEN
            UPDATE crmapi.enrollment e SET status = 'running'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
        PERFORM crmapi.steps_schedule(workspace, enrollment, place, moment);
        IF NOT crmapi.step_queue(workspace, enrollment) THEN
            UPDATE crmapi.enrollment e SET status = 'completed'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
    -- last: all who send for the agent wait for its row
    PERFORM crmapi.intake_count(workspace, ARRAY[opened]);
END
$$;

-- Record that a step was not sent because of REASON. It is retried AFTER from
-- now while its enrollment is live; AFTER null: never, and the enrollment
-- fails. Ends JOB or makes it ready again. Locks: enrollment, step, job. For
-- the worker.
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

-- Suppress ADDRESS, an e-mail address or a number, null: none, because a relay has
-- refused it: it is "bounced" or "unsubscribed" (BECAUSE). Internal.
CREATE FUNCTION crmapi.suppress_refused(workspace uuid, address text,
                                        because text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF position('@' IN address) > 0 THEN
        PERFORM crmapi.suppress(workspace, address, NULL, because);
    ELSIF address <> '' THEN
        PERFORM crmapi.suppress(workspace, NULL, address, because);
    END IF;
END
$$;

-- The same as step_failed() for good, because the relay has said that nothing can
-- or may be sent to the step's address: it is suppressed (contract 17.5), BECAUSE
-- it is "bounced" or "unsubscribed". Locks: enrollment, step, job. For the worker.
CREATE FUNCTION crmapi.step_refused(workspace uuid, job bigint, owner text,
        attempt integer, enrollment uuid, step uuid, reason text, because text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.suppress_refused(workspace, s.to_identifier, because)
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_refused.workspace
      AND s.id = step_refused.step;
    PERFORM crmapi.step_failed(workspace, job, owner, attempt, enrollment,
                               step, reason, NULL);
END
$$;

-- ---- the names of a step's mail (contract 18.4) ----------------------------

-- The names of the mail of STEP, which was taken for sending; NULL if it is no mail.
-- The first two are its Message-ID, whose domain is DOMAIN, and its reply token: both
-- are made at the first attempt and kept for further ones. The third has the
-- Message-IDs of the enrollment's earlier mails to the same address, the latest last;
-- NULL if there is none. If a relay has given one another Message-ID, that follows
-- ours.
-- Locks: step; held already. For the worker.
CREATE FUNCTION crmapi.step_names(workspace uuid, step uuid, domain text)
    RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    named text := '<' || gen_random_uuid() || '@' || domain || '>';
    token text := replace(gen_random_uuid()::text, '-', '');
    taken crmapi.enrollment_step;
    refs text;
BEGIN
    UPDATE crmapi.enrollment_step s
    SET message_id = coalesce(s.message_id, named),
        reply_id = coalesce(s.reply_id, token)
    WHERE s.workspace_id = step_names.workspace AND s.id = step_names.step
      AND s.channel = 'email';
    SELECT s.* INTO taken FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_names.workspace AND s.id = step_names.step;
    SELECT string_agg(i.id, ' ' ORDER BY s.sort_order, i.n) INTO refs
    FROM crmapi.enrollment_step s, LATERAL (VALUES (1, s.message_id),
        (2, CASE WHEN s.provider_id LIKE '<%@%>' THEN nullif(s.provider_id,
            s.message_id) END)) i(n, id)
    WHERE s.workspace_id = step_names.workspace
      AND s.enrollment_id = taken.enrollment_id
      AND s.sort_order < taken.sort_order AND s.channel = 'email'
      AND s.status = 'sent' AND s.to_identifier = taken.to_identifier
      AND i.id IS NOT NULL;
    RETURN CASE WHEN taken.message_id IS NOT NULL
        THEN ARRAY[taken.message_id, taken.reply_id, refs] END;
END
$$;

-- The step or answer whose mail one of REFS, Message-IDs with brackets, or of
-- TOKENS names; the last one named. A Message-ID is compared whole. A relay may
-- have told only what is left of the "@": that counts if it cannot be guessed, and
-- for Amazon SES with SES's own domain. For the worker.
CREATE FUNCTION crmapi.mail_named(workspace uuid, refs text[], tokens text[])
    RETURNS TABLE (step_id uuid, answer_id uuid, to_identifier text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    halves text[] := ARRAY(SELECT CASE
            WHEN h.half ~ '^[0-9a-f]{16}-[0-9a-f-]{36}-[0-9]{6}$'
                AND r.ref !~ '[@.]amazonses\.com>$' THEN NULL
            WHEN h.half ~ '[0-9]' THEN h.half END
        FROM unnest(refs) WITH ORDINALITY r(ref, n), LATERAL (SELECT
            substring(r.ref FROM '^<([^@<>]{16,})@')) h(half) ORDER BY r.n);
BEGIN
    RETURN QUERY
    SELECT f.step, f.answer, f.address FROM (
        SELECT s.id AS step, NULL::uuid AS answer,
               s.to_identifier::text AS address, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.message_id = r.ref AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.external_id = r.ref AND m.reply_id IS NOT NULL
        UNION ALL
        SELECT s.id, NULL, s.to_identifier::text, r.n
        FROM unnest(refs, halves) WITH ORDINALITY r(ref, half, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.provider_id IN (r.ref, r.half) AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, r.n
        FROM unnest(refs, halves) WITH ORDINALITY r(ref, half, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.provider_id IN (r.ref, r.half) AND m.reply_id IS NOT NULL
        UNION ALL
        SELECT s.id, NULL, s.to_identifier::text, 1000 + t.n
        FROM unnest(tokens) WITH ORDINALITY t(token, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.reply_id = t.token AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, 1000 + t.n
        FROM unnest(tokens) WITH ORDINALITY t(token, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.reply_id = t.token) f
    ORDER BY f.n DESC LIMIT 1;
END
$$;

-- The contact of STEP's enrollment, NULL if there is none. Internal.
CREATE FUNCTION crmapi.step_contact(workspace uuid, step uuid) RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid;
BEGIN
    IF step IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.enrollment_step s
        JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
            AND e.id = s.enrollment_id
        JOIN crmapi.contact c ON c.workspace_id = e.workspace_id
            AND c.id = e.contact_id
        WHERE s.workspace_id = workspace AND s.id = step;
    END IF;
    RETURN found_id;
END
$$;

-- The mail of STEP was returned because of FAILURE: the step has failed. If
-- ADDRESS is not null, that speaks of the address, which is suppressed (contract
-- 17.5); else the enrollment fails. Locks: enrollment, step, message, job.
-- Internal.
CREATE FUNCTION crmapi.step_returned(workspace uuid, step uuid, address text,
                                     failure text) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    enrollment uuid;
BEGIN
    IF address IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, address, NULL, 'bounced');
    END IF;
    SELECT s.enrollment_id INTO enrollment FROM crmapi.enrollment_step s
    WHERE s.workspace_id = workspace AND s.id = step;
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = workspace AND e.id = enrollment FOR UPDATE;
    UPDATE crmapi.enrollment_step s SET status = 'failed', error = failure
    WHERE s.workspace_id = workspace AND s.id = step
      AND s.status IN ('sending', 'sent');
    UPDATE crmapi.message m SET status = 'failed',
        metadata = m.metadata || jsonb_build_object('error', failure)
    WHERE m.workspace_id = workspace AND m.step_id = step;
    IF address IS NULL THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed',
                                      failure);
    END IF;
END
$$;
