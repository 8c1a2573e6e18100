-- SPDX-License-Identifier: Apache-2.0
-- 0014-claims.sql: what nobody has verified is a claim
--
-- Whoever sends a form may put anybody's address into it. Such an event may
-- lead to a contact and make a new one; it changes no field of one that is
-- there, and stops nothing. What was said stays in the conversation.

-- VERIFIED: the source knows that the participant is who the item says. Null:
-- it does not.
ALTER TYPE crmapi.intake_item ADD ATTRIBUTE verified boolean;

-- Whether it is certain that ITEM, which names the conversation TALK by
-- messages or is about a step, is from PERSON; null: from TALK's contact. Who
-- names a message that we have sent has got it: a step's is its contact,
-- another one's is that of the conversation. What strangers have sent proves
-- nothing: they have chosen its name.
CREATE FUNCTION crmapi.intake_vouched(workspace uuid, item crmapi.intake_item,
        talk crmapi.conversation, person uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    is_known boolean := coalesce(item.verified, false);
BEGIN
    IF person IS NOT NULL AND EXISTS (
        SELECT FROM crmapi.enrollment_step s
        JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
            AND e.id = s.enrollment_id
        WHERE s.workspace_id = workspace AND s.id = item.step_id
          AND e.contact_id = person) THEN
        RETURN true;
    END IF;
    IF talk.contact_id IS NULL OR person <> talk.contact_id
       OR (is_known AND person IS NOT NULL) THEN
        RETURN is_known;
    END IF;
    RETURN EXISTS (
        SELECT FROM crmapi.message m
        WHERE m.workspace_id = workspace AND m.external_id = ANY (item.refs)
          AND m.conversation_id = talk.id
          AND m.role IN ('assistant', 'human'));
END
$$;

-- As in 0010; a claim says that it is one.
CREATE OR REPLACE FUNCTION crmapi.intake_message(workspace uuid,
        conversation uuid, item crmapi.intake_item, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    made uuid := crmapi.uuid_v7(at);
BEGIN
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
        content, content_type, status, tool_used, tool_arguments, created_at,
        external_id, metadata)
    VALUES (made, workspace, conversation, coalesce(item.role,
            CASE WHEN item.outbound THEN 'assistant' ELSE 'user' END),
        coalesce(item.content, ''), item.content_type, item.status,
        item.tool_used, item.tool_arguments, at, item.external_id,
        coalesce(item.metadata, '{}') || CASE WHEN item.author IS NULL
            THEN '{}' ELSE jsonb_build_object('user_id', item.author) END
        || CASE WHEN item.verified THEN '{}'::jsonb
           ELSE '{"verified": false}' END);
    IF item.attachments IS NOT NULL THEN
        INSERT INTO crmapi.attachment (workspace_id, message_id, number, name,
            content_type, size, body)
        SELECT workspace, made, a.n, a.one ->> 'name', a.one ->> 'type',
            (a.one ->> 'size')::bigint, decode(a.one ->> 'body', 'base64')
        FROM jsonb_array_elements(item.attachments) WITH ORDINALITY a(one, n);
    END IF;
    RETURN made;
END
$$;

-- As in 0010; a claim means nothing to them, but for a bounce, which comes with
-- the step whose mail it names.
CREATE OR REPLACE FUNCTION crmapi.intake_heed(workspace uuid, person uuid,
        is_new boolean, item crmapi.intake_item, says boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF item.bounced IS NOT NULL AND item.step_id IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.bounced, NULL,
                                coalesce(item.reason, 'bounced'));
    END IF;
    IF NOT item.verified THEN
        RETURN;
    END IF;
    IF item.suppress = 'phone' AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, NULL, item.phone_number,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.suppress = 'email' AND item.email IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.email, NULL,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.lift = 'phone' AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress_lift(workspace, NULL, item.phone_number);
    END IF;
    IF NOT says OR item.outbound OR item.automatic
       OR coalesce(item.role, 'user') <> 'user' THEN
        RETURN;
    END IF;
    IF NOT is_new THEN
        PERFORM crmapi.contact_replied(workspace, person);
    ELSE
        -- what is nobody's primary address may still be somebody's other one
        PERFORM crmapi.contact_replied(workspace, c.id)
        FROM crmapi.contacts_with(workspace, item.email,
            CASE WHEN item.email IS NULL THEN item.phone_number END) c(id);
    END IF;
END
$$;

-- As in 0010: do what ITEM says, as far as it is more than a claim.
CREATE OR REPLACE FUNCTION crmapi.intake_one(workspace uuid,
        item crmapi.intake_item,
        OUT result jsonb, OUT field text, OUT message text, OUT opened uuid)
    LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := date_trunc('milliseconds', least(clock_timestamp(),
        coalesce(item.occurred_at, 'infinity')));
    says boolean := item.content IS NOT NULL OR item.role IS NOT NULL
        OR item.tool_used IS NOT NULL;
    names boolean := item.email IS NOT NULL OR item.phone_number IS NOT NULL;
    talk crmapi.conversation;
    bot uuid := item.bot_id;
    person uuid;
    is_new boolean := false;
    said uuid;
    submitted uuid;
BEGIN
    IF item.status IS NOT NULL AND item.external_id IS NOT NULL AND NOT says
    THEN
        SELECT s.conversation, s.message INTO talk.id, said
        FROM crmapi.intake_status(workspace, item) s;
        IF said IS NULL THEN
            field := 'message.external_id';
            message := 'must be that of a message';
        END IF;
        result := jsonb_build_object('conversation', talk.id,
                                     'message', said);
        RETURN;
    END IF;
    talk := crmapi.intake_named(workspace, item);
    IF item.conversation_id IS NOT NULL AND talk.id IS NULL THEN
        field := 'conversation.id';
        message := 'must be the id of a conversation of this workspace';
    ELSIF bot IS NOT NULL AND NOT EXISTS (SELECT FROM crmapi.agent a
            WHERE a.workspace_id = workspace AND a.id = bot) THEN
        field := 'bot_id';
        message := 'must be the id of an agent of this workspace';
    ELSIF bot IS NULL AND talk.id IS NULL THEN
        field := 'bot_id';
        message := 'is required unless a conversation is named';
    ELSIF item.channel IS NULL AND talk.id IS NULL THEN
        field := 'channel';
        message := 'is required unless a conversation is named';
    ELSIF item.form_id IS NOT NULL AND NOT EXISTS (SELECT FROM crmapi.form f
            WHERE f.workspace_id = workspace AND f.id = item.form_id) THEN
        field := 'form_id';
        message := 'must be the id of a form of this workspace';
    ELSIF talk.id IS NULL AND NOT names AND item.visitor_id IS NULL
          AND item.thread IS NULL AND item.form_id IS NULL THEN
        field := CASE WHEN item.outbound THEN 'to' ELSE 'from' END;
        message := 'must have an email, a phone_number, a visitor_id or a '
            'user_id unless a conversation is named';
    END IF;
    IF field IS NOT NULL THEN
        RETURN;
    END IF;
    bot := coalesce(talk.bot_id, bot);
    person := crmapi.intake_find_contact(workspace, item);
    item.verified := CASE WHEN item.step_id IS NULL AND item.refs IS NULL
        THEN coalesce(item.verified, false)
        ELSE crmapi.intake_vouched(workspace, item, talk, person) END;
    IF person IS NOT NULL THEN
        IF item.verified THEN
            PERFORM crmapi.intake_fill_contact(workspace, person, item);
        END IF;
    ELSIF names AND item.automatic IS NOT TRUE AND talk.contact_id IS NULL
    THEN
        person := crmapi.intake_make_contact(workspace, bot, item);
        is_new := true;
    END IF;
    IF talk.id IS NULL AND item.thread IS NULL THEN
        IF person IS NULL AND item.visitor_id IS NULL AND names THEN
            item.thread := 'address:' || coalesce(crmapi.fold(item.email),
                crmapi.phone_fold(item.phone_number));
            talk := crmapi.intake_named(workspace, item);
        ELSE
            -- the same person may come by another address at this moment
            PERFORM pg_advisory_xact_lock(hashtextextended(workspace || ':c:'
                || coalesce(item.visitor_id, person::text, ''), 0));
            talk := crmapi.intake_open(workspace, bot, person, item);
        END IF;
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
    -- Nor does a claim say with whom a conversation is that was there, unless
    -- it is the visitor's own.
    IF opened IS NULL AND NOT item.verified
       AND (item.visitor_id = talk.visitor_id) IS NOT TRUE THEN
        item.email := NULL;
        item.phone_number := NULL;
        item.name := NULL;
    END IF;
    PERFORM crmapi.intake_move(workspace, talk.id, person, item, says, at);
    person := coalesce(person, talk.contact_id);
    IF item.form_id IS NOT NULL THEN
        submitted := crmapi.uuid_v7(at);
        INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id,
            custom_field_responses, is_internal, submitted_at)
        VALUES (submitted, workspace, item.form_id, person,
            coalesce(item.responses, '{}'), coalesce(item.internal, false),
            at);
    END IF;
    PERFORM crmapi.intake_heed(workspace, person, is_new, item,
        says OR item.minutes IS NOT NULL);
    result := jsonb_build_object('conversation', talk.id, 'message', said,
        'contact', person, 'submission', submitted, 'opened',
        opened IS NOT NULL);
END
$$;

-- ---- rights -----------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION crmapi.intake_vouched(uuid, crmapi.intake_item,
    crmapi.conversation, uuid) FROM PUBLIC;
