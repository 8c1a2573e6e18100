-- SPDX-License-Identifier: Apache-2.0
-- 0012-events.sql: the events of a workspace, for GET /events and for webhooks
-- (contract 13.4)
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

CREATE SEQUENCE crmapi.event_number;

-- snapshot becomes fields: {"column": "its text", ...}
ALTER TABLE crmapi.webhook_event RENAME TO event;
ALTER INDEX crmapi.webhook_event_old RENAME TO event_old;
ALTER TABLE crmapi.event
    ADD fields json,
    -- The check of the foreign key would be a part of what an INSERT costs.
    -- event_forget() does what the cascade did.
    DROP CONSTRAINT webhook_event_workspace_id_fkey,
    DROP CONSTRAINT webhook_event_check;
ALTER TABLE crmapi.event SET (autovacuum_vacuum_scale_factor = 0.02,
                              autovacuum_vacuum_cost_delay = 0);

-- ---- writing ---------------------------------------------------------------

-- The id of an event with the number N: a UUID of version 8 (RFC 9562). Its
-- first 60 bits are N, 62 bits are random.
CREATE FUNCTION crmapi.event_id(n bigint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN (lpad(to_hex(n >> 12), 12, '0') || '8'
        || lpad(to_hex(n & 4095), 3, '0')
        || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;

-- Insert a delivery and a job for each endpoint of WORKSPACE that wants the
-- event EVENT of the type HAPPENED. Internal.
CREATE FUNCTION crmapi.webhook_plan(workspace uuid, event uuid, happened text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH planned AS MATERIALIZED (
        SELECT gen_random_uuid() AS id, e.id AS endpoint_id,
               nextval('crmapi.job_id_seq') AS job_id
        FROM crmapi.webhook_endpoint e
        WHERE e.workspace_id = webhook_plan.workspace
          AND e.disabled_at IS NULL
          AND webhook_plan.happened = ANY (e.events)),
    jobs AS (
        INSERT INTO crmapi.job (id, workspace_id, kind, payload)
        OVERRIDING SYSTEM VALUE
        SELECT p.job_id, webhook_plan.workspace, 'webhook.deliver',
               jsonb_build_object('delivery_id', p.id)
        FROM planned p)
    INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id,
                                         endpoint_id, job_id)
    SELECT p.id, webhook_plan.workspace, webhook_plan.event, p.endpoint_id,
           p.job_id
    FROM planned p;
END
$$;

-- Insert an event of the type HAPPENED with FIELDS, the text of columns, and
-- its deliveries. A transaction's first event in WORKSPACE gets its ticket, a
-- lock that conflicts with nothing. For the API and the worker.
CREATE FUNCTION crmapi.event_add(workspace uuid, happened text, fields json)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint := nextval('crmapi.event_number');
    has text := coalesce(current_setting('crmapi.event_tickets', true), '');
    event uuid;
    hooked boolean;
BEGIN
    IF strpos(has, workspace::text) = 0 THEN
        PERFORM pg_advisory_xact_lock_shared(uuid_hash(workspace),
                                             (n & 2147483647)::integer),
            set_config('crmapi.event_tickets', has || workspace, true);
        n := nextval('crmapi.event_number');
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(n), event_add.workspace, event_add.happened,
            event_add.fields)
    RETURNING v.id, EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = event_add.workspace
          AND event_add.happened = ANY (f.types))
    INTO event, hooked;
    IF hooked THEN
        PERFORM crmapi.webhook_plan(workspace, event, happened);
    END IF;
END
$$;

-- A time as sessions of the programs get it, whatever the settings of this
-- session are.
CREATE FUNCTION crmapi.event_time(t timestamptz) RETURNS text
    LANGUAGE sql STABLE
    RETURN to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"+00"');

-- ---- what an event has -----------------------------------------------------
-- For each resource the text of the columns that the API shows, and of those
-- that it computes (mod_crmapi/crm/). A migration that adds one replaces the
-- function. t/61-events.t compares events with the answers of the API.

-- The event that a row was deleted: its type is the trigger's argument. A
-- trigger function.
CREATE FUNCTION crmapi.event_deleted() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = OLD.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(OLD.workspace_id, TG_ARGV[0],
                             json_object('{id}', ARRAY[OLD.id::text]));
    RETURN NULL;
