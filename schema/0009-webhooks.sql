-- SPDX-License-Identifier: Apache-2.0
-- 0009-webhooks.sql: webhook endpoints, events, deliveries (contract 12)
--
-- Triggers insert events; the API has no other access. Locks are taken in the
-- order endpoint, delivery, job. No program's role reads an endpoint's keys.

-- The functions below bind hmac() when they are created.
SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname),
                  true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto';

-- ---- tables ----------------------------------------------------------------

CREATE TABLE crmapi.webhook_endpoint (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    -- without user and password, since it is displayed and logged
    url crmapi.url NOT NULL
        CHECK (url ~ ('^https?://[^[:space:][:cntrl:]/?#@\\]+'
                      '([/?#][^[:space:][:cntrl:]]*)?$')),
    events text[] COLLATE "C" NOT NULL
        CHECK (cardinality(events) > 0
               AND events <@ '{contact.created,form.submitted}'),
    -- The keys that sign (Standard Webhooks 1.0: 24 to 64 bytes). The old one
    -- signs as well until old_key_until.
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

-- An event. snapshot is the row that was inserted, until the first attempt
-- makes body of it: every attempt sends the same bytes.
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
-- events that upkeep deletes
CREATE INDEX webhook_event_old ON crmapi.webhook_event (created_at);

-- The delivery of an event to an endpoint. job_id is its current job; an older
-- one has no effect. base is the number of attempts before an operator had it
-- sent again: the retry schedule starts over from there.
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

-- An attempt: a request and its response.
CREATE TABLE crmapi.webhook_attempt (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    delivery_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    started_at timestamptz(3) NOT NULL,
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    status integer,             -- of HTTP; null: no response
    error crmapi.line,
    answer crmapi.prose,        -- the response's first 1,024 bytes
    PRIMARY KEY (workspace_id, delivery_id, number),
    FOREIGN KEY (workspace_id, delivery_id) REFERENCES crmapi.webhook_delivery
        ON DELETE CASCADE
);

-- ---- events (contract 12.1) ------------------------------------------------

-- Insert an event of the type in the trigger's argument for each row of the
-- transition table "made", and a delivery and a job for each endpoint of the
-- row's workspace that subscribes to it. The rows, events and jobs commit
-- together. Each workspace has few endpoints, so a plan that was made for one
-- row is good for an import. A trigger function.
CREATE FUNCTION crmapi.webhook_emit() RETURNS trigger
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
    WITH subscribed AS MATERIALIZED (
        SELECT e.workspace_id, e.id
        FROM (SELECT DISTINCT m.workspace_id FROM made m) w
        JOIN crmapi.webhook_endpoint e ON e.workspace_id = w.workspace_id
        WHERE e.disabled_at IS NULL AND happened = ANY (e.events)),
    events AS (
        INSERT INTO crmapi.webhook_event AS v (id, workspace_id, type,
                                               snapshot)
        SELECT gen_random_uuid(), m.workspace_id, happened, to_jsonb(m)
        FROM made m
        WHERE m.workspace_id IN (SELECT w.workspace_id FROM subscribed w)
        RETURNING v.workspace_id, v.id),
    planned AS MATERIALIZED (
        SELECT v.workspace_id, gen_random_uuid() AS id, v.id AS event_id,
               w.id AS endpoint_id, nextval('crmapi.job_id_seq') AS job_id
        FROM events v JOIN subscribed w ON w.workspace_id = v.workspace_id),
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
    EXECUTE FUNCTION crmapi.webhook_emit('contact.created');
CREATE TRIGGER webhook AFTER INSERT ON crmapi.submission
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT
    EXECUTE FUNCTION crmapi.webhook_emit('form.submitted');

-- ---- endpoints -------------------------------------------------------------

-- A new key: 32 random bytes of PostgreSQL's cryptographically strong source.
-- Made here, so that it is in no statement that a log might show. For the
-- owner.
CREATE FUNCTION crmapi.webhook_key() RETURNS bytea
    LANGUAGE sql VOLATILE
    RETURN sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                  || uuid_send(gen_random_uuid()));

-- Disable an endpoint because of REASON and cancel its pending deliveries. A
-- request that is being sent may still arrive. Locks: endpoint, delivery, job.
-- Internal.
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

-- ---- deliveries (contract 12.3) --------------------------------------------

