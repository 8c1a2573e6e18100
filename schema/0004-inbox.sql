-- SPDX-License-Identifier: Apache-2.0
-- 0004-inbox.sql: conversations, messages, attachments, forms, submissions
--
-- crmapi.intake() (0015-intake.sql) adds conversations, messages and submissions;
-- step_sent() adds the steps of sequences (0011-steps.sql), message_answer() and
-- chat_mail() answers and mails about chats (0012-answers.sql). The worker adds the
-- files of a message in the transaction of intake().

-- Find the operator classes below in whatever schema the extensions are.
SELECT set_config('search_path', 'pg_catalog, ' || string_agg(DISTINCT
           quote_ident(n.nspname), ', '), true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname IN ('pg_trgm', 'btree_gin');

-- ---- conversations ---------------------------------------------------------

CREATE TABLE crmapi.conversation (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    contact_id uuid,
    type smallint NOT NULL CHECK (type BETWEEN 1 AND 5),
    email crmapi.line,
    phone_number crmapi.line,
    human crmapi.line,
    human_takeover boolean NOT NULL DEFAULT false,
    assigned_to text COLLATE "C" CHECK (char_length(assigned_to) <= 255),
    assigned_at timestamptz(3),
    active boolean NOT NULL DEFAULT true,
    archived boolean,
    archived_at timestamptz(3),
    deleted boolean,
    deleted_at timestamptz(3),
    internal boolean NOT NULL DEFAULT false,
    internal_notes crmapi.prose,
    last_message crmapi.prose,
    last_message_at timestamptz(3),
    last_active_at timestamptz(3),
    unanswered boolean NOT NULL DEFAULT false, -- shown on request; lists filter by it
    sentiment_positive boolean,
    sentiment_score crmapi.amount CHECK (sentiment_score BETWEEN -1 AND 1),
    sentiment_summary crmapi.prose,
    audio_url crmapi.url,
    minutes crmapi.amount,
    visitor_id crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    activated_at timestamptz(3),        -- when it was last opened again
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(), -- not shown
    thread crmapi.line,                 -- what the source calls it
    subject crmapi.line,
    search text COLLATE "C",
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
-- A list skips deleted rows, and an inbox asks for rows that are active, not
-- archived, waiting for a human. So these columns are in the indexes: pages
-- far from the start and totals are index-only scans. A key column decides
-- before the row is fetched, an INCLUDE column only if no row need be fetched.

-- sort=created_at; created_after, created_before; the totals of other lists
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at, id)
    INCLUDE (deleted, archived, active, human_takeover);
-- sort=last_message_at; last_message_after, last_message_before. NULLs are
-- last in both directions (contract 7.10), so each direction has its index.
CREATE INDEX conversation_latest ON crmapi.conversation
    (workspace_id, last_message_at DESC NULLS LAST, id DESC)
    INCLUDE (deleted);
CREATE INDEX conversation_earliest ON crmapi.conversation
    (workspace_id, last_message_at, id) INCLUDE (deleted);
-- sort=updated_at, updated_after; no update is HOT
CREATE INDEX conversation_updated ON crmapi.conversation
    (workspace_id, updated_at, id) INCLUDE (deleted);
CREATE INDEX conversation_bot ON crmapi.conversation
    (workspace_id, bot_id, created_at, id)
    INCLUDE (deleted, archived, active, human_takeover);
-- the filter contact_id; /contacts/{id}/conversations
CREATE INDEX conversation_contact ON crmapi.conversation
    (workspace_id, contact_id, created_at, id) WHERE contact_id IS NOT NULL;
CREATE INDEX conversation_visitor ON crmapi.conversation
    (workspace_id, visitor_id, created_at, id) WHERE visitor_id IS NOT NULL;
CREATE INDEX conversation_thread ON crmapi.conversation
    (workspace_id, thread, created_at, id) WHERE thread IS NOT NULL;
-- those of a person who is erased; mails are found by conversation_find
CREATE INDEX conversation_phone ON crmapi.conversation
    (workspace_id, crmapi.phone_key(phone_number)) WHERE phone_number IS NOT NULL;
CREATE INDEX conversation_assigned ON crmapi.conversation
    (workspace_id, assigned_to, created_at, id, type, active)
    INCLUDE (deleted, archived, human_takeover)
    WHERE assigned_to IS NOT NULL;
-- the filter assigned: each conversation is in this index or the one before
CREATE INDEX conversation_unassigned ON crmapi.conversation
    (workspace_id, created_at, id, type, active)
    INCLUDE (deleted, archived, human_takeover)
    WHERE assigned_to IS NULL;
CREATE INDEX conversation_unanswered ON crmapi.conversation
    (workspace_id, created_at, id, assigned_to, active)
    INCLUDE (deleted, archived, human_takeover) WHERE unanswered;
CREATE INDEX conversation_type ON crmapi.conversation
    (workspace_id, type, created_at, id, active)
    INCLUDE (deleted, archived, human_takeover);
CREATE INDEX conversation_find ON crmapi.conversation
    USING gin (workspace_id, search gin_trgm_ops);

-- Compute search if what it is made of, or it itself, would change. A trigger
-- function.
CREATE FUNCTION crmapi.conversation_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND (NEW.last_message, NEW.email, NEW.phone_number, NEW.human,
             NEW.search)
        IS NOT DISTINCT FROM
            (OLD.last_message, OLD.email, OLD.phone_number, OLD.human,
             OLD.search)
    THEN
        RETURN NEW;
    END IF;
    NEW.search := crmapi.fold(coalesce(NEW.last_message, '') || chr(31)
        || coalesce(NEW.email, '') || chr(31)
        || coalesce(NEW.phone_number, '') || chr(31)
        || coalesce(NEW.human, ''));
    IF octet_length(NEW.email) > char_length(NEW.email) OR NEW.email ~ '"|[.]$'
    THEN        -- what person_talks() looks for
        NEW.search := NEW.search || chr(31) || crmapi.email_key(NEW.email);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compute BEFORE INSERT
    OR UPDATE OF last_message, email, phone_number, human, search
    ON crmapi.conversation FOR EACH ROW
    EXECUTE FUNCTION crmapi.conversation_compute();

-- Move updated_at forward if anything changed and the statement did not set it:
-- intake, the worker and foreign keys write conversations, too. A trigger
-- function.
CREATE FUNCTION crmapi.conversation_touch() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := greatest(crmapi.now_ms(),
                               OLD.updated_at + interval '1 millisecond');
    RETURN NEW;
END
$$;
-- Triggers run in the order of their names, so this one sees what others set.
CREATE TRIGGER touch BEFORE UPDATE ON crmapi.conversation
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*
                       AND OLD.updated_at = NEW.updated_at)
    EXECUTE FUNCTION crmapi.conversation_touch();

