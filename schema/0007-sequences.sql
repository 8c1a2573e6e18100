-- SPDX-License-Identifier: Apache-2.0
-- 0007-sequences.sql: templates, sequences, enrollments, steps, suppression
--
-- Only functions change enrollments and steps: those of 0009-enrollments.sql,
-- 0010-contacts.sql and 0011-steps.sql.

-- ---- templates -------------------------------------------------------------

CREATE TABLE crmapi.sequence_template (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid,                -- the sender, unless the start names another
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
-- A workspace has some dozens at most: the filter bot_id scans them all.
CREATE INDEX sequence_template_created ON crmapi.sequence_template
    (workspace_id, created_at, id);
CREATE INDEX sequence_template_updated ON crmapi.sequence_template
    (workspace_id, updated_at, id);

-- ---- sequences and enrollments ---------------------------------------------

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
    -- a key is used once, for ever (contract 11.2); nulls do not collide
    UNIQUE (workspace_id, idempotency_key),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, template_id)
        REFERENCES crmapi.sequence_template
);

-- A contact in a sequence. contact_id is no foreign key: it stays when the
-- contact is deleted (contract 9.6). pacing says when steps may be sent, as
-- the template had it at generation (contract 11.8).
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
    pacing crmapi.object NOT NULL DEFAULT '{}',
    -- the sequence's, for the filter: enrollment_template() sets it
    template_id uuid,
    PRIMARY KEY (workspace_id, id),
    -- a start makes one sequence with one enrollment (contract 11.1)
    UNIQUE (workspace_id, sequence_id),
    FOREIGN KEY (workspace_id, sequence_id) REFERENCES crmapi.sequence
        ON DELETE CASCADE,
    -- set when status is failed (specification)
    CHECK (status <> 'failed' OR generation_error IS NOT NULL)
);
-- the live enrollments of a contact, which a reply, a suppression or the
-- contact's deletion stops
CREATE INDEX enrollment_live ON crmapi.enrollment (workspace_id, contact_id)
    WHERE status IN ('generating', 'pending_approval', 'approved', 'running');

-- the list, and its filters; no update is HOT
CREATE INDEX enrollment_created ON crmapi.enrollment
    (workspace_id, created_at, id);
CREATE INDEX enrollment_updated ON crmapi.enrollment
    (workspace_id, updated_at, id);
CREATE INDEX enrollment_status ON crmapi.enrollment
    (workspace_id, status, created_at, id);
CREATE INDEX enrollment_contact ON crmapi.enrollment
    (workspace_id, contact_id, created_at, id);
CREATE INDEX enrollment_by_template ON crmapi.enrollment
    (workspace_id, template_id, created_at, id);

-- Set template_id of a new enrollment. Its sequence never changes; the template of
-- that does when another one is deleted, and crmapictl changes both. A trigger
-- function.
CREATE FUNCTION crmapi.enrollment_template() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    SELECT q.template_id INTO NEW.template_id FROM crmapi.sequence q
    WHERE q.workspace_id = NEW.workspace_id AND q.id = NEW.sequence_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER template BEFORE INSERT ON crmapi.enrollment
    FOR EACH ROW EXECUTE FUNCTION crmapi.enrollment_template();

