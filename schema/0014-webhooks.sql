-- SPDX-License-Identifier: Apache-2.0
-- 0014-webhooks.sql: endpoints, and the deliveries of events (contract 12)
--
-- Locks are taken in the order endpoint, delivery, job. No program's role reads an
-- endpoint's keys.

-- ---- tables ----------------------------------------------------------------

CREATE TABLE crmapi.webhook_endpoint (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    -- without user and password, since it is displayed and logged; in ASCII, as it
    -- goes over the wire: libcurl maps other names only in some locales
    url crmapi.url NOT NULL
        CHECK (url ~* '^https?://(?![/?#]|[^/?#]*[@\\])[!-~]+$'),
    events text[] COLLATE "C" NOT NULL CHECK (
        cardinality(events) > 0 AND events <@ ARRAY[
            'contact.created', 'contact.updated', 'contact.deleted',
            'contact.erased',
            'contact.merged',
            'company.created', 'company.updated', 'company.deleted',
            'pipeline_card.created', 'pipeline_card.updated',
            'pipeline_card.deleted', 'activity.created', 'activity.updated',
            'activity.deleted', 'conversation.created', 'conversation.updated',
            'conversation.deleted', 'message.created', 'message.updated',
            'form.submitted', 'submission.deleted', 'enrollment.updated']),
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
    FOREIGN KEY (workspace_id, event_id) REFERENCES crmapi.event
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

CREATE TRIGGER feed
    AFTER INSERT OR UPDATE OF events, disabled_at OR DELETE
    ON crmapi.webhook_endpoint
    FOR EACH ROW EXECUTE FUNCTION crmapi.event_feed_follow();

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
DECLARE
    at timestamptz := crmapi.now_ms();
BEGIN
    UPDATE crmapi.webhook_endpoint e
    SET disabled_at = coalesce(e.disabled_at, at),
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
        SET status = 'cancelled', next_at = NULL, finished_at = at
        FROM waiting w
        WHERE d.workspace_id = w.workspace_id AND d.id = w.id
        RETURNING d.workspace_id, d.job_id)
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = at
    FROM ended x
    WHERE j.workspace_id = x.workspace_id AND j.id = x.job_id
      AND j.state = 'ready';
END
$$;

-- ---- deliveries (contract 12.3) --------------------------------------------

