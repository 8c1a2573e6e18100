-- SPDX-License-Identifier: Apache-2.0
-- 0010-intake.sql: what channels bring, and the function that takes it
--
-- crmapi.intake() is the one way by which conversations, messages and
-- submissions come to be. Advisory locks of participants come first, in the
-- order of their numbers, then rows: contact, conversation, enrollment, agent.

-- ---- what is kept more ------------------------------------------------------

ALTER TABLE crmapi.agent
    ADD COLUMN chat_origins text[] COLLATE "C" NOT NULL DEFAULT '{}';
-- An address leads to its agent in whatever workspace.
CREATE INDEX agent_by_email ON crmapi.agent (crmapi.fold(agent_email))
    WHERE agent_email IS NOT NULL;
CREATE INDEX agent_by_phone ON crmapi.agent (crmapi.phone_fold(agent_phone))
    WHERE agent_phone IS NOT NULL;
-- So do the ids in the address of a chat and of a form.
CREATE INDEX agent_by_id ON crmapi.agent (id);
CREATE INDEX form_by_id ON crmapi.form (id);

-- THREAD: what the source calls the conversation.
ALTER TABLE crmapi.conversation
    ADD COLUMN thread crmapi.line,
    ADD COLUMN subject crmapi.line;
CREATE INDEX conversation_thread ON crmapi.conversation
    (workspace_id, thread, created_at, id) WHERE thread IS NOT NULL;

-- EXTERNAL_ID: what the source calls the message.
ALTER TABLE crmapi.message
    ADD COLUMN external_id crmapi.line,
    ADD COLUMN metadata crmapi.object NOT NULL DEFAULT '{}';
CREATE INDEX message_external ON crmapi.message
    (workspace_id, external_id, created_at) WHERE external_id IS NOT NULL;

-- Bodies are kept up to the size that whoever brings them was told.
CREATE TABLE crmapi.attachment (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    message_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    name crmapi.line,
    content_type crmapi.line,
    size bigint NOT NULL CHECK (size >= 0),
    body bytea,
    PRIMARY KEY (workspace_id, message_id, number),
    FOREIGN KEY (workspace_id, message_id) REFERENCES crmapi.message
        ON DELETE CASCADE
);
CREATE INDEX attachment_by_message ON crmapi.attachment (message_id);

-- Who may bring events: like crmapi.api_key, for nothing but this.
CREATE TABLE crmapi.intake_key (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.title NOT NULL,
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    display text COLLATE "C" NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3),
    PRIMARY KEY (workspace_id, id)
) WITH (fillfactor = 70);
CREATE TRIGGER id_fixed
    BEFORE UPDATE OF workspace_id, id, key_hash ON crmapi.intake_key
    FOR EACH ROW WHEN ((NEW.workspace_id, NEW.id, NEW.key_hash)
                       IS DISTINCT FROM (OLD.workspace_id, OLD.id, OLD.key_hash))
    EXECUTE FUNCTION crmapi.refuse_change('what a key is and where it belongs');
CREATE TRIGGER revoked_fixed BEFORE UPDATE OF revoked_at ON crmapi.intake_key
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL
                       AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION crmapi.refuse_change('the revocation of a key');
CREATE VIEW crmapi.live_intake AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug
    FROM crmapi.intake_key k JOIN crmapi.workspace w ON w.id = k.workspace_id
    WHERE k.revoked_at IS NULL;

