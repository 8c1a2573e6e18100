-- SPDX-License-Identifier: Apache-2.0
-- 0019-upkeep.sql: periodic tasks, which lock and write within one workspace at a
-- time (schema/README, One workspace)
--
-- Each function first looks for rows over all workspaces, without a lock. Then
-- one statement for each workspace locks those that still are what was looked
-- for, and writes them. A row that another transaction has locked counts: it is
-- left to the next run. The rows of a batch are an array, which is read once: where
-- the planner took a workspace for one of few rows, it compared each row of a list
-- with each of the workspace.

-- ---- tasks -----------------------------------------------------------------

-- When each task of upkeep last ran; one daemon at a time runs it. No
-- workspace owns them.
CREATE TABLE crmapi.upkeep (
    task text COLLATE "C" PRIMARY KEY,
    begun_at timestamptz(3) NOT NULL,
    ended_at timestamptz(3),
    result crmapi.prose
);

-- Begin TASK at MOMENT (null: now) unless a daemon has begun it within the
-- time EVERY; return whether it was begun. One that was begun later than now was so
-- before the clock was set back. For the worker.
CREATE FUNCTION crmapi.upkeep_begin(task text, every interval,
                                    moment timestamptz) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at timestamptz := coalesce(moment, statement_timestamp());
BEGIN
    INSERT INTO crmapi.upkeep AS u (task, begun_at)
    VALUES (upkeep_begin.task, at)
    ON CONFLICT ON CONSTRAINT upkeep_pkey DO UPDATE
        SET begun_at = excluded.begun_at, ended_at = NULL
        WHERE u.begun_at <= at - every OR u.begun_at > at;
    RETURN FOUND;
END
$$;

-- ---- what they do ----------------------------------------------------------

-- Make the jobs ready again whose lease has expired; return how many. In the
-- first ten seconds of the server none: daemons get time to reconnect. Locks:
-- job, skipping locked ones. For the worker.
CREATE FUNCTION crmapi.job_reap() RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at CONSTANT timestamptz := statement_timestamp();
    workspace uuid;
    ids bigint[];
    n bigint;
    done bigint := 0;