END
$$;

-- An event with a contact. A trigger function.
CREATE FUNCTION crmapi.contact_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,workspace_id,bot_id,first_name,last_name,emails,'
            'phone_numbers,company,company_id,job_title,lead_source,'
            'tags,deal_value,pipeline_stage_id,contact_type,'
            'address_line1,address_line2,city,state,postal_code,'
            'country,linkedin_url,notes,custom_fields,created_at,'
            'updated_at,last_contacted_at}',
        ARRAY[NEW.id::text, NEW.workspace_id::text, NEW.bot_id::text,
            NEW.first_name, NEW.last_name, NEW.emails::text,
            NEW.phone_numbers::text, NEW.company, NEW.company_id::text,
            NEW.job_title, NEW.lead_source, NEW.tags::text,
            NEW.deal_value::text, NEW.pipeline_stage_id::text,
            NEW.contact_type, NEW.address_line1, NEW.address_line2, NEW.city,
            NEW.state, NEW.postal_code, NEW.country, NEW.linkedin_url,
            NEW.notes, NEW.custom_fields::text,
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at),
            crmapi.event_time((SELECT max(a.created_at) FROM crmapi.activity a
                WHERE a.workspace_id = NEW.workspace_id
                  AND a.contact_id = NEW.id))]));
    RETURN NULL;
END
$$;

-- An event with a company. A trigger function.
CREATE FUNCTION crmapi.company_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,workspace_id,bot_id,name,domain,website,industry,'
            'company_size,company_type,employee_count,annual_revenue,'
            'description,emails,phone_numbers,tags,pipeline_stage_id,'
            'address_line1,address_line2,city,state,postal_code,'
            'country,linkedin_url,notes,custom_fields,created_at,'
            'updated_at,total_deal_value,last_activity_at}',
        ARRAY[NEW.id::text, NEW.workspace_id::text, NEW.bot_id::text, NEW.name,
            NEW.domain, NEW.website, NEW.industry, NEW.company_size,
            NEW.company_type, NEW.employee_count::text,
            NEW.annual_revenue::text, NEW.description, NEW.emails::text,
            NEW.phone_numbers::text, NEW.tags::text,
            NEW.pipeline_stage_id::text, NEW.address_line1, NEW.address_line2,
            NEW.city, NEW.state, NEW.postal_code, NEW.country,
            NEW.linkedin_url, NEW.notes, NEW.custom_fields::text,
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at),
            (SELECT sum(c.deal_value) FROM crmapi.contact c
             WHERE c.workspace_id = NEW.workspace_id
               AND c.company_id = NEW.id)::text,
            crmapi.event_time(greatest(
                (SELECT max(a.created_at) FROM crmapi.activity a
                 WHERE a.workspace_id = NEW.workspace_id
                   AND a.company_id = NEW.id),
                (SELECT max(l.latest) FROM crmapi.contact c
                 CROSS JOIN LATERAL (
                     SELECT max(a.created_at) AS latest
                     FROM crmapi.activity a
                     WHERE a.workspace_id = c.workspace_id
                       AND a.contact_id = c.id) l
                 WHERE c.workspace_id = NEW.workspace_id
                   AND c.company_id = NEW.id)))]));
    RETURN NULL;
END
$$;

-- An event with a card. A trigger function.
CREATE FUNCTION crmapi.pipeline_card_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,pipeline_stage_id,contact_id,title,description,tags,'
            'order_index,archived_at,created_at,updated_at}',
        ARRAY[NEW.id::text, NEW.pipeline_stage_id::text, NEW.contact_id::text,
            NEW.title, NEW.description, NEW.tags::text, NEW.order_index::text,
            crmapi.event_time(NEW.archived_at),
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at)]));
    RETURN NULL;
END
$$;

-- An event with an activity. A trigger function.
CREATE FUNCTION crmapi.activity_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,contact_id,company_id,activity_type,title,'
            'description,due_date,duration_minutes,completed_at,'
            'metadata,created_at}',
        ARRAY[NEW.id::text, NEW.contact_id::text, NEW.company_id::text,
            NEW.activity_type, NEW.title, NEW.description,
            crmapi.event_time(NEW.due_date), NEW.duration_minutes::text,
            crmapi.event_time(NEW.completed_at), NEW.metadata::text,
            crmapi.event_time(NEW.created_at)]));
    RETURN NULL;