-- The events that were taken, and what was answered. RESULT is null within
-- the transaction that takes it only.
CREATE TABLE crmapi.intake_event (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    event_id text COLLATE "C" NOT NULL
        CHECK (char_length(event_id) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    result jsonb,
    PRIMARY KEY (workspace_id, event_id)
) WITH (fillfactor = 70);
-- what upkeep trims
CREATE INDEX intake_event_old ON crmapi.intake_event (created_at);

-- ---- ids --------------------------------------------------------------------

-- Messages of one millisecond are in the order in which they were taken: ids
-- are UUIDs of version 7 with a counter behind the time (RFC 9562, 6.2).
CREATE SEQUENCE crmapi.intake_order;
CREATE FUNCTION crmapi.uuid_v7(at timestamptz) RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    n bigint := nextval('crmapi.intake_order');
BEGIN
    RETURN (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || lpad(to_hex(n >> 30 & 4095), 3, '0')
        || to_hex(8 | (n >> 28 & 3)) || lpad(to_hex(n & 268435455), 7, '0')
        || right(gen_random_uuid()::text, 8))::uuid;
END
$$;

-- ---- the parts of an event --------------------------------------------------
-- These are called by crmapi.intake() alone, whose settings they inherit.

-- An event as crm_intake() writes it. EMAIL to VISITOR_ID are the
-- participant's, whichever side that is.
CREATE TYPE crmapi.intake_item AS (
    event_id text, channel smallint, bot_id uuid, occurred_at timestamptz,
    outbound boolean, email text, phone_number text, name text,
    visitor_id text, author text, conversation_id uuid, thread text,
    subject text,
    external_id text, role text, content text, content_type text, status text,
    tool_used text, tool_arguments jsonb, metadata jsonb, minutes numeric,
    audio_url text, ended boolean, positive boolean, score numeric,
    summary text, takeover boolean, refs text[], step_id uuid,
    automatic boolean, suppress text, bounced text, reason text, lift text,
    form_id uuid, responses jsonb, internal boolean, contact jsonb,
    attachments jsonb);

-- Who takes part in ITEMS is nobody else's until the end of the transaction:
-- the identities have the names that upsert locks them by (contract 10.5).
CREATE FUNCTION crmapi.intake_lock(workspace uuid, items crmapi.intake_item[])
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(l.h) FROM (
        SELECT DISTINCT hashtextextended(workspace || k.name, 0) AS h
        FROM unnest(items) i, LATERAL (VALUES
            (':e:' || crmapi.fold(i.email)),
            (':p:' || crmapi.phone_fold(i.phone_number)),
            (':v:' || i.visitor_id),
            (':t:' || i.thread)) k(name)
        WHERE k.name IS NOT NULL ORDER BY h) l;
END
$$;

-- The contact that ITEM's participant is: by primary e-mail, else by primary
-- phone, the oldest (contract 10.1); null if there is none.
CREATE FUNCTION crmapi.intake_find_contact(workspace uuid,
                                           item crmapi.intake_item)
    RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid;
BEGIN
    IF item.step_id IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.enrollment_step s
        JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
            AND e.id = s.enrollment_id
        JOIN crmapi.contact c ON c.workspace_id = e.workspace_id
            AND c.id = e.contact_id
        WHERE s.workspace_id = workspace AND s.id = item.step_id;
    END IF;
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

-- ADDRESS as a contact's list of addresses.
CREATE FUNCTION crmapi.intake_address(member text, address text)
    RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN address IS NULL THEN '[]'::jsonb
        ELSE jsonb_build_array(jsonb_build_object(member, address,
                                                  'is_primary', true)) END;

-- What ITEM tells of its participant's texts: what it says of them, else the
-- words of the name.
CREATE FUNCTION crmapi.intake_texts(item crmapi.intake_item) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    name text := btrim(item.name);
    first text := split_part(name, ' ', 1);
BEGIN
    RETURN CASE WHEN name <> '' THEN jsonb_strip_nulls(jsonb_build_object(
            'first_name', first,
            'last_name', nullif(btrim(substr(name, length(first) + 1)), '')))
        ELSE '{}' END || coalesce(item.contact, '{}');
END
$$;

-- Make ITEM's participant a contact of the agent BOT.
CREATE FUNCTION crmapi.intake_make_contact(workspace uuid, bot uuid,
                                           item crmapi.intake_item)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    texts jsonb := crmapi.intake_texts(item);
    made uuid := crmapi.uuid_v7(clock_timestamp());
BEGIN
    INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails,
        phone_numbers, first_name, last_name, company, job_title, lead_source,
        address_line1, address_line2, city, state, postal_code, country,
        linkedin_url)
    VALUES (made, workspace, bot,
        crmapi.intake_address('email', item.email),
        crmapi.intake_address('phone_number', item.phone_number),
        texts ->> 'first_name', texts ->> 'last_name', texts ->> 'company',
        texts ->> 'job_title', texts ->> 'lead_source',
        texts ->> 'address_line1', texts ->> 'address_line2',
        texts ->> 'city', texts ->> 'state', texts ->> 'postal_code',
        texts ->> 'country', texts ->> 'linkedin_url');
    RETURN made;
