-- SPDX-License-Identifier: Apache-2.0
-- 0004-sequences.sql: templates, sequences, enrollments, suppression, jobs

-- ---- templates --------------------------------------------------------------

CREATE TABLE crmapi.sequence_template (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid,                -- the sender, unless a start names another
    name crmapi.title NOT NULL,
    allowed_channels text[] COLLATE "C" NOT NULL DEFAULT '{}'
        CHECK (allowed_channels <@ '{email,voice,sms}'),
    stop_on_reply boolean NOT NULL DEFAULT true,
    goal_prompt crmapi.prose,
    pacing crmapi.object NOT NULL DEFAULT '{}',
    steps crmapi.list NOT NULL DEFAULT '[]',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);

-- ---- sequences and enrollments ----------------------------------------------

CREATE TABLE crmapi.sequence (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.line NOT NULL,
    status crmapi.line NOT NULL DEFAULT 'active'
        CHECK (status IN ('active', 'completed', 'stopped', 'failed')),
    bot_id uuid NOT NULL,
    template_id uuid NOT NULL,
    auto_approve boolean NOT NULL DEFAULT false,
    idempotency_key text COLLATE "C"
        CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    -- one for ever (contract 11.2); nulls are many
    UNIQUE (workspace_id, idempotency_key),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, template_id)
        REFERENCES crmapi.sequence_template
);

-- contact_id refers to nothing: it stays as it was when the contact goes
-- (contract 9.6).
CREATE TABLE crmapi.enrollment (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    sequence_id uuid NOT NULL,
    contact_id uuid NOT NULL,
    contact_action crmapi.line NOT NULL
        CHECK (contact_action IN ('created', 'updated')),
    status crmapi.line NOT NULL DEFAULT 'generating' CHECK (status IN
        ('generating', 'pending_approval', 'approved', 'running',
         'stopped_reply', 'stopped_unsubscribed', 'stopped_user',
         'completed', 'failed')),
    generation_error crmapi.prose,
    approved_at timestamptz(3),
    stop_reason crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    -- each start makes one sequence with one enrollment (contract 11.1)
    UNIQUE (workspace_id, sequence_id),
    FOREIGN KEY (workspace_id, sequence_id) REFERENCES crmapi.sequence
        ON DELETE CASCADE,
    -- the specification: set when status is failed
    CHECK (status <> 'failed' OR generation_error IS NOT NULL)
);
-- what a reply, a suppression or the contact's end stops
CREATE INDEX enrollment_live ON crmapi.enrollment (workspace_id, contact_id)
    WHERE status IN ('generating', 'pending_approval', 'approved', 'running');

CREATE TABLE crmapi.enrollment_step (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    enrollment_id uuid NOT NULL,
    sort_order integer NOT NULL CHECK (sort_order >= 1),
    channel crmapi.line NOT NULL
        CHECK (channel IN ('email', 'voice', 'sms')),
    status crmapi.line NOT NULL DEFAULT 'scheduled' CHECK (status IN
        ('scheduled', 'sending', 'sent', 'skipped', 'failed', 'cancelled')),
    scheduled_for timestamptz(3),
    sent_at timestamptz(3),
    to_identifier crmapi.line,
    voice_objective crmapi.prose,
    voice_script crmapi.prose,
    email_subject crmapi.line,
    email_body crmapi.prose,
    sms_body crmapi.prose,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, enrollment_id, sort_order),
    FOREIGN KEY (workspace_id, enrollment_id) REFERENCES crmapi.enrollment
        ON DELETE CASCADE
);

-- The transitions of contract 11.7, and the sequence's status after them
-- (11.9).
CREATE FUNCTION crmapi.enrollment_moves() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
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
        RAISE EXCEPTION 'an enrollment does not go from % to %', OLD.status,
            NEW.status USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status NOT IN ('pending_approval', 'approved', 'running') THEN
        UPDATE crmapi.sequence s SET status = CASE
            WHEN NEW.status IN ('completed', 'failed') THEN NEW.status
            ELSE 'stopped' END
        WHERE s.workspace_id = NEW.workspace_id AND s.id = NEW.sequence_id;
    END IF;
    NEW.updated_at := greatest(NEW.updated_at, crmapi.now_ms(),
                               OLD.updated_at + interval '1 millisecond');
    RETURN NEW;
END
$$;
CREATE TRIGGER moves BEFORE UPDATE OF status ON crmapi.enrollment
    FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status)
    EXECUTE FUNCTION crmapi.enrollment_moves();

CREATE FUNCTION crmapi.enrollment_starts() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an enrollment begins as generating, not as %', NEW.status
        USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER starts BEFORE INSERT ON crmapi.enrollment
    FOR EACH ROW WHEN (NEW.status <> 'generating')
    EXECUTE FUNCTION crmapi.enrollment_starts();

-- ---- suppression ------------------------------------------------------------

