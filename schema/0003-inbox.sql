-- SPDX-License-Identifier: Apache-2.0
-- 0003-inbox.sql: conversations, messages, forms, submissions

SELECT set_config('search_path', 'pg_catalog, ' || string_agg(DISTINCT
           quote_ident(n.nspname), ', '), true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname IN ('pg_trgm', 'btree_gin');

-- ---- conversations ----------------------------------------------------------

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
    sentiment_positive boolean,
    sentiment_score crmapi.amount CHECK (sentiment_score BETWEEN -1 AND 1),
    sentiment_summary crmapi.prose,
    audio_url crmapi.url,
    minutes crmapi.amount,
    visitor_id crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    search text COLLATE "C" GENERATED ALWAYS AS (crmapi.fold(
        coalesce(last_message, '') || chr(31) || coalesce(email, '')
        || chr(31) || coalesce(phone_number, '') || chr(31)
        || coalesce(human, ''))) STORED,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
-- sort=created_at; created_after, created_before
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at, id);
-- sort=last_message_at, nulls last in both directions (contract 7.10), which
-- one index cannot give; last_message_after, last_message_before
CREATE INDEX conversation_latest ON crmapi.conversation
    (workspace_id, last_message_at DESC NULLS LAST, id DESC);
CREATE INDEX conversation_earliest ON crmapi.conversation
    (workspace_id, last_message_at, id);
CREATE INDEX conversation_bot ON crmapi.conversation
    (workspace_id, bot_id, created_at, id);
-- contact_id; /contacts/{id}/conversations
CREATE INDEX conversation_contact ON crmapi.conversation
    (workspace_id, contact_id, created_at, id) WHERE contact_id IS NOT NULL;
CREATE INDEX conversation_visitor ON crmapi.conversation
    (workspace_id, visitor_id, created_at, id) WHERE visitor_id IS NOT NULL;
CREATE INDEX conversation_assigned ON crmapi.conversation
    (workspace_id, assigned_to, created_at, id)
    WHERE assigned_to IS NOT NULL;
CREATE INDEX conversation_type ON crmapi.conversation
    (workspace_id, type, created_at, id);
CREATE INDEX conversation_find ON crmapi.conversation
    USING gin (workspace_id, search gin_trgm_ops);
-- active, archived and human_takeover have none: they leave too many rows, or
-- come with another filter.

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
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES crmapi.conversation ON DELETE CASCADE
);
-- a transcript; role picks from it
CREATE INDEX message_conversation ON crmapi.message
    (workspace_id, conversation_id, created_at, id);

-- ---- forms ------------------------------------------------------------------

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
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);
CREATE INDEX form_created ON crmapi.form (workspace_id, created_at, id);
CREATE INDEX form_bot ON crmapi.form (workspace_id, bot_id, created_at, id);

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
CREATE INDEX submission_form ON crmapi.submission
    (workspace_id, form_id, submitted_at, id);
-- no filter has it: for the foreign key
CREATE INDEX submission_contact ON crmapi.submission
    (workspace_id, contact_id) WHERE contact_id IS NOT NULL;

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['conversation', 'message', 'form',
        'submission'] LOOP
        EXECUTE format('CREATE TRIGGER id_fixed
            BEFORE UPDATE OF workspace_id, id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
            EXECUTE FUNCTION crmapi.refuse_change(''an id'')', name);
        EXECUTE format('GRANT SELECT ON crmapi.%I
            TO crmapi_api, crmapi_worker', name);
    END LOOP;
END
$$;
-- The inbox state, and nobody deletes a conversation (specification).
GRANT UPDATE (human_takeover, assigned_to, assigned_at, active, archived,
              archived_at, deleted, deleted_at, internal_notes)
    ON crmapi.conversation TO crmapi_api;
GRANT UPDATE (active, last_message, last_message_at, last_active_at)
    ON crmapi.conversation TO crmapi_worker;
GRANT INSERT ON crmapi.message TO crmapi_worker;
