-- SPDX-License-Identifier: Apache-2.0
-- 0013-events.sql: the events of a workspace, for GET /events (contract 13.4) and
-- for webhooks (contract 12)
--
-- Triggers write an event in the transaction of the change, if the workspace's
-- feed wants its type. An event has the text of the row's columns, from which
-- programs make the same JSON as from the row itself.
--
-- Order. An event's id begins with a number from a sequence that is taken while
-- the row is locked. So the events of a row have the order of its changes, and
-- so have those of rows that refer to each other. But the transaction with the
-- lower number may commit later. Therefore a transaction takes a number as its
-- ticket before those of its events, and holds an advisory lock with it until
-- it ends. Readers stop at the lowest ticket: see event_end().

-- ---- tables ----------------------------------------------------------------

-- Which events a workspace wants. Few workspaces have a row; each write looks.
CREATE TABLE crmapi.event_feed (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    log boolean NOT NULL,               -- all types, and GET /events has them
    types text[] COLLATE "C" NOT NULL,  -- those that endpoints want
    -- events up to this id were trimmed, or are from before the log was on
    since uuid NOT NULL
);

CREATE SEQUENCE crmapi.event_number
    MAXVALUE 1152921504606846975;       -- an id has 60 bits of it

-- An event. It has fields, {"column": "its text", ...}, until the first attempt of
-- a webhook makes body of them: every attempt sends the same bytes. The workspace
-- is no foreign key, and there is no CHECK: each is a part of what an INSERT
-- costs, because a table's CHECKs are parsed anew for each. Its trigger zz_event does
-- what a cascade would do; the triggers below insert fields, and webhook_body()
-- replaces them.
CREATE TABLE crmapi.event (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    type crmapi.line NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    body text COLLATE "C",
    fields json,
    -- The header traceparent of the request that caused it, if it had a valid one.
    -- Webhooks send its trace id; GET /events does not show it (contract 15.4).
    trace text COLLATE "C"
        DEFAULT nullif(current_setting('crmapi.trace', true), ''),
    -- The row that it is about, and the one that this belonged to then: the contact,
    -- or the conversation of a message. NULL if no person can be meant, and in what
    -- is told about a message, which is never erased without its conversation.
    row_id uuid,
    owner_id uuid,
    PRIMARY KEY (workspace_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
-- events that upkeep deletes
CREATE INDEX event_old ON crmapi.event (created_at);
-- events about a person who is erased
CREATE INDEX event_row ON crmapi.event (workspace_id, row_id)
    WHERE row_id IS NOT NULL;
CREATE INDEX event_owner ON crmapi.event (workspace_id, owner_id)
    WHERE owner_id IS NOT NULL;

-- ---- feeds -----------------------------------------------------------------

-- The id of an event with the number N: a UUID of version 8 (RFC 9562). Its
-- first 60 bits are N, 62 bits are random.
CREATE FUNCTION crmapi.event_id(n bigint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN (overlay(lpad(to_hex(n), 15, '0') PLACING '8' FROM 13 FOR 0)
        || right(gen_random_uuid()::text, 17))::uuid;

-- Make the feed of WORKSPACE what its endpoints want, and turn its log on or
-- off unless LOG is null. Locks: workspace, feed. Internal.
CREATE FUNCTION crmapi.event_feed_make(workspace uuid, log boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    wanted text[];
    mark uuid;
BEGIN
    PERFORM FROM crmapi.workspace w WHERE w.id = event_feed_make.workspace
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;     -- it is being deleted
    END IF;
    wanted := ARRAY(SELECT DISTINCT unnest(e.events)
                    FROM crmapi.webhook_endpoint e
                    WHERE e.workspace_id = event_feed_make.workspace
                      AND e.disabled_at IS NULL
                    ORDER BY 1);
    mark := crmapi.event_id(crmapi.event_next(workspace));
    INSERT INTO crmapi.event_feed AS f (workspace_id, log, types, since)
    VALUES (event_feed_make.workspace, coalesce(event_feed_make.log, false),
            wanted, mark)
    ON CONFLICT ON CONSTRAINT event_feed_pkey DO UPDATE
    SET log = coalesce(event_feed_make.log, f.log), types = excluded.types,
        since = CASE WHEN f.log THEN f.since ELSE excluded.since END;
    DELETE FROM crmapi.event_feed f
    WHERE f.workspace_id = event_feed_make.workspace AND NOT f.log
      AND f.types = '{}';
END
$$;

-- Turn the log of WORKSPACE on or off. Cursors from before it was on are gone.
-- For the owner.
CREATE FUNCTION crmapi.event_log(workspace uuid, log boolean) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM crmapi.event_feed_make(workspace, log);
END
$$;

-- Wait for the transactions that may have written without seeing a feed that
-- was committed before this call: in a distributed database those on the server of
-- WORKSPACE. For the owner.
CREATE FUNCTION crmapi.event_log_wait(workspace uuid) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    writers text[] := ARRAY(
        SELECT l.virtualtransaction FROM pg_locks l
        JOIN pg_class c ON c.oid = l.relation
        WHERE l.database = (SELECT d.oid FROM pg_database d
                            WHERE d.datname = current_database())
          AND c.relnamespace = 'crmapi'::regnamespace
          AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid());
BEGIN
    WHILE EXISTS (SELECT FROM pg_locks l
                  WHERE l.virtualtransaction = ANY (writers)) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;

-- Follow a change of an endpoint. A trigger function.
CREATE FUNCTION crmapi.event_feed_follow() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.event_feed_make(coalesce(NEW.workspace_id,
                                            OLD.workspace_id), NULL);
    RETURN NULL;
END
$$;
-- Before a workspace is deleted: its feed goes, so that the cascade writes no
-- events. A trigger function.
CREATE FUNCTION crmapi.event_forget() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM crmapi.event_feed f WHERE f.workspace_id = OLD.id;
    RETURN OLD;
END
$$;
CREATE TRIGGER event_feed BEFORE DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.event_forget();
CREATE TRIGGER zz_event AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_forget('event');

-- ---- writing ---------------------------------------------------------------
-- What a trigger costs is mostly what PostgreSQL prepares anew for each
-- transaction: every statement and expression of a function, and in them every call
-- of a function. So a trigger has two statements, one that asks the feed and one
-- that inserts, and as few expressions as possible; the functions that they share
-- are expressions in SQL, which the planner inlines. Triggers run with the rights of
-- the writer: SECURITY DEFINER and search_path would be set and reset for each row.
-- t/05-access.t shows what these rights are. bench/events --instructions counts.

-- Notify those that wait for something to happen in WORKSPACE, if there are any:
-- NOTIFY makes transactions commit one after the other. They hold a shared advisory
-- lock, which is tried, and given back at once. Nothing waits for it. For the API and
-- the worker.
CREATE FUNCTION crmapi.bell(workspace uuid) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN pg_try_advisory_lock(uuid_hash_extended(workspace, 1))
        THEN pg_advisory_unlock(uuid_hash_extended(workspace, 1))
        ELSE pg_notify('crmapi_bell', workspace::text) IS NOT NULL END;

-- Whether somebody waits for something to happen in WORKSPACE. For the API and the
-- worker.
CREATE FUNCTION crmapi.bell_heard(workspace uuid) RETURNS boolean
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN pg_try_advisory_lock(uuid_hash_extended(workspace, 1))
        THEN NOT pg_advisory_unlock(uuid_hash_extended(workspace, 1))
        ELSE true END;

-- Notify those that wait in WORKSPACE of a message in CONVERSATION, with its visitor,
-- whose page may wait. For the API and the worker.
CREATE FUNCTION crmapi.bell_message(workspace uuid, conversation uuid)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('crmapi_bell', concat_ws(' ', workspace, (
        SELECT c.visitor_id FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.id = conversation)));
END
$$;

-- A new number for an event of WORKSPACE. Before it, the transaction gets its
-- ticket, a lock that conflicts with nothing, unless its last event was of
-- WORKSPACE, too. Another ticket does no harm: readers stop at the lowest. For
-- the API and the worker.
CREATE FUNCTION crmapi.event_next(workspace uuid) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN
        current_setting('crmapi.event_ticket', true) = workspace::text
        OR pg_advisory_xact_lock_shared(uuid_hash(workspace),
            (nextval('crmapi.event_number') & 2147483647)::integer) IS NULL
        OR crmapi.bell(workspace) IS NULL
        OR set_config('crmapi.event_ticket', workspace::text, true)
            IS NOT NULL
        THEN nextval('crmapi.event_number') END;

-- A time as sessions of the programs get it, whatever the settings of this
-- session are.
CREATE FUNCTION crmapi.event_time(t timestamptz) RETURNS text
    LANGUAGE sql STABLE
    RETURN to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"+00"');

-- ---- what an event has -----------------------------------------------------
-- The text of the columns that the API shows of a resource, and of those that it
-- computes: each migrate makes the functions <table>_fields() of its tables
-- (repeat/0001-events.sql). What is computed from other rows is their parameters
-- after the row, in the order of the resource's table. t/61-events.t compares events
-- with the answers of the API. Few workspaces have a feed, so whether there is one
-- is asked first, and by the cheapest statement.

-- Add an event of the type HAPPENED about the row ROW_ID of OWNER with FIELDS, and
-- deliver it if it is one of TYPES, those that endpoints want. Return its id, so that
-- a call is an expression, which costs less than PERFORM. For the API and the worker.
CREATE FUNCTION crmapi.event_add(workspace uuid, happened text, types text[],
        fields json, row_id uuid, owner uuid) RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    event CONSTANT uuid := crmapi.event_id(crmapi.event_next(workspace));
BEGIN
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields, row_id,
        owner_id)
    VALUES (event, event_add.workspace, happened, event_add.fields,
        event_add.row_id, owner);
    IF happened = ANY (types) THEN
        PERFORM crmapi.webhook_plan(workspace, event, happened);
    END IF;
    RETURN event;
END
$$;

-- The event that a row was deleted: its type is the trigger's argument. A
-- trigger function.
CREATE FUNCTION crmapi.event_deleted() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = OLD.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types)) THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(OLD.workspace_id, TG_ARGV[0], feed.types,
        json_object('{id}', ARRAY[OLD.id::text]), OLD.id, NULL);
    RETURN NULL;
END
$$;

-- The event that a contact was merged into another one, or else deleted. A trigger
-- function.
CREATE FUNCTION crmapi.contact_gone() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    merged crmapi.contact_merged;
    happened text := 'contact.deleted';
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = OLD.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT m.* INTO merged FROM crmapi.contact_merged m
    WHERE m.workspace_id = OLD.workspace_id AND m.id = OLD.id;
    IF FOUND THEN
        happened := 'contact.merged';
    END IF;
    IF NOT (feed.log OR happened = ANY (feed.types)) THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(OLD.workspace_id, happened, feed.types,
        CASE happened WHEN 'contact.merged'
            THEN crmapi.contact_merged_fields(merged)
            ELSE json_object('{id}', ARRAY[OLD.id::text]) END, OLD.id,
        merged.merged_into);
    RETURN NULL;
END
$$;

-- The times of contacts (0003-crm.sql) and their events have one trigger. A trigger
-- costs about 12,000 instructions, a WHEN 16,000, SECURITY DEFINER with a search_path
-- 16,000, and a statement that reads event_feed 28,000. So the statement that writes
-- the times also reads event_feed.

-- Add new contacts to contact_change, and their events if somebody wants them. "changed"
-- has the rows of the statement. A trigger function.
CREATE FUNCTION crmapi.contact_created() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
    made crmapi.contact;
    event uuid;
BEGIN
    FOR wanted IN
        WITH times AS (
            INSERT INTO crmapi.contact_change
                (workspace_id, updated_at, id, indexed_fields)
            SELECT n.workspace_id, n.updated_at, n.id,
                crmapi.fields_indexed(n.workspace_id, n.custom_fields)
            FROM changed n)
        SELECT n AS contact, f.types FROM changed n CROSS JOIN LATERAL (
            SELECT f.types FROM crmapi.event_feed f
            WHERE f.workspace_id = n.workspace_id
              AND (f.log OR 'contact.created' = ANY (f.types)) OFFSET 0) f
    LOOP
        made := wanted.contact;
        event := crmapi.event_add(made.workspace_id, 'contact.created',
            wanted.types, crmapi.contact_fields(made, NULL,
                crmapi.contact_suppressed(made.workspace_id, made.email_key,
                                          made.phone_key)), made.id, NULL);
    END LOOP;
    RETURN NULL;
END
$$;

-- Move a contact in contact_change to its new updated_at, with its custom fields, and
-- add an event if somebody wants it. updated_at is the same if a foreign key was set
-- null or nothing has changed. In RETURNING, NEW has two meanings from PostgreSQL 18 on. Locks:
-- contact_change; the contact is locked already. A trigger function.
CREATE FUNCTION crmapi.contact_updated() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    workspace uuid := NEW.workspace_id;
    types text[];       -- null: nobody wants the event
    event uuid;
BEGIN
    IF NEW.custom_fields <> OLD.custom_fields THEN
        UPDATE crmapi.contact_change c SET updated_at = NEW.updated_at,
            indexed_fields = crmapi.fields_indexed(NEW.workspace_id, NEW.custom_fields)
        WHERE c.workspace_id = NEW.workspace_id
          AND c.updated_at = OLD.updated_at AND c.id = NEW.id
        RETURNING (SELECT f.types FROM crmapi.event_feed f
               WHERE f.workspace_id = workspace
                 AND (f.log OR 'contact.updated' = ANY (f.types))) INTO types;
    ELSIF NEW.updated_at <> OLD.updated_at THEN     -- a CASE would cost more
        UPDATE crmapi.contact_change c SET updated_at = NEW.updated_at
        WHERE c.workspace_id = NEW.workspace_id
          AND c.updated_at = OLD.updated_at AND c.id = NEW.id
        RETURNING (SELECT f.types FROM crmapi.event_feed f
               WHERE f.workspace_id = workspace
                 AND (f.log OR 'contact.updated' = ANY (f.types))) INTO types;
    ELSIF OLD IS DISTINCT FROM NEW THEN
        SELECT f.types INTO types FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR 'contact.updated' = ANY (f.types));
    END IF;
    IF types IS NULL THEN
        RETURN NULL;
    END IF;
    -- event_add(), in the statement that reads the activity
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields, row_id)
    SELECT crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, 'contact.updated', crmapi.contact_fields(NEW,
            (SELECT a.created_at FROM crmapi.activity a
             WHERE a.workspace_id = NEW.workspace_id AND a.contact_id = NEW.id
             ORDER BY a.created_at DESC LIMIT 1),
            crmapi.contact_suppressed(NEW.workspace_id, NEW.email_key,
                                      NEW.phone_key)), NEW.id
    RETURNING v.id INTO event;
    IF 'contact.updated' = ANY (types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, 'contact.updated');
    END IF;
    RETURN NULL;