-- Addresses that are never written to. kind and address are what contacts are
-- matched by: address = ANY (crmapi.email_keys(emails)), or phone_keys().
CREATE TABLE crmapi.suppression (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    email crmapi.line,
    phone_number crmapi.line CHECK (phone_number ~ '[0-9]'),
    reason crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    kind text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (CASE WHEN email IS NOT NULL THEN 'email' ELSE 'phone' END) STORED,
    address text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (coalesce(crmapi.fold(email), crmapi.phone_fold(phone_number)))
        STORED,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, kind, address),
    CHECK ((email IS NULL) <> (phone_number IS NULL))
);

-- ---- jobs -------------------------------------------------------------------

-- Work for the worker, written in the transaction that causes it. A lease is
-- leased_by together with attempts, which every claim raises: a result counts
-- only while both are as they were (design 7). payload names what it is about;
-- enrollment_id there ends the job with its enrollment.
CREATE TABLE crmapi.job (
    id bigint GENERATED ALWAYS AS IDENTITY,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind crmapi.line NOT NULL,
    payload crmapi.object NOT NULL DEFAULT '{}',
    state crmapi.line NOT NULL DEFAULT 'ready'
        CHECK (state IN ('ready', 'leased', 'done', 'dead', 'cancelled')),
    run_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    last_error crmapi.prose,
    leased_by crmapi.line,
    leased_until timestamptz,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    finished_at timestamptz(3),
    PRIMARY KEY (workspace_id, id),
    CHECK ((state = 'leased')
           = (leased_by IS NOT NULL AND leased_until IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
-- Claims take the first of all workspaces; only what waits is in the index,
-- so that it stays small however much was done.
CREATE INDEX job_ready ON crmapi.job (run_at, id) WHERE state = 'ready';
-- leases that have run out
CREATE INDEX job_leased ON crmapi.job (leased_until) WHERE state = 'leased';
CREATE INDEX job_enrollment ON crmapi.job
    (workspace_id, (payload ->> 'enrollment_id')) WHERE state = 'ready';

-- Wakes workers; they look by themselves as well.
CREATE FUNCTION crmapi.job_notify() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_job', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER notify AFTER INSERT ON crmapi.job
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.job_notify();

-- ---- what goes with a contact (contract 9.6) --------------------------------

-- Activities and cards as for companies (0002). Live enrollments stop, and
-- what has not been sent never is. Their locks are taken in the order
-- enrollment, step, job, as the worker's. A step that is being sent and a job
-- that is leased are the worker's: it looks at the enrollment again under its
-- lock (contract 11.10).
CREATE FUNCTION crmapi.contact_leaves() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stopped uuid[];
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

    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = OLD.workspace_id AND e.contact_id = OLD.id
      AND e.status IN ('generating', 'pending_approval', 'approved', 'running')
    ORDER BY e.id FOR UPDATE;
    WITH moved AS (
        UPDATE crmapi.enrollment e SET status = 'stopped_user',
            stop_reason = 'contact_deleted'
        WHERE e.workspace_id = OLD.workspace_id AND e.contact_id = OLD.id
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
        RETURNING e.id)
    SELECT array_agg(m.id) INTO stopped FROM moved m;
    IF stopped IS NOT NULL THEN
        UPDATE crmapi.enrollment_step s SET status = 'cancelled'
        WHERE s.workspace_id = OLD.workspace_id
          AND s.enrollment_id = ANY (stopped) AND s.status = 'scheduled';
        UPDATE crmapi.job j SET state = 'cancelled',
            finished_at = crmapi.now_ms()
        WHERE j.workspace_id = OLD.workspace_id AND j.state = 'ready'
          AND j.payload ->> 'enrollment_id' = ANY (stopped::text[]);
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER leaves BEFORE DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_leaves();

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sequence_template', 'sequence', 'enrollment',
        'enrollment_step', 'suppression', 'job'] LOOP
        EXECUTE format('CREATE TRIGGER id_fixed
            BEFORE UPDATE OF workspace_id, id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
            EXECUTE FUNCTION crmapi.refuse_change(''an id'')', name);
        EXECUTE format('GRANT SELECT ON crmapi.%I TO crmapi_worker', name);
    END LOOP;
END
$$;
GRANT SELECT ON crmapi.sequence_template, crmapi.sequence, crmapi.enrollment,
    crmapi.enrollment_step TO crmapi_api;
GRANT INSERT ON crmapi.sequence, crmapi.enrollment, crmapi.job TO crmapi_api;
GRANT UPDATE (status, generation_error, approved_at, stop_reason, updated_at)
    ON crmapi.enrollment TO crmapi_worker;
GRANT INSERT, UPDATE ON crmapi.enrollment_step TO crmapi_worker;
GRANT INSERT, DELETE ON crmapi.suppression TO crmapi_worker;
GRANT INSERT, UPDATE, DELETE ON crmapi.job TO crmapi_worker;