-- A message of an enrollment. delay_seconds counts from the step before.
--
-- A mail of a step is known by three values (contract 18.4): its Message-ID,
-- which is random; the id that a relay gave it (provider_id); and its reply
-- token, which is in a header and, if the site wants it, in the addresses that
-- replies and bounces go to. None of them can be computed from another one, from
-- an id of the API or from a link.
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
    delay_seconds bigint NOT NULL DEFAULT 0
        CHECK (delay_seconds >= 0),
    provider_id crmapi.line,
    error crmapi.prose,
    -- the message's names: both are NULL until the step is handed over
    message_id crmapi.line,             -- with brackets
    reply_id text COLLATE "C",
    counted date,                       -- the last day of its agent's send_count
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, enrollment_id, sort_order),
    FOREIGN KEY (workspace_id, enrollment_id) REFERENCES crmapi.enrollment
        ON DELETE CASCADE
);
-- mails that answer or return a step's
CREATE INDEX enrollment_step_message ON crmapi.enrollment_step
    (workspace_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX enrollment_step_provider ON crmapi.enrollment_step
    (workspace_id, provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX enrollment_step_reply ON crmapi.enrollment_step
    (workspace_id, reply_id) WHERE reply_id IS NOT NULL;

-- ---- the states of an enrollment (contract 11.7) ---------------------------

-- Whether an enrollment with STATUS has not ended. Internal.
CREATE FUNCTION crmapi.enrollment_is_live(status text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN status IN ('generating', 'pending_approval', 'approved',
                      'running');

-- Whether a row of WORKSPACE is one of a dump: it is being restored, and the
-- session's login owns the schema. Internal.
CREATE FUNCTION crmapi.is_restored(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN current_setting('crmapi.dump_workspace', true) = workspace::text
        AND pg_has_role(session_user, (SELECT n.nspowner FROM pg_namespace n
                                       WHERE n.nspname = 'crmapi'), 'MEMBER');
END
$$;

-- Refuse a transition that the contract does not have, and set the sequence's
-- status (11.9) and updated_at. A row of a dump may skip states. Locks: enrollment,
-- sequence. A trigger function.
CREATE FUNCTION crmapi.enrollment_transition() RETURNS trigger
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
        ELSE false END) AND crmapi.is_restored(NEW.workspace_id) IS NOT TRUE THEN
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
CREATE TRIGGER transition BEFORE UPDATE OF status ON crmapi.enrollment
    FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status)
    EXECUTE FUNCTION crmapi.enrollment_transition();

-- Refuse a new enrollment in another state than the first, unless it is a row of
-- a dump. A trigger function.
CREATE FUNCTION crmapi.enrollment_begin() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF crmapi.is_restored(NEW.workspace_id) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'an enrollment begins as generating, not as %', NEW.status
        USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER begin BEFORE INSERT ON crmapi.enrollment
    FOR EACH ROW WHEN (NEW.status <> 'generating')
    EXECUTE FUNCTION crmapi.enrollment_begin();

-- ---- suppression -----------------------------------------------------------

-- Addresses that must not be written to. address is the key of the e-mail
-- address or phone number; it is compared with crmapi.email_keys() or
-- phone_keys() of a contact.
CREATE TABLE crmapi.suppression (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    email crmapi.line,
    phone_number crmapi.line
        CHECK (crmapi.digits(crmapi.phone_plain(phone_number)) <> ''),
    reason crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    kind text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (CASE WHEN email IS NOT NULL THEN 'email' ELSE 'phone' END) STORED,
    address text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (coalesce(crmapi.email_key(email), crmapi.phone_key(phone_number)))
        STORED,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, address, kind),
    CHECK ((email IS NULL) <> (phone_number IS NULL))
);
CREATE INDEX suppression_created ON crmapi.suppression
    (workspace_id, created_at, id);
CREATE INDEX suppression_updated ON crmapi.suppression
    (workspace_id, updated_at, id);

-- The key of the hashes below; the first erasure of a person makes it.
CREATE TABLE crmapi.erase_key (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);

-- Suppressed addresses of people who were erased (contract 14.4): only whoever has
-- the address finds it here.
CREATE TABLE crmapi.erased_address (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('email', 'phone')),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    reason crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, kind, hash)
);

-- The hash of ADDRESS, of the kind KIND as email_key() or phone_key() has it, by KEY.
-- Internal.
CREATE FUNCTION crmapi.address_mac(kind text, address text, key bytea)
    RETURNS bytea
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN crmapi.mac(convert_to(kind || ':' || address, 'UTF8'), key);

-- The hash of ADDRESS, an address of the kind KIND as email_key() or phone_key()
-- has it; NULL if nobody was erased in WORKSPACE. Internal.
CREATE FUNCTION crmapi.erased_hash(workspace uuid, kind text, address text)
    RETURNS bytea
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT crmapi.address_mac(erased_hash.kind, erased_hash.address,
                                      k.key)
            FROM crmapi.erase_key k
            WHERE k.workspace_id = erased_hash.workspace);
END
$$;