END
$$;

-- An event with a company. A trigger function.
CREATE FUNCTION crmapi.company_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
    deals numeric;
    latest timestamptz;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR NEW.updated_at = OLD.updated_at AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT sum(c.deal_value), greatest(
                (SELECT max(a.created_at) FROM crmapi.activity a
                 WHERE a.workspace_id = NEW.workspace_id
                   AND a.company_id = NEW.id), max(l.latest))
        INTO deals, latest
        FROM crmapi.contact c CROSS JOIN LATERAL (
            SELECT max(a.created_at) AS latest FROM crmapi.activity a
            WHERE a.workspace_id = NEW.workspace_id
              AND a.contact_id = c.id) l
        WHERE c.workspace_id = NEW.workspace_id AND c.company_id = NEW.id;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.company_fields(NEW, deals, latest), NULL, NULL);
    RETURN NULL;
END
$$;

-- An event with a card. A trigger function.
CREATE FUNCTION crmapi.pipeline_card_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR NEW.updated_at = OLD.updated_at AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.pipeline_card_fields(NEW), NEW.id, NEW.contact_id);
    RETURN NULL;
END
$$;

-- An event with an activity. A trigger function.
CREATE FUNCTION crmapi.activity_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR NEW.updated_at = OLD.updated_at AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.activity_fields(NEW), NEW.id, NEW.contact_id);
    RETURN NULL;