-- Insert a delivery and a job for each endpoint of WORKSPACE that wants the
-- event EVENT of the type HAPPENED. For the API and the worker.
CREATE FUNCTION crmapi.webhook_plan(workspace uuid, event uuid,
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

-- Set the body of an event to BODY unless it has one. Returns its body, NULL
-- if there is no such event. Locks: event. For the worker.
CREATE FUNCTION crmapi.webhook_body(workspace uuid, event uuid,
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
    ends boolean;
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
    ends := NOT again AND had.job_id = job
        AND (had.status = 'pending' OR outcome = 'delivered');
    IF had.id IS NOT NULL THEN
        INSERT INTO crmapi.webhook_attempt (workspace_id, delivery_id, number,
            started_at, duration_ms, status, error, answer)
        VALUES (had.workspace_id, had.id, had.attempts + 1,
            date_trunc('milliseconds', webhook_attempted.started_at),
            webhook_attempted.duration_ms, webhook_attempted.http_status,
            left(webhook_attempted.error, 1000), webhook_attempted.answer);
        -- once: a second change of the row would look for its endpoint, and
        -- wait for who removes that and waits for the row
        UPDATE crmapi.webhook_delivery d SET attempts = d.attempts + 1,
            status = CASE WHEN NOT ends THEN d.status
                     WHEN outcome = 'delivered' THEN 'delivered'
                     ELSE 'failed' END,
            next_at = CASE WHEN again THEN due
                      WHEN NOT ends THEN d.next_at END,
            finished_at = CASE WHEN ends THEN crmapi.now_ms()
                          ELSE d.finished_at END
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
DECLARE
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'ready', NULL,
                           after);
    UPDATE crmapi.job j SET attempts = j.attempts - 1,
        run_at = at + after
    WHERE j.workspace_id = webhook_wait.workspace AND j.id = webhook_wait.job;
END
$$;

-- Send TARGET again in WORKSPACE: a delivery in any state unless its job is
-- leased, or all deliveries of an endpoint that have failed or wait for another
-- attempt. A disabled endpoint gets none. Returns how many. Locks: delivery, job.
-- For the owner.
CREATE FUNCTION crmapi.webhook_redrive(workspace uuid, target uuid)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    targets CONSTANT uuid[] := ARRAY(
        SELECT d.id FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_redrive.workspace
          AND (d.id = target OR (d.endpoint_id = target
               AND (d.status = 'failed'
                    OR (d.status = 'pending' AND d.attempts > d.base)))));
    n bigint;
BEGIN
    -- a job that is being claimed is leased in the snapshot of the next statement
    PERFORM FROM crmapi.webhook_delivery d
    WHERE d.workspace_id = webhook_redrive.workspace AND d.id = ANY (targets)
    ORDER BY d.id FOR UPDATE;
    PERFORM FROM crmapi.job j
    WHERE j.workspace_id = webhook_redrive.workspace AND j.id = ANY (ARRAY(
        SELECT d.job_id FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_redrive.workspace
          AND d.id = ANY (targets)))
    ORDER BY j.id FOR UPDATE;
    WITH chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.id, d.job_id AS old_id
        FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_redrive.workspace
          AND d.id = ANY (targets)
          AND (d.id = target OR d.status <> 'delivered')
          AND EXISTS (SELECT FROM crmapi.webhook_endpoint e
              WHERE e.workspace_id = webhook_redrive.workspace
                AND e.id = d.endpoint_id AND e.disabled_at IS NULL)
          AND NOT EXISTS (SELECT FROM crmapi.job j
              WHERE j.workspace_id = webhook_redrive.workspace
                AND j.id = d.job_id AND j.state = 'leased')
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

-- Plan the delivery of an event with BODY, which is only a test, to ENDPOINT, and
-- return its id: NULL if the endpoint is disabled. The id of the event is behind all
-- that the log may have, so that no reader of GET /events finds it. Locks: endpoint. For
-- the owner.
CREATE FUNCTION crmapi.webhook_test(workspace uuid, endpoint uuid, body text)
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    event CONSTANT uuid := overlay(gen_random_uuid()::text PLACING 'ffffffff'
                                   FROM 1)::uuid;
    delivery CONSTANT uuid := gen_random_uuid();
    job CONSTANT bigint := nextval('crmapi.job_id_seq');
BEGIN
    PERFORM FROM crmapi.webhook_endpoint e
    WHERE e.workspace_id = webhook_test.workspace
      AND e.id = webhook_test.endpoint AND e.disabled_at IS NULL
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, body)
    VALUES (event, webhook_test.workspace, 'webhook.test', webhook_test.body);
    INSERT INTO crmapi.job (id, workspace_id, kind, payload)
    OVERRIDING SYSTEM VALUE
    VALUES (job, webhook_test.workspace, 'webhook.deliver',
            jsonb_build_object('delivery_id', delivery));
    INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id,
                                         endpoint_id, job_id)
    VALUES (delivery, webhook_test.workspace, event, webhook_test.endpoint,
            job);
    RETURN delivery;
END
$$;

-- ---- signatures (contract 12.2) --------------------------------------------

-- The "v1" signature of TEXT by KEY; NULL if KEY is. Internal.
CREATE FUNCTION crmapi.webhook_mac(text text, key bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
    RETURN 'v1,' || encode(crmapi.mac(convert_to(text, 'UTF8'), key), 'base64');

-- The public id of the event of DELIVERY, which is the same in all attempts, and the
-- signatures of its body as sent at SENT_AT (seconds since 1970). The first signature
-- is by the endpoint's key. Behind a space follows that by the old key, if it is valid
-- at MOMENT (null: now). No row if there is no such delivery or the event has no
-- body. For the worker.
CREATE FUNCTION crmapi.webhook_sign(workspace uuid, delivery uuid,
        sent_at text, moment timestamptz)
    RETURNS TABLE (id text, signatures text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT m.id, concat_ws(' ',
        crmapi.webhook_mac(m.text, e.key),
        CASE WHEN e.old_key_until > coalesce(webhook_sign.moment,
                                             statement_timestamp())
        THEN crmapi.webhook_mac(m.text, e.old_key) END)
    FROM crmapi.webhook_delivery d
    JOIN crmapi.event v ON v.workspace_id = d.workspace_id
        AND v.id = d.event_id AND v.body IS NOT NULL
    JOIN crmapi.webhook_endpoint e ON e.workspace_id = d.workspace_id
        AND e.id = d.endpoint_id,
    LATERAL (SELECT 'msg_' || replace(v.id::text, '-', '') AS id) n,
    LATERAL (SELECT n.id, n.id || '.' || webhook_sign.sent_at || '.' || v.body
             AS text) m
    WHERE d.workspace_id = webhook_sign.workspace
      AND d.id = webhook_sign.delivery;
END
$$;