-- What forbids to write to ADDRESS, of the kind KIND, as email_key() or phone_key()
-- has it: no row, or one with the reason of its suppression. Internal.
CREATE FUNCTION crmapi.suppressed_why(workspace uuid, kind text, address text)
    RETURNS TABLE (reason text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT s.reason::text FROM crmapi.suppression s
    WHERE s.workspace_id = suppressed_why.workspace
      AND s.kind = suppressed_why.kind AND s.address = suppressed_why.address;
    IF FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT e.reason::text FROM crmapi.erased_address e
    WHERE e.workspace_id = suppressed_why.workspace
      AND e.kind = suppressed_why.kind
      AND e.hash = crmapi.erased_hash(suppressed_why.workspace,
              suppressed_why.kind, suppressed_why.address);
END
$$;

-- Whether ADDRESS, which CHANNEL uses, is suppressed. For the API and the worker.
CREATE FUNCTION crmapi.is_suppressed(workspace uuid, channel text,
                                     address text) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.suppressed_why(workspace,
        CASE channel WHEN 'email' THEN 'email' ELSE 'phone' END,
        CASE channel WHEN 'email' THEN crmapi.email_key(address)
                     ELSE crmapi.phone_key(address) END));
END
$$;

-- Why a contact with the primary addresses EMAIL and PHONE (keys, may be null) is
-- not written to by e-mail or by phone: the API's field "suppressed". For the API
-- and the worker.
CREATE FUNCTION crmapi.contact_suppressed(workspace uuid, email text,
                                          phone text) RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_object(ARRAY(SELECT ARRAY[
            CASE s.kind WHEN 'email' THEN 'email' ELSE 'sms' END,
            coalesce(s.reason, 'suppressed')]
        FROM crmapi.suppression s
        WHERE s.workspace_id = contact_suppressed.workspace
          AND s.address = ANY (ARRAY[contact_suppressed.email,
                                     contact_suppressed.phone])
          AND s.address = CASE s.kind WHEN 'email'
              THEN contact_suppressed.email ELSE contact_suppressed.phone END));
END
$$;

-- Allow EMAIL or PHONE (the other is null) to be written to again; with ONLY, if
-- that is the reason. Returns how many suppressions there were: 1 or 0. For the
-- API and the worker.
CREATE FUNCTION crmapi.suppress_lift(workspace uuid, email text, phone text,
                                     "only" text DEFAULT NULL) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sort CONSTANT text := CASE WHEN email IS NOT NULL THEN 'email' ELSE 'phone' END;
    key CONSTANT text := coalesce(crmapi.email_key(email), crmapi.phone_key(phone));
    n bigint;
BEGIN
    DELETE FROM crmapi.suppression s
    WHERE s.workspace_id = suppress_lift.workspace
      AND s.kind = sort AND s.address = key
      AND coalesce(s.reason = suppress_lift.only,
                   suppress_lift.only IS NULL);
    GET DIAGNOSTICS n = ROW_COUNT;
    DELETE FROM crmapi.erased_address e
    WHERE e.workspace_id = suppress_lift.workspace AND e.kind = sort
      AND e.hash = crmapi.erased_hash(suppress_lift.workspace, sort, key)
      AND coalesce(e.reason = suppress_lift.only,
                   suppress_lift.only IS NULL);
    RETURN CASE WHEN FOUND THEN 1 ELSE n END;
END
$$;

-- ---- people and limits -----------------------------------------------------

-- The persons who review what a sequence is about to send.
CREATE TABLE crmapi.admin (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    email crmapi.title NOT NULL,
    name crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    email_key text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (crmapi.email_key(email)) STORED,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email_key)
);

-- How many steps an agent has sent, or tried to, on a day of its workspace's time
-- zone. A step counts once on a day.
CREATE TABLE crmapi.send_count (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    day date NOT NULL,
    n integer NOT NULL,
    PRIMARY KEY (workspace_id, bot_id, day)
) WITH (fillfactor = 50);

-- ---- ids -------------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sequence_template', 'sequence', 'enrollment',
        'enrollment_step', 'suppression'] LOOP
        EXECUTE format('CREATE TRIGGER id_fixed
            BEFORE UPDATE OF workspace_id, id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
            EXECUTE FUNCTION crmapi.refuse_change(''an id'')', name);
    END LOOP;
END
$$;
