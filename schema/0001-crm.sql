-- SPDX-License-Identifier: Apache-2.0
-- 0001-crm.sql: workspaces, keys, the CRM's tables, counters, roles

CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;

DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['crmapi_api', 'crmapi_worker'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
            END IF;
        EXCEPTION
            -- another database's migration was faster: roles are cluster-wide
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END
$$;

-- ---- functions ----------------------------------------------------------

-- Lower case as Unicode has it, whatever the database's locale; the two small
-- sigmas are one letter.
CREATE FUNCTION crmapi.fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate(lower($1 COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C";

-- The present moment in whole milliseconds: what is returned works as an
-- inclusive bound for its own row (contract 9.1).
CREATE FUNCTION crmapi.now_ms() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN date_trunc('milliseconds', clock_timestamp());

-- The primary e-mail of a list, folded; NULL if the list is empty.
CREATE FUNCTION crmapi.email_key(list jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN crmapi.fold(jsonb_path_query_first(
        list, '$[*] ? (@.is_primary == true).email') #>> '{}');

-- The primary phone's digits and leading plus sign.
CREATE FUNCTION crmapi.phone_key(list jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(ltrim(jsonb_path_query_first(
        list, '$[*] ? (@.is_primary == true).phone_number') #>> '{}'),
        '(?!^\+)[^0-9]', '', 'g') COLLATE "C";

-- The members called NAME of a list's entries, apart by a unit separator.
CREATE FUNCTION crmapi.list_join(list jsonb, name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT string_agg(e ->> name, chr(31))
            FROM jsonb_array_elements(list) e);

-- The same, cheap for the usual list of none or one.
CREATE FUNCTION crmapi.list_text(list jsonb, name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_array_length(list) < 2 THEN list -> 0 ->> name
           ELSE crmapi.list_join(list, name) END;

-- ---- workspaces, plans, keys ----------------------------------------------

CREATE TABLE crmapi.plan (
    name text PRIMARY KEY,
    api boolean NOT NULL,
    sequences boolean NOT NULL
);
INSERT INTO crmapi.plan VALUES
    ('free', false, false), ('starter', false, false),
    ('standard', true, false), ('pro', true, true), ('enterprise', true, true);

CREATE TABLE crmapi.workspace (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    slug text COLLATE "C" NOT NULL UNIQUE
        CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    plan text NOT NULL REFERENCES crmapi.plan (name),
    time_zone text NOT NULL DEFAULT 'UTC',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms()
);

CREATE TABLE crmapi.api_key (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    display text NOT NULL,
    can_read boolean NOT NULL,
    can_write boolean NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3),
    PRIMARY KEY (workspace_id, id),
    CHECK (can_read OR NOT can_write)
);

-- What never changes never does: the shared memory of the module relies on it.
CREATE FUNCTION crmapi.keep_fixed() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'workspace' THEN
        IF NEW.id <> OLD.id OR NEW.slug <> OLD.slug THEN
            RAISE EXCEPTION 'id and slug of a workspace never change'
                USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id
       OR NEW.key_hash <> OLD.key_hash THEN
        RAISE EXCEPTION 'a key never changes'
            USING ERRCODE = 'check_violation';
    ELSIF OLD.revoked_at IS NOT NULL
          AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
        RAISE EXCEPTION 'a revoked key stays revoked'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_fixed BEFORE UPDATE OF id, slug ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.keep_fixed();
CREATE TRIGGER keep_fixed
    BEFORE UPDATE OF id, workspace_id, key_hash, revoked_at ON crmapi.api_key
    FOR EACH ROW EXECUTE FUNCTION crmapi.keep_fixed();

-- Keys that are good at this moment, and what they may do (contract 3.2, 3.3).
CREATE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug,
           k.can_read AS read, k.can_write AS write,
           p.api AS plan_api, p.sequences AND p.api AS plan_sequences
    FROM crmapi.api_key k
    JOIN crmapi.workspace w ON w.id = k.workspace_id
    JOIN crmapi.plan p ON p.name = w.plan
    WHERE k.revoked_at IS NULL;

-- ---- agents -----------------------------------------------------------------

CREATE TABLE crmapi.agent (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    name text,
    slug text COLLATE "C",
    summary text,
    is_agent boolean NOT NULL DEFAULT true,
    enabled boolean NOT NULL DEFAULT true,
    public boolean NOT NULL DEFAULT false,
    agent_role text,
    agent_type text COLLATE "C"
        CHECK (agent_type IN ('internal', 'external', 'both')),
    agent_status text,
    agent_color text,
    agent_email text,
    agent_phone text,
    chat_greeting text,
    chat_avatar_intro text,
    chat_avatar_image_url text,
    phone_greeting text,
    phone_voice_id text,
    text_greeting text,
    email_inbound boolean,
    email_outbound_autoreply boolean,
    email_outbound_email text,
    email_outbound_name text,
    booking_provider text,
    enabled_event_type_ids text[],
    allow_human_takeover boolean NOT NULL DEFAULT false,
    escalation_detection_enabled boolean NOT NULL DEFAULT false,
    sentiment_analysis_enabled boolean NOT NULL DEFAULT false,
    knowledge_count numeric(19,4) NOT NULL DEFAULT 0,
    number_of_conversations numeric(19,4) NOT NULL DEFAULT 0,
    popular_topics text[],
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    search text COLLATE "C" GENERATED ALWAYS AS (crmapi.fold(
        coalesce(name, '') || chr(31) || coalesce(slug, '') || chr(31)
        || coalesce(summary, ''))) STORED,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX agent_created ON crmapi.agent
    (workspace_id, created_at DESC, id DESC);

-- ---- pipelines --------------------------------------------------------------

CREATE TABLE crmapi.pipeline (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    is_default boolean NOT NULL DEFAULT false,
    is_private boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);
CREATE INDEX pipeline_created ON crmapi.pipeline
    (workspace_id, created_at DESC, id DESC);
CREATE INDEX pipeline_bot ON crmapi.pipeline (workspace_id, bot_id);

CREATE TABLE crmapi.pipeline_stage (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    color text NOT NULL DEFAULT '#888888',
    order_index integer NOT NULL DEFAULT 0 CHECK (order_index >= 0),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, pipeline_id) REFERENCES crmapi.pipeline
        ON DELETE CASCADE
);
CREATE INDEX pipeline_stage_order ON crmapi.pipeline_stage
    (workspace_id, pipeline_id, order_index, created_at, id);
CREATE INDEX pipeline_stage_bot ON crmapi.pipeline_stage
    (workspace_id, bot_id);

-- ---- companies and contacts -------------------------------------------------

CREATE TABLE crmapi.company (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    domain text,
    website text,
    industry text COLLATE "C",
    company_size text,
    company_type text,
    employee_count numeric(19,4),
    annual_revenue numeric(19,4),
    description text,
    emails jsonb NOT NULL DEFAULT '[]',
    phone_numbers jsonb NOT NULL DEFAULT '[]',
    tags text[] NOT NULL DEFAULT '{}',
    pipeline_stage_id uuid,
    address_line1 text,
    address_line2 text,
    city text,
    state text,
    postal_code text,
    country text,
    linkedin_url text,
    notes text,
    custom_fields jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    domain_key text COLLATE "C"
        GENERATED ALWAYS AS (crmapi.fold(domain)) STORED,
    search text COLLATE "C" GENERATED ALWAYS AS (crmapi.fold(
        name || chr(31) || coalesce(domain, '') || chr(31)
        || coalesce(industry, ''))) STORED,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage
        ON DELETE SET NULL (pipeline_stage_id)
);
CREATE INDEX company_created ON crmapi.company
    (workspace_id, created_at DESC, id DESC);
CREATE INDEX company_bot ON crmapi.company
    (workspace_id, bot_id, created_at DESC, id DESC);
CREATE INDEX company_industry ON crmapi.company
    (workspace_id, industry, created_at DESC, id DESC)
    WHERE industry IS NOT NULL;
CREATE INDEX company_domain ON crmapi.company
    (workspace_id, domain_key, created_at DESC, id DESC)
    WHERE domain_key IS NOT NULL;
CREATE INDEX company_stage ON crmapi.company
    (workspace_id, pipeline_stage_id) WHERE pipeline_stage_id IS NOT NULL;
CREATE INDEX company_tags ON crmapi.company USING gin (workspace_id, tags);
CREATE INDEX company_search ON crmapi.company
    USING gin (workspace_id, search gin_trgm_ops);

CREATE TABLE crmapi.contact (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    first_name text,
    last_name text,
    emails jsonb NOT NULL DEFAULT '[]',
    phone_numbers jsonb NOT NULL DEFAULT '[]',
    company text,
    company_id uuid,
    job_title text,
    lead_source text COLLATE "C",
    tags text[] NOT NULL DEFAULT '{}',
    deal_value numeric(19,4),
    pipeline_stage_id uuid,
    contact_type text,
    address_line1 text,
    address_line2 text,
    city text,
    state text,
    postal_code text,
    country text,
    linkedin_url text,
    notes text,
    custom_fields jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    email_key text COLLATE "C"
        GENERATED ALWAYS AS (crmapi.email_key(emails)) STORED,
    phone_key text COLLATE "C"
        GENERATED ALWAYS AS (crmapi.phone_key(phone_numbers)) STORED,
    search text COLLATE "C" GENERATED ALWAYS AS (crmapi.fold(
        coalesce(first_name, '') || ' ' || coalesce(last_name, '') || chr(31)
        || coalesce(company, '') || chr(31)
        || coalesce(crmapi.list_text(emails, 'email'), '') || chr(31)
        || coalesce(crmapi.list_text(phone_numbers, 'phone_number'), '')))
        STORED,
    phone_digits text COLLATE "C" GENERATED ALWAYS AS (regexp_replace(
        crmapi.list_text(phone_numbers, 'phone_number'),
        '[^0-9' || chr(31) || ']', '', 'g')) STORED,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, company_id) REFERENCES crmapi.company
        ON DELETE SET NULL (company_id),
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage
        ON DELETE SET NULL (pipeline_stage_id)
);
CREATE INDEX contact_created ON crmapi.contact
    (workspace_id, created_at DESC, id DESC);
CREATE INDEX contact_bot ON crmapi.contact
    (workspace_id, bot_id, created_at DESC, id DESC);
CREATE INDEX contact_updated ON crmapi.contact (workspace_id, updated_at);
CREATE INDEX contact_lead_source ON crmapi.contact
    (workspace_id, lead_source, created_at DESC, id DESC)
    WHERE lead_source IS NOT NULL;
CREATE INDEX contact_stage ON crmapi.contact
    (workspace_id, pipeline_stage_id, created_at DESC, id DESC)
    WHERE pipeline_stage_id IS NOT NULL;
-- a company's contacts, and the sum of their deals without their rows
CREATE INDEX contact_company ON crmapi.contact (workspace_id, company_id)
    INCLUDE (deal_value) WHERE company_id IS NOT NULL;
-- by-email and upsert: the oldest wins
CREATE INDEX contact_email ON crmapi.contact
    (workspace_id, email_key, created_at, id) WHERE email_key IS NOT NULL;
CREATE INDEX contact_phone ON crmapi.contact
    (workspace_id, phone_key, created_at, id) WHERE phone_key IS NOT NULL;
CREATE INDEX contact_tags ON crmapi.contact USING gin (workspace_id, tags);
CREATE INDEX contact_search ON crmapi.contact USING gin
    (workspace_id, search gin_trgm_ops, phone_digits gin_trgm_ops);

-- ---- cards ------------------------------------------------------------------

CREATE TABLE crmapi.pipeline_card (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    pipeline_stage_id uuid NOT NULL,
    contact_id uuid,
    title text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 1000),
    description text,
    tags text[] NOT NULL DEFAULT '{}',
    order_index integer NOT NULL CHECK (order_index >= 0),
    archived_at timestamptz(3),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
CREATE INDEX pipeline_card_order ON crmapi.pipeline_card
    (workspace_id, pipeline_stage_id, order_index, created_at, id);
CREATE INDEX pipeline_card_contact ON crmapi.pipeline_card
    (workspace_id, contact_id) WHERE contact_id IS NOT NULL;

-- A card without a position goes to the end of its stage (contract 9.8). The
-- lock is taken first, and a volatile function's next statement sees what was
-- committed meanwhile.
CREATE FUNCTION crmapi.pipeline_card_position() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(
        'stage:' || NEW.workspace_id || NEW.pipeline_stage_id, 0));
    SELECT coalesce(max(c.order_index) + 1, 0) INTO NEW.order_index
    FROM crmapi.pipeline_card c
    WHERE c.workspace_id = NEW.workspace_id
      AND c.pipeline_stage_id = NEW.pipeline_stage_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER position BEFORE INSERT OR UPDATE OF order_index
    ON crmapi.pipeline_card FOR EACH ROW WHEN (NEW.order_index IS NULL)
    EXECUTE FUNCTION crmapi.pipeline_card_position();

-- ---- activities -------------------------------------------------------------

CREATE TABLE crmapi.activity (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    contact_id uuid,
    company_id uuid,
    activity_type text COLLATE "C" NOT NULL CHECK (activity_type IN
        ('note', 'call', 'meeting', 'video_call', 'task', 'todo',
         'reminder')),
    title text,
    description text,
    due_date timestamptz(3),
    duration_minutes numeric(19,4),
    completed_at timestamptz(3),
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    CHECK (contact_id IS NOT NULL OR company_id IS NOT NULL),
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id),
    FOREIGN KEY (workspace_id, company_id) REFERENCES crmapi.company
        ON DELETE SET NULL (company_id)
);
CREATE INDEX activity_contact ON crmapi.activity
    (workspace_id, contact_id, created_at DESC, id DESC)
    WHERE contact_id IS NOT NULL;
CREATE INDEX activity_company ON crmapi.activity
    (workspace_id, company_id, created_at DESC) WHERE company_id IS NOT NULL;

-- ---- conversations ----------------------------------------------------------

CREATE TABLE crmapi.conversation (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    contact_id uuid,
    type smallint NOT NULL CHECK (type BETWEEN 1 AND 5),
    email text,
    phone_number text,
    human text,
    human_takeover boolean NOT NULL DEFAULT false,
    assigned_to text COLLATE "C" CHECK (char_length(assigned_to) <= 255),
    assigned_at timestamptz(3),
    active boolean NOT NULL DEFAULT true,
    archived boolean,
    archived_at timestamptz(3),
    deleted boolean,
    deleted_at timestamptz(3),
    internal boolean NOT NULL DEFAULT false,
    internal_notes text,
    last_message text,
    last_message_at timestamptz(3),
    last_active_at timestamptz(3),
    sentiment_positive boolean,
    sentiment_score numeric(19,4) CHECK (sentiment_score BETWEEN -1 AND 1),
    sentiment_summary text,
    audio_url text,
    minutes numeric(19,4),
    visitor_id text COLLATE "C",
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
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at DESC, id DESC);
CREATE INDEX conversation_last_message ON crmapi.conversation
    (workspace_id, last_message_at DESC NULLS LAST, id DESC);
CREATE INDEX conversation_last_message_asc ON crmapi.conversation
    (workspace_id, last_message_at, id);
CREATE INDEX conversation_bot ON crmapi.conversation
    (workspace_id, bot_id, created_at DESC, id DESC);
CREATE INDEX conversation_contact ON crmapi.conversation
    (workspace_id, contact_id, created_at DESC, id DESC)
    WHERE contact_id IS NOT NULL;
CREATE INDEX conversation_visitor ON crmapi.conversation
    (workspace_id, visitor_id) WHERE visitor_id IS NOT NULL;
CREATE INDEX conversation_assigned ON crmapi.conversation
    (workspace_id, assigned_to) WHERE assigned_to IS NOT NULL;
CREATE INDEX conversation_type ON crmapi.conversation
    (workspace_id, type, created_at DESC, id DESC);
CREATE INDEX conversation_search ON crmapi.conversation
    USING gin (workspace_id, search gin_trgm_ops);

CREATE TABLE crmapi.message (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    role text COLLATE "C" NOT NULL,
    content text NOT NULL,
    content_type text,
    status text,
    tool_used text,
    tool_arguments jsonb,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES crmapi.conversation ON DELETE CASCADE
);
CREATE INDEX message_conversation ON crmapi.message
    (workspace_id, conversation_id, created_at, id);

-- ---- forms ------------------------------------------------------------------

CREATE TABLE crmapi.form (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    description text,
    standard_fields jsonb NOT NULL DEFAULT '{}',
    custom_fields jsonb NOT NULL DEFAULT '{}',
    survey_questions jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);
CREATE INDEX form_created ON crmapi.form
    (workspace_id, created_at DESC, id DESC);
CREATE INDEX form_bot ON crmapi.form (workspace_id, bot_id);

CREATE TABLE crmapi.submission (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    form_id uuid NOT NULL,
    contact_id uuid,
    custom_field_responses jsonb NOT NULL DEFAULT '{}',
    is_internal boolean NOT NULL DEFAULT false,
    submitted_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, form_id) REFERENCES crmapi.form
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
CREATE INDEX submission_form ON crmapi.submission
    (workspace_id, form_id, submitted_at DESC, id DESC);
CREATE INDEX submission_contact ON crmapi.submission
    (workspace_id, contact_id) WHERE contact_id IS NOT NULL;

-- ---- sequences --------------------------------------------------------------

CREATE TABLE crmapi.sequence_template (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    allowed_channels text[] NOT NULL DEFAULT '{}'
        CHECK (allowed_channels <@ '{email,voice,sms}'),
    stop_on_reply boolean NOT NULL DEFAULT true,
    goal_prompt text,
    pacing jsonb NOT NULL DEFAULT '{}',
    steps jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);

CREATE TABLE crmapi.suppression (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    email text,
    phone_number text,
    reason text,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    address_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(
        crmapi.fold(email),
        regexp_replace(phone_number, '(?!^\+)[^0-9]', '', 'g'))) STORED,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, address_key),
    CHECK ((email IS NULL) <> (phone_number IS NULL))
);

CREATE TABLE crmapi.sequence (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    name text NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'active'
        CHECK (status IN ('active', 'completed', 'stopped', 'failed')),
    bot_id uuid NOT NULL,
    template_id uuid NOT NULL,
    auto_approve boolean NOT NULL DEFAULT false,
    idempotency_key text COLLATE "C"
        CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, idempotency_key),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, template_id)
        REFERENCES crmapi.sequence_template
);
CREATE INDEX sequence_template_id ON crmapi.sequence
    (workspace_id, template_id);