END
$$;

-- Give the contact PERSON what it lacks and ITEM tells; what is there stays:
-- whoever writes to us has no key. To look first is cheap, an UPDATE of this
-- table is not, even one of no row.
CREATE FUNCTION crmapi.intake_fill_contact(workspace uuid, person uuid,
                                           item crmapi.intake_item)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    texts jsonb := crmapi.intake_texts(item);
    lacks text[];
BEGIN
    SELECT array_remove(ARRAY[
        CASE WHEN c.emails = '[]' AND item.email IS NOT NULL
            THEN 'emails' END,
        CASE WHEN c.phone_numbers = '[]' AND item.phone_number IS NOT NULL
            THEN 'phone_numbers' END,
        CASE WHEN c.first_name IS NULL AND c.last_name IS NULL
                AND texts ?| '{first_name,last_name}' THEN 'name' END,
        CASE WHEN c.company IS NULL AND texts ? 'company'
            THEN 'company' END,
        CASE WHEN c.job_title IS NULL AND texts ? 'job_title'
            THEN 'job_title' END,
        CASE WHEN c.lead_source IS NULL AND texts ? 'lead_source'
            THEN 'lead_source' END,
        CASE WHEN c.linkedin_url IS NULL AND texts ? 'linkedin_url'
            THEN 'linkedin_url' END,
        -- an address is one thing
        CASE WHEN coalesce(c.address_line1, c.address_line2, c.city, c.state,
                c.postal_code, c.country) IS NULL
                AND texts ?| '{address_line1,address_line2,city,state,'
                    'postal_code,country}' THEN 'address' END], NULL)
    INTO lacks
    FROM crmapi.contact c WHERE c.workspace_id = workspace AND c.id = person;
    IF lacks = '{}' THEN
        RETURN;
    END IF;
    UPDATE crmapi.contact c SET
        emails = CASE WHEN 'emails' = ANY (lacks)
            THEN crmapi.intake_address('email', item.email)
            ELSE c.emails END,
        phone_numbers = CASE WHEN 'phone_numbers' = ANY (lacks)
            THEN crmapi.intake_address('phone_number', item.phone_number)
            ELSE c.phone_numbers END,
        first_name = CASE WHEN 'name' = ANY (lacks)
            THEN texts ->> 'first_name' ELSE c.first_name END,
        last_name = CASE WHEN 'name' = ANY (lacks)
            THEN texts ->> 'last_name' ELSE c.last_name END,
        company = coalesce(c.company, texts ->> 'company'),
        job_title = coalesce(c.job_title, texts ->> 'job_title'),
        lead_source = coalesce(c.lead_source, texts ->> 'lead_source'),
        linkedin_url = coalesce(c.linkedin_url, texts ->> 'linkedin_url'),
        address_line1 = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'address_line1' ELSE c.address_line1 END,
        address_line2 = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'address_line2' ELSE c.address_line2 END,
        city = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'city' ELSE c.city END,
        state = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'state' ELSE c.state END,
        postal_code = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'postal_code' ELSE c.postal_code END,
        country = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'country' ELSE c.country END,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = workspace AND c.id = person;
END
$$;