-- Set activated_at when a conversation is opened again. A trigger function.
CREATE FUNCTION crmapi.conversation_reopen() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.activated_at := crmapi.now_ms();
    RETURN NEW;
END
$$;
CREATE TRIGGER reopen BEFORE UPDATE OF active ON crmapi.conversation
    FOR EACH ROW WHEN (NEW.active AND NOT OLD.active)
    EXECUTE FUNCTION crmapi.conversation_reopen();

-- The time of the last activity in a conversation with these columns.
CREATE FUNCTION crmapi.conversation_last_activity(last_active_at timestamptz,
        last_message_at timestamptz, activated_at timestamptz,
        created_at timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(last_active_at, last_message_at, activated_at,
                    created_at);
-- those that upkeep closes
CREATE INDEX conversation_idle ON crmapi.conversation
    (crmapi.conversation_last_activity(last_active_at, last_message_at,
        activated_at, created_at)) WHERE active;

-- ---- messages --------------------------------------------------------------

CREATE TABLE crmapi.message (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    role crmapi.line NOT NULL,
    content crmapi.prose NOT NULL DEFAULT '',
    content_type crmapi.line,
    status crmapi.line,
    tool_used crmapi.line,
    tool_arguments crmapi.object,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    external_id crmapi.line,            -- what the source calls it
    metadata crmapi.object NOT NULL DEFAULT '{}',
    -- of a message that crmapid sends: an answer, or a step of a sequence
    step_id uuid,
    to_identifier crmapi.line,          -- NULL: it goes nowhere
    handed_over boolean,                -- a relay has it, or has had it
    provider_id crmapi.line,            -- what the relay calls it
    reply_id text COLLATE "C",          -- as enrollment_step.reply_id
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES crmapi.conversation ON DELETE CASCADE
);
CREATE INDEX message_created ON crmapi.message
    (workspace_id, created_at, id);
CREATE INDEX message_role ON crmapi.message
    (workspace_id, role, created_at, id);
-- a transcript
CREATE INDEX message_conversation ON crmapi.message
    (workspace_id, conversation_id, created_at, id);
CREATE INDEX message_external ON crmapi.message
    (workspace_id, external_id, created_at) WHERE external_id IS NOT NULL;
-- mails that answer or return one of ours
CREATE INDEX message_step ON crmapi.message (workspace_id, step_id)
    WHERE step_id IS NOT NULL;
CREATE INDEX message_provider ON crmapi.message (workspace_id, provider_id)
    WHERE provider_id IS NOT NULL;
CREATE INDEX message_reply ON crmapi.message (workspace_id, reply_id)
    WHERE reply_id IS NOT NULL;

-- A file of a message. STORED is false if its source passed on only what it is,
-- because of its limit.
CREATE TABLE crmapi.attachment (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    message_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    filename crmapi.line,
    content_type crmapi.line,
    content_id crmapi.line,             -- of a mail's part, without brackets
    size bigint NOT NULL CHECK (size >= 0),
    stored boolean NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, message_id, number),
    FOREIGN KEY (workspace_id, message_id) REFERENCES crmapi.message
        ON DELETE CASCADE
);
CREATE INDEX attachment_by_message ON crmapi.attachment (message_id);

