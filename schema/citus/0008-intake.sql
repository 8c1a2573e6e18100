-- SPDX-License-Identifier: Apache-2.0
-- 0008-intake.sql: intake (0015-intake.sql)

-- crmapi.intake() runs on the server of its workspace, where its statements and
-- locks are: 0009-tables.sql says so. A statement writes one row by values.

-- Forced plans have no values to find the server by.
ALTER FUNCTION crmapi.intake RESET plan_cache_mode;

-- Insert the events' ids of EVENTS; return the places of those that are new,
-- counted from 1, NULL if none is. A transaction that takes the same event
-- waits here; all insert in the order of ids. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_register(workspace uuid, events jsonb)
    RETURNS bigint[]
    LANGUAGE plpgsql AS $$
DECLARE
    fresh bigint[];
    event text;
    place bigint;
BEGIN
    FOR event, place IN
        SELECT e.one ->> 'event_id', min(e.n)
        FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n)
        GROUP BY 1 ORDER BY 1
    LOOP
        INSERT INTO crmapi.intake_event (workspace_id, event_id)
        VALUES (workspace, event)
        ON CONFLICT (workspace_id, event_id) DO NOTHING;
        IF FOUND THEN
            fresh := fresh || place;
        END IF;
    END LOOP;
    RETURN fresh;
END
$$;

-- Store RESULTS, those of the events IDS, and delete the events REFUSED (ids
-- and reasons), which may come again under the same id. Locks: event; held
-- already. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_store(workspace uuid, ids text[],
        results jsonb[], refused jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    gone text[] := ARRAY(SELECT jsonb_object_keys(refused));
    event text;
    taken jsonb;
BEGIN
    IF gone <> '{}' THEN
        DELETE FROM crmapi.intake_event v
        WHERE v.workspace_id = workspace AND v.event_id = ANY (gone);
    END IF;
    FOR event, taken IN SELECT * FROM unnest(ids, results) LOOP
        UPDATE crmapi.intake_event v SET result = taken
        WHERE v.workspace_id = workspace AND v.event_id = event;
    END LOOP;
END
$$;

-- Statements of programs call these for a workspace, on its server: there they
-- read its rows.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['token_mac', 'token_old_mac', 'review_digest',
                                'review_times', 'is_suppressed',
                                'sends_held', 'is_held'] LOOP
        EXECUTE format('ALTER FUNCTION crmapi.%I
            SET citus.allow_nested_distributed_execution = on', name);
    END LOOP;
END
$$;