BEGIN
    IF pg_postmaster_start_time() >= at - interval '10 seconds' THEN
        RETURN 0;
    END IF;
    FOR workspace, ids IN
        SELECT j.workspace_id, array_agg(j.id) FROM crmapi.job j
        WHERE j.state = 'leased' AND j.leased_until < at
        GROUP BY j.workspace_id
    LOOP
        UPDATE crmapi.job j SET state = 'ready', leased_by = NULL,
            leased_until = NULL, run_at = at,
            last_error = 'the worker ' || j.leased_by || ' fell silent'
        WHERE j.workspace_id = workspace AND j.id IN (
            SELECT s.id FROM crmapi.job s
            WHERE s.workspace_id = workspace AND s.id = ANY (ids)
              AND s.state = 'leased' AND s.leased_until < at
            FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS n = ROW_COUNT;
        done := done + n;
    END LOOP;
    RETURN done;
END
$$;

-- Close active conversations without activity since BEFORE, of the N that are
-- found first; return how many. Locks: conversation, skipping locked ones. For
-- the worker.
CREATE FUNCTION crmapi.conversation_idle(before timestamptz,
                                         n integer)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid;
    ids uuid[];
    closed bigint;
    done bigint := 0;
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.id) FROM (
            SELECT c.workspace_id, c.id FROM crmapi.conversation c
            WHERE c.active AND crmapi.conversation_last_activity(
                c.last_active_at, c.last_message_at, c.activated_at,
                c.created_at) < before
            LIMIT n) f
        GROUP BY f.workspace_id
    LOOP
        UPDATE crmapi.conversation c SET active = false
        WHERE c.workspace_id = workspace AND c.id = ANY (ARRAY(
            SELECT i.id FROM crmapi.conversation i
            WHERE i.workspace_id = workspace AND i.id = ANY (ids)
              AND i.active AND crmapi.conversation_last_activity(
                  i.last_active_at, i.last_message_at, i.activated_at,
                  i.created_at) < before
            FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS closed = ROW_COUNT;
        done := done + closed;
    END LOOP;
    RETURN done;
END
$$;

-- Delete ids of events that intake took before BEFORE, of the N that are found
-- first; return how many. Locks: event, skipping locked ones. For the worker.
CREATE FUNCTION crmapi.intake_trim(before timestamptz, n integer)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    workspace uuid;
    ids text[];
    gone bigint;
    done bigint := 0;
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.event_id) FROM (
            SELECT o.workspace_id, o.event_id FROM crmapi.intake_event o
            WHERE o.created_at < before LIMIT n) f
        GROUP BY f.workspace_id
    LOOP
        DELETE FROM crmapi.intake_event v
        WHERE v.workspace_id = workspace AND v.event_id = ANY (ARRAY(
            SELECT o.event_id FROM crmapi.intake_event o
            WHERE o.workspace_id = workspace AND o.event_id = ANY (ids)
            FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS gone = ROW_COUNT;
        done := done + gone;
    END LOOP;
    RETURN done;
END
$$;

-- Delete originals of mails from before BEFORE, and their HTML, of the N that are
-- found first; return how many. Locks: original, skipping locked ones; HTML. For
-- the worker.
CREATE FUNCTION crmapi.original_trim(before timestamptz, n integer)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    workspace uuid;
    ids uuid[];
    done bigint := 0;
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.message_id) FROM (
            SELECT o.workspace_id, o.message_id FROM crmapi.original o
            WHERE o.number = 1 AND o.created_at < before LIMIT n) f
        GROUP BY f.workspace_id
    LOOP
        ids := ARRAY(
            SELECT o.message_id FROM crmapi.original o
            WHERE o.workspace_id = workspace AND o.message_id = ANY (ids)
              AND o.number = 1
            FOR UPDATE SKIP LOCKED);
        DELETE FROM crmapi.message_html h
        WHERE h.workspace_id = workspace AND h.message_id = ANY (ids);
        DELETE FROM crmapi.original d
        WHERE d.workspace_id = workspace AND d.message_id = ANY (ids);
        done := done + cardinality(ids);
    END LOOP;
    RETURN done;
END
$$;

-- Delete rows of the audit from before BEFORE, of the N that are found first; return
-- how many. What is younger than 30 days stays, whatever BEFORE is: so no daemon can
-- remove what was just done. Locks: audit, skipping locked ones. For the worker.
CREATE FUNCTION crmapi.audit_trim(before timestamptz, n integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bound CONSTANT timestamptz := least(before, now() - interval '30 days');
    workspace uuid;
    ids uuid[];
    gone bigint;
    done bigint := 0;
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.id) FROM (
            SELECT a.workspace_id, a.id FROM crmapi.audit a
            WHERE a.at < bound LIMIT n) f
        GROUP BY f.workspace_id
    LOOP
        DELETE FROM crmapi.audit d
        WHERE d.workspace_id = workspace AND d.id = ANY (ARRAY(
            SELECT a.id FROM crmapi.audit a
            WHERE a.workspace_id = workspace AND a.id = ANY (ids)
            FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS gone = ROW_COUNT;
        done := done + gone;
    END LOOP;
    RETURN done;
END
$$;

-- Delete answers that are older than 24 hours, of the BATCH that are found
-- first; return how many. Locks: answer, skipping locked ones. For the worker.
CREATE FUNCTION crmapi.idempotency_trim(batch integer)
    RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    workspace uuid;
    keys bytea[];
    gone integer;
    done integer := 0;
BEGIN
    FOR workspace, keys IN
        SELECT f.workspace_id, array_agg(f.key) FROM (
            SELECT o.workspace_id, o.key FROM crmapi.idempotent_answer o
            WHERE o.created_at <= now() - interval '24 hours'
            LIMIT batch) f
        GROUP BY f.workspace_id
    LOOP
        -- the key may have been used again: then its answer is new
        DELETE FROM crmapi.idempotent_answer a
        WHERE a.workspace_id = workspace AND a.key = ANY (ARRAY(
            SELECT o.key FROM crmapi.idempotent_answer o
            WHERE o.workspace_id = workspace AND o.key = ANY (keys)
              AND o.created_at <= now() - interval '24 hours'
            FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS gone = ROW_COUNT;
        done := done + gone;
    END LOOP;
    RETURN done;
END
$$;

-- Delete the events IDS of WORKSPACE and move the beginning of its log. Returns how
-- many. Locks: event, skipping locked ones; delivery, attempt; feed. Internal.
CREATE FUNCTION crmapi.event_drop(workspace uuid, ids uuid[]) RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone uuid[];
    last uuid;
BEGIN
    WITH gone AS (
        DELETE FROM crmapi.event v
        WHERE v.workspace_id = event_drop.workspace AND v.id = ANY (ARRAY(
            SELECT o.id FROM crmapi.event o
            WHERE o.workspace_id = event_drop.workspace AND o.id = ANY (ids)
            FOR UPDATE SKIP LOCKED))
        RETURNING v.id)
    SELECT array_agg(g.id ORDER BY g.id DESC) INTO gone FROM gone g;
    -- the id of an event of webhook_test() is random, and behind all others
    last := (SELECT g.id FROM unnest(gone) g(id)
             WHERE substr(g.id::text, 15, 1) = '8'
             ORDER BY g.id DESC LIMIT 1);
    UPDATE crmapi.event_feed f SET since = last
    WHERE f.workspace_id = event_drop.workspace AND f.since < last;
    RETURN coalesce(cardinality(gone), 0);
END
$$;

-- Delete events from before BEFORE, of the BATCH that are found first, but for
-- those with a pending delivery, and move the beginnings of logs. Returns how
-- many. Locks: event, skipping locked ones; delivery, attempt; feed. For the
-- worker.
CREATE FUNCTION crmapi.event_trim(before timestamptz,
                                  batch integer)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    workspace uuid;
    ids uuid[];
    done bigint := 0;
BEGIN
    FOR workspace, ids IN
        SELECT f.workspace_id, array_agg(f.id) FROM (
            SELECT v.workspace_id, v.id FROM crmapi.event v
            WHERE v.created_at < before AND NOT EXISTS (
                SELECT FROM crmapi.webhook_delivery d
                WHERE d.workspace_id = v.workspace_id AND d.event_id = v.id
                  AND d.status = 'pending')
            LIMIT batch) f
        GROUP BY f.workspace_id
    LOOP
        done := done + crmapi.event_drop(workspace, ids);
    END LOOP;
    RETURN done;
END
$$;

-- ---- retention (contract 14.5) -----------------------------------------------
-- Each function deletes a few rows of a workspace that has a number of days for them,
-- and nothing otherwise: what a caller may say is the moment.

-- When rows of WORKSPACE are too old that it keeps for DAYS at MOMENT (null: now).
-- Internal.
CREATE FUNCTION crmapi.retention_bound(moment timestamptz, days integer)
    RETURNS timestamptz
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    RETURN coalesce(moment, now()) - days * interval '1 day';

-- Whether an answer in the conversation TALK of WORKSPACE waits to be sent, as long as
-- it is held or the relay is down. Internal.
CREATE FUNCTION crmapi.talk_waits(workspace uuid, talk uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.job j
                   WHERE j.workspace_id = talk_waits.workspace
                     AND j.lane <> 'webhook'
                     AND crmapi.job_about(j.payload) = talk::text
                     AND j.state IN ('ready', 'leased'));
END
$$;

-- Delete the conversation TALK of WORKSPACE if nothing has happened in it since
-- BEFORE and no answer waits: its messages with their files, but no more than N, and
-- itself, if that were all. Returns how many rows. Locks: conversation, skipping
-- locked ones. Internal.
CREATE FUNCTION crmapi.retention_talk(workspace uuid, talk uuid,
                                      before timestamptz, n integer)
    RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone integer;
BEGIN
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = retention_talk.workspace
      AND c.id = retention_talk.talk
      AND crmapi.conversation_last_activity(c.last_active_at, c.last_message_at,
          c.activated_at, c.created_at) < before
      AND NOT crmapi.talk_waits(workspace, talk)
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM crmapi.message d
    WHERE d.workspace_id = retention_talk.workspace AND d.id = ANY (ARRAY(
        SELECT m.id FROM crmapi.message m
        WHERE m.workspace_id = retention_talk.workspace
          AND m.conversation_id = retention_talk.talk
        ORDER BY m.created_at, m.id LIMIT n));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone < n THEN
        DELETE FROM crmapi.conversation c
        WHERE c.workspace_id = retention_talk.workspace
          AND c.id = retention_talk.talk;
        gone := gone + 1;
    END IF;
    RETURN gone;
END
$$;

-- Delete conversations of WORKSPACE that are too old at MOMENT (null: now), about N
-- rows with their messages, of the 1,000 that were created first after AFTER and
-- AFTER_ID. Returns how many rows, and where to go on, null at the end: conversations
-- that are old and not idle are read once. Locks: conversation, skipping locked ones.
-- For the worker.
CREATE FUNCTION crmapi.retention_conversations(workspace uuid,
        moment timestamptz, after timestamptz, after_id uuid, n integer,
        OUT gone integer, OUT next timestamptz, OUT next_id uuid)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_sort = off
AS $$
DECLARE
    before CONSTANT timestamptz := (
        SELECT crmapi.retention_bound(moment, w.retention_conversations)
        FROM crmapi.workspace w
        WHERE w.id = retention_conversations.workspace);
    talk record;
    seen integer := 0;
    is_full boolean := false;
BEGIN
    gone := 0;
    FOR talk IN
        SELECT c.id, c.created_at, crmapi.conversation_last_activity(
            c.last_active_at, c.last_message_at, c.activated_at,
            c.created_at) < before AS is_old
        FROM crmapi.conversation c
        WHERE c.workspace_id = retention_conversations.workspace
          AND (c.created_at, c.id) > (after, after_id)
          AND c.created_at < before
        ORDER BY c.created_at, c.id LIMIT 1000
    LOOP
        IF talk.is_old THEN
            gone := gone + crmapi.retention_talk(workspace, talk.id, before,
                                                 n - gone);
        END IF;
        is_full := gone >= n;
        EXIT WHEN is_full;          -- some of its messages may be left
        seen := seen + 1;
        next := talk.created_at;
        next_id := talk.id;
    END LOOP;
    IF NOT is_full AND seen < 1000 THEN
        next := NULL;
        next_id := NULL;
    ELSIF next IS NULL THEN
        next := after;
        next_id := after_id;
    END IF;
END
$$;

-- Delete the oldest submissions of WORKSPACE, at most N, that are too old at MOMENT
-- (null: now). Returns how many. Locks: submission, skipping locked ones. For the
-- worker.
CREATE FUNCTION crmapi.retention_submissions(workspace uuid,
        moment timestamptz, n integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before CONSTANT timestamptz := (
        SELECT crmapi.retention_bound(moment, w.retention_submissions)
        FROM crmapi.workspace w WHERE w.id = retention_submissions.workspace);
    gone integer;
BEGIN
    DELETE FROM crmapi.submission d
    WHERE d.workspace_id = retention_submissions.workspace
      AND d.id = ANY (ARRAY(
        SELECT s.id FROM crmapi.submission s
        WHERE s.workspace_id = retention_submissions.workspace
          AND s.submitted_at < before
        ORDER BY s.submitted_at, s.id LIMIT n FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- Delete the first events of WORKSPACE, at most N, that are too old at MOMENT (null:
-- now), but for those with a pending delivery, and move the beginning of its log.
-- Returns how many. Events are in the order of their ids, so none is read behind
-- those. Locks: event, skipping locked ones; delivery, attempt; feed. For the worker.
CREATE FUNCTION crmapi.retention_events(workspace uuid, moment timestamptz,
                                        n integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before CONSTANT timestamptz := (
        SELECT crmapi.retention_bound(moment, w.retention_events)
        FROM crmapi.workspace w WHERE w.id = retention_events.workspace);
    ids uuid[];
BEGIN
    ids := ARRAY(
        SELECT f.id FROM (
            SELECT v.id, v.created_at FROM crmapi.event v
            WHERE v.workspace_id = retention_events.workspace AND NOT EXISTS (
                SELECT FROM crmapi.webhook_delivery d
                WHERE d.workspace_id = retention_events.workspace
                  AND d.event_id = v.id AND d.status = 'pending')
            ORDER BY v.id LIMIT n) f
        WHERE f.created_at < before);
    RETURN crmapi.event_drop(workspace, ids);
END
$$;

-- How many rows of WORKSPACE are too old now if it keeps conversations, submissions
-- and events for these days (null: for ever). For the owner.
CREATE FUNCTION crmapi.retention_count(workspace uuid, conversations integer,
        submissions integer, events integer)
    RETURNS TABLE (of text, n bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before timestamptz := crmapi.retention_bound(NULL, conversations);
BEGIN
    RETURN QUERY
    WITH talk AS MATERIALIZED (
        SELECT c.id FROM crmapi.conversation c
        WHERE c.workspace_id = retention_count.workspace
          AND c.created_at < before AND crmapi.conversation_last_activity(
              c.last_active_at, c.last_message_at, c.activated_at,
              c.created_at) < before
          AND NOT crmapi.talk_waits(workspace, c.id)),
    said AS MATERIALIZED (
        SELECT m.id FROM talk t JOIN crmapi.message m
            ON m.workspace_id = retention_count.workspace
            AND m.conversation_id = t.id)
    SELECT 'conversation', count(*) FROM talk
    UNION ALL SELECT 'message', count(*) FROM said
    UNION ALL
    SELECT 'attachment', count(*) FROM said s JOIN crmapi.attachment a
        ON a.workspace_id = retention_count.workspace AND a.message_id = s.id
    UNION ALL
    SELECT 'submission', count(*) FROM crmapi.submission s
    WHERE s.workspace_id = retention_count.workspace
      AND s.submitted_at < crmapi.retention_bound(NULL, submissions)
    UNION ALL
    SELECT 'event', count(*) FROM crmapi.event v
    WHERE v.workspace_id = retention_count.workspace
      AND v.created_at < crmapi.retention_bound(NULL, events)
      AND NOT EXISTS (
          SELECT FROM crmapi.webhook_delivery d
          WHERE d.workspace_id = retention_count.workspace
            AND d.event_id = v.id AND d.status = 'pending');
END
$$;

-- ---- usage (contract 14.7) ---------------------------------------------------

-- The day of MOMENT (null: now) in UTC. Internal.
CREATE FUNCTION crmapi.usage_day(moment timestamptz) RETURNS date
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    RETURN (coalesce(moment, now()) AT TIME ZONE 'UTC')::date;

-- What WORKSPACE has received and sent on DAY, as far as it is still there: messages of
-- people, messages to people, and deliveries of webhooks that an endpoint has taken.
-- Internal.
CREATE FUNCTION crmapi.usage_count(workspace uuid, day date,
        OUT messages_in bigint, OUT messages_out bigint, OUT webhooks bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    since CONSTANT timestamptz := day::timestamp AT TIME ZONE 'UTC';
    until CONSTANT timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    SELECT count(*) FILTER (WHERE m.role = 'user'),
           count(*) FILTER (WHERE m.role IN ('assistant', 'human'))
    INTO messages_in, messages_out
    FROM crmapi.message m
    WHERE m.workspace_id = usage_count.workspace
      AND m.created_at >= since AND m.created_at < until;
    SELECT count(*) INTO webhooks FROM crmapi.webhook_delivery d
    WHERE d.workspace_id = usage_count.workspace AND d.status = 'delivered'
      AND d.finished_at >= since AND d.finished_at < until
      AND d.created_at < until;
END
$$;

-- How many bytes WORKSPACE keeps: attachments, originals and HTML of mails, texts and
-- metadata of messages, submissions, and the rows of contacts, companies and
-- activities, without indexes. Values that PostgreSQL has compressed count as such
-- only in rows. Internal.
CREATE FUNCTION crmapi.usage_storage(workspace uuid) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT sum(k.n) FROM (
        SELECT sum(a.size) AS n FROM crmapi.attachment a
        WHERE a.workspace_id = usage_storage.workspace AND a.stored
        UNION ALL SELECT sum(octet_length(o.bytes)) FROM crmapi.original o
        WHERE o.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(octet_length(h.html)) FROM crmapi.message_html h
        WHERE h.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(octet_length(m.content)
            + pg_column_size(m.metadata)) FROM crmapi.message m
        WHERE m.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(pg_column_size(s.custom_field_responses))
        FROM crmapi.submission s
        WHERE s.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(pg_column_size(c.*)) FROM crmapi.contact c
        WHERE c.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(pg_column_size(p.*)) FROM crmapi.company p
        WHERE p.workspace_id = usage_storage.workspace
        UNION ALL SELECT sum(pg_column_size(v.*)) FROM crmapi.activity v
        WHERE v.workspace_id = usage_storage.workspace
        UNION ALL SELECT 0) k);
END
$$;

-- The first day of WORKSPACE that is to be counted on TODAY: that of its last
-- measurement, or its own first one, but none that is more than 31 days ago. Internal.
CREATE FUNCTION crmapi.usage_since(workspace uuid, today date) RETURNS date
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    measured CONSTANT date := (
        SELECT max(u.day) FROM crmapi.usage u
        WHERE u.workspace_id = usage_since.workspace
          AND u.storage IS NOT NULL);
    made CONSTANT date := (
        SELECT crmapi.usage_day(w.created_at) FROM crmapi.workspace w
        WHERE w.id = usage_since.workspace);
BEGIN
    RETURN least(greatest(coalesce(measured, made), today - 31), today);
END
$$;

-- The workspaces that were not measured yet on the day of MOMENT (null: now). For the
-- worker.
CREATE FUNCTION crmapi.usage_due(moment timestamptz) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    today CONSTANT date := crmapi.usage_day(moment);
BEGIN
    RETURN QUERY SELECT w.id FROM crmapi.workspace w
    WHERE NOT EXISTS (SELECT FROM crmapi.usage u
                      WHERE u.workspace_id = w.id AND u.day = today
                        AND u.storage IS NOT NULL)
    ORDER BY w.id;
END
$$;

-- Measure what WORKSPACE has used until MOMENT (null: now), unless that was done on the
-- same day. Returns whether it was. What was counted before and has been deleted stays
-- counted. Locks: usage. For the worker.
CREATE FUNCTION crmapi.usage_measure(workspace uuid, moment timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    today CONSTANT date := crmapi.usage_day(moment);
    of date := crmapi.usage_since(workspace, today);
    bytes bigint;
    n record;
BEGIN
    IF EXISTS (SELECT FROM crmapi.usage u
               WHERE u.workspace_id = usage_measure.workspace AND u.day = today
                 AND u.storage IS NOT NULL) THEN
        RETURN false;
    END IF;
    bytes := crmapi.usage_storage(workspace);
    WHILE of <= today LOOP
        n := crmapi.usage_count(workspace, of);
        INSERT INTO crmapi.usage AS u (workspace_id, day, messages_in,
            messages_out, webhooks, storage)
        VALUES (workspace, of, n.messages_in, n.messages_out, n.webhooks,
                CASE WHEN of = today THEN bytes END)
        ON CONFLICT ON CONSTRAINT usage_pkey DO UPDATE
            SET messages_in = greatest(u.messages_in, excluded.messages_in),
                messages_out = greatest(u.messages_out, excluded.messages_out),
                webhooks = greatest(u.webhooks, excluded.webhooks),
                storage = coalesce(u.storage, excluded.storage);
        of := of + 1;
    END LOOP;
    RETURN true;
END
$$;

-- What WORKSPACE has used on each day from FIRST to LAST, but not before it began and
-- not after today. What the worker has not measured yet is counted now. For the owner.
CREATE FUNCTION crmapi.usage_list(workspace uuid, first date, last date)
    RETURNS TABLE (day date, requests bigint, limited bigint,
                   messages_in bigint, messages_out bigint, webhooks bigint,
                   storage bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    today CONSTANT date := crmapi.usage_day(NULL);
    since CONSTANT date := crmapi.usage_since(workspace, today);
    began CONSTANT date := least(since, (
        SELECT min(u.day) FROM crmapi.usage u
        WHERE u.workspace_id = usage_list.workspace));
    n record;
BEGIN
    day := greatest(first, began);
    WHILE day <= least(last, today) LOOP
        SELECT u.requests, u.limited, u.messages_in, u.messages_out, u.webhooks,
               u.storage
        INTO requests, limited, messages_in, messages_out, webhooks, storage
        FROM crmapi.usage u
        WHERE u.workspace_id = usage_list.workspace AND u.day = usage_list.day;
        requests := coalesce(requests, 0);
        limited := coalesce(limited, 0);
        IF day >= since THEN
            n := crmapi.usage_count(workspace, day);
            messages_in := greatest(messages_in, n.messages_in);
            messages_out := greatest(messages_out, n.messages_out);
            webhooks := greatest(webhooks, n.webhooks);
        END IF;
        IF day = today THEN
            storage := crmapi.usage_storage(workspace);
        END IF;
        RETURN NEXT;
        day := day + 1;
    END LOOP;
END
$$;

-- Delete rows of days before BEFORE, of the N that are found first; return how many.
-- The last 40 days stay, whatever BEFORE is. Locks: usage, skipping locked ones. For
-- the worker.
CREATE FUNCTION crmapi.usage_trim(before timestamptz, n integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bound CONSTANT date := crmapi.usage_day(least(before,
                                                  now() - interval '40 days'));
    workspace uuid;
    days date[];
    gone bigint;
    done bigint := 0;
BEGIN
    FOR workspace, days IN
        SELECT f.workspace_id, array_agg(f.day) FROM (
            SELECT u.workspace_id, u.day FROM crmapi.usage u
            WHERE u.day < bound LIMIT n) f
        GROUP BY f.workspace_id
    LOOP
        DELETE FROM crmapi.usage d
        WHERE d.workspace_id = workspace AND d.day = ANY (ARRAY(
            SELECT u.day FROM crmapi.usage u
            WHERE u.workspace_id = workspace AND u.day = ANY (days)
            FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS gone = ROW_COUNT;
        done := done + gone;
    END LOOP;
    RETURN done;
END
$$;

-- ---- what statements are planned for ---------------------------------------

-- Analyze the table that has grown most since it was analyzed, if any has become twice
-- as large; return how many, 1 or 0. Sessions have made their plans for the table as it
-- was: on the first day of a site, one that reads all of a table for each row of
-- another. ANALYZE makes all of them plan again. Autovacuum does it, too, but a minute
-- later, or when it has time. A file of a few pages takes no time, however it is read.
-- No row and no statement of the API waits for it. For the worker.
CREATE FUNCTION crmapi.analyze_grown() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    page CONSTANT integer := current_setting('block_size');
    grown record;
BEGIN
    SELECT c.oid, c.relpages INTO grown FROM pg_class c
    WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r'
      AND pg_relation_size(c.oid) > (8 + 2 * c.relpages::bigint) * page
    ORDER BY pg_relation_size(c.oid) / greatest(c.relpages, 1) DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- a table that somebody else analyzes, or that a migration changes, is left to them
    EXECUTE format('ANALYZE (SKIP_LOCKED) %s', grown.oid::regclass);
    RETURN (SELECT count(*) FROM pg_class c
            WHERE c.oid = grown.oid AND c.relpages > grown.relpages);
END
$$;

-- A session plans a statement once for all workspaces, so it has to suit the largest
-- one: these tables count as those of one workspace. By the average of one large and a
-- thousand small workspaces, a list of the large one would read all its rows. Their
-- indexes begin with workspace_id, so a small one reads its own rows at most.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['company', 'contact', 'contact_change',
        'pipeline_card', 'activity', 'conversation', 'message', 'submission',
        'sequence', 'enrollment', 'enrollment_step', 'suppression'] LOOP
        EXECUTE format('ALTER TABLE crmapi.%I ALTER COLUMN workspace_id'
            ' SET (n_distinct = 1)', name);
    END LOOP;
END
$$;