END
$$;

-- An event with a conversation. It is deleted once; nothing is told of it
-- afterwards. A trigger function.
CREATE FUNCTION crmapi.conversation_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR TG_OP = 'UPDATE' AND (NEW.deleted OR NEW.updated_at = OLD.updated_at
            AND OLD IS NOT DISTINCT FROM NEW) THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.conversation_fields(NEW), NEW.id, NEW.contact_id);
    RETURN NULL;
END
$$;

-- An event with a message, which is updated if it has another status. Those that
-- wait for messages are notified without an event, too. A trigger function.
CREATE FUNCTION crmapi.message_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    IF crmapi.bell_heard(NEW.workspace_id) THEN
        PERFORM crmapi.bell_message(NEW.workspace_id, NEW.conversation_id);
    END IF;
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR TG_OP = 'UPDATE' AND OLD.status IS NOT DISTINCT FROM NEW.status THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.message_fields(NEW), NULL, NEW.conversation_id);
    RETURN NULL;
END
$$;

-- An event with a submission. A trigger function.
CREATE FUNCTION crmapi.submission_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types)) THEN
        RETURN NULL;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.submission_fields(NEW), NEW.id, NEW.contact_id);
    RETURN NULL;
END
$$;

-- A step of an enrollment as the API shows it. Internal.
CREATE FUNCTION crmapi.event_step(s crmapi.enrollment_step) RETURNS json
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    format text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
    due text := to_char(s.scheduled_for AT TIME ZONE 'UTC', format);
    sent text := to_char(s.sent_at AT TIME ZONE 'UTC', format);