END
$$;

-- An event with a conversation. It is deleted once; nothing is told of it
-- afterwards. A trigger function.
CREATE FUNCTION crmapi.conversation_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.deleted OR OLD IS NOT DISTINCT FROM NEW) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,bot_id,contact_id,type,email,phone_number,human,'
            'human_takeover,assigned_to,assigned_at,active,archived,'
            'archived_at,deleted,deleted_at,internal,internal_notes,'
            'last_message,last_message_at,last_active_at,'
            'sentiment_positive,sentiment_score,sentiment_summary,'
            'audio_url,minutes,visitor_id,created_at}',
        ARRAY[NEW.id::text, NEW.bot_id::text, NEW.contact_id::text,
            NEW.type::text, NEW.email, NEW.phone_number, NEW.human,
            NEW.human_takeover::text, NEW.assigned_to,
            crmapi.event_time(NEW.assigned_at), NEW.active::text,
            NEW.archived::text, crmapi.event_time(NEW.archived_at),
            NEW.deleted::text, crmapi.event_time(NEW.deleted_at),
            NEW.internal::text, NEW.internal_notes, NEW.last_message,
            crmapi.event_time(NEW.last_message_at),
            crmapi.event_time(NEW.last_active_at),
            NEW.sentiment_positive::text, NEW.sentiment_score::text,
            NEW.sentiment_summary, NEW.audio_url, NEW.minutes::text,
            NEW.visitor_id, crmapi.event_time(NEW.created_at)]));
    RETURN NULL;
END
$$;

-- An event with a message. A trigger function.
CREATE FUNCTION crmapi.message_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,conversation_id,role,content,content_type,status,'
            'tool_used,tool_arguments,created_at}',
        ARRAY[NEW.id::text, NEW.conversation_id::text, NEW.role, NEW.content,
            NEW.content_type, NEW.status, NEW.tool_used,
            NEW.tool_arguments::text, crmapi.event_time(NEW.created_at)]));
    RETURN NULL;
END
$$;

-- An event with a submission. A trigger function.
CREATE FUNCTION crmapi.submission_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,form_id,contact_id,custom_field_responses,is_internal,'
            'submitted_at}',
        ARRAY[NEW.id::text, NEW.form_id::text, NEW.contact_id::text,
            NEW.custom_field_responses::text, NEW.is_internal::text,
            crmapi.event_time(NEW.submitted_at)]));
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
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = NEW.workspace_id
          AND (f.log OR TG_ARGV[0] = ANY (f.types))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.event_add(t.workspace_id, TG_ARGV[0], json_object(
        '{id,sequence_id,contact_id,status,generation_error,approved_at,'
            'stop_reason,created_at,updated_at,sequence,steps}',
        ARRAY[t.id::text, t.sequence_id::text, t.contact_id::text, t.status,
            t.generation_error, crmapi.event_time(t.approved_at),
            t.stop_reason, crmapi.event_time(t.created_at),
            crmapi.event_time(t.updated_at),
            (SELECT json_build_object('id', q.id, 'name', q.name, 'status',
                 q.status, 'bot_id', q.bot_id, 'template_id', q.template_id)
             FROM crmapi.sequence q WHERE q.workspace_id = t.workspace_id
               AND q.id = t.sequence_id)::text,
            (SELECT coalesce(json_agg(crmapi.event_step(s)
                                      ORDER BY s.sort_order), '[]')
             FROM crmapi.enrollment_step s
             WHERE s.workspace_id = t.workspace_id
               AND s.enrollment_id = t.id)::text]))
    FROM crmapi.enrollment t
    WHERE t.workspace_id = NEW.workspace_id AND t.id = NEW.id;
    RETURN NULL;
END
$$;

-- ---- triggers --------------------------------------------------------------
-- Without a WHEN, which PostgreSQL parses again for each statement.

DROP TRIGGER webhook ON crmapi.contact;
DROP TRIGGER webhook ON crmapi.submission;
DROP FUNCTION crmapi.webhook_emit;

DO $$
DECLARE
    name text;
    type text;
