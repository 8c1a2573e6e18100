-- SPDX-License-Identifier: Apache-2.0
-- 0017-write-cost.sql: events (contract 13.4) and Idempotency-Keys (13.1) cost a
-- write less
-- min_module: 12
--
-- What an event has, its id and its order are as in 0012. What a trigger costs
-- is mostly what PostgreSQL prepares anew for each transaction: every statement
-- and expression of a function, and in them every call of a function. So a
-- trigger has two statements, one that asks the feed and one that inserts, and
-- as few expressions as possible; the functions that they share are expressions
-- in SQL, which the planner inlines. Triggers run with the rights of the writer:
-- SECURITY DEFINER and search_path would be set and reset for each row.
-- t/05-schema.t shows what these rights are. event_add() has no callers any more
-- but transactions that began before.
--
-- A table's CHECKs are parsed anew for each INSERT. These two tables lose theirs:
-- one place each writes them. Those of domains stay: they are parsed once in a
-- session.

-- step: transaction: answers without CHECKs
-- Only mod_crmapi/rest/crm_idempotency.c inserts them.
ALTER TABLE crmapi.idempotent_answer
    DROP CONSTRAINT idempotent_answer_key_check,
    DROP CONSTRAINT idempotent_answer_request_check,
    DROP CONSTRAINT idempotent_answer_status_check,
    DROP CONSTRAINT idempotent_answer_body_check,
    DROP CONSTRAINT idempotent_answer_check;

-- step: transaction: functions of the triggers, and the rights that they need

-- The triggers insert fields, and webhook_body() makes body of them.
ALTER TABLE crmapi.event DROP CONSTRAINT event_check,
    ALTER COLUMN trace SET DEFAULT
        nullif(current_setting('crmapi.trace', true), '');

-- The id of an event with the number N: a UUID of version 8 (RFC 9562). Its
-- first 60 bits are N, 62 bits are random.
CREATE OR REPLACE FUNCTION crmapi.event_id(n bigint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN (overlay(lpad(to_hex(n), 15, '0') PLACING '8' FROM 13 FOR 0)
        || right(gen_random_uuid()::text, 17))::uuid;

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
        OR set_config('crmapi.event_ticket', workspace::text, true)
            IS NOT NULL
        THEN nextval('crmapi.event_number') END;

-- Insert a delivery and a job for each endpoint of WORKSPACE that wants the
-- event EVENT of the type HAPPENED. For the API and the worker.
CREATE OR REPLACE FUNCTION crmapi.webhook_plan(workspace uuid, event uuid,
                                               happened text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
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

-- ---- what an event has -----------------------------------------------------
-- As in 0012. Few workspaces have a feed, so whether there is one is asked
-- first, and by the cheapest statement.

-- The event that a row was deleted: its type is the trigger's argument. A
-- trigger function.
CREATE OR REPLACE FUNCTION crmapi.event_deleted() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(OLD.workspace_id)),
        OLD.workspace_id, TG_ARGV[0],
        json_object('{id}', ARRAY[OLD.id::text]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(OLD.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a contact. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.contact_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
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
        SELECT a.created_at INTO latest FROM crmapi.activity a
        WHERE a.workspace_id = NEW.workspace_id AND a.contact_id = NEW.id
        ORDER BY a.created_at DESC LIMIT 1;
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
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
            crmapi.event_time(latest)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a company. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.company_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
    deals text;
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
        SELECT sum(c.deal_value)::text, greatest(
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
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
            deals, crmapi.event_time(latest)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a card. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.pipeline_card_event() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,pipeline_stage_id,contact_id,title,description,tags,'
            'order_index,archived_at,created_at,updated_at}',
        ARRAY[NEW.id::text, NEW.pipeline_stage_id::text, NEW.contact_id::text,
            NEW.title, NEW.description, NEW.tags::text, NEW.order_index::text,
            crmapi.event_time(NEW.archived_at),
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with an activity. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.activity_event() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,contact_id,company_id,activity_type,title,'
            'description,due_date,duration_minutes,completed_at,'
            'metadata,created_at}',
        ARRAY[NEW.id::text, NEW.contact_id::text, NEW.company_id::text,
            NEW.activity_type, NEW.title, NEW.description,
            crmapi.event_time(NEW.due_date), NEW.duration_minutes::text,
            crmapi.event_time(NEW.completed_at), NEW.metadata::text,
            crmapi.event_time(NEW.created_at)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a conversation. It is deleted once; nothing is told of it
-- afterwards. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.conversation_event() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
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
            NEW.visitor_id, crmapi.event_time(NEW.created_at)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a message. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.message_event() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,conversation_id,role,content,content_type,status,'
            'tool_used,tool_arguments,created_at}',
        ARRAY[NEW.id::text, NEW.conversation_id::text, NEW.role, NEW.content,
            NEW.content_type, NEW.status, NEW.tool_used,
            NEW.tool_arguments::text, crmapi.event_time(NEW.created_at)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with a submission. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.submission_event() RETURNS trigger
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
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, TG_ARGV[0], json_object(
        '{id,form_id,contact_id,custom_field_responses,is_internal,'
            'submitted_at}',
        ARRAY[NEW.id::text, NEW.form_id::text, NEW.contact_id::text,
            NEW.custom_field_responses::text, NEW.is_internal::text,
            crmapi.event_time(NEW.submitted_at)]))
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- An event with an enrollment, its sequence and its steps. Deferred to the end
-- of the transaction: functions change an enrollment first, then the others. A
-- trigger function.
CREATE OR REPLACE FUNCTION crmapi.enrollment_event() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
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
        OR OLD.status = NEW.status THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    SELECT crmapi.event_id(crmapi.event_next(t.workspace_id)),
        t.workspace_id, TG_ARGV[0], json_object(
        '{id,sequence_id,contact_id,status,generation_error,approved_at,'
            'stop_reason,created_at,updated_at,sequence,steps}',
        ARRAY[t.id::text, t.sequence_id::text, t.contact_id::text, t.status,
            t.generation_error, crmapi.event_time(t.approved_at),
            t.stop_reason, crmapi.event_time(t.created_at),
            crmapi.event_time(t.updated_at),
            (SELECT json_build_object('id', q.id, 'name', q.name, 'status',
                 q.status, 'bot_id', q.bot_id, 'template_id', q.template_id)
             FROM crmapi.sequence q WHERE q.workspace_id = NEW.workspace_id
               AND q.id = t.sequence_id)::text,
            (SELECT coalesce(json_agg(crmapi.event_step(s)
                                      ORDER BY s.sort_order), '[]')
             FROM crmapi.enrollment_step s
             WHERE s.workspace_id = NEW.workspace_id
               AND s.enrollment_id = t.id)::text])
    FROM crmapi.enrollment t
    WHERE t.workspace_id = NEW.workspace_id AND t.id = NEW.id
    RETURNING v.id INTO event;
    IF TG_ARGV[0] = ANY (feed.types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- ---- rights ----------------------------------------------------------------
-- They write the tables whose triggers write events.

GRANT INSERT ON crmapi.event TO crmapi_api, crmapi_worker;
GRANT USAGE ON SEQUENCE crmapi.event_number TO crmapi_api, crmapi_worker;
REVOKE EXECUTE ON FUNCTION crmapi.event_next FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.event_next, crmapi.webhook_plan
    TO crmapi_api, crmapi_worker;