BEGIN
    RETURN CASE s.channel WHEN 'voice' THEN json_build_object('id', s.id,
        'sort_order', s.sort_order, 'channel', s.channel, 'status', s.status,
        'scheduled_for', due, 'sent_at', sent,
        'to_identifier', s.to_identifier,
        'voice_objective', s.voice_objective, 'voice_script', s.voice_script)
    WHEN 'sms' THEN json_build_object('id', s.id,
        'sort_order', s.sort_order, 'channel', s.channel, 'status', s.status,
        'scheduled_for', due, 'sent_at', sent,
        'to_identifier', s.to_identifier, 'sms_body', s.sms_body)
    ELSE json_build_object('id', s.id,
        'sort_order', s.sort_order, 'channel', s.channel, 'status', s.status,
        'scheduled_for', due, 'sent_at', sent,
        'to_identifier', s.to_identifier,
        'email_subject', s.email_subject, 'email_body', s.email_body) END;
END
$$;

-- An event with an enrollment, its sequence and its steps. Deferred to the end
-- of the transaction: functions change an enrollment first, then the others. A
-- trigger function.
CREATE FUNCTION crmapi.enrollment_event() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    feed record;
    event uuid;
    t crmapi.enrollment;
    followed json;
    stages json;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR OLD.status = NEW.status AND OLD.contact_id = NEW.contact_id THEN
        RETURN NULL;
    END IF;
    SELECT e.* INTO t FROM crmapi.enrollment e
    WHERE e.workspace_id = NEW.workspace_id AND e.id = NEW.id;
    IF NOT FOUND THEN
        RETURN NULL;        -- it was deleted since, by an erasure
    END IF;
    followed := (SELECT json_build_object('id', q.id, 'name', q.name, 'status',
            q.status, 'bot_id', q.bot_id, 'template_id', q.template_id)
        FROM crmapi.sequence q WHERE q.workspace_id = NEW.workspace_id
          AND q.id = t.sequence_id);
    stages := (SELECT json_agg(crmapi.event_step(s) ORDER BY s.sort_order)
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = NEW.workspace_id AND s.enrollment_id = NEW.id);
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.enrollment_fields(t, followed, coalesce(stages, '[]')), t.id,
        t.contact_id);
    RETURN NULL;