-- contact_id refers to nothing: it stays as it was when the contact goes
-- (contract 9.6).
CREATE TABLE crmapi.enrollment (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    sequence_id uuid NOT NULL,
    contact_id uuid NOT NULL,
    contact_action text NOT NULL CHECK (contact_action IN
        ('created', 'updated')),
    status text COLLATE "C" NOT NULL CHECK (status IN
        ('generating', 'pending_approval', 'approved', 'running',
         'stopped_reply', 'stopped_unsubscribed', 'stopped_user', 'completed',
         'failed')),
    generation_error text,
    approved_at timestamptz(3),
    stop_reason text,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, sequence_id) REFERENCES crmapi.sequence
        ON DELETE CASCADE
);
CREATE INDEX enrollment_sequence ON crmapi.enrollment
    (workspace_id, sequence_id);
CREATE INDEX enrollment_live ON crmapi.enrollment (workspace_id, contact_id)
    WHERE status IN ('generating', 'pending_approval', 'approved', 'running');

CREATE TABLE crmapi.enrollment_step (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    enrollment_id uuid NOT NULL,
    sort_order integer NOT NULL CHECK (sort_order >= 1),
    channel text NOT NULL CHECK (channel IN ('email', 'voice', 'sms')),
    status text NOT NULL DEFAULT 'scheduled' CHECK (status IN
        ('scheduled', 'sending', 'sent', 'skipped', 'failed', 'cancelled')),
    scheduled_for timestamptz(3),
    sent_at timestamptz(3),
    to_identifier text,
    voice_objective text,
    voice_script text,
    email_subject text,
    email_body text,
    sms_body text,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, enrollment_id, sort_order),
    FOREIGN KEY (workspace_id, enrollment_id) REFERENCES crmapi.enrollment
        ON DELETE CASCADE
);

