-- SPDX-License-Identifier: Apache-2.0
-- 0021-upkeep.sql: upkeep locks and writes within one workspace at a time
-- (schema/README, One workspace; contract 16.4)
--
-- Each function first looks for rows over all workspaces, without a lock. Then
-- one statement for each workspace locks those that still are what was looked
-- for, and writes them. A row that another transaction has locked counts: it is
-- left to the next run.
--
-- min_module: 12

-- step: transaction: upkeep by workspaces

-- Close active conversations without activity since BEFORE, of the N that are
-- found first; return how many. Rows that another transaction has locked are
-- skipped. For the worker.
CREATE OR REPLACE FUNCTION crmapi.conversation_idle(before timestamptz,
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
        WHERE c.workspace_id = workspace AND c.id IN (
            SELECT i.id FROM crmapi.conversation i
            WHERE i.workspace_id = workspace AND i.id = ANY (ids)
              AND i.active AND crmapi.conversation_last_activity(
                  i.last_active_at, i.last_message_at, i.activated_at,
                  i.created_at) < before
            FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS closed = ROW_COUNT;
        done := done + closed;
    END LOOP;
    RETURN done;
END
$$;

-- Delete ids of events that intake took before BEFORE, of the N that are found
-- first; return how many. Rows that another transaction has locked are skipped.
-- For the worker.
CREATE OR REPLACE FUNCTION crmapi.intake_trim(before timestamptz, n integer)
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
        WHERE v.workspace_id = workspace AND v.event_id IN (
            SELECT o.event_id FROM crmapi.intake_event o
            WHERE o.workspace_id = workspace AND o.event_id = ANY (ids)
            FOR UPDATE SKIP LOCKED);
        GET DIAGNOSTICS gone = ROW_COUNT;
        done := done + gone;
    END LOOP;
    RETURN done;
END
$$;

-- Delete answers that are older than 24 hours, of the BATCH that are found
-- first; return how many. Locks: answer, skipping locked ones. For the worker.
CREATE OR REPLACE FUNCTION crmapi.idempotency_trim(batch integer)
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
        WHERE a.workspace_id = workspace AND a.key IN (
            SELECT o.key FROM crmapi.idempotent_answer o
            WHERE o.workspace_id = workspace AND o.key = ANY (keys)
              AND o.created_at <= now() - interval '24 hours'
            FOR UPDATE SKIP LOCKED);
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
CREATE OR REPLACE FUNCTION crmapi.event_trim(before timestamptz,
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
            WHERE v.workspace_id = workspace AND v.id IN (
                SELECT o.id FROM crmapi.event o
                WHERE o.workspace_id = workspace AND o.id = ANY (ids)
                FOR UPDATE SKIP LOCKED)
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

-- Make the jobs ready again whose lease has expired; return how many. In the
-- first ten seconds of the server none: daemons get time to reconnect. Locks:
-- job, skipping locked ones. For the worker.
CREATE OR REPLACE FUNCTION crmapi.job_reap() RETURNS bigint
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

-- step: transaction: times as values

-- End the job in the state OUTCOME: done, dead, cancelled, or ready again
-- AFTER from now. A REASON that is not null is stored. Returns whether the
-- lease was still held; otherwise nothing changes. Locks: job. For the worker.
CREATE OR REPLACE FUNCTION crmapi.job_end(workspace uuid, job bigint,
        owner text, attempt integer, outcome text, reason text,
        after interval) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    again CONSTANT timestamptz := CASE WHEN outcome = 'ready'
        THEN statement_timestamp() + after END;
    finished CONSTANT timestamptz := CASE WHEN outcome <> 'ready'
        THEN crmapi.now_ms() END;
BEGIN
    UPDATE crmapi.job j
    SET state = outcome, leased_by = NULL, leased_until = NULL,
        last_error = coalesce(left(reason, 2000), j.last_error),
        run_at = coalesce(again, j.run_at), finished_at = finished
    WHERE j.workspace_id = job_end.workspace AND j.id = job_end.job
      AND j.state = 'leased' AND j.leased_by = job_end.owner
      AND j.attempts = job_end.attempt;
    RETURN FOUND;
END
$$;
