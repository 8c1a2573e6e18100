-- SPDX-License-Identifier: Apache-2.0
-- 0026-thread.sql: how a mail is known to answer, or to return, one of ours
--
-- A mail of a step is known by three values (contract 18.4): its Message-ID,
-- which is random; the id that a relay gave it (provider_id); and its reply
-- token, which is in a header and, if the site wants it, in the addresses that
-- replies and bounces go to. None of them can be computed from another one, from
-- an id of the API or from a link.
--
-- min_module: 26
-- incompatible: nothing was released

-- step: transaction: the names of a step's mail

-- message_id: with brackets; both are NULL until the step is handed over.
ALTER TABLE crmapi.enrollment_step ADD COLUMN message_id crmapi.line,
    ADD COLUMN reply_id text COLLATE "C";

-- mails that answer or return a step's
CREATE INDEX enrollment_step_message ON crmapi.enrollment_step
    (workspace_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX enrollment_step_provider ON crmapi.enrollment_step
    (workspace_id, provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX enrollment_step_reply ON crmapi.enrollment_step
    (workspace_id, reply_id) WHERE reply_id IS NOT NULL;
-- mail to an agent's second address
CREATE INDEX agent_by_outbound_email ON crmapi.agent
    (crmapi.fold(email_outbound_email))
    WHERE email_outbound_email IS NOT NULL;

-- The names of the mail of STEP, which was taken for sending, NULL if it is no
-- mail: its Message-ID, whose domain is DOMAIN, and its reply token, both made at
-- the first attempt and kept for further ones; the Message-IDs of the
-- enrollment's earlier mails to the same address, the latest last, NULL if there
-- is none. If a relay has given one another Message-ID, that follows ours.
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

-- The step whose mail one of REFS, Message-IDs with brackets, or of TOKENS
-- names; the last one named. A Message-ID is compared whole. A relay may have
-- told only what is left of the "@": that counts if it cannot be guessed, and
-- for Amazon SES with SES's own domain. For the worker.
CREATE FUNCTION crmapi.step_named(workspace uuid, refs text[], tokens text[])
    RETURNS TABLE (step_id uuid, to_identifier text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT f.id, f.address FROM (
        SELECT s.id, s.to_identifier::text AS address, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.message_id = r.ref AND s.channel = 'email'
        UNION ALL
        SELECT s.id, s.to_identifier::text, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.provider_id = r.ref AND s.channel = 'email'
        UNION ALL
        SELECT s.id, s.to_identifier::text, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.provider_id = substring(r.ref FROM '^<([^@<>]{16,})@')
            AND s.channel = 'email'
        WHERE CASE WHEN s.provider_id ~ '^[0-9a-f]{16}-[0-9a-f-]{36}-[0-9]{6}$'
              THEN r.ref ~ '[@.]amazonses\.com>$'
              ELSE s.provider_id ~ '[0-9]' END
        UNION ALL
        SELECT s.id, s.to_identifier::text, 1000 + t.n
        FROM unnest(tokens) WITH ORDINALITY t(token, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.reply_id = t.token AND s.channel = 'email') f
    ORDER BY f.n DESC LIMIT 1;
END
$$;

-- Never write to EMAIL or PHONE (the other is null) again, because of REASON:
-- the live enrollments of contacts with the address stop. Returns how many
-- stopped. An address may be suppressed already; of "unsubscribed" and what
-- forbids answers as well, "bounced" or "complaint", the latter stays. For the
-- API and the worker.
CREATE OR REPLACE FUNCTION crmapi.suppress(workspace uuid, email text,
        phone text, reason text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrollment uuid;
    made uuid := gen_random_uuid();
    n bigint := 0;
BEGIN
    INSERT INTO crmapi.suppression AS s (id, workspace_id, email, phone_number,
                                    reason)
    VALUES (made, suppress.workspace, suppress.email,
            suppress.phone, suppress.reason)
    ON CONFLICT ON CONSTRAINT suppression_workspace_id_kind_address_key
    DO UPDATE SET reason = excluded.reason
    WHERE s.reason = 'unsubscribed'
      AND excluded.reason IN ('bounced', 'complaint');
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = suppress.workspace
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND e.contact_id IN (SELECT crmapi.contacts_with(
              suppress.workspace, suppress.email, suppress.phone))
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_unsubscribed', reason)) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- The mail of STEP was returned because of FAILURE: the step has failed. If
-- ADDRESS is not null, that speaks of the address, which is suppressed (contract
-- 17.5); else the enrollment fails. Locks: enrollment, step, job. Internal.
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
    IF address IS NULL THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed',
                                      failure);
    END IF;
END
$$;

-- The same as step_failed() for good, because the relay has said that the
-- step's address does not exist: it is suppressed (contract 17.5). Locks:
-- enrollment, step, job. For the worker.
CREATE FUNCTION crmapi.step_refused(workspace uuid, job bigint, owner text,
        attempt integer, enrollment uuid, step uuid, reason text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    address text;
BEGIN
    SELECT s.to_identifier INTO address FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_refused.workspace
      AND s.id = step_refused.step AND s.channel = 'email';
    IF address IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, address, NULL, 'bounced');
    END IF;
    PERFORM crmapi.step_failed(workspace, job, owner, attempt, enrollment,
                               step, reason, NULL);
END
$$;

DROP FUNCTION crmapi.step_take;

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

-- ---- intake ----------------------------------------------------------------

-- failed: why the mail of step_id was returned; with bounced, that speaks of
-- the address.
ALTER TYPE crmapi.intake_item ADD ATTRIBUTE failed text;

-- The conversation that ITEM names, unless it is deleted: by its id, by the
-- source's name for it, by a message that ITEM answers or is about. Messages of
-- ours go before those that came in, whose ids their senders chose (contract
-- 18.6). Of several messages with one id the participant's own goes first, then
-- the oldest; if ITEM answers a step, those of its contact's conversations
-- alone count. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_named(workspace uuid,
                                               item crmapi.intake_item)
    RETURNS crmapi.conversation
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    talk crmapi.conversation;
    enrolled uuid;
BEGIN
    IF item.conversation_id IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.id = item.conversation_id
          AND c.deleted IS NOT TRUE;
        RETURN talk;
    END IF;
    IF item.thread IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.thread = item.thread
          AND (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    ELSIF item.refs IS NOT NULL THEN
        enrolled := crmapi.step_contact(workspace, item.step_id);
        SELECT c.* INTO talk
        FROM unnest(item.refs) WITH ORDINALITY r(external_id, place)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.external_id = r.external_id
        JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
            AND c.id = m.conversation_id
        WHERE (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
          AND (item.step_id IS NULL OR m.role IN ('assistant', 'human')
               OR c.contact_id = enrolled)
        ORDER BY m.role IN ('assistant', 'human') DESC, r.place DESC,
            (crmapi.fold(c.email) = crmapi.fold(item.email)) IS TRUE DESC,
            m.created_at, m.id LIMIT 1;
    END IF;
    RETURN talk;
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

-- The contact of ITEM's participant: of its step, else by primary e-mail, else
-- by primary phone; the oldest (contract 10.1). NULL if there is none.
-- Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_find_contact(workspace uuid,
        item crmapi.intake_item)
    RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid := crmapi.step_contact(workspace, item.step_id);
BEGIN
    IF found_id IS NULL AND item.email IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.contact c
        WHERE c.workspace_id = workspace
          AND c.email_key = crmapi.fold(item.email)
        ORDER BY c.created_at, c.id LIMIT 1;
    END IF;
    IF found_id IS NULL AND item.phone_number IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.contact c
        WHERE c.workspace_id = workspace
          AND c.phone_key = crmapi.phone_fold(item.phone_number)
        ORDER BY c.created_at, c.id LIMIT 1;
    END IF;
    RETURN found_id;
END
$$;

-- The contact that got the mail which ITEM proves to answer (contract 18.4): of
-- its step, or of TALK, the conversation that it names, if one of its references
-- is a message of ours in it. A message from outside proves nothing, since its
-- sender chose its name. NULL: it proves nothing. Internal.
CREATE FUNCTION crmapi.intake_answers(workspace uuid, item crmapi.intake_item,
                                      talk crmapi.conversation)
    RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF item.step_id IS NOT NULL THEN
        RETURN crmapi.step_contact(workspace, item.step_id);
    END IF;
    RETURN CASE WHEN talk.contact_id IS NOT NULL AND EXISTS (
        SELECT FROM crmapi.message m
        WHERE m.workspace_id = workspace AND m.external_id = ANY (item.refs)
          AND m.conversation_id = talk.id
          AND m.role IN ('assistant', 'human')) THEN talk.contact_id END;
END
$$;

DROP FUNCTION crmapi.intake_is_verified;

-- Whether ITEM is verified to be from PERSON. ANSWERED: the contact whose mail
-- it proves to answer. Whoever has got that mail may answer it, so the proof
-- counts for an address of that contact only; TALK's contact is not known by
-- what verifies an address that is not its own. Internal.
CREATE FUNCTION crmapi.intake_is_verified(workspace uuid,
        item crmapi.intake_item, talk crmapi.conversation, person uuid,
        answered uuid)
    RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF item.verified AND ((item.step_id IS NULL AND item.refs IS NULL)
       OR ((item.step_id IS NULL OR answered IS NULL)
           AND (person IS NOT NULL OR talk.contact_id IS NULL))) THEN
        RETURN true;
    END IF;
    RETURN answered = person AND EXISTS (
        SELECT FROM crmapi.contact c
        WHERE c.workspace_id = workspace AND c.id = answered
          AND crmapi.fold(item.email) = ANY (crmapi.email_keys(c.emails)));
END
$$;

-- The contact PERSON has written ITEM, which is verified, or has got the mail
-- that it answers: stop its sequences. IS_NEW: the contact was created for ITEM,
-- so its address may be a secondary one of other contacts. Locks: enrollment,
-- step, job. Internal.
CREATE FUNCTION crmapi.intake_replied(workspace uuid, person uuid,
        is_new boolean, item crmapi.intake_item)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_new THEN
        PERFORM crmapi.contact_replied(workspace, person);
    ELSE
        PERFORM crmapi.contact_replied(workspace, c.id)
        FROM crmapi.contacts_with(workspace, item.email,
            CASE WHEN item.email IS NULL THEN item.phone_number END) c(id);
    END IF;
END
$$;

DROP FUNCTION crmapi.intake_effects;

-- What ITEM does to sequences and suppressions. IS_NEW: the contact PERSON was
-- created for it; ANSWERED: the contact whose mail it proves to answer; SAYS: it
-- has something that may be a reply. A claim does nothing, except a bounce or a
-- complaint, which comes with the step whose mail it returns, and a reply that
-- is proven. Locks: enrollment, step, job. Internal.
CREATE FUNCTION crmapi.intake_effects(workspace uuid, person uuid,
        is_new boolean, answered uuid, item crmapi.intake_item, says boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF item.failed IS NOT NULL AND item.step_id IS NOT NULL THEN
        PERFORM crmapi.step_returned(workspace, item.step_id, item.bounced,
                                     item.failed);
    ELSIF item.bounced IS NOT NULL AND item.step_id IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.bounced, NULL,
                                coalesce(item.reason, 'bounced'));
    END IF;
    IF item.verified AND item.suppress = 'phone'
       AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, NULL, item.phone_number,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.verified AND item.suppress = 'email'
          AND item.email IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.email, NULL,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.verified AND item.lift = 'phone'
          AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress_lift(workspace, NULL, item.phone_number);
    END IF;
    IF NOT says OR item.outbound OR item.automatic
       OR coalesce(item.role, 'user') <> 'user' THEN
        RETURN;
    END IF;
    IF item.verified THEN
        PERFORM crmapi.intake_replied(workspace, person, is_new, item);
    END IF;
    IF answered IS NOT NULL AND (answered = person AND item.verified)
                                IS NOT TRUE THEN
        PERFORM crmapi.contact_replied(workspace, answered);
    END IF;
END
$$;

-- Do what the valid ITEM says, as far as it is more than a claim. TALK is the
-- conversation that it names, or has no id. SAYS: it has a message. RESULT is
-- the result of the event, OPENED the agent if a conversation was opened.
-- Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_apply(workspace uuid,
        item crmapi.intake_item, talk crmapi.conversation, says boolean,
        OUT result jsonb, OUT opened uuid)
    LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := date_trunc('milliseconds', least(clock_timestamp(),
        coalesce(item.occurred_at, 'infinity')));
    bot uuid := coalesce(talk.bot_id, item.bot_id);
    person uuid := crmapi.intake_find_contact(workspace, item);
    is_new boolean := coalesce(person, talk.contact_id) IS NULL
        AND item.automatic IS NOT TRUE
        AND coalesce(item.email, item.phone_number) IS NOT NULL;
    answered uuid := crmapi.intake_answers(workspace, item, talk);
    said uuid;
    submission uuid;
BEGIN
    item.verified := coalesce(crmapi.intake_is_verified(workspace, item,
                                  talk, person, answered), false);
    IF is_new THEN
        person := crmapi.intake_create_contact(workspace, bot, item);
    ELSIF person IS NOT NULL AND item.verified THEN
        PERFORM crmapi.intake_fill_contact(workspace, person, item);
    END IF;
    IF talk.id IS NULL AND item.thread IS NULL THEN
        item.thread := crmapi.intake_thread(person, item);
        talk := CASE WHEN item.thread IS NULL
            THEN crmapi.intake_open(workspace, bot, person, item)
            ELSE crmapi.intake_named(workspace, item) END;
    END IF;
    IF talk.id IS NULL THEN
        opened := bot;
        talk.id := crmapi.uuid_v7(at);
        INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
            created_at)
        VALUES (talk.id, workspace, bot, item.channel, at);
    END IF;
    IF says THEN
        said := crmapi.intake_message(workspace, talk.id, item, at);
    END IF;
    -- A claim does not change the participant of an existing conversation,
    -- unless that is the visitor's own.
    IF opened IS NULL AND NOT item.verified
       AND (item.visitor_id = talk.visitor_id) IS NOT TRUE THEN
        item.email := NULL;
        item.phone_number := NULL;
        item.name := NULL;
    END IF;
    PERFORM crmapi.intake_update_conversation(workspace, talk.id, person,
                                              item, says, at);
    person := coalesce(person, talk.contact_id);
    IF item.form_id IS NOT NULL THEN
        submission := crmapi.intake_submission(workspace, person, item, at);
    END IF;
    PERFORM crmapi.intake_effects(workspace, person, is_new, answered, item,
        says OR item.minutes IS NOT NULL);
    result := jsonb_build_object('conversation', talk.id, 'message', said,
        'contact', person, 'submission', submission,
        'opened', opened IS NOT NULL);
END
$$;