-- The transitions of contract 11.7, and the sequence's status after them
-- (11.9).
CREATE FUNCTION crmapi.enrollment_transition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    IF NOT (CASE OLD.status
        WHEN 'generating' THEN NEW.status IN ('pending_approval', 'approved',
            'failed', 'stopped_reply', 'stopped_user', 'stopped_unsubscribed')
        WHEN 'pending_approval' THEN NEW.status IN ('approved', 'failed',
            'stopped_reply', 'stopped_user', 'stopped_unsubscribed')
        WHEN 'approved' THEN NEW.status IN ('running', 'completed', 'failed',
            'stopped_reply', 'stopped_user', 'stopped_unsubscribed')
        WHEN 'running' THEN NEW.status IN ('completed', 'failed',
            'stopped_reply', 'stopped_user', 'stopped_unsubscribed')
        ELSE false END) THEN
        RAISE EXCEPTION 'enrollment: % does not become %', OLD.status,
            NEW.status USING ERRCODE = 'check_violation';
    END IF;
    UPDATE sequence SET status = CASE
        WHEN NEW.status = 'completed' THEN 'completed'
        WHEN NEW.status = 'failed' THEN 'failed'
        WHEN NEW.status LIKE 'stopped%' THEN 'stopped'
        ELSE 'active' END
    WHERE workspace_id = NEW.workspace_id AND id = NEW.sequence_id;
    NEW.updated_at = greatest(now_ms(),
                              OLD.updated_at + interval '1 millisecond');
    RETURN NEW;
