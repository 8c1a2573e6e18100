-- SPDX-License-Identifier: Apache-2.0
-- 0014-upkeep.sql: periodic tasks, which lock and write within one workspace at a
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
-- time EVERY; return whether it was begun. For the worker.
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
        WHERE u.begun_at <= at - every;
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
    gone uuid[];
    last uuid;
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
        WITH gone AS (
            DELETE FROM crmapi.event v
            WHERE v.workspace_id = workspace AND v.id = ANY (ARRAY(
                SELECT o.id FROM crmapi.event o
                WHERE o.workspace_id = workspace AND o.id = ANY (ids)
                FOR UPDATE SKIP LOCKED))
            RETURNING v.id)
        SELECT array_agg(g.id ORDER BY g.id DESC) INTO gone FROM gone g;
        done := done + coalesce(cardinality(gone), 0);
        -- earlier versions had ids that were random
        last := (SELECT g.id FROM unnest(gone) g(id)
                 WHERE substr(g.id::text, 15, 1) = '8'
                 ORDER BY g.id DESC LIMIT 1);
        UPDATE crmapi.event_feed f SET since = last
        WHERE f.workspace_id = workspace AND f.since < last;
    END LOOP;
    RETURN done;
END
$$;