-- Bytes are in pieces of 128 KiB, of which the last one may be smaller, so that
-- no program holds more of them. PostgreSQL compresses those that get smaller.
CREATE DOMAIN crmapi.piece AS bytea
    CHECK (octet_length(VALUE) BETWEEN 1 AND 131072);

-- The bytes of an attachment that is stored. An empty one has no piece.
CREATE TABLE crmapi.attachment_piece (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    attachment_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    bytes crmapi.piece NOT NULL,
    PRIMARY KEY (workspace_id, attachment_id, number),
    FOREIGN KEY (workspace_id, attachment_id) REFERENCES crmapi.attachment
        ON DELETE CASCADE
);

-- A mail as it came. All pieces of one have the same created_at.
CREATE TABLE crmapi.original (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    message_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    created_at timestamptz(3) NOT NULL,
    bytes crmapi.piece NOT NULL,
    PRIMARY KEY (workspace_id, message_id, number),
    FOREIGN KEY (workspace_id, message_id) REFERENCES crmapi.message
        ON DELETE CASCADE
);
-- originals that upkeep deletes
CREATE INDEX original_old ON crmapi.original (created_at) WHERE number = 1;

-- The HTML of a mail that has an original, made safe to be shown. References to
-- remote content are between two characters U+0001, with their attributes' names.
CREATE TABLE crmapi.message_html (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    message_id uuid NOT NULL,
    html text COLLATE "C" NOT NULL CHECK (octet_length(html) <= 1048576),
    PRIMARY KEY (workspace_id, message_id),
    FOREIGN KEY (workspace_id, message_id) REFERENCES crmapi.message
        ON DELETE CASCADE
);

-- A chat whose visitor's page has not confirmed the answers SINCE that time. Not a
-- column of the conversation, because each update of that one is seen by those who
-- copy it.
CREATE TABLE crmapi.chat_unseen (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    since timestamptz(3) NOT NULL,
    PRIMARY KEY (workspace_id, conversation_id),
    FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES crmapi.conversation ON DELETE CASCADE
);

-- ---- forms -----------------------------------------------------------------

CREATE TABLE crmapi.form (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name crmapi.title NOT NULL,
    description crmapi.prose,
    standard_fields crmapi.object NOT NULL DEFAULT '{}',
    custom_fields crmapi.object NOT NULL DEFAULT '{}',
    survey_questions crmapi.object NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    -- since when this database knows the row; no import or dump sets it
    known_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);
CREATE INDEX form_created ON crmapi.form (workspace_id, created_at, id);
CREATE INDEX form_bot ON crmapi.form (workspace_id, bot_id, created_at, id);
-- A form's page finds the form, and by it the workspace, by the id in its URL.
CREATE INDEX form_by_id ON crmapi.form (id);

CREATE TABLE crmapi.submission (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    form_id uuid NOT NULL,
    contact_id uuid,
    custom_field_responses crmapi.object NOT NULL DEFAULT '{}',
    is_internal boolean NOT NULL DEFAULT false,
    submitted_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, form_id) REFERENCES crmapi.form,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
CREATE INDEX submission_submitted ON crmapi.submission
    (workspace_id, submitted_at, id);
CREATE INDEX submission_form ON crmapi.submission
    (workspace_id, form_id, submitted_at, id);
CREATE INDEX submission_contact ON crmapi.submission
    (workspace_id, contact_id, submitted_at, id) WHERE contact_id IS NOT NULL;
-- what a person who is erased may have entered
CREATE INDEX submission_of_nobody ON crmapi.submission (workspace_id)
    WHERE contact_id IS NULL;

-- ---- ids -------------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['conversation', 'message', 'attachment',
        'form', 'submission'] LOOP
        EXECUTE format('CREATE TRIGGER id_fixed
            BEFORE UPDATE OF workspace_id, id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
            EXECUTE FUNCTION crmapi.refuse_change(''an id'')', name);
    END LOOP;
END
$$;