END
$$;
CREATE TRIGGER transition BEFORE UPDATE OF status ON crmapi.enrollment
    FOR EACH ROW WHEN (NEW.status <> OLD.status)
    EXECUTE FUNCTION crmapi.enrollment_transition();

-- ---- jobs -------------------------------------------------------------------

CREATE TABLE crmapi.job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind text COLLATE "C" NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    state text COLLATE "C" NOT NULL DEFAULT 'ready'
        CHECK (state IN ('ready', 'leased', 'done', 'dead', 'cancelled')),
    run_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    leased_by text,
    leased_until timestamptz,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    finished_at timestamptz(3)
);
-- claims take the first of these; only work that waits is in the index
CREATE INDEX job_ready ON crmapi.job (run_at, id) WHERE state = 'ready';
CREATE INDEX job_leased ON crmapi.job (leased_until) WHERE state = 'leased';
CREATE INDEX job_workspace ON crmapi.job (workspace_id);

CREATE FUNCTION crmapi.job_notify() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER notify AFTER INSERT ON crmapi.job
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.job_notify();

-- ---- deleting contacts and companies (contract 9.6) -------------------------

CREATE FUNCTION crmapi.contact_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    DELETE FROM activity WHERE workspace_id = OLD.workspace_id
        AND contact_id = OLD.id AND company_id IS NULL;
    WITH stopped AS (
        UPDATE enrollment SET status = 'stopped_user',
            stop_reason = 'contact_deleted'
        WHERE workspace_id = OLD.workspace_id AND contact_id = OLD.id
          AND status IN ('generating', 'pending_approval', 'approved',
                         'running')
        RETURNING id)
    UPDATE enrollment_step s SET status = 'cancelled' FROM stopped
    WHERE s.workspace_id = OLD.workspace_id AND s.enrollment_id = stopped.id
      AND s.status = 'scheduled';
    RETURN OLD;