END
$$;

-- ---- triggers --------------------------------------------------------------
-- Without a WHEN, which PostgreSQL parses again for each statement.

DO $$
DECLARE
    name text;
    call text;
BEGIN
    FOR name, call IN VALUES
        ('company', 'company_event(''company.created'')'),
        ('pipeline_card', 'pipeline_card_event(''pipeline_card.created'')'),
        ('activity', 'activity_event(''activity.created'')'),
        ('conversation', 'conversation_event(''conversation.created'')'),
        ('message', 'message_event(''message.created'')'),
        ('submission', 'submission_event(''form.submitted'')') LOOP
        EXECUTE format('CREATE TRIGGER event_insert AFTER INSERT ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.%s', name, call);
    END LOOP;
    -- An event tells what a field was changed to, and what indexes have is none: so the
    -- trigger has a list of all other columns. What a migration adds need not be in
    -- it: whoever changes such a field sets updated_at, too.
    FOR name, call IN VALUES
        ('contact', 'contact_updated()'),
        ('company', 'company_event(''company.updated'')') LOOP
        EXECUTE format('CREATE TRIGGER event_update AFTER UPDATE OF %s
            ON crmapi.%I FOR EACH ROW EXECUTE FUNCTION crmapi.%s',
            (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
             FROM pg_attribute a
             WHERE a.attrelid = format('crmapi.%I', name)::regclass
               AND a.attnum > 0 AND a.attname NOT IN ('tag_keys', 'indexed_fields')),
            name, call);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['pipeline_card', 'activity',
        'conversation'] LOOP
        EXECUTE format('CREATE TRIGGER event_update AFTER UPDATE ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.%I(%L)', name,
            name || '_event', name || '.updated');
    END LOOP;
    FOREACH name IN ARRAY ARRAY['company', 'pipeline_card', 'activity',
        'submission'] LOOP
        EXECUTE format('CREATE TRIGGER event_delete AFTER DELETE ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.event_deleted(%L)', name,
            name || '.deleted');
    END LOOP;
END
$$;

