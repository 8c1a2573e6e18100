-- SPDX-License-Identifier: Apache-2.0
-- 0018-one-node.sql: functions and triggers by the rules of schema/README, so
-- that the rows of a workspace may be on any server (contract 16.4)
-- min_module: 12
--
-- Functions over tables become PL/pgSQL. A session plans their statements once;
-- an SQL function that cannot be inlined plans them in each statement. And no
-- table depends on a function that depends on tables.

-- step: transaction: functions over tables
-- The function below binds hmac() when it is created.
SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname),
                  true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto';

-- HMAC-SHA-256 of DATA by KEY, in whatever schema pgcrypto is. Internal.
CREATE FUNCTION crmapi.mac(data bytea, key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hmac(data, key, 'sha256');
REVOKE EXECUTE ON FUNCTION crmapi.mac FROM PUBLIC;

-- Delete the workspace TARGET and all its rows, in one cascade: rows first,
-- then the checks of foreign keys. It takes 50 to 60 microseconds per contact.
-- For the owner.
CREATE OR REPLACE FUNCTION crmapi.workspace_delete(target uuid) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM crmapi.workspace w WHERE w.id = workspace_delete.target;
END
$$;

-- The live key with the hash HASH: one row or none, for programs of before
-- 0014. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug
    FROM crmapi.live_key k WHERE k.key_hash = key_find.hash;
END
$$;

-- The live key with the hash HASH and its terms: one row or none. NETWORKS are
-- separated by spaces. For the API.
CREATE OR REPLACE FUNCTION crmapi.key_look_up(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text, terms uuid,
                   read_limit integer, write_limit integer, networks text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug, k.terms,
        k.read_limit, k.write_limit, array_to_string(k.networks, ' ')
    FROM crmapi.live_key k WHERE k.key_hash = key_look_up.hash;
END
$$;

-- The live token with the hash HASH: one row or none, as key_find(). For the
-- API.
CREATE OR REPLACE FUNCTION crmapi.intake_key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug
    FROM crmapi.live_intake k WHERE k.key_hash = intake_key_find.hash;
END
$$;

-- The signature of HEAD by its workspace's key. HEAD is the first 58 bytes of
-- a token: version, purpose, workspace, two more ids, expiry. NULL if HEAD is
-- no such thing or its workspace does not exist. Internal.
CREATE OR REPLACE FUNCTION crmapi.token_mac(head bytea) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid := CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END;
BEGIN
    RETURN (SELECT crmapi.mac(head, k.key) FROM crmapi.link_key k
            WHERE k.workspace_id = workspace);
END
$$;

-- The same as token_mac() by the key before, NULL if it verifies no more.
-- Internal.
CREATE OR REPLACE FUNCTION crmapi.token_old_mac(head bytea) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid := CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END;
BEGIN
    RETURN (SELECT crmapi.mac(head, k.old_key) FROM crmapi.link_key k
            WHERE k.workspace_id = workspace AND k.old_key_until > now());
END
$$;

-- Give WORKSPACE a new key for its links. The one before verifies until UNTIL.
-- False if one before still does: links signed with it would die. For the
-- owner.
CREATE OR REPLACE FUNCTION crmapi.link_key_rotate(workspace uuid,
                                                  until timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made bytea := sha256(uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
BEGIN
    UPDATE crmapi.link_key k
    SET old_key = k.key, old_key_until = link_key_rotate.until, key = made
    WHERE k.workspace_id = link_key_rotate.workspace
      AND (k.old_key_until IS NULL OR k.old_key_until <= now());
    RETURN FOUND;
END
$$;

-- End the old key of WORKSPACE's links. For the owner.
CREATE OR REPLACE FUNCTION crmapi.link_key_drop(workspace uuid) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE crmapi.link_key k SET old_key = NULL, old_key_until = NULL
    WHERE k.workspace_id = link_key_drop.workspace;
END
$$;

-- Add N rows of KIND to the total of WORKSPACE and, unless it is null, of the
-- agent BOT. Internal.
CREATE OR REPLACE FUNCTION crmapi.counter_add(workspace uuid, kind text,
                                              bot uuid, n bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT counter_add.workspace, counter_add.kind, p.parent,
           crmapi.counter_slot(), counter_add.n
    FROM unnest(ARRAY['00000000-0000-0000-0000-000000000000',
                      counter_add.bot]) p(parent)
    WHERE p.parent IS NOT NULL
    ORDER BY p.parent
    ON CONFLICT (workspace_id, kind, parent, slot)
    DO UPDATE SET n = c.n + excluded.n;
END
$$;

-- The totals that differ from the number of rows: no row if all are correct.
-- It counts everything, in one snapshot. For the owner.
CREATE OR REPLACE FUNCTION crmapi.counter_verify()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH owned AS (
        SELECT r.workspace_id, 'contact' AS kind, r.bot_id
        FROM crmapi.contact r
        UNION ALL
        SELECT r.workspace_id, 'company', r.bot_id FROM crmapi.company r
        UNION ALL
        SELECT r.workspace_id, 'conversation', r.bot_id
        FROM crmapi.conversation r WHERE r.deleted IS NOT TRUE),
    truth AS (
        SELECT o.workspace_id, o.kind,
               coalesce(o.bot_id, '00000000-0000-0000-0000-000000000000')
                   AS parent, count(*) AS n
        FROM owned o GROUP BY GROUPING SETS ((1, 2), (1, 2, o.bot_id))
        UNION ALL
        SELECT r.workspace_id, 'pipeline_card',
               '00000000-0000-0000-0000-000000000000', count(*)
        FROM crmapi.pipeline_card r WHERE r.archived_at IS NULL GROUP BY 1),
    totals AS (
        SELECT c.workspace_id, c.kind, c.parent, sum(c.n)::bigint AS n
        FROM crmapi.counter c GROUP BY 1, 2, 3)
    SELECT workspace_id, kind, parent, coalesce(c.n, 0), coalesce(t.n, 0)
    FROM truth t FULL JOIN totals c USING (workspace_id, kind, parent)
    WHERE coalesce(c.n, 0) <> coalesce(t.n, 0);
END
$$;

-- Add to the totals that differ what they lack, and return them as
-- counter_verify() does. Both use one snapshot, so that what other
-- transactions add meanwhile stays correct. For the worker.
CREATE OR REPLACE FUNCTION crmapi.counter_mend()
    RETURNS TABLE (workspace_id uuid, kind text, parent uuid, counted bigint,
                   actual bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH differing AS MATERIALIZED (
        SELECT v.* FROM crmapi.counter_verify() v),
    mended AS (
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        SELECT w.workspace_id, w.kind, w.parent, -2, w.actual - w.counted
        FROM differing w
        WHERE EXISTS (SELECT FROM crmapi.workspace s
                      WHERE s.id = w.workspace_id)
        ORDER BY 1, 2, 3
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n)
    SELECT w.workspace_id, w.kind, w.parent, w.counted, w.actual
    FROM differing w;
END
$$;

-- Whether ADDRESS, which CHANNEL uses, is suppressed. The API, which may not
-- list suppressions, sends such an address no greeting. For the API and the
-- worker.
CREATE OR REPLACE FUNCTION crmapi.is_suppressed(workspace uuid, channel text,
                                                address text) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.suppression s
        WHERE s.workspace_id = is_suppressed.workspace
          AND s.kind = CASE is_suppressed.channel WHEN 'email' THEN 'email'
                       ELSE 'phone' END
          AND s.address = CASE is_suppressed.channel WHEN 'email'
              THEN crmapi.fold(is_suppressed.address)
              ELSE crmapi.phone_fold(is_suppressed.address) END);
END
$$;

-- A hash of the texts of an enrollment's steps. It changes with each of them:
-- a page approves what it showed. For the API.
CREATE OR REPLACE FUNCTION crmapi.review_digest(workspace uuid,
                                                enrollment uuid)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT encode(sha256(convert_to(coalesce(jsonb_agg(
            jsonb_build_array(s.id, s.channel, s.to_identifier,
            s.email_subject, s.email_body, s.sms_body, s.voice_objective,
            s.voice_script) ORDER BY s.sort_order)::text, ''), 'UTF8')), 'hex')
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = review_digest.workspace
          AND s.enrollment_id = review_digest.enrollment);
END
$$;

-- Since when WORKSPACE is held, and why; no row if it is not. If the database
-- is held as well, the workspace's own hold is shown. For the worker.
CREATE OR REPLACE FUNCTION crmapi.hold_of(workspace uuid)
    RETURNS TABLE (held_at timestamptz, reason text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT coalesce(h.held_at, i.held_at),
        coalesce(h.reason::text, i.held_reason::text)
    FROM crmapi.instance i
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = hold_of.workspace
    WHERE h.workspace_id IS NOT NULL OR i.held_at IS NOT NULL;
END
$$;

-- The public id of the event of DELIVERY, the same in all attempts, and the
-- signatures of its body as sent at SENT_AT (seconds since 1970), with a space
-- between them: by the endpoint's key, and by the old key if that is valid at
-- MOMENT (null: now). No row if there is no such delivery or the event has no
-- body. For the worker.
CREATE OR REPLACE FUNCTION crmapi.webhook_sign(workspace uuid, delivery uuid,
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

-- step: transaction: statements that say which workspace themselves
-- Make the key of a new workspace. gen_random_uuid() is PostgreSQL's
-- cryptographically strong source of randomness. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.link_key_make() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bytea := sha256(uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
BEGIN
    INSERT INTO crmapi.link_key (workspace_id, key)
    VALUES (NEW.id, made);
    RETURN NULL;
END
$$;

-- End an enrollment that is live as OUTCOME because of REASON: scheduled steps
-- and ready jobs are cancelled. A step that is being sent, and its job, are
-- left to the worker, which has handed it over. Returns the status
-- before, NULL if there is no such enrollment. Locks: enrollment, step, job.
-- For the worker.
CREATE OR REPLACE FUNCTION crmapi.enrollment_end(workspace uuid,
        enrollment uuid, outcome text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment FOR UPDATE;
    IF had IS NULL OR NOT crmapi.enrollment_is_live(had) THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment e SET status = outcome,
        stop_reason = CASE WHEN outcome <> 'failed' THEN reason END,
        generation_error = CASE WHEN outcome = 'failed' THEN reason END
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment;
    UPDATE crmapi.enrollment_step s SET status = 'cancelled'
    WHERE s.workspace_id = enrollment_end.workspace
      AND s.enrollment_id = enrollment_end.enrollment
      AND s.status = 'scheduled';
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = crmapi.now_ms()
    WHERE j.workspace_id = enrollment_end.workspace AND j.state = 'ready'
      AND j.payload ->> 'enrollment_id' = enrollment_end.enrollment::text
      AND NOT EXISTS (SELECT FROM crmapi.enrollment_step s
          WHERE s.workspace_id = enrollment_end.workspace
            AND s.status = 'sending'
            AND s.id = (j.payload ->> 'step_id')::uuid);
    RETURN had;
END
$$;

-- Never write to EMAIL or PHONE (the other is null) again, because of REASON:
-- the live enrollments of contacts with the address stop. Returns how many
-- stopped. An address may be suppressed already. For the API and the worker.
CREATE OR REPLACE FUNCTION crmapi.suppress(workspace uuid, email text,
        phone text, reason text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrollment uuid;
    made uuid := gen_random_uuid();
    n bigint := 0;
BEGIN
    INSERT INTO crmapi.suppression (id, workspace_id, email, phone_number,
                                    reason)
    VALUES (made, suppress.workspace, suppress.email,
            suppress.phone, suppress.reason)
    ON CONFLICT ON CONSTRAINT suppression_workspace_id_kind_address_key
    DO NOTHING;
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = suppress.workspace
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND e.contact_id IN (SELECT crmapi.contacts_with(
              suppress.workspace, suppress.email, suppress.phone))
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_unsubscribed', reason)) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- Send TARGET again in WORKSPACE: a delivery in any state unless its job is
-- leased, or all failed deliveries of an endpoint. A disabled endpoint gets
-- none. Returns how many. Locks: delivery, job. For the owner.
CREATE OR REPLACE FUNCTION crmapi.webhook_redrive(workspace uuid, target uuid)
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

-- step: transaction: triggers that are told their table's name
-- Count contacts or companies: the trigger's argument says which. A trigger
-- function.
CREATE OR REPLACE FUNCTION crmapi.counter_owned() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
    SELECT d.workspace_id, TG_ARGV[0],
           coalesce(d.bot_id, '00000000-0000-0000-0000-000000000000'),
           crmapi.counter_slot(),
           CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END
    FROM (SELECT r.workspace_id, r.bot_id, count(*) AS n FROM changed r
          GROUP BY GROUPING SETS ((1), (1, 2))) d
    WHERE EXISTS (SELECT FROM crmapi.workspace w WHERE w.id = d.workspace_id)
    ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, kind, parent, slot)
    DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END
$$;

-- Count a contact or company that has another agent now: the trigger's argument
-- says which. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.counter_bot_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.counter_add(OLD.workspace_id, TG_ARGV[0], OLD.bot_id, -1);
    PERFORM crmapi.counter_add(NEW.workspace_id, TG_ARGV[0], NEW.bot_id, 1);
    RETURN NULL;
END
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['company', 'contact'] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER counter_insert
            AFTER INSERT ON crmapi.%I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION crmapi.counter_owned(%L)',
            name, name);
        EXECUTE format('CREATE OR REPLACE TRIGGER counter_delete
            AFTER DELETE ON crmapi.%I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION crmapi.counter_owned(%L)',
            name, name);
        EXECUTE format('CREATE OR REPLACE TRIGGER counter_update
            AFTER UPDATE OF bot_id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.bot_id IS DISTINCT FROM OLD.bot_id)
            EXECUTE FUNCTION crmapi.counter_bot_change(%L)', name, name);
    END LOOP;
END
$$;