BEGIN
    FOR name, type IN VALUES
        ('contact', 'contact.created'), ('company', 'company.created'),
        ('pipeline_card', 'pipeline_card.created'),
        ('activity', 'activity.created'),
        ('conversation', 'conversation.created'),
        ('message', 'message.created'), ('submission', 'form.submitted') LOOP
        EXECUTE format('CREATE TRIGGER event_insert AFTER INSERT ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.%I(%L)', name,
            name || '_event', type);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['contact', 'company', 'pipeline_card',
                                'conversation'] LOOP
        EXECUTE format('CREATE TRIGGER event_update AFTER UPDATE ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.%I(%L)', name,
            name || '_event', name || '.updated');
        CONTINUE WHEN name = 'conversation';
        EXECUTE format('CREATE TRIGGER event_delete AFTER DELETE ON crmapi.%I
            FOR EACH ROW EXECUTE FUNCTION crmapi.event_deleted(%L)', name,
            name || '.deleted');
    END LOOP;
END
$$;

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

-- ---- feeds -----------------------------------------------------------------

-- Make the feed of WORKSPACE what its endpoints want, and turn its log on or
-- off unless LOG is null. Locks: workspace, feed. Internal.
CREATE FUNCTION crmapi.event_feed_make(workspace uuid, log boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM crmapi.workspace w WHERE w.id = event_feed_make.workspace
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;     -- it is being deleted
    END IF;
    INSERT INTO crmapi.event_feed AS f (workspace_id, log, types, since)
    SELECT event_feed_make.workspace, coalesce(event_feed_make.log, false),
           ARRAY(SELECT DISTINCT unnest(e.events)
                 FROM crmapi.webhook_endpoint e
                 WHERE e.workspace_id = event_feed_make.workspace
                   AND e.disabled_at IS NULL
                 ORDER BY 1),
           crmapi.event_id(nextval('crmapi.event_number'))
    ON CONFLICT (workspace_id) DO UPDATE
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
-- was committed before this call. For the owner.
CREATE FUNCTION crmapi.event_log_wait() RETURNS void
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
CREATE TRIGGER feed
    AFTER INSERT OR UPDATE OF events, disabled_at OR DELETE
    ON crmapi.webhook_endpoint
    FOR EACH ROW EXECUTE FUNCTION crmapi.event_feed_follow();

-- Before a workspace is deleted: its feed goes, so that the cascade writes no
-- events. Afterwards: its events go; the cascade has waited for the last writes
-- ("zz"). A trigger function.
CREATE FUNCTION crmapi.event_forget() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_WHEN = 'BEFORE' THEN
        DELETE FROM crmapi.event_feed f WHERE f.workspace_id = OLD.id;
        RETURN OLD;
    END IF;
    DELETE FROM crmapi.event v WHERE v.workspace_id = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER event_feed BEFORE DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.event_forget();
CREATE TRIGGER zz_event AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.event_forget();

-- ---- reading and trimming --------------------------------------------------

-- The greatest id that an event of WORKSPACE can have so that all events up to
-- it are there, or never will be, for a statement that begins after this one.
-- The order matters: a transaction that has no ticket yet when the locks are
-- read gets numbers above N, and one that has none any more is committed. For
-- the API.
CREATE FUNCTION crmapi.event_end(workspace uuid) RETURNS uuid
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n bigint := last_value FROM crmapi.event_number;
    ticket bigint;
BEGIN
    -- of a ticket the lock has 31 bits
    SELECT min(n - ((n - l.objid::bigint) & 2147483647)) INTO ticket
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2
      AND l.classid::bigint = uuid_hash(event_end.workspace) & 4294967295
      AND l.database = (SELECT d.oid FROM pg_database d
                        WHERE d.datname = current_database());
    n := least(n, ticket);
    RETURN lpad(to_hex(n >> 12), 12, '0') || '8'
        || lpad(to_hex(n & 4095), 3, '0') || 'bfffffffffffffff';
END
$$;

-- Delete up to BATCH events from before BEFORE, but for those with a pending
-- delivery, and move the beginnings of logs. Returns how many. Locks: event,
-- skipping locked ones; delivery, attempt; feed. For the worker.
CREATE FUNCTION crmapi.event_trim(before timestamptz, batch integer)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    WITH old AS MATERIALIZED (
        SELECT v.workspace_id, v.id FROM crmapi.event v
        WHERE v.created_at < before AND NOT EXISTS (
            SELECT FROM crmapi.webhook_delivery d
            WHERE d.workspace_id = v.workspace_id AND d.event_id = v.id
              AND d.status = 'pending')
        LIMIT batch FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM crmapi.event v USING old o
        WHERE v.workspace_id = o.workspace_id AND v.id = o.id
        RETURNING v.workspace_id, v.id),
    ends AS (   -- earlier versions had ids that were random
        SELECT DISTINCT ON (g.workspace_id) g.workspace_id, g.id FROM gone g
        WHERE substr(g.id::text, 15, 1) = '8'
        ORDER BY g.workspace_id, g.id DESC),
    moved AS (
        UPDATE crmapi.event_feed f SET since = e.id FROM ends e
        WHERE f.workspace_id = e.workspace_id AND f.since < e.id)
    SELECT count(*) INTO n FROM gone;
    RETURN n;
END
$$;

-- ---- webhooks --------------------------------------------------------------

ALTER TABLE crmapi.webhook_endpoint
    DROP CONSTRAINT webhook_endpoint_events_check,
    ADD CONSTRAINT webhook_endpoint_events_check CHECK (
        cardinality(events) > 0 AND events <@ ARRAY[
            'contact.created', 'contact.updated', 'contact.deleted',
            'company.created', 'company.updated', 'company.deleted',
            'pipeline_card.created', 'pipeline_card.updated',
            'pipeline_card.deleted', 'activity.created',
            'conversation.created', 'conversation.updated',
            'conversation.deleted', 'message.created', 'form.submitted',
            'enrollment.updated']);

-- Set the body of an event to BODY unless it has one. Returns its body, NULL
-- if there is no such event. Locks: event. For the worker.
CREATE OR REPLACE FUNCTION crmapi.webhook_body(workspace uuid, event uuid,
                                               body text)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    UPDATE crmapi.event v
    SET body = coalesce(v.body, webhook_body.body), fields = NULL
    WHERE v.workspace_id = webhook_body.workspace
      AND v.id = webhook_body.event
    RETURNING v.body INTO said;
    RETURN said;
END
$$;

-- ---- what was there before -------------------------------------------------

-- Events that no attempt has made a body of.
DO $$
DECLARE
    name text;
    type text;
    names text[];
    texts text;
BEGIN
    FOR name, type IN VALUES ('contact', 'contact.created'),
                             ('submission', 'form.submitted') LOOP
        SELECT array_agg(a.attname), string_agg(format('t.%I::text',
               a.attname), ', ')
        INTO names, texts FROM pg_attribute a
        WHERE a.attrelid = format('crmapi.%I', name)::regclass
          AND a.attnum > 0 AND NOT a.attisdropped;
        EXECUTE format('UPDATE crmapi.event v SET fields = (
            SELECT json_object(%L::text[], ARRAY[%s])
            FROM jsonb_populate_record(NULL::crmapi.%I, v.snapshot) t)
            WHERE v.type = %L AND v.snapshot IS NOT NULL', names, texts, name,
            type);
    END LOOP;
END
$$;
ALTER TABLE crmapi.event DROP snapshot,
    ADD CHECK ((fields IS NULL) <> (body IS NULL));

SELECT crmapi.event_feed_make(e.workspace_id, NULL)
FROM (SELECT DISTINCT workspace_id FROM crmapi.webhook_endpoint) e;

-- ---- rights ----------------------------------------------------------------

GRANT SELECT ON crmapi.event TO crmapi_api;
REVOKE DELETE ON crmapi.event FROM crmapi_worker;
GRANT SELECT ON crmapi.event_feed TO crmapi_api, crmapi_worker;

REVOKE EXECUTE ON FUNCTION crmapi.event_add, crmapi.event_end,
    crmapi.event_step, crmapi.event_feed_make, crmapi.event_log,
    crmapi.event_log_wait, crmapi.event_trim, crmapi.webhook_plan FROM PUBLIC;
GRANT SELECT ON SEQUENCE crmapi.event_number TO crmapi_api;
GRANT EXECUTE ON FUNCTION crmapi.event_end TO crmapi_api;
GRANT EXECUTE ON FUNCTION crmapi.event_add TO crmapi_api, crmapi_worker;
GRANT EXECUTE ON FUNCTION crmapi.event_trim TO crmapi_worker;
