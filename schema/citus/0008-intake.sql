-- SPDX-License-Identifier: Apache-2.0
-- 0008-intake.sql: intake (0011-intake.sql)

-- crmapi.intake() runs on the server of its workspace, where its statements and
-- locks are: 0009-tables.sql says so. A statement writes one row by values.

-- Forced plans have no values to find the server by.
ALTER FUNCTION crmapi.intake RESET plan_cache_mode;

-- Whether the token with the hash KEY is live. Its use is recorded at most
-- once a minute, and not if another transaction holds the row. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_use_key(workspace uuid, key bytea)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := crmapi.now_ms();
    before timestamptz := moment - interval '1 minute';
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.live_intake k
                   WHERE k.workspace_id = workspace AND k.key_hash = key) THEN
        RETURN false;
    END IF;
    UPDATE crmapi.intake_key k SET last_used_at = moment
    WHERE k.workspace_id = workspace AND k.id = (
        SELECT i.id FROM crmapi.intake_key i
        WHERE i.workspace_id = workspace
          AND i.key_hash = key
          AND (i.last_used_at IS NULL OR i.last_used_at < before)
        FOR NO KEY UPDATE SKIP LOCKED);
    RETURN true;
END
$$;

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

-- Append ITEM's message of the time AT to CONVERSATION; return its id. A
-- claim's metadata says that it is one. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_message(workspace uuid,
        conversation uuid, item crmapi.intake_item, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    made uuid := crmapi.uuid_v7(at);
    place bigint;
    part jsonb;
BEGIN
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
        content, content_type, status, tool_used, tool_arguments, created_at,
        external_id, metadata)
    VALUES (made, workspace, conversation, coalesce(item.role,
            CASE WHEN item.outbound THEN 'assistant' ELSE 'user' END),
        coalesce(item.content, ''), item.content_type, item.status,
        item.tool_used, item.tool_arguments, at, item.external_id,
        coalesce(item.metadata, '{}') || CASE WHEN item.author IS NULL
            THEN '{}' ELSE jsonb_build_object('user_id', item.author) END
        || CASE WHEN item.verified THEN '{}'::jsonb
           ELSE '{"verified": false}' END);
    FOR part, place IN
        SELECT a.one, a.n
        FROM jsonb_array_elements(item.attachments) WITH ORDINALITY a(one, n)
    LOOP
        INSERT INTO crmapi.attachment (workspace_id, message_id, number, name,
            content_type, size, body)
        VALUES (workspace, made, place, part ->> 'name', part ->> 'type',
            (part ->> 'size')::bigint, decode(part ->> 'body', 'base64'));
    END LOOP;
    RETURN made;
END
$$;

-- Add 1 to the number of conversations of each agent of BOTS for each time
-- that it is in BOTS. Locks: agent, in the order of ids. Internal.
CREATE OR REPLACE FUNCTION crmapi.intake_count(workspace uuid, bots uuid[])
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    bot uuid;
    more bigint;
BEGIN
    FOR bot, more IN
        SELECT t.id, count(*) FROM unnest(bots) t(id) GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE crmapi.agent a
        SET number_of_conversations = a.number_of_conversations + more
        WHERE a.workspace_id = workspace AND a.id = bot;
    END LOOP;
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
                                'hold_of', 'is_held'] LOOP
        EXECUTE format('ALTER FUNCTION crmapi.%I
            SET citus.allow_nested_distributed_execution = on', name);
    END LOOP;
END
$$;