-- Set the body of an event to BODY unless it has one. Returns its body, NULL
-- if there is no such event. Locks: event. For the worker.
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

-- Record an attempt that began at STARTED_AT, its response, and its OUTCOME:
--   delivered
--   retry      AFTER from MOMENT (null: now)
--   failed     for good
--   gone       the same, and the endpoint is disabled
-- Ends JOB or makes it ready again. Locks: endpoint (gone only), delivery, job
-- (lost lease: CRM01). For the worker.
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
        FOR NO KEY UPDATE OF e; -- new deliveries hold its key
    END IF;
    SELECT d.* INTO had FROM crmapi.webhook_delivery d
    WHERE d.workspace_id = webhook_attempted.workspace
      AND d.id = webhook_attempted.delivery FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    -- if it was cancelled or redriven meanwhile, there is no retry
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

-- Cancel a delivery whose endpoint is disabled. Ends JOB. Locks: delivery,
-- job. For the worker.
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

-- Postpone JOB by AFTER from MOMENT (null: now), because too many deliveries
-- to its endpoint are in progress. It does not count as an attempt. Locks:
-- job. For the worker.
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

-- Send TARGET again in WORKSPACE: a delivery in any state unless its job is
-- leased, or all failed deliveries of an endpoint. A disabled endpoint gets
-- none. Returns how many. Locks: delivery, job. For the owner.
CREATE FUNCTION crmapi.webhook_redrive(workspace uuid, target uuid)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.id, d.job_id AS old_id
        FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_redrive.workspace
          AND (d.id = target OR (d.endpoint_id = target
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

-- ---- signatures (contract 12.2) --------------------------------------------

-- The "v1" signature of TEXT by KEY; NULL if KEY is. Internal.
CREATE FUNCTION crmapi.webhook_mac(text text, key bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
    RETURN 'v1,' || encode(hmac(convert_to(text, 'UTF8'), key, 'sha256'),
                           'base64');

-- The public id of the event of DELIVERY, the same in all attempts, and the
-- signatures of its body as sent at SENT_AT (seconds since 1970), with a space
-- between them: by the endpoint's key, and by the old key if that is valid at
-- MOMENT (null: now). No row if there is no such delivery or the event has no
-- body. For the worker.
CREATE FUNCTION crmapi.webhook_sign(workspace uuid, delivery uuid,
                                    sent_at text, moment timestamptz)
    RETURNS TABLE (id text, signatures text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
BEGIN ATOMIC
    SELECT m.id, concat_ws(' ', crmapi.webhook_mac(m.text, e.key),
        CASE WHEN e.old_key_until > coalesce(moment, statement_timestamp())
        THEN crmapi.webhook_mac(m.text, e.old_key) END)
    FROM crmapi.webhook_delivery d
    JOIN crmapi.webhook_event v ON v.workspace_id = d.workspace_id
        AND v.id = d.event_id AND v.body IS NOT NULL
    JOIN crmapi.webhook_endpoint e ON e.workspace_id = d.workspace_id
        AND e.id = d.endpoint_id,
    LATERAL (SELECT 'msg_' || replace(v.id::text, '-', '') AS id) n,
    LATERAL (SELECT n.id, n.id || '.' || sent_at || '.' || v.body AS text) m
    WHERE d.workspace_id = webhook_sign.workspace
      AND d.id = webhook_sign.delivery;
END;

-- ---- rights ----------------------------------------------------------------

GRANT SELECT (id, workspace_id, url, events, disabled_at, disabled_reason,
              created_at) ON crmapi.webhook_endpoint TO crmapi_worker;
GRANT SELECT ON crmapi.webhook_event, crmapi.webhook_delivery,
    crmapi.webhook_attempt TO crmapi_worker;
GRANT DELETE ON crmapi.webhook_event TO crmapi_worker;

REVOKE EXECUTE ON FUNCTION crmapi.webhook_emit, crmapi.webhook_key,
    crmapi.webhook_disable, crmapi.webhook_body, crmapi.webhook_attempted,
    crmapi.webhook_cancelled, crmapi.webhook_wait, crmapi.webhook_redrive,
    crmapi.webhook_mac, crmapi.webhook_sign FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.webhook_body, crmapi.webhook_attempted,
    crmapi.webhook_cancelled, crmapi.webhook_wait, crmapi.webhook_sign
    TO crmapi_worker;
