-- SPDX-License-Identifier: Apache-2.0
-- 0008-webhooks.sql: who is told of what, and what became of it (contract 12)
--
-- Locks are taken in the order webhook_endpoint, webhook_delivery, job. The
-- API may see and change nothing of this: its rows cause events by triggers.

-- ---- tables -----------------------------------------------------------------

CREATE TABLE crmapi.webhook_endpoint (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    -- no user and password, which would be shown and logged
    url crmapi.url NOT NULL
        CHECK (url ~ ('^https?://[^[:space:][:cntrl:]/?#@\\]+'
                      '([/?#][^[:space:][:cntrl:]]*)?$')),
    events text[] COLLATE "C" NOT NULL
        CHECK (cardinality(events) > 0
               AND events <@ '{contact.created,form.submitted}'),
    -- What it is signed with (Standard Webhooks 1.0: 24 to 64 bytes). The one
    -- before signs too until then.
    key bytea NOT NULL CHECK (octet_length(key) BETWEEN 24 AND 64),
    old_key bytea CHECK (octet_length(old_key) BETWEEN 24 AND 64),
    old_key_until timestamptz(3),
    disabled_at timestamptz(3),
    disabled_reason crmapi.line,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    CHECK ((old_key IS NULL) = (old_key_until IS NULL)),
    CHECK (disabled_reason IS NULL OR disabled_at IS NOT NULL)
);

-- What has happened. SNAPSHOT is the row that it happened to, until BODY is
-- made of it: every attempt sends the same bytes.
CREATE TABLE crmapi.webhook_event (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    type crmapi.line NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    snapshot jsonb,
    body text COLLATE "C",
    PRIMARY KEY (workspace_id, id),
    CHECK ((snapshot IS NULL) <> (body IS NULL))
);
-- what upkeep trims
CREATE INDEX webhook_event_old ON crmapi.webhook_event (created_at);

-- An event on its way to an endpoint. JOB_ID: the job that it is for now; an
-- older one does nothing more. BASE: the attempts before it was last sent
-- again by hand, from where the schedule begins anew.
CREATE TABLE crmapi.webhook_delivery (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    job_id bigint NOT NULL,
    status crmapi.line NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    base integer NOT NULL DEFAULT 0 CHECK (base BETWEEN 0 AND attempts),
    next_at timestamptz(3) DEFAULT crmapi.now_ms(),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    finished_at timestamptz(3),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, event_id) REFERENCES crmapi.webhook_event
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES crmapi.webhook_endpoint
        ON DELETE CASCADE,
    CHECK ((status = 'pending') = (next_at IS NOT NULL)),
    CHECK ((status = 'pending') = (finished_at IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX webhook_delivery_created ON crmapi.webhook_delivery
    (workspace_id, created_at, id);
CREATE INDEX webhook_delivery_event ON crmapi.webhook_delivery
    (workspace_id, event_id);
CREATE INDEX webhook_delivery_endpoint ON crmapi.webhook_delivery
    (workspace_id, endpoint_id, created_at, id);

-- One request, and what was answered.
CREATE TABLE crmapi.webhook_attempt (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    delivery_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    started_at timestamptz(3) NOT NULL,
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    status integer,             -- HTTP's; null: no answer came
    error crmapi.line,
    answer crmapi.prose,        -- its first 1,024 bytes
    PRIMARY KEY (workspace_id, delivery_id, number),
    FOREIGN KEY (workspace_id, delivery_id) REFERENCES crmapi.webhook_delivery
        ON DELETE CASCADE
);

-- ---- events (contract 12.1) -------------------------------------------------

-- A statement has made the rows in the table "made": an event of the type that
-- the trigger names for each of them, and a delivery with a job to each
-- endpoint of its workspace that wants it. In the transaction that made them:
-- either all is there, or nothing.
-- No join here is of more than a few endpoints: a plan that was made for one
-- row is good for an import, too.
CREATE FUNCTION crmapi.webhook_made() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    happened text := TG_ARGV[0];
BEGIN
    IF NOT EXISTS (
        SELECT FROM (SELECT DISTINCT m.workspace_id FROM made m) w
        JOIN crmapi.webhook_endpoint e ON e.workspace_id = w.workspace_id
        WHERE e.disabled_at IS NULL AND happened = ANY (e.events)) THEN
        RETURN NULL;
    END IF;
    WITH wanted AS MATERIALIZED (
        SELECT e.workspace_id, e.id
        FROM (SELECT DISTINCT m.workspace_id FROM made m) w
        JOIN crmapi.webhook_endpoint e ON e.workspace_id = w.workspace_id
        WHERE e.disabled_at IS NULL AND happened = ANY (e.events)),
    events AS (
        INSERT INTO crmapi.webhook_event AS v (id, workspace_id, type,
                                               snapshot)
        SELECT gen_random_uuid(), m.workspace_id, happened, to_jsonb(m)
        FROM made m
        WHERE m.workspace_id IN (SELECT w.workspace_id FROM wanted w)
        RETURNING v.workspace_id, v.id),
    planned AS MATERIALIZED (
        SELECT v.workspace_id, gen_random_uuid() AS id, v.id AS event_id,
               w.id AS endpoint_id, nextval('crmapi.job_id_seq') AS job_id
        FROM events v JOIN wanted w ON w.workspace_id = v.workspace_id),
    jobs AS (
        INSERT INTO crmapi.job (id, workspace_id, kind, payload)
        OVERRIDING SYSTEM VALUE
        SELECT p.job_id, p.workspace_id, 'webhook.deliver',
               jsonb_build_object('delivery_id', p.id)
        FROM planned p)
    INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id,
                                         endpoint_id, job_id)
    SELECT p.id, p.workspace_id, p.event_id, p.endpoint_id, p.job_id
    FROM planned p;
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook AFTER INSERT ON crmapi.contact
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT
    EXECUTE FUNCTION crmapi.webhook_made('contact.created');
CREATE TRIGGER webhook AFTER INSERT ON crmapi.submission
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT
    EXECUTE FUNCTION crmapi.webhook_made('form.submitted');

-- ---- endpoints --------------------------------------------------------------

-- 32 bytes of PostgreSQL's strong randomness. Made here, so that no statement
-- holds them, which a log might show.
CREATE FUNCTION crmapi.webhook_key() RETURNS bytea
    LANGUAGE sql VOLATILE
    RETURN sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                  || uuid_send(gen_random_uuid()));

