-- SPDX-License-Identifier: Apache-2.0
-- 0007-events.sql: events (0013-events.sql)

-- A sequence travels with the default of a column. Each server counts in a range
-- of its own: the number of the server times 2^48, and more.
CREATE TABLE crmapi.number_home (
    workspace_id uuid PRIMARY KEY,
    event bigint NOT NULL DEFAULT nextval('crmapi.event_number')
);

-- The server that numbers the events of a workspace, and what it adds to the
-- last 48 bits of its sequence: when a workspace has moved, its numbers continue
-- above those that it has.
CREATE TABLE crmapi.event_home (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    server integer NOT NULL,
    base bigint NOT NULL
);
GRANT SELECT ON crmapi.event_home TO crmapi_api, crmapi_worker;

-- The number in ID, the id of an event. Internal.
CREATE FUNCTION crmapi.event_number_of(id uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ('x' || left(replace(id::text, '-', ''), 12)
        || substr(id::text, 16, 3))::bit(60)::bigint;

-- The greatest number that an event of WORKSPACE has had. Earlier versions had
-- ids that were random. Internal.
CREATE FUNCTION crmapi.event_last(workspace uuid) RETURNS bigint
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    newest uuid := (SELECT v.id FROM crmapi.event v
        WHERE v.workspace_id = event_last.workspace
          AND substr(v.id::text, 15, 1) = '8' ORDER BY v.id DESC LIMIT 1);
    since uuid := (SELECT f.since FROM crmapi.event_feed f
        WHERE f.workspace_id = event_last.workspace
          AND substr(f.since::text, 15, 1) = '8');
BEGIN
    RETURN coalesce(greatest(crmapi.event_number_of(newest),
                             crmapi.event_number_of(since)), 0);
END
$$;

-- What is added to the last 48 bits of this server's sequence for an event of
-- WORKSPACE. The first event after a move waits until those that came before it
-- are committed. Locks: event_home. For the API and the worker.
CREATE FUNCTION crmapi.event_base(workspace uuid) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- a sequence that has given no number has its first one as the last
    n bigint := last_value - (NOT is_called)::integer FROM crmapi.event_number;
    mine integer := n >> 48;
    plus bigint;
BEGIN
    SELECT h.base INTO plus FROM crmapi.event_home h
    WHERE h.workspace_id = event_base.workspace AND h.server = mine;
    IF plus IS NULL THEN
        plus := crmapi.event_last(workspace) - (n & 281474976710655);
        INSERT INTO crmapi.event_home AS h (workspace_id, server, base)
        VALUES (event_base.workspace, mine, plus)
        ON CONFLICT ON CONSTRAINT event_home_pkey
        DO UPDATE SET server = excluded.server, base = excluded.base
        WHERE h.server <> excluded.server;
        SELECT h.base INTO plus FROM crmapi.event_home h
        WHERE h.workspace_id = event_base.workspace;
    END IF;
    RETURN plus;
END
$$;

-- A new number for an event of WORKSPACE. Before it, the transaction gets its
-- ticket, a lock that conflicts with nothing, unless its last event was of
-- WORKSPACE, too. For the API and the worker.
CREATE OR REPLACE FUNCTION crmapi.event_next(workspace uuid) RETURNS bigint
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    plus bigint;
BEGIN
    IF current_setting('crmapi.event_ticket', true)
       IS DISTINCT FROM workspace::text THEN
        PERFORM pg_advisory_xact_lock_shared(uuid_hash(workspace),
            (nextval('crmapi.event_number') & 2147483647)::integer);
        PERFORM set_config('crmapi.event_ticket', workspace::text, true);
    END IF;
    plus := crmapi.event_base(workspace);
    RETURN plus + (nextval('crmapi.event_number') & 281474976710655);
END
$$;

-- event_end(), with N, the last number that this server's sequence has given: no
-- ticket that is taken later moves it. Internal.
CREATE OR REPLACE FUNCTION crmapi.event_end_at(workspace uuid, n bigint)
    RETURNS uuid
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine integer := n >> 48;
    ticket bigint;
    plus bigint;
BEGIN
    SELECT min(crmapi.event_ticket(n, l.objid::bigint)) INTO ticket
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2
      AND l.classid::bigint = uuid_hash(workspace) & 4294967295
      AND l.database = (SELECT d.oid FROM pg_database d
                        WHERE d.datname = current_database());
    SELECT h.base INTO plus FROM crmapi.event_home h
    WHERE h.workspace_id = event_end_at.workspace AND h.server = mine;
    -- without a base no event has come since the workspace moved here
    RETURN crmapi.event_bound(coalesce(
        plus + (least(n, ticket) & 281474976710655),
        crmapi.event_last(workspace)));
END
$$;

-- The greatest id that an event of WORKSPACE can have so that all events up to
-- it are there, or never will be, for a statement that begins after this one.
-- It runs on the server of the workspace. For the API.
CREATE OR REPLACE FUNCTION crmapi.event_end(workspace uuid) RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET citus.allow_nested_distributed_execution = on AS $$
DECLARE
    n bigint := last_value FROM crmapi.event_number;
BEGIN
    RETURN crmapi.event_end_at(workspace, n);
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
    t crmapi.enrollment;
    step crmapi.enrollment_step;
    followed json;
    stages text;            -- separated by commas
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- a dump that is being restored has its events
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR OLD.status = NEW.status AND OLD.contact_id = NEW.contact_id
        OR current_setting('crmapi.dump_workspace', true)
           = NEW.workspace_id::text THEN
        RETURN NULL;
    END IF;
    SELECT e.* INTO t FROM crmapi.enrollment e
    WHERE e.workspace_id = NEW.workspace_id AND e.id = NEW.id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    followed := (SELECT json_build_object('id', q.id, 'name', q.name, 'status',
            q.status, 'bot_id', q.bot_id, 'template_id', q.template_id)
        FROM crmapi.sequence q WHERE q.workspace_id = NEW.workspace_id
          AND q.id = t.sequence_id);
    FOR step IN SELECT s.* FROM crmapi.enrollment_step s
        WHERE s.workspace_id = NEW.workspace_id AND s.enrollment_id = NEW.id
        ORDER BY s.sort_order
    LOOP
        stages := concat_ws(', ', stages, crmapi.event_step(step)::text);
    END LOOP;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.enrollment_fields(t, followed,
            ('[' || coalesce(stages, '') || ']')::json), t.id, t.contact_id);
    RETURN NULL;