-- The conversation that ITEM names: by its id, by the source's name for it, by
-- the message that it answers or is about. None of a deleted one.
CREATE FUNCTION crmapi.intake_named(workspace uuid, item crmapi.intake_item)
    RETURNS crmapi.conversation
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    one crmapi.conversation;
BEGIN
    IF item.conversation_id IS NOT NULL THEN
        SELECT c.* INTO one FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.id = item.conversation_id
          AND c.deleted IS NOT TRUE;
        RETURN one;
    END IF;
    IF item.thread IS NOT NULL THEN
        SELECT c.* INTO one FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.thread = item.thread
          AND (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    ELSIF item.refs IS NOT NULL THEN
        SELECT c.* INTO one
        FROM unnest(item.refs) WITH ORDINALITY r(external_id, place)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.external_id = r.external_id
        JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
            AND c.id = m.conversation_id
        WHERE (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
        ORDER BY r.place DESC, m.created_at DESC LIMIT 1;
    END IF;
    RETURN one;
END
$$;

-- The open conversation of the agent BOT with ITEM's participant, who is the
-- contact PERSON (may be null), on ITEM's channel. One that is archived is
-- not open.
CREATE FUNCTION crmapi.intake_open(workspace uuid, bot uuid, person uuid,
                                   item crmapi.intake_item)
    RETURNS crmapi.conversation
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    one crmapi.conversation;
BEGIN
    IF item.visitor_id IS NOT NULL THEN
        SELECT c.* INTO one FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.visitor_id = item.visitor_id
          AND c.bot_id = bot AND c.type = item.channel AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    ELSIF person IS NOT NULL THEN
        SELECT c.* INTO one FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.contact_id = person
          AND c.bot_id = bot AND c.type = item.channel AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL AND c.visitor_id IS NULL AND NOT c.internal
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    END IF;
    RETURN one;
END
$$;

-- Whether a message's status may become LATER after it was EARLIER: providers
-- tell of things in any order.
CREATE FUNCTION crmapi.status_follows(earlier text, later text)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(array_position('{accepted,queued,sending,sent,delivered,'
                        'read}'::text[], later), 9)
        > coalesce(array_position('{accepted,queued,sending,sent,delivered,'
                       'read}'::text[], earlier),
                   CASE WHEN earlier IS NULL THEN 0 ELSE 9 END);

-- Append ITEM's message to the conversation, as of AT.
CREATE FUNCTION crmapi.intake_message(workspace uuid, conversation uuid,
                                      item crmapi.intake_item,
                                      at timestamptz)
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
            THEN '{}' ELSE jsonb_build_object('user_id', item.author) END);
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

-- The conversation is as ITEM, of the moment AT and the contact PERSON, leaves
-- it; SAYS: with a message.
CREATE FUNCTION crmapi.intake_move(workspace uuid, conversation uuid,
        person uuid, item crmapi.intake_item, says boolean, at timestamptz)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE crmapi.conversation c SET
        contact_id = coalesce(c.contact_id, person),
        email = coalesce(item.email, c.email),
        phone_number = coalesce(item.phone_number, c.phone_number),
        human = coalesce(item.name, c.human),
        visitor_id = coalesce(c.visitor_id, item.visitor_id),
        thread = coalesce(c.thread, item.thread),
        subject = coalesce(c.subject, item.subject),
        last_message = CASE WHEN says AND item.content <> ''
                AND at >= coalesce(c.last_message_at, '-infinity')
            THEN left(item.content, 255) ELSE c.last_message END,
        last_message_at = CASE WHEN says
            THEN greatest(c.last_message_at, at) ELSE c.last_message_at END,
        last_active_at = greatest(c.last_active_at, at),
        active = CASE WHEN item.ended THEN false
            ELSE c.active OR says END,
        archived = CASE WHEN says AND c.archived THEN false
            ELSE c.archived END,
        archived_at = CASE WHEN NOT (says AND c.archived IS TRUE)
            THEN c.archived_at END,
        human_takeover = coalesce(item.takeover, c.human_takeover),
        sentiment_positive = coalesce(item.positive, c.sentiment_positive),
        sentiment_score = coalesce(item.score, c.sentiment_score),
        sentiment_summary = coalesce(item.summary, c.sentiment_summary),
        minutes = coalesce(item.minutes, c.minutes),
        audio_url = coalesce(item.audio_url, c.audio_url)
    WHERE c.workspace_id = workspace
      AND c.id = conversation;
END
$$;

-- What ITEM means to sequences and to who may be written to. IS_NEW: the contact
-- PERSON was made for it; SAYS: there is something that may be a reply.
CREATE FUNCTION crmapi.intake_heed(workspace uuid, person uuid, is_new boolean,
                                   item crmapi.intake_item, says boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF item.suppress = 'phone' AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, NULL, item.phone_number,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.suppress = 'email' AND item.email IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.email, NULL,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.lift = 'phone' AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress_lift(workspace, NULL, item.phone_number);
    END IF;
    IF item.bounced IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.bounced, NULL,
                                coalesce(item.reason, 'bounced'));
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

-- ---- events -----------------------------------------------------------------

-- ITEM tells of the status of a message: set it, unless it is old news. Null if
-- there is no such message.
CREATE FUNCTION crmapi.intake_status(workspace uuid, item crmapi.intake_item,
                                     OUT conversation uuid, OUT message uuid)
    LANGUAGE plpgsql AS $$
BEGIN
    SELECT m.conversation_id, m.id INTO conversation, message
    FROM crmapi.message m
    WHERE m.workspace_id = workspace AND m.external_id = item.external_id
    ORDER BY m.created_at DESC LIMIT 1;
    UPDATE crmapi.message m SET status = item.status
    WHERE m.workspace_id = workspace AND m.id = message
      AND crmapi.status_follows(m.status, item.status);
END
$$;

-- Do what ITEM says. RESULT is what is answered, FIELD and MESSAGE what is
-- wrong with it; then nothing is changed.
CREATE FUNCTION crmapi.intake_one(workspace uuid, item crmapi.intake_item,
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
    IF person IS NOT NULL THEN
        PERFORM crmapi.intake_fill_contact(workspace, person, item);
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

-- The token of the hash KEY is used at this moment: written down once a
-- minute, and not at all if somebody else is about it.
CREATE FUNCTION crmapi.intake_used(workspace uuid, key bytea) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE crmapi.intake_key k SET last_used_at = crmapi.now_ms()
    WHERE k.workspace_id = workspace AND k.id = (
        SELECT i.id FROM crmapi.intake_key i
        WHERE i.workspace_id = workspace
          AND i.key_hash = key
          AND (i.last_used_at IS NULL
               OR i.last_used_at < now() - interval '1 minute')
        FOR NO KEY UPDATE SKIP LOCKED);
END
$$;

-- Each agent of BOTS has one conversation more; those that come more than once
-- several.
CREATE FUNCTION crmapi.intake_count(workspace uuid, bots uuid[]) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF bots = '{}' THEN
        RETURN;
    END IF;
    PERFORM FROM crmapi.agent a
    WHERE a.workspace_id = workspace AND a.id = ANY (bots)
    ORDER BY a.id FOR NO KEY UPDATE;
    UPDATE crmapi.agent a
    SET number_of_conversations = a.number_of_conversations + b.n
    FROM (SELECT t.id, count(*) AS n FROM unnest(bots) t(id) GROUP BY 1) b
    WHERE a.workspace_id = workspace AND a.id = b.id;
END
$$;

-- Take EVENTS, an array of at most 500 objects with the members of
-- crmapi.intake_item, each event_id once: one row for each, in their order. KEY
-- is the hash of the intake token that they come with; null where the source
-- is known otherwise. No row: that token is not alive. Its statements are worth
-- one plan each, by indexes, whatever is known of the tables' sizes when it is
-- made: planning anew would take more time than doing.
CREATE FUNCTION crmapi.intake(workspace uuid, key bytea, events jsonb)
    RETURNS TABLE (conversation_id uuid, message_id uuid, contact_id uuid,
                   submission_id uuid, again boolean, opened boolean,
                   field text, message text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off ROWS 100
AS $$
#variable_conflict use_column
DECLARE
    items crmapi.intake_item[];
    item crmapi.intake_item;
    fresh integer[];            -- places of the events that are new
    place integer := 0;
    ids text[] := '{}';         -- of those that were taken,
    results jsonb[] := '{}';    -- and what is answered
    bad_ids text[] := '{}';
    bad jsonb := '{}';          -- by event_id: field and message
    bots uuid[] := '{}';
    done record;
BEGIN
    IF key IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM crmapi.live_intake k
                       WHERE k.workspace_id = workspace
                         AND k.key_hash = key) THEN
            RETURN;
        END IF;
        PERFORM crmapi.intake_used(workspace, key);
    END IF;
    SELECT array_agg(jsonb_populate_record(NULL::crmapi.intake_item, e.one)
                     ORDER BY e.n)
    INTO items
    FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n);
    -- Whoever brings the same event at this moment waits here, in one order.
    WITH wanted AS (
        SELECT e.one ->> 'event_id' AS event_id, min(e.n) AS n
        FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n)
        GROUP BY 1),
    made AS (
        INSERT INTO crmapi.intake_event AS v (workspace_id, event_id)
        SELECT workspace, w.event_id FROM wanted w ORDER BY w.event_id
        ON CONFLICT (workspace_id, event_id) DO NOTHING
        RETURNING v.event_id)
    SELECT array_agg(w.n) INTO fresh FROM made m JOIN wanted w USING (event_id);
    PERFORM crmapi.intake_lock(workspace, items);
    FOREACH item IN ARRAY items LOOP
        place := place + 1;
        CONTINUE WHEN place <> ALL (coalesce(fresh, '{}'));
        done := crmapi.intake_one(workspace, item);
        IF done.field IS NULL THEN
            ids := ids || item.event_id;
            results := results || done.result;
            bots := bots || done.opened;
        ELSE
            bad_ids := bad_ids || item.event_id;
            bad := bad || jsonb_build_object(item.event_id,
                jsonb_build_array(done.field, done.message));
        END IF;
    END LOOP;
    -- What was refused may come again under the same id.
    IF bad_ids <> '{}' THEN
        DELETE FROM crmapi.intake_event v
        WHERE v.workspace_id = workspace AND v.event_id = ANY (bad_ids);
    END IF;
    UPDATE crmapi.intake_event v
    SET result = results[array_position(ids, v.event_id)]
    WHERE v.workspace_id = workspace AND v.event_id = ANY (ids);
    PERFORM crmapi.intake_count(workspace, array_remove(bots, NULL));
    RETURN QUERY
    SELECT (v.result ->> 'conversation')::uuid,
           (v.result ->> 'message')::uuid, (v.result ->> 'contact')::uuid,
           (v.result ->> 'submission')::uuid,
           e.n <> ALL (coalesce(fresh, '{}')),
           coalesce((v.result ->> 'opened')::boolean, false),
           bad -> (e.one ->> 'event_id') ->> 0,
           bad -> (e.one ->> 'event_id') ->> 1
    FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n)
    LEFT JOIN LATERAL (
        SELECT i.result FROM crmapi.intake_event i
        WHERE i.workspace_id = workspace AND i.event_id = e.one ->> 'event_id'
        LIMIT 1) v ON true
    ORDER BY e.n;