-- An endpoint gets nothing any more because of REASON: what is on its way to
-- it is cancelled. What is being sent at this moment may still arrive.
CREATE FUNCTION crmapi.webhook_disable(workspace uuid, endpoint uuid,
                                       reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.webhook_endpoint e
    SET disabled_at = coalesce(e.disabled_at, crmapi.now_ms()),
        disabled_reason = coalesce(e.disabled_reason, left(reason, 1000))
    WHERE e.workspace_id = webhook_disable.workspace
      AND e.id = webhook_disable.endpoint;
    WITH waiting AS (
        SELECT d.workspace_id, d.id FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_disable.workspace
          AND d.endpoint_id = webhook_disable.endpoint
          AND d.status = 'pending'
        ORDER BY d.id FOR UPDATE),
    ended AS (
        UPDATE crmapi.webhook_delivery d
        SET status = 'cancelled', next_at = NULL, finished_at = crmapi.now_ms()
        FROM waiting w
        WHERE d.workspace_id = w.workspace_id AND d.id = w.id
        RETURNING d.workspace_id, d.job_id)
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = crmapi.now_ms()
    FROM ended x
    WHERE j.workspace_id = x.workspace_id AND j.id = x.job_id
      AND j.state = 'ready';
END
$$;

-- ---- deliveries (contract 12.3) ---------------------------------------------

-- BODY is what the event says from now on, unless that is known. Returns what
-- it says, null if there is no such event.
CREATE FUNCTION crmapi.webhook_body(workspace uuid, event uuid, body text)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    UPDATE crmapi.webhook_event v
    SET body = coalesce(v.body, webhook_body.body), snapshot = NULL
    WHERE v.workspace_id = webhook_body.workspace
      AND v.id = webhook_body.event
    RETURNING v.body INTO said;
    RETURN said;
END
$$;

-- A delivery was attempted from STARTED_AT on: record what was answered and
-- what becomes of it. OUTCOME: delivered; retry (AFTER from MOMENT; null: from
-- now); failed, for good; gone, and its endpoint with it. Ends the job whose
-- lease must be held.
CREATE FUNCTION crmapi.webhook_attempted(workspace uuid, job bigint,
        owner text, attempt integer, delivery uuid, started_at timestamptz,
        duration_ms integer, http_status integer, error text, answer text,
        outcome text, after interval, moment timestamptz)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had crmapi.webhook_delivery;
    again boolean;
    due timestamptz := date_trunc('milliseconds',
        coalesce(moment, statement_timestamp()) + after);
BEGIN
    IF outcome = 'gone' THEN
        PERFORM FROM crmapi.webhook_endpoint e
        JOIN crmapi.webhook_delivery d ON d.workspace_id = e.workspace_id
            AND d.endpoint_id = e.id
        WHERE d.workspace_id = webhook_attempted.workspace
          AND d.id = webhook_attempted.delivery
        FOR NO KEY UPDATE OF e; -- imports hold its key by their deliveries
    END IF;
    SELECT d.* INTO had FROM crmapi.webhook_delivery d
    WHERE d.workspace_id = webhook_attempted.workspace
      AND d.id = webhook_attempted.delivery FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    -- cancelled or sent again by hand in the meantime: nothing is decided
    again := outcome = 'retry' AND had.status = 'pending'
        AND had.job_id = job;
    IF had.id IS NOT NULL THEN
        INSERT INTO crmapi.webhook_attempt (workspace_id, delivery_id, number,
            started_at, duration_ms, status, error, answer)
        VALUES (had.workspace_id, had.id, had.attempts + 1,
            date_trunc('milliseconds', webhook_attempted.started_at),
            webhook_attempted.duration_ms, webhook_attempted.http_status,
            left(webhook_attempted.error, 1000), webhook_attempted.answer);
        UPDATE crmapi.webhook_delivery d SET attempts = d.attempts + 1
        WHERE d.workspace_id = had.workspace_id AND d.id = had.id;
    END IF;
    IF again THEN
        UPDATE crmapi.webhook_delivery d SET next_at = due
        WHERE d.workspace_id = had.workspace_id AND d.id = had.id;
    ELSIF had.job_id = job
        AND (had.status = 'pending' OR outcome = 'delivered') THEN
        UPDATE crmapi.webhook_delivery d
        SET status = CASE outcome WHEN 'delivered' THEN 'delivered'
                     ELSE 'failed' END,
            next_at = NULL, finished_at = crmapi.now_ms()
        WHERE d.workspace_id = had.workspace_id AND d.id = had.id;
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt,
        CASE WHEN again THEN 'ready' ELSE 'done' END, error, after);
    UPDATE crmapi.job j SET run_at = due
    WHERE again AND j.workspace_id = webhook_attempted.workspace
      AND j.id = webhook_attempted.job;
    IF outcome = 'gone' AND had.id IS NOT NULL THEN
        PERFORM crmapi.webhook_disable(workspace, had.endpoint_id, error);
    END IF;