END
$$;

-- Insert a delivery and a job for each endpoint of WORKSPACE that wants the
-- event EVENT of the type HAPPENED. For the API and the worker.
CREATE OR REPLACE FUNCTION crmapi.webhook_plan(workspace uuid, event uuid,
                                               happened text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint uuid;
    delivery uuid;
    work bigint;
BEGIN
    FOR endpoint IN SELECT e.id FROM crmapi.webhook_endpoint e
        WHERE e.workspace_id = webhook_plan.workspace
          AND e.disabled_at IS NULL
          AND webhook_plan.happened = ANY (e.events)
        ORDER BY 1
    LOOP
        delivery := gen_random_uuid();
        INSERT INTO crmapi.job AS j (workspace_id, kind, payload)
        VALUES (webhook_plan.workspace, 'webhook.deliver',
                jsonb_build_object('delivery_id', delivery))
        RETURNING j.id INTO work;
        INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id,
                                             endpoint_id, job_id)
        VALUES (delivery, webhook_plan.workspace, webhook_plan.event, endpoint,
                work);
    END LOOP;
END
$$;

-- An UPDATE takes no volatile function: it is called once for a statement.
ALTER FUNCTION crmapi.webhook_key STABLE;

REVOKE EXECUTE ON FUNCTION crmapi.event_number_of, crmapi.event_last,
    crmapi.event_base FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.event_base TO crmapi_api, crmapi_worker;