CREATE TRIGGER event_insert AFTER INSERT ON crmapi.contact
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION crmapi.contact_created();
CREATE TRIGGER event_delete AFTER DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_gone();
CREATE TRIGGER event_update AFTER UPDATE OF status ON crmapi.message
    FOR EACH ROW EXECUTE FUNCTION crmapi.message_event('message.updated');
-- A conversation is deleted by its flag; the row may go later.
CREATE TRIGGER event_hide AFTER UPDATE OF deleted ON crmapi.conversation
    FOR EACH ROW WHEN (NEW.deleted AND OLD.deleted IS NOT TRUE)
    EXECUTE FUNCTION crmapi.event_deleted('conversation.deleted');
CREATE TRIGGER event_delete AFTER DELETE ON crmapi.conversation
    FOR EACH ROW WHEN (OLD.deleted IS NOT TRUE)
    EXECUTE FUNCTION crmapi.event_deleted('conversation.deleted');

CREATE CONSTRAINT TRIGGER event AFTER INSERT OR UPDATE ON crmapi.enrollment
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION crmapi.enrollment_event('enrollment.updated');

-- ---- reading ---------------------------------------------------------------

-- The number whose last 31 bits are LOW, all that the lock of a ticket has: the
-- one that is nearest to N, up to 2^30 below or above. A reader that takes N waits
-- for nothing before it looks at the locks, so a ticket may be above.
CREATE FUNCTION crmapi.event_ticket(n bigint, low bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN n - ((n - low + 1073741823 & 2147483647) - 1073741823);

-- The greatest id that an event with a number up to N can have; there is none
-- below 0.
CREATE FUNCTION crmapi.event_bound(n bigint) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (overlay(lpad(to_hex(greatest(n, 0)), 15, '0')
        PLACING '8' FROM 13 FOR 0) || 'bfffffffffffffff')::uuid;
END
$$;

-- event_end(), with N, the last number that was taken: no ticket that is taken
-- later moves it. For the API.
CREATE FUNCTION crmapi.event_end_at(workspace uuid, n bigint) RETURNS uuid
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ticket bigint;
BEGIN
    SELECT min(crmapi.event_ticket(n, l.objid::bigint)) INTO ticket
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2
      AND l.classid::bigint = uuid_hash(workspace) & 4294967295
      AND l.database = (SELECT d.oid FROM pg_database d
                        WHERE d.datname = current_database());
    RETURN crmapi.event_bound(least(n, ticket));
END
$$;

-- The greatest id that an event of WORKSPACE can have so that all events up to
-- it are there, or never will be, for a statement that begins after this one.
-- The order matters, the number before the locks: a transaction that has no
-- ticket yet when the locks are read gets numbers above that, and one that has
-- none any more is committed. For the API.
CREATE FUNCTION crmapi.event_end(workspace uuid) RETURNS uuid
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint := last_value FROM crmapi.event_number;
BEGIN
    RETURN crmapi.event_end_at(workspace, n);
END
$$;

-- ---- states that were lost --------------------------------------------------

-- Note the present history: what was written last may be lost, and readers may have seen
-- it. What comes gets numbers above all that the lost state can have given: 2^28 are
-- three days of 1,000 events a second. Locks: instance. Internal.
CREATE FUNCTION crmapi.events_leave() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    upto bigint := last_value + 268435456 FROM crmapi.event_number;
BEGIN
    PERFORM crmapi.sequence_raise('crmapi.event_number', upto);
    UPDATE crmapi.instance i SET history = crmapi.instance_history(),
        events_lost = upto
    WHERE i.one;
END
$$;

-- Whether a reader of WORKSPACE whose cursor is SEEN, the id of an event, is ahead of this
-- database: the event is not there, and it was not erased either. A backup was
-- restored, or a standby took over that lacked the last writes; the numbers of those are
-- given again, so what is new may be below SEEN. For the API.
CREATE FUNCTION crmapi.event_lost(workspace uuid, seen uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM crmapi.event v
               WHERE v.workspace_id = event_lost.workspace AND v.id = seen) THEN
        RETURN false;
    END IF;
    RETURN seen > crmapi.event_bound((SELECT n.last_value FROM crmapi.event_number n))
        OR EXISTS (SELECT FROM crmapi.instance i
            WHERE seen <= crmapi.event_bound(i.events_lost)
               OR i.history <> crmapi.instance_history())
            AND NOT EXISTS (SELECT FROM crmapi.event_feed f
                            WHERE f.workspace_id = event_lost.workspace
                              AND f.since = seen);
END
$$;
