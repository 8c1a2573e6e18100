-- SPDX-License-Identifier: Apache-2.0
-- 0003-totals.sql: totals

-- A transition table is only where its trigger runs: it is read first, and then
-- rows of the workspace are written.

-- Add N rows of KIND to the total of PARENT, if WORKSPACE exists: in its cascade
-- there is nothing to count. Internal.
CREATE FUNCTION crmapi.counter_put(workspace uuid, kind text, parent uuid,
                                   n bigint) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    own smallint := crmapi.counter_slot();
BEGIN
    IF EXISTS (SELECT FROM crmapi.workspace w
               WHERE w.id = counter_put.workspace) THEN
        INSERT INTO crmapi.counter AS c (workspace_id, kind, parent, slot, n)
        VALUES (counter_put.workspace, counter_put.kind, counter_put.parent,
                own, counter_put.n)
        ON CONFLICT ON CONSTRAINT counter_pkey
        DO UPDATE SET n = c.n + excluded.n;
    END IF;
END
$$;

-- Count contacts or companies: the trigger's argument says which. A trigger
-- function.
CREATE OR REPLACE FUNCTION crmapi.counter_owned() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id,
            coalesce(r.bot_id, '00000000-0000-0000-0000-000000000000')
                AS parent, count(*) AS n
        FROM changed r GROUP BY GROUPING SETS ((1), (1, r.bot_id)) ORDER BY 1, 2
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, TG_ARGV[0], d.parent,
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;

-- Count conversations that are not deleted. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.counter_conversation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id,
            coalesce(r.bot_id, '00000000-0000-0000-0000-000000000000')
                AS parent, count(*) AS n
        FROM changed r WHERE r.deleted IS NOT TRUE
        GROUP BY GROUPING SETS ((1), (1, r.bot_id)) ORDER BY 1, 2
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, 'conversation', d.parent,
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;

-- Count cards that are not archived. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.counter_pipeline_card() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    FOR d IN SELECT r.workspace_id, count(*) AS n FROM changed r
        WHERE r.archived_at IS NULL GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM crmapi.counter_put(d.workspace_id, 'pipeline_card',
            '00000000-0000-0000-0000-000000000000',
            CASE TG_OP WHEN 'INSERT' THEN d.n ELSE -d.n END);
    END LOOP;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.counter_put FROM PUBLIC;

-- The times of contacts and their events. Citus takes no other table in RETURNING,
-- and no INSERT of an event from a SELECT. So there are two triggers.

-- Add a new contact to contact_change. A trigger function.
CREATE FUNCTION crmapi.change_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.contact_change (workspace_id, updated_at, id, indexed_fields)
    VALUES (NEW.workspace_id, NEW.updated_at, NEW.id,
            crmapi.fields_indexed(NEW.workspace_id, NEW.custom_fields));
    RETURN NULL;
END
$$;

-- Move a contact to its new updated_at, with its custom fields. Locks: contact_change; the contact is locked
-- already. A trigger function.
CREATE FUNCTION crmapi.change_move() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.contact_change c SET updated_at = NEW.updated_at,
        indexed_fields = crmapi.fields_indexed(NEW.workspace_id, NEW.custom_fields)
    WHERE c.workspace_id = OLD.workspace_id AND c.updated_at = OLD.updated_at
      AND c.id = OLD.id;
    RETURN NULL;
END
$$;

-- An event with a contact. A trigger function.
CREATE FUNCTION crmapi.contact_event() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    feed record;
    event uuid;
    latest timestamptz;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = NEW.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT (feed.log OR TG_ARGV[0] = ANY (feed.types))
        OR NEW.updated_at = OLD.updated_at AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT a.created_at INTO latest FROM crmapi.activity a
        WHERE a.workspace_id = NEW.workspace_id AND a.contact_id = NEW.id
        ORDER BY a.created_at DESC LIMIT 1;
    END IF;
    event := crmapi.event_add(NEW.workspace_id, TG_ARGV[0], feed.types,
        crmapi.contact_fields(NEW, latest, crmapi.contact_suppressed(
            NEW.workspace_id, NEW.email_key, NEW.phone_key)), NEW.id, NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER change_add AFTER INSERT ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.change_add();
CREATE TRIGGER change_move AFTER UPDATE ON crmapi.contact
    FOR EACH ROW WHEN (NEW.updated_at IS DISTINCT FROM OLD.updated_at
        OR NEW.custom_fields IS DISTINCT FROM OLD.custom_fields)
    EXECUTE FUNCTION crmapi.change_move();
CREATE OR REPLACE TRIGGER event_insert AFTER INSERT ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_event('contact.created');
DO $$
BEGIN
    EXECUTE (SELECT regexp_replace(pg_get_triggerdef(t.oid),
            '^CREATE TRIGGER (.*) EXECUTE FUNCTION .*$',
            'CREATE OR REPLACE TRIGGER \1 EXECUTE FUNCTION'
            ' crmapi.contact_event(''contact.updated'')')
        FROM pg_trigger t WHERE t.tgrelid = 'crmapi.contact'::regclass
          AND t.tgname = 'event_update');
END
$$;
DROP FUNCTION crmapi.contact_created, crmapi.contact_updated;