END
$$;
CREATE TRIGGER let_go BEFORE DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_delete();

CREATE FUNCTION crmapi.company_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    DELETE FROM activity WHERE workspace_id = OLD.workspace_id
        AND company_id = OLD.id AND contact_id IS NULL;
    RETURN OLD;
END
$$;
CREATE TRIGGER let_go BEFORE DELETE ON crmapi.company
    FOR EACH ROW EXECUTE FUNCTION crmapi.company_delete();

-- ---- totals -----------------------------------------------------------------

-- n summed over the slots is the number of rows: of the whole workspace where
-- parent is all zeros, else of the agent parent. Each backend adds in a slot
-- of its own, so that writers do not wait for each other.
CREATE TABLE crmapi.counter (
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind text COLLATE "C" NOT NULL,
    parent uuid NOT NULL,
    slot integer NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (workspace_id, kind, parent, slot)
) WITH (fillfactor = 50);

-- Add DELTA rows of KIND; an import has a slot of its own.
CREATE FUNCTION crmapi.count(workspace uuid, kind text, parent uuid,
                             delta bigint) RETURNS void
    LANGUAGE sql AS $$
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT workspace, kind, parent, coalesce(
        nullif(current_setting('crmapi.counter_slot', true), '')::integer,
        pg_backend_pid() % 16), delta
    WHERE delta <> 0
      -- a workspace that is being deleted needs no counters
      AND EXISTS (SELECT FROM crmapi.workspace w WHERE w.id = workspace)
    ON CONFLICT ON CONSTRAINT counter_pkey
    DO UPDATE SET n = c.n + excluded.n
