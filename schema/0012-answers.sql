-- SPDX-License-Identifier: Apache-2.0
-- 0012-answers.sql: answers in conversations, and the mails about chats

-- ---- answers (contract 19) --------------------------------------------------
-- An answer is a message whose status is "queued" until crmapid has handed it
-- over: the same way as a step, so that the functions have the same parameters. A
-- conversation is locked before its messages, and an enrollment before both its
-- steps and messages.

-- Whether an answer must not go to ADDRESS, which CHANNEL uses: it is suppressed.
-- Who does not want sequences may get an answer by mail; an opt-out by SMS ends
-- both (contract 19.2). Internal.
CREATE FUNCTION crmapi.answer_forbidden(workspace uuid, channel text,
                                        address text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.suppressed_why(workspace,
            CASE channel WHEN 'email' THEN 'email' ELSE 'phone' END,
            CASE channel WHEN 'email' THEN crmapi.email_key(address)
                         ELSE crmapi.phone_key(address) END) s
        WHERE channel <> 'email' OR s.reason IS DISTINCT FROM 'unsubscribed');
END
$$;

-- The channel that sends an answer in a conversation of the type TYPE; NULL: no
-- channel does. For the worker.
CREATE FUNCTION crmapi.answer_channel(type smallint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE type WHEN 3 THEN 'sms' WHEN 4 THEN 'email' WHEN 5 THEN 'email'
        END;

-- ---- answers in chats (contract 19) -----------------------------------------
-- A visitor's page asks for what is new after a cursor. So a poll without news has
-- seen all answers before its cursor. What no page has confirmed after
-- chat_mail_fallback minutes is told by mail: chat_mail() adds a message with the
-- role "system", which visitors do not see, and crmapid sends it as an answer.

-- The channel that sends a message with ROLE in a conversation of the type TYPE; NULL:
-- no channel does. For the worker.
CREATE FUNCTION crmapi.message_channel(type smallint, role text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN type = 1 AND role = 'system' THEN 'email'
        ELSE crmapi.answer_channel(type) END;

-- CONVERSATION has got an answer at the time AT. If it is a chat, its visitor has
-- not seen that yet, and may get a mail later. What is older than some minutes was
-- copied from elsewhere. Locks: chat_unseen. Internal.
CREATE FUNCTION crmapi.chat_answered(workspace uuid, conversation uuid,
                                     at timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    minutes integer;
BEGIN
    SELECT a.chat_mail_fallback INTO minutes
    FROM crmapi.conversation c
    JOIN crmapi.agent a ON a.workspace_id = c.workspace_id AND a.id = c.bot_id
    WHERE c.workspace_id = chat_answered.workspace
      AND c.id = chat_answered.conversation
      AND c.type = 1 AND c.visitor_id IS NOT NULL;
    IF NOT FOUND OR at < crmapi.now_ms() - interval '10 minutes' THEN
        RETURN;
    END IF;
    -- the row is locked even if nothing changes: see chat_seen()
    INSERT INTO crmapi.chat_unseen AS u (workspace_id, conversation_id, since)
    VALUES (workspace, conversation, at)
    ON CONFLICT (workspace_id, conversation_id) DO UPDATE
    SET since = excluded.since WHERE u.since > excluded.since;
    IF minutes IS NOT NULL THEN
        INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
        VALUES (workspace, 'answer.chat', jsonb_build_object('conversation_id',
            conversation), at + minutes * interval '1 minute');
    END IF;
END
$$;

-- A visitor's page has shown all messages of the chats TALKS up to the time MOMENT
-- and the id LAST. Answers that were "sent" are "delivered". Locks: chat_unseen, in
-- the order of ids, message. For the API.
CREATE FUNCTION crmapi.chat_seen(workspace uuid, talks uuid[],
                                 moment timestamptz, last uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unseen crmapi.chat_unseen;
    later timestamptz;
BEGIN
    FOR unseen IN SELECT u.* FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = ANY (talks) AND u.since <= moment
        ORDER BY u.conversation_id FOR UPDATE
    LOOP
        UPDATE crmapi.message m SET status = 'delivered'
        WHERE m.workspace_id = chat_seen.workspace
          AND m.conversation_id = unseen.conversation_id
          AND m.created_at >= unseen.since
          AND (m.created_at, m.id) <= (moment, last)
          AND m.role IN ('human', 'assistant') AND m.status = 'sent';
        later := (SELECT min(m.created_at) FROM crmapi.message m
            WHERE m.workspace_id = chat_seen.workspace
              AND m.conversation_id = unseen.conversation_id
              AND (m.created_at, m.id) > (moment, last)
              AND m.role IN ('human', 'assistant'));
        DELETE FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = unseen.conversation_id AND later IS NULL;
        UPDATE crmapi.chat_unseen u SET since = later
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = unseen.conversation_id AND later IS NOT NULL;
    END LOOP;
END
$$;

-- The address that a mail about the chat TALK goes to: the one that its visitor has
-- given, else its contact's; NULL if there is none, or nobody wants such mails.
-- Internal.
CREATE FUNCTION crmapi.chat_address(workspace uuid, talk crmapi.conversation)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF talk.deleted OR talk.internal OR NOT EXISTS (
        SELECT FROM crmapi.agent a
        WHERE a.workspace_id = chat_address.workspace AND a.id = talk.bot_id
          AND a.chat_mail_fallback IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(nullif(talk.email, ''),
        (SELECT crmapi.list_primary(c.emails, 'email') FROM crmapi.contact c
         WHERE c.workspace_id = chat_address.workspace
           AND c.id = talk.contact_id));
END
$$;

-- The answers in the chat CONVERSATION since SINCE that no mail has told of, the
-- first 100; not those before the bound of a release. Internal.
CREATE FUNCTION crmapi.chat_missed(workspace uuid, conversation uuid,
                                   since timestamptz)
    RETURNS SETOF crmapi.message
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT m.* FROM crmapi.message m
    WHERE m.workspace_id = chat_missed.workspace
      AND m.conversation_id = chat_missed.conversation
      AND m.created_at >= greatest(since, (
          SELECT b.due_before FROM crmapi.step_bound b
          WHERE b.workspace_id = chat_missed.workspace))
      AND m.role IN ('human', 'assistant') AND m.tool_used IS NULL
      AND m.content <> '' AND m.to_identifier IS NULL
      AND m.status IS DISTINCT FROM 'delivered'
    ORDER BY m.created_at, m.id LIMIT 100;
END
$$;

-- Add the mail with the answers IDS of CONVERSATION to ADDRESS, and the job that
-- sends it. Its id follows from the first of them: a database that was restored makes
-- the same. What the visitor wrote is not in it: anybody can claim an address, and
-- would have us send him what he likes. Locks: message. Internal.
CREATE FUNCTION crmapi.chat_mail_add(workspace uuid, conversation uuid,
                                     ids uuid[], address text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail CONSTANT uuid := (left(ids[1]::text, 24)
        || right(md5(ids[1]::text), 12))::uuid;
    files jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object('id', f.id, 'filename', f.filename,
        'content_type', f.content_type, 'size', f.size, 'stored', true)
        ORDER BY f.message_id, f.number) INTO files
    FROM (SELECT a.*, sum(a.size) OVER (ORDER BY a.message_id, a.number) AS sum
          FROM crmapi.attachment a
          WHERE a.workspace_id = chat_mail_add.workspace
            AND a.message_id = ANY (ids) AND a.stored) f
    WHERE f.sum <= 10485760;
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
        content, content_type, status, metadata, to_identifier)
    SELECT mail, workspace, conversation, 'system', left(string_agg(coalesce(
            m.metadata ->> 'author' || ': ', '') || m.content, E'\n\n'
            ORDER BY m.created_at, m.id), 65536),
        CASE WHEN bool_and(m.content_type IS NOT DISTINCT FROM 'text/markdown')
            THEN 'text/markdown' ELSE 'text/plain' END,
        'queued', jsonb_strip_nulls(jsonb_build_object('answers', ids,
            'attachments', files)), address
    FROM crmapi.message m
    WHERE m.workspace_id = chat_mail_add.workspace AND m.id = ANY (ids);
    UPDATE crmapi.message m SET to_identifier = address
    WHERE m.workspace_id = chat_mail_add.workspace AND m.id = ANY (ids);
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    VALUES (workspace, 'answer.send', jsonb_build_object('conversation_id',
        conversation, 'message_id', mail));
END
$$;

-- Whether ADDRESS may get one more mail about chats: ten in an hour. Anybody can begin
-- many chats and claim somebody's address in each, and programs answer at once.
-- Internal.
CREATE FUNCTION crmapi.chat_mail_allowed(workspace uuid, address text)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM crmapi.message m
        WHERE m.workspace_id = chat_mail_allowed.workspace
          AND m.role = 'system'
          AND m.created_at > crmapi.now_ms() - interval '1 hour'
          AND crmapi.email_key(m.to_identifier) = crmapi.email_key(address)
        OFFSET 9);
END
$$;

-- Add a mail with all answers that the visitor of the chat CONVERSATION has missed,
-- if there are any and an address is known that has not got too many. Ends JOB. Locks:
-- chat_unseen, job (lost lease: CRM01), message. For the worker.
CREATE FUNCTION crmapi.chat_mail(workspace uuid, job bigint, owner text,
                                 attempt integer, conversation uuid)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    talk crmapi.conversation;
    begun timestamptz;
    address text;
    ids uuid[];
BEGIN
    SELECT u.since INTO begun FROM crmapi.chat_unseen u
    WHERE u.workspace_id = chat_mail.workspace
      AND u.conversation_id = chat_mail.conversation FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    IF begun IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = chat_mail.workspace
          AND c.id = chat_mail.conversation;
        address := crmapi.chat_address(workspace, talk);
        ids := ARRAY(SELECT m.id FROM crmapi.chat_missed(workspace,
            conversation, begun) m ORDER BY m.created_at, m.id);
    END IF;
    IF address IS NOT NULL AND ids <> '{}'
        AND crmapi.chat_mail_allowed(workspace, address) THEN
        PERFORM crmapi.chat_mail_add(workspace, conversation, ids, address);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- Whether TAKEN is a mail about a chat whose visitor has seen it all meanwhile.
-- Internal.
CREATE FUNCTION crmapi.chat_was_seen(workspace uuid, taken crmapi.message)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN taken.role = 'system' AND NOT EXISTS (
        SELECT FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_was_seen.workspace
          AND u.conversation_id = taken.conversation_id
          AND u.since <= taken.created_at);
END
$$;

-- ---- adding and sending answers ----------------------------------------------

-- Why CONVERSATION takes no answer with a copy to COPIES (contract 19.1, 19.2),
-- NULL if it takes one: a sentence for the client. For the API.
CREATE FUNCTION crmapi.answer_refusal(workspace uuid, conversation uuid,
                                      copies text[]) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    talk crmapi.conversation;
    channel text;
    address text;
BEGIN
    SELECT c.* INTO talk FROM crmapi.conversation c
    WHERE c.workspace_id = answer_refusal.workspace
      AND c.id = answer_refusal.conversation;
    channel := crmapi.answer_channel(talk.type);
    address := CASE channel WHEN 'email' THEN crmapi.email_canonical(talk.email)
               ELSE crmapi.phone_e164(talk.phone_number) END;
    RETURN CASE
        WHEN talk.deleted THEN 'The conversation is deleted'
        WHEN talk.type = 2 THEN 'A phone conversation cannot be answered'
        WHEN channel IS NULL THEN NULL
        WHEN address IS NULL THEN
            'The participant has no address to answer to'
        WHEN crmapi.answer_forbidden(workspace, channel, address) THEN
            'The participant''s address is suppressed'
        WHEN EXISTS (SELECT FROM unnest(copies) a(address)
            WHERE crmapi.answer_forbidden(workspace, 'email', a.address))
            THEN 'An address of cc is suppressed' END;
END
$$;

-- Store the FILES of the message ANSWER: see message_answer(). Internal.
CREATE FUNCTION crmapi.answer_files(workspace uuid, answer uuid, files json)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO crmapi.attachment (workspace_id, id, message_id, number,
        filename, content_type, size, stored)
    SELECT workspace, (f.one ->> 'id')::uuid, answer, f.number,
           f.one ->> 'filename', f.one ->> 'content_type',
           (f.one ->> 'size')::bigint, true
    FROM json_array_elements(files) WITH ORDINALITY f(one, number);
    INSERT INTO crmapi.attachment_piece (workspace_id, attachment_id, number,
        bytes)
    SELECT workspace, f.id, n,
           substring(f.bytes FROM (n - 1) * 131072 + 1 FOR 131072)
    FROM (SELECT (e.one ->> 'id')::uuid AS id,
                 decode(e.one ->> 'data', 'base64') AS bytes
          FROM json_array_elements(files) e(one) OFFSET 0) f,
         generate_series(1, (octet_length(f.bytes) + 131071) / 131072) n;
END
$$;

-- {"author": name} of the admin with the id or the address ASSIGNED_TO, {} if there
-- is none. Internal.
CREATE FUNCTION crmapi.answer_author(workspace uuid, assigned_to text)
    RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT jsonb_build_object('author', a.name)
        FROM crmapi.admin a
        WHERE a.workspace_id = workspace
          AND (a.id::text = answer_author.assigned_to
               OR a.email_key = crmapi.email_key(answer_author.assigned_to))
        LIMIT 1), '{}');
END
$$;

-- Add the answer ANSWER, an id, to CONVERSATION, and the job that sends it. In a
-- chat it is sent: the next poll shows it, with the name of the admin whom the
-- conversation is assigned to, by id or address. COPIES: addresses for a mail; others
-- have none, nor a subject. METADATA is what the caller says of it. FILES of a mail or
-- a chat: an array of {id, filename, content_type, size, data}, the last in base64.
-- Returns the message; no row if there is no such conversation, or it takes no such answer:
-- answer_refusal(). It is later than what was said before, also if the clock was set
-- back since: a reader behind that sees it, and it answers what was said.
-- Locks: conversation, chat_unseen. For the API.
CREATE FUNCTION crmapi.message_answer(workspace uuid, conversation uuid,
        answer uuid, role text, content text, content_type text,
        copies text[], metadata jsonb, files json)
    RETURNS SETOF crmapi.message
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
AS $$
DECLARE
    at timestamptz := crmapi.now_ms();
    talk crmapi.conversation;
    channel text;
    said crmapi.message;
BEGIN
    SELECT c.* INTO talk FROM crmapi.conversation c
    WHERE c.workspace_id = message_answer.workspace
      AND c.id = message_answer.conversation FOR NO KEY UPDATE;
    at := greatest(at, talk.last_message_at + interval '1 millisecond');
    channel := crmapi.answer_channel(talk.type);
    IF talk.id IS NULL
       OR ((copies IS NOT NULL OR metadata ->> 'subject' <> '')
           AND channel IS DISTINCT FROM 'email')
       OR (files IS NOT NULL AND channel IS DISTINCT FROM 'email'
           AND talk.type <> 1)
       OR crmapi.answer_refusal(workspace, conversation, copies) IS NOT NULL
    THEN
        RETURN;
    END IF;
    INSERT INTO crmapi.message AS m (id, workspace_id, conversation_id, role,
        content, content_type, status, created_at, metadata, to_identifier)
    VALUES (answer, talk.workspace_id, talk.id, message_answer.role,
        message_answer.content, message_answer.content_type,
        CASE WHEN channel IS NULL THEN 'sent' ELSE 'queued' END, at,
        message_answer.metadata || CASE WHEN channel IS NULL AND role = 'human'
            THEN crmapi.answer_author(workspace, talk.assigned_to) ELSE '{}' END,
        CASE channel WHEN 'email' THEN talk.email
            WHEN 'sms' THEN talk.phone_number END)
    RETURNING m.* INTO said;
    UPDATE crmapi.conversation c SET active = true,
        last_message = left(message_answer.content, 255),
        last_message_at = greatest(c.last_message_at, at),
        last_active_at = greatest(c.last_active_at, at), unanswered = false
    WHERE c.workspace_id = message_answer.workspace
      AND c.id = message_answer.conversation;
    IF files IS NOT NULL THEN
        PERFORM crmapi.answer_files(workspace, answer, files);
    END IF;
    PERFORM crmapi.chat_answered(workspace, talk.id, at) WHERE talk.type = 1;
    IF channel IS NOT NULL THEN
        INSERT INTO crmapi.job (workspace_id, kind, payload)
        VALUES (message_answer.workspace, 'answer.send',
            jsonb_build_object('conversation_id', talk.id,
                               'message_id', said.id));
    END IF;
    RETURN NEXT said;
END
$$;

-- The answer MESSAGE has the status OUTCOME, because of REASON unless that is
-- null. Internal.
CREATE FUNCTION crmapi.answer_end(workspace uuid, message uuid, outcome text,
                                  reason text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE crmapi.message m SET status = outcome,
        metadata = CASE WHEN reason IS NULL THEN m.metadata ELSE m.metadata
            || jsonb_build_object('error', left(reason, 2000)) END
    WHERE m.workspace_id = answer_end.workspace AND m.id = answer_end.message;
END
$$;

-- Record an answer that was handed over before the database was restored, as
-- step_past() does. The caller has locked the message and the job. Internal.
CREATE FUNCTION crmapi.answer_past(workspace uuid, job bigint, owner text,
                                   attempt integer, answer uuid)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    past crmapi.past_answer;
BEGIN
    SELECT p.* INTO past FROM crmapi.past_answer p
    WHERE p.workspace_id = answer_past.workspace
      AND p.message_id = answer_past.answer AND p.state <> 'free';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE crmapi.message m SET handed_over = true
    WHERE m.workspace_id = answer_past.workspace AND m.id = answer_past.answer;
    IF past.state = 'sent' THEN
        PERFORM crmapi.answer_sent(workspace, job, owner, attempt, NULL, answer,
                                   past.sent_at, past.provider_id);
    ELSE
        PERFORM crmapi.answer_failed(workspace, job, owner, attempt, NULL,
                                     answer, 'delivery_unknown', NULL);
    END IF;
    RETURN true;
END
$$;

-- Take an answer for sending: see step_take(), whose verdicts but "wait" it has.
-- Neither pacing nor DAILY_LIMIT holds an answer back. "stopped": an address is
-- suppressed, and the answer has failed; "skipped": it was posted before the bound
-- of its workspace, and has failed.
-- WIRE: all addresses that go over the wire, separated by spaces. The message is
-- changed again in this transaction, by answer_names(): PostgreSQL looks for its
-- conversation then, which an erasure locks before the message. Locks: key of the
-- conversation, message, job (lost lease: CRM01). For the worker.
CREATE FUNCTION crmapi.answer_take(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, moment timestamptz,
        daily_limit integer, wire text, OUT verdict text,
        OUT until timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken crmapi.message;
    channel text;
BEGIN
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = answer_take.workspace
      AND c.id = answer_take.conversation FOR KEY SHARE;
    SELECT m.* INTO taken FROM crmapi.message m
    WHERE m.workspace_id = answer_take.workspace AND m.id = answer_take.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    verdict := 'gone';
    IF taken.status IS DISTINCT FROM 'queued' THEN
        RETURN;
    END IF;
    SELECT crmapi.message_channel(c.type, taken.role) INTO channel
    FROM crmapi.conversation c
    WHERE c.workspace_id = answer_take.workspace
      AND c.id = taken.conversation_id;
    IF EXISTS (SELECT FROM unnest(taken.to_identifier::text
            || string_to_array(wire, ' ')
            || ARRAY(SELECT jsonb_array_elements_text(taken.metadata -> 'cc')))
            a(address)
        WHERE crmapi.answer_forbidden(workspace, channel, a.address)) THEN
        verdict := 'lost';
        IF taken.handed_over IS NOT TRUE THEN
            PERFORM crmapi.answer_end(workspace, answer, 'failed',
                                      'suppressed');
            verdict := 'stopped';
        END IF;
    ELSIF crmapi.sends_held(workspace) THEN
        PERFORM crmapi.job_return(workspace, job, owner, attempt);
        verdict := 'held';
    ELSIF crmapi.answer_past(workspace, job, owner, attempt, answer) THEN
        verdict := 'past';
    ELSIF taken.handed_over THEN
        verdict := 'again';
    ELSIF EXISTS (SELECT FROM crmapi.step_bound b
                  WHERE b.workspace_id = answer_take.workspace
                    AND b.due_before > taken.created_at) THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed',
            'posted before the time that the release was given');
        verdict := 'skipped';
    ELSIF crmapi.chat_was_seen(workspace, taken) THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed',
            'the visitor has seen it in the chat');
        verdict := 'skipped';
    ELSE
        UPDATE crmapi.message m SET handed_over = true
        WHERE m.workspace_id = answer_take.workspace AND m.id = taken.id;
        verdict := 'send';
    END IF;
END
$$;

-- Record that an answer was sent at MOMENT under the provider's id PROVIDER. A
-- text has no other name. Ends JOB. Locks: message, job. For the worker.
CREATE FUNCTION crmapi.answer_sent(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, moment timestamptz,
        provider text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.message m
    WHERE m.workspace_id = answer_sent.workspace AND m.id = answer_sent.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    -- a report of the provider may have been quicker
    UPDATE crmapi.message m SET status = CASE m.status WHEN 'queued' THEN 'sent'
            ELSE m.status END,
        provider_id = left(provider, 1000),
        external_id = coalesce(m.external_id, left(provider, 1000))
    WHERE m.workspace_id = answer_sent.workspace AND m.id = answer_sent.answer
      AND m.handed_over;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- Record that an answer was not sent because of REASON. It is retried AFTER from
-- now; AFTER null: never. Ends JOB or makes it ready again. Locks: message, job.
-- For the worker.
CREATE FUNCTION crmapi.answer_failed(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, reason text,
        after interval)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.message m
    WHERE m.workspace_id = answer_failed.workspace
      AND m.id = answer_failed.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.message m SET handed_over = false
    WHERE m.workspace_id = answer_failed.workspace
      AND m.id = answer_failed.answer AND after IS NOT NULL;
    IF after IS NULL AND EXISTS (SELECT FROM crmapi.message m
        WHERE m.workspace_id = answer_failed.workspace
          AND m.id = answer_failed.answer AND m.status = 'queued') THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed', reason);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt,
        CASE WHEN after IS NULL THEN 'done' ELSE 'ready' END, reason, after);
END
$$;

-- The same as answer_failed() for good, because the relay has said that nothing can
-- or may be sent to the answer's address: it is suppressed (contract 17.5), BECAUSE it
-- is "bounced" or "unsubscribed". If there are copies, it is not: the relay may have
-- said that of one of theirs. Locks: enrollment, step, job, message. For the worker.
CREATE FUNCTION crmapi.answer_refused(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, reason text,
        because text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.suppress_refused(workspace, m.to_identifier, because)
    FROM crmapi.message m
    WHERE m.workspace_id = answer_refused.workspace
      AND m.id = answer_refused.answer AND NOT m.metadata ? 'cc';
    PERFORM crmapi.answer_failed(workspace, job, owner, attempt, conversation,
                                 answer, reason, NULL);
END
$$;

-- The names of the mail of ANSWER, as step_names() returns those of a step. The
-- earlier mails are those that the conversation's last message with a Message-ID
-- names, and that message; at most 20 and its first. The fourth name is the header
-- Thread-Index, by which Outlook knows what belongs together; null if the earlier mail
-- has none. Locks: message; held already. For the worker.
CREATE FUNCTION crmapi.answer_names(workspace uuid, answer uuid, domain text)
    RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    named text := '<' || gen_random_uuid() || '@' || domain || '>';
    token text := replace(gen_random_uuid()::text, '-', '');
    taken crmapi.message;
    refs text[];
    place text;
BEGIN
    UPDATE crmapi.message m SET external_id = coalesce(m.external_id, named),
        reply_id = coalesce(m.reply_id, token)
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer
      AND EXISTS (SELECT FROM crmapi.conversation c
          WHERE c.workspace_id = answer_names.workspace
            AND c.id = m.conversation_id
            AND crmapi.message_channel(c.type, m.role) = 'email');
    SELECT m.* INTO taken FROM crmapi.message m
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer;
    SELECT CASE jsonb_typeof(m.metadata -> 'references') WHEN 'array'
            THEN ARRAY(SELECT jsonb_array_elements_text(
                m.metadata -> 'references')) END || m.external_id::text,
        coalesce(taken.metadata ->> 'thread_index',
            crmapi.answer_index(m.metadata ->> 'thread_index'))
    INTO refs, place FROM crmapi.message m
    WHERE m.workspace_id = answer_names.workspace
      AND m.conversation_id = taken.conversation_id
      AND m.external_id LIKE '<%>' AND m.id <> taken.id
      AND (m.role <> 'system' OR m.reply_id IS NOT NULL)
      AND m.created_at <= taken.created_at
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1;
    UPDATE crmapi.message m SET metadata = m.metadata
        || jsonb_strip_nulls(jsonb_build_object('references', refs,
            'thread_index', place))
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer
      AND m.reply_id IS NOT NULL AND refs IS NOT NULL
      AND NOT m.metadata ? 'references';
    RETURN CASE WHEN taken.reply_id IS NOT NULL THEN ARRAY[
        taken.external_id::text, taken.reply_id, crmapi.answer_thread(refs), place] END;
END
$$;

-- The Thread-Index of an answer to a mail with that of BEFORE: 22 bytes of the thread's
-- first mail and five of each answer (MS-OXOMSG, 2.2.1.3). Null: BEFORE is none. An
-- answer whose place would be too long has the same. Internal.
CREATE FUNCTION crmapi.answer_index(before text) RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    digits text := regexp_replace(before, '\s', '', 'g');
    len integer;
BEGIN
    IF digits ~ '^([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' THEN
        len := octet_length(decode(digits, 'base64')) - 22;
        IF len >= 0 AND len % 5 = 0 THEN
            RETURN CASE WHEN len >= 500 THEN digits
                ELSE translate(encode(decode(digits, 'base64')
                    || substr(uuid_send(gen_random_uuid()), 1, 5), 'base64'), E'\n', '')
                END;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- Whether METADATA is of a mail with which a program has answered by itself: an absence
-- notice or a read receipt, but not what other help desks send. Internal.
CREATE FUNCTION crmapi.mail_is_notice(metadata jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(metadata ->> 'automatic' IN ('auto-reply', 'receipt')
        AND NOT metadata ? 'generated', false);

-- The subject of ANSWER, a mail, which has none of its own: that of the last mail in
-- its conversation that a mail server or a notice did not write, else the
-- conversation's, else the agent's name. Of the marks of replies that mail programs put
-- before it, in their languages, one remains: each would add its own, time and again.
-- For the worker.
CREATE FUNCTION crmapi.answer_subject(workspace uuid, answer uuid) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken crmapi.message;
    said text;
    bare text;
BEGIN
    SELECT m.* INTO taken FROM crmapi.message m
    WHERE m.workspace_id = answer_subject.workspace AND m.id = answer;
    SELECT o.metadata ->> 'subject' INTO said FROM crmapi.message o
    WHERE o.workspace_id = answer_subject.workspace
      AND o.conversation_id = taken.conversation_id AND o.id <> answer
      AND o.created_at <= taken.created_at AND o.metadata ->> 'subject' <> ''
      AND o.role <> 'system' AND NOT crmapi.mail_is_notice(o.metadata)
    ORDER BY o.created_at DESC, o.id DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT coalesce(nullif(c.subject, ''), a.name) INTO said
        FROM crmapi.conversation c
        JOIN crmapi.agent a ON a.workspace_id = c.workspace_id
            AND a.id = c.bot_id
        WHERE c.workspace_id = answer_subject.workspace
          AND c.id = taken.conversation_id;
    END IF;
    bare := btrim(regexp_replace(said, '^((re|aw|antw|antwort|sv|vs|r|res|odp|odg|'
        'ynt|yan|bls|vá|atb|ats|vast|rif|отв|ответ|отг|відп|σχετ|απ|תגובה|השב|رد|پاسخ|'
        'ตอบ|trả lời|회신|답장|回复|回覆|答复|答覆|返信)'
        '\s*(\[\d+\]|\(\d+\))?\s*[:：]\s*)+', '', 'i'));
    RETURN CASE WHEN bare = '' THEN said ELSE 'Re: ' || bare END;
END
$$;

-- REFS, Message-IDs, as the value of the header References: what cannot be in a line
-- of it is left out, and of many the first and the last 20 are kept. Some mail programs
-- write ids without an @. Internal.
CREATE FUNCTION crmapi.answer_thread(refs text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    ids text[] := ARRAY(SELECT r.id FROM unnest(refs) WITH ORDINALITY r(id, n)
        WHERE r.id ~ '^<[!-;=?-~]+>$' AND length(r.id) <= 900
        ORDER BY r.n);
    n integer := cardinality(ids);
BEGIN
    RETURN nullif(array_to_string(CASE WHEN n > 21
        THEN ids[1:1] || ids[n - 19:] ELSE ids END, ' '), '');
END
$$;

-- The mail of ANSWER was returned because of FAILURE; null: its copies alone were. If
-- ADDRESSES, with spaces between them, is not null, that speaks of these, which are
-- suppressed because of REASON (contract 17.5). Locks: enrollment, step, job,
-- message. Internal.
CREATE FUNCTION crmapi.answer_returned(workspace uuid, answer uuid, addresses text,
                                       failure text, reason text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM crmapi.suppress(workspace, a.address, NULL, reason)
    FROM (SELECT t.address FROM unnest(string_to_array(addresses, ' ')) t(address)
          ORDER BY 1) a;
    IF failure IS NOT NULL THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed', failure);
    END IF;
END
$$;
