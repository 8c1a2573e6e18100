-- SPDX-License-Identifier: Apache-2.0
-- 0015-trace.sql: events remember the trace of the request that caused them
-- (contract 15.4)
-- min_module: 12

-- step: transaction: the column of events, and who fills it
-- The header traceparent of the request, if it had a valid one. Webhooks send
-- its trace id; GET /events does not show it.
ALTER TABLE crmapi.event ADD COLUMN trace text COLLATE "C";

-- Insert an event of the type HAPPENED with FIELDS, the text of columns, and
-- its deliveries. A transaction's first event in WORKSPACE gets its ticket, a
-- lock that conflicts with nothing. The transaction's setting crmapi.trace is
-- the event's trace. For the API and the worker.
CREATE OR REPLACE FUNCTION crmapi.event_add(workspace uuid, happened text,
                                            fields json)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint := nextval('crmapi.event_number');
    has text := coalesce(current_setting('crmapi.event_tickets', true), '');
    event uuid;
    hooked boolean;
BEGIN
    IF strpos(has, workspace::text) = 0 THEN
        PERFORM pg_advisory_xact_lock_shared(uuid_hash(workspace),
                                             (n & 2147483647)::integer),
            set_config('crmapi.event_tickets', has || workspace, true);
        n := nextval('crmapi.event_number');
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields, trace)
    VALUES (crmapi.event_id(n), event_add.workspace, event_add.happened,
            event_add.fields,
            nullif(current_setting('crmapi.trace', true), ''))
    RETURNING v.id, EXISTS (SELECT FROM crmapi.event_feed f
        WHERE f.workspace_id = event_add.workspace
          AND event_add.happened = ANY (f.types))
    INTO event, hooked;
    IF hooked THEN
        PERFORM crmapi.webhook_plan(workspace, event, happened);
    END IF;
END
$$;