$$;

CREATE FUNCTION crmapi.count_owned() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    PERFORM count(c.workspace_id, TG_TABLE_NAME, c.parent,
                  CASE TG_OP WHEN 'INSERT' THEN c.n ELSE -c.n END)
    FROM (SELECT workspace_id, bot_id AS parent, count(*) AS n
          FROM changed GROUP BY 1, 2
          UNION ALL
          SELECT workspace_id, '00000000-0000-0000-0000-000000000000',
                 count(*) FROM changed GROUP BY 1
          ORDER BY 1, 2) c;
    RETURN NULL;
END
$$;
CREATE FUNCTION crmapi.count_conversation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    PERFORM count(c.workspace_id, 'conversation', c.parent,
                  CASE TG_OP WHEN 'INSERT' THEN c.n ELSE -c.n END)
    FROM (SELECT workspace_id, bot_id AS parent, count(*) AS n
          FROM changed WHERE deleted IS NOT TRUE GROUP BY 1, 2
          UNION ALL
          SELECT workspace_id, '00000000-0000-0000-0000-000000000000',
                 count(*) FROM changed WHERE deleted IS NOT TRUE GROUP BY 1
          ORDER BY 1, 2) c;
    RETURN NULL;
END
$$;
CREATE FUNCTION crmapi.count_pipeline_card() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    PERFORM count(c.workspace_id, 'pipeline_card',
                  '00000000-0000-0000-0000-000000000000',
                  CASE TG_OP WHEN 'INSERT' THEN c.n ELSE -c.n END)
    FROM (SELECT workspace_id, count(*) AS n FROM changed
          WHERE archived_at IS NULL GROUP BY 1 ORDER BY 1) c;
    RETURN NULL;