END
$$;

-- A delivery is not to be made, since its endpoint is disabled.
CREATE FUNCTION crmapi.webhook_cancelled(workspace uuid, job bigint,
        owner text, attempt integer, delivery uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.webhook_delivery d
    WHERE d.workspace_id = webhook_cancelled.workspace
      AND d.id = webhook_cancelled.delivery FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.webhook_delivery d
    SET status = 'cancelled', next_at = NULL, finished_at = crmapi.now_ms()
    WHERE d.workspace_id = webhook_cancelled.workspace
      AND d.id = webhook_cancelled.delivery AND d.status = 'pending'
      AND d.job_id = job;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'cancelled',
                           'the endpoint is disabled', NULL);
END
$$;

-- A delivery has to wait AFTER from MOMENT (null: from now), since others to
-- its endpoint are being made: the job comes again, and this was no attempt.
CREATE FUNCTION crmapi.webhook_wait(workspace uuid, job bigint, owner text,
        attempt integer, after interval, moment timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'ready', NULL,
                           after);
    UPDATE crmapi.job j SET attempts = j.attempts - 1,
        run_at = coalesce(moment, statement_timestamp()) + after
    WHERE j.workspace_id = webhook_wait.workspace AND j.id = webhook_wait.job;
END
$$;

-- Send again what TARGET is: a delivery, whatever became of it, unless it is
-- being made at this moment; or an endpoint: all its failed ones. Not to those
-- that are disabled. Returns how many there were.
CREATE FUNCTION crmapi.webhook_redrive(target uuid) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.id, d.job_id AS old_id
        FROM crmapi.webhook_delivery d
        WHERE (d.id = target OR (d.endpoint_id = target
                                 AND d.status = 'failed'))
          AND EXISTS (SELECT FROM crmapi.webhook_endpoint e
              WHERE e.workspace_id = d.workspace_id AND e.id = d.endpoint_id
                AND e.disabled_at IS NULL)
          AND NOT EXISTS (SELECT FROM crmapi.job j
              WHERE j.workspace_id = d.workspace_id AND j.id = d.job_id
                AND j.state = 'leased')
        ORDER BY d.id FOR UPDATE OF d),
    planned AS MATERIALIZED (
        SELECT c.*, nextval('crmapi.job_id_seq') AS job_id FROM chosen c),
    moved AS (
        UPDATE crmapi.webhook_delivery d SET status = 'pending',
            base = d.attempts, next_at = crmapi.now_ms(), finished_at = NULL,
            job_id = p.job_id
        FROM planned p
        WHERE d.workspace_id = p.workspace_id AND d.id = p.id),
    ended AS (
        UPDATE crmapi.job j SET state = 'cancelled',
            finished_at = crmapi.now_ms()
        FROM planned p
        WHERE j.workspace_id = p.workspace_id AND j.id = p.old_id
          AND j.state IN ('ready', 'dead'))
    INSERT INTO crmapi.job (id, workspace_id, kind, payload)
    OVERRIDING SYSTEM VALUE
    SELECT p.job_id, p.workspace_id, 'webhook.deliver',
           jsonb_build_object('delivery_id', p.id)
    FROM planned p;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhook_made', 'webhook_key',
        'webhook_disable', 'webhook_body', 'webhook_attempted',
        'webhook_cancelled', 'webhook_wait', 'webhook_redrive'] LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION crmapi.%I FROM PUBLIC',
                       name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['webhook_body', 'webhook_attempted',
        'webhook_cancelled', 'webhook_wait'] LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION crmapi.%I TO crmapi_worker',
                       name);
    END LOOP;
END
$$;
GRANT SELECT ON crmapi.webhook_endpoint, crmapi.webhook_event,
    crmapi.webhook_delivery, crmapi.webhook_attempt TO crmapi_worker;
-- upkeep
GRANT DELETE ON crmapi.webhook_event TO crmapi_worker;