END
$$;

-- At most N of the events that came before BEFORE are forgotten; returns how
-- many. One that is brought again after that is taken again.
CREATE FUNCTION crmapi.intake_trim(before timestamptz, n integer)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    done bigint;
BEGIN
    DELETE FROM crmapi.intake_event v
    WHERE (v.workspace_id, v.event_id) IN (
        SELECT o.workspace_id, o.event_id FROM crmapi.intake_event o
        WHERE o.created_at < before LIMIT n FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND p.proname ~ '^intake'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION crmapi.intake(uuid, bytea, jsonb)
    TO crmapi_api, crmapi_worker;
GRANT EXECUTE ON FUNCTION crmapi.intake_trim(timestamptz, integer)
    TO crmapi_worker;
GRANT SELECT ON crmapi.live_intake TO crmapi_api;
-- Who is not to be written to gets no greeting either; the API may ask about
-- an address that it knows, and see no list.
ALTER FUNCTION crmapi.is_suppressed(uuid, text, text) SECURITY DEFINER;
REVOKE EXECUTE ON FUNCTION crmapi.is_suppressed(uuid, text, text)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.is_suppressed(uuid, text, text)
    TO crmapi_api, crmapi_worker;
REVOKE INSERT ON crmapi.message FROM crmapi_worker;