END
$$;
-- What an UPDATE does to the totals, row by row: it is rare.
CREATE FUNCTION crmapi.recount_conversation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
DECLARE
    delta bigint := CASE WHEN NEW.deleted IS TRUE THEN -1 ELSE 1 END;
BEGIN
    PERFORM count(NEW.workspace_id, 'conversation',
                  '00000000-0000-0000-0000-000000000000', delta);
    PERFORM count(NEW.workspace_id, 'conversation', NEW.bot_id, delta);
    RETURN NULL;
END
$$;
CREATE FUNCTION crmapi.recount_pipeline_card() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = crmapi, pg_temp AS $$
BEGIN
    PERFORM count(NEW.workspace_id, 'pipeline_card',
                  '00000000-0000-0000-0000-000000000000',
                  CASE WHEN NEW.archived_at IS NULL THEN 1 ELSE -1 END);
    RETURN NULL;
END
$$;
CREATE TRIGGER recount AFTER UPDATE OF deleted ON crmapi.conversation
    FOR EACH ROW
    WHEN ((OLD.deleted IS TRUE) <> (NEW.deleted IS TRUE))
    EXECUTE FUNCTION crmapi.recount_conversation();
CREATE TRIGGER recount AFTER UPDATE OF archived_at ON crmapi.pipeline_card
    FOR EACH ROW
    WHEN ((OLD.archived_at IS NULL) <> (NEW.archived_at IS NULL))
    EXECUTE FUNCTION crmapi.recount_pipeline_card();

DO $$
DECLARE
    spec text[];
BEGIN
    FOREACH spec SLICE 1 IN ARRAY ARRAY[
        ['contact', 'count_owned'], ['company', 'count_owned'],
        ['conversation', 'count_conversation'],
        ['pipeline_card', 'count_pipeline_card']] LOOP
        EXECUTE format('CREATE TRIGGER count_new AFTER INSERT ON crmapi.%I
            REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
            EXECUTE FUNCTION crmapi.%I()', spec[1], spec[2]);
        EXECUTE format('CREATE TRIGGER count_gone AFTER DELETE ON crmapi.%I
            REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
            EXECUTE FUNCTION crmapi.%I()', spec[1], spec[2]);
    END LOOP;
END
$$;

-- Delete a workspace with all that is in it, the referring before what it
-- refers to.
CREATE FUNCTION crmapi.workspace_delete(target uuid) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['job', 'enrollment_step', 'enrollment',
        'sequence', 'sequence_template', 'suppression', 'submission', 'form',
        'message', 'conversation', 'activity', 'pipeline_card', 'contact',
        'company', 'pipeline_stage', 'pipeline', 'agent', 'api_key',
        'counter'] LOOP
        EXECUTE format('DELETE FROM crmapi.%I WHERE workspace_id = $1',
                       table_name) USING target;
    END LOOP;
    DELETE FROM crmapi.workspace WHERE id = target;
END
$$;

-- ---- rights -------------------------------------------------------------------

GRANT USAGE ON SCHEMA crmapi TO crmapi_api, crmapi_worker;
GRANT SELECT ON crmapi.live_key, crmapi.agent, crmapi.pipeline,
    crmapi.pipeline_stage, crmapi.company, crmapi.contact,
    crmapi.pipeline_card, crmapi.activity, crmapi.conversation,
    crmapi.message, crmapi.form, crmapi.submission, crmapi.counter,
    crmapi.workspace, crmapi.sequence_template, crmapi.sequence,
    crmapi.enrollment, crmapi.enrollment_step, crmapi.migration
    TO crmapi_api, crmapi_worker;
GRANT INSERT, UPDATE, DELETE ON crmapi.contact, crmapi.company,
    crmapi.pipeline_card TO crmapi_api;
GRANT INSERT ON crmapi.activity, crmapi.sequence, crmapi.enrollment,
    crmapi.job TO crmapi_api;
GRANT UPDATE (human_takeover, assigned_to, assigned_at, active, archived,
    archived_at, deleted, deleted_at, internal_notes)
    ON crmapi.conversation TO crmapi_api;
GRANT SELECT (id, workspace_id), UPDATE (last_used_at)
    ON crmapi.api_key TO crmapi_api;
