-- SPDX-License-Identifier: Apache-2.0
-- 0027-address.sql: an address belongs to one agent that is not held (contract
-- 14.2)
--
-- Channels find an agent by its mail address, its number or its id, a form by its
-- id, and by that the workspace. A held workspace is not looked up, so a copy has
-- the same addresses beside the living one. Among the others an address is unique.
-- Ids are unique within a workspace only, because one file may be imported into
-- many: of several agents or forms with an id a channel finds the one that this
-- database knows longest, so that no import takes it from another workspace.
--
-- min_module: 27
-- incompatible: nothing was released

-- step: transaction
-- Since when this database knows the row; no import or dump sets it.
ALTER TABLE crmapi.agent
    ADD COLUMN known_at timestamptz(3) NOT NULL DEFAULT now();

-- step: transaction
ALTER TABLE crmapi.form
    ADD COLUMN known_at timestamptz(3) NOT NULL DEFAULT now();

-- step: transaction
-- EMAIL without case and without what follows a "+": mail to ada+x@ is for ada@.
CREATE FUNCTION crmapi.email_base(email text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN crmapi.fold(regexp_replace(email, '\+[^@]*@', '@'));

-- step: transaction
CREATE INDEX agent_by_base ON crmapi.agent (crmapi.email_base(agent_email))
    WHERE agent_email IS NOT NULL;

-- step: transaction
CREATE INDEX agent_by_outbound_base
    ON crmapi.agent (crmapi.email_base(email_outbound_email))
    WHERE email_outbound_email IS NOT NULL;

-- step: transaction
-- Whether WORKSPACE itself is held. A database that is held as a whole goes on
-- receiving. Internal.
CREATE FUNCTION crmapi.is_held(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.workspace_hold h
                   WHERE h.workspace_id = is_held.workspace);
END
$$;

-- step: transaction
-- What OWN, an agent, would share with another one that is not held: FIELD, and
-- TAKEN_BY, the workspace of the other one. A mail address, with or without a "+",
-- belongs to one workspace, an agent_email to one agent. For the owner.
CREATE FUNCTION crmapi.address_taken(own crmapi.agent, OUT field text,
                                     OUT taken_by uuid)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail text := nullif(crmapi.email_base(own.agent_email), '');
    shown text := nullif(crmapi.email_base(own.email_outbound_email), '');
    phone text := nullif(crmapi.phone_fold(own.agent_phone), '');
BEGIN
    SELECT f.field, f.workspace_id INTO field, taken_by
    FROM (SELECT CASE WHEN crmapi.email_base(a.agent_email) = mail
                 THEN 'agent_email' ELSE 'email_outbound_email' END AS field,
                 a.workspace_id
          FROM crmapi.agent a
          WHERE crmapi.email_base(a.agent_email) IN (mail, shown)
            AND (a.workspace_id <> own.workspace_id OR (a.id <> own.id
                 AND crmapi.fold(a.agent_email) = crmapi.fold(own.agent_email)))
          UNION ALL
          SELECT CASE WHEN crmapi.email_base(a.email_outbound_email) = mail
                 THEN 'agent_email' ELSE 'email_outbound_email' END,
                 a.workspace_id
          FROM crmapi.agent a
          WHERE crmapi.email_base(a.email_outbound_email) IN (mail, shown)
            AND a.workspace_id <> own.workspace_id
          UNION ALL
          SELECT 'agent_phone', a.workspace_id FROM crmapi.agent a
          WHERE crmapi.phone_fold(a.agent_phone) = phone
            AND (a.workspace_id, a.id) <> (own.workspace_id, own.id)) f
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = f.workspace_id
    WHERE h.workspace_id IS NULL ORDER BY f.field LIMIT 1;
END
$$;

-- step: transaction
-- Take turns with others who write an address of OWN, an agent. Locks: advisory
-- ones, until the transaction ends. Internal.
CREATE FUNCTION crmapi.address_lock(own crmapi.agent) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('address:' || a.one, 0))
    FROM (SELECT crmapi.email_base(own.agent_email) AS one
          UNION SELECT crmapi.email_base(own.email_outbound_email)
          UNION SELECT crmapi.phone_fold(own.agent_phone) ORDER BY 1) a
    WHERE a.one <> '';
END
$$;

-- step: transaction
-- Refuse an agent with an address of another one. The message does not say whose
-- it is. A trigger function.
CREATE FUNCTION crmapi.agent_address() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    IF NOT crmapi.is_held(NEW.workspace_id) THEN
        PERFORM crmapi.address_lock(NEW);
        SELECT t.* INTO found FROM crmapi.address_taken(NEW) t;
        IF found.field IS NOT NULL THEN
            RAISE EXCEPTION '% belongs to another agent', found.field
                USING ERRCODE = 'unique_violation', COLUMN = found.field;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- step: transaction
CREATE TRIGGER address
    AFTER INSERT OR UPDATE OF agent_email, email_outbound_email, agent_phone
    ON crmapi.agent FOR EACH ROW EXECUTE FUNCTION crmapi.agent_address();

-- step: transaction
-- What of WORKSPACE, which is held, belongs to another one that is not: WHAT, and
-- TAKEN_BY, that workspace. Both are null if nothing does. Locks: advisory ones of
-- its addresses. Internal.
CREATE FUNCTION crmapi.release_taken(workspace uuid, OUT what text,
                                     OUT taken_by uuid)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own crmapi.agent;
BEGIN
    FOR own IN SELECT a.* FROM crmapi.agent a
               WHERE a.workspace_id = release_taken.workspace
               ORDER BY a.agent_email, a.agent_phone, a.id LOOP
        PERFORM crmapi.address_lock(own);
        SELECT format('%s "%s" of the agent %s', t.field,
                      to_jsonb(own) ->> t.field, own.id), t.taken_by
        INTO what, taken_by FROM crmapi.address_taken(own) t
        WHERE t.field IS NOT NULL;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- step: transaction
-- End the hold of WORKSPACE, or that of the database if it is null, and with
-- WORKSPACES those of all workspaces, too. Daemons are told. A database that is
-- released is at home where it is now. Returns how many holds ended. Fails with
-- unique_violation if an address belongs to another workspace now. Locks:
-- workspace_hold, advisory ones of addresses. For the owner.
CREATE OR REPLACE FUNCTION crmapi.release(workspace uuid, workspaces boolean)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held uuid;
    taken record;
    n bigint := 0;
    m bigint := 0;
BEGIN
    FOR held IN SELECT h.workspace_id FROM crmapi.workspace_hold h
                WHERE h.workspace_id = release.workspace OR workspaces
                ORDER BY h.workspace_id LOOP
        SELECT t.* INTO taken FROM crmapi.release_taken(held) t;
        IF taken.what IS NOT NULL THEN
            RAISE EXCEPTION '% belongs to the workspace "%" (%) now', taken.what,
                (SELECT w.slug FROM crmapi.workspace w
                 WHERE w.id = taken.taken_by), taken.taken_by
                USING ERRCODE = 'unique_violation';
        END IF;
        DELETE FROM crmapi.workspace_hold h WHERE h.workspace_id = held;
        GET DIAGNOSTICS m = ROW_COUNT;
        n := n + m;
    END LOOP;
    m := 0;
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = NULL, held_reason = NULL
        WHERE i.held_at IS NOT NULL;
        GET DIAGNOSTICS m = ROW_COUNT;
        UPDATE crmapi.instance i SET system_id = p.system_id,
            database_id = p.database_id
        FROM crmapi.instance_place() p;
    END IF;
    PERFORM pg_notify('crmapi_job', l.lane)
    FROM unnest('{sequence,webhook}'::text[]) l(lane);
    RETURN n + m;
END
$$;

-- step: transaction
-- Fail with CRM03 if WORKSPACE is held: it receives nothing, and what comes shall
-- come again. Internal.
CREATE FUNCTION crmapi.intake_permit(workspace uuid) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF crmapi.is_held(workspace) THEN
        RAISE EXCEPTION 'the workspace is held' USING ERRCODE = 'CRM03';
    END IF;
END
$$;

-- step: transaction
-- Take EVENTS, an array of at most 500 objects with the members of
-- crmapi.intake_item, each event_id once. Returns a row for each, in their
-- order; FIELD and MESSAGE say why one was refused, AGAIN that it was taken
-- before. KEY is the hash of the intake token, NULL if the source is known
-- otherwise; no row if that token is not live. Fails with CRM03 if the workspace is
-- held. Locks: see the top of this
-- file. The settings give each statement one plan, by indexes, whatever the
-- tables' sizes when it is made: planning takes longer than executing. For the
-- API and the worker.
CREATE OR REPLACE FUNCTION crmapi.intake(workspace uuid, key bytea, events jsonb)
    RETURNS TABLE (conversation_id uuid, message_id uuid, contact_id uuid,
                   submission_id uuid, again boolean, opened boolean,
                   field text, message text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off ROWS 100
AS $$
#variable_conflict use_column
DECLARE
    items crmapi.intake_item[];
    item crmapi.intake_item;
    fresh bigint[];             -- places of the events that are new
    place integer := 0;
    ids text[] := '{}';         -- of the events that were taken,
    results jsonb[] := '{}';    -- and their results
    refused jsonb := '{}';      -- event_id: [field, message]
    bots uuid[] := '{}';
    done record;
BEGIN
    IF key IS NOT NULL AND NOT crmapi.intake_use_key(workspace, key) THEN
        RETURN;
    END IF;
    PERFORM crmapi.intake_permit(workspace);
    SELECT array_agg(jsonb_populate_record(NULL::crmapi.intake_item, e.one)
                     ORDER BY e.n)
    INTO items
    FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n);
    fresh := coalesce(crmapi.intake_register(workspace, events), '{}');
    PERFORM crmapi.intake_lock(workspace, items);
    FOREACH item IN ARRAY items LOOP
        place := place + 1;
        CONTINUE WHEN place <> ALL (fresh);
        done := crmapi.intake_one(workspace, item);
        IF done.refusal IS NULL THEN
            ids := ids || item.event_id;
            results := results || done.result;
            bots := bots || done.opened;
        ELSE
            refused := refused || jsonb_build_object(item.event_id,
                                                     done.refusal);
        END IF;
    END LOOP;
    PERFORM crmapi.intake_store(workspace, ids, results, refused);
    PERFORM crmapi.intake_count(workspace, array_remove(bots, NULL));
    RETURN QUERY
    SELECT (v.result ->> 'conversation')::uuid,
           (v.result ->> 'message')::uuid, (v.result ->> 'contact')::uuid,
           (v.result ->> 'submission')::uuid, e.n <> ALL (fresh),
           coalesce((v.result ->> 'opened')::boolean, false),
           refused -> (e.one ->> 'event_id') ->> 0,
           refused -> (e.one ->> 'event_id') ->> 1
    FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n)
    LEFT JOIN LATERAL (
        SELECT i.result FROM crmapi.intake_event i
        WHERE i.workspace_id = workspace AND i.event_id = e.one ->> 'event_id'
        LIMIT 1) v ON true
    ORDER BY e.n;
END
$$;

-- step: transaction
-- The tables with rows of a workspace, each after those that it refers to. They
-- come from the catalog, so that a later migration's table is not forgotten.
--   columns   what a dump has of a row
--   copy_out  reads the rows of the workspace in the setting
--             crmapi.dump_workspace, by their primary key. Texts have the order
--             of their bytes, so that it is the same in every database.
--   copy_in   takes rows with the workspace's id before COLUMNS
--   shared    some values are unique in the whole database: hashes of keys
-- A dump lacks counter and contact_change (triggers fill them from what is
-- restored) and workspace_hold (what is restored is held, whatever was before);
-- of each row the workspace's id, generated columns, and those in "derived",
-- which defaults or triggers fill in: so they are what this database makes of the
-- others, by its own plans and its own ICU. A migration that adds such a column
-- or table replaces this function. A leased job is in the dump as job_reap()
-- leaves one whose daemon died. For the owner.
CREATE OR REPLACE FUNCTION crmapi.dump_table()
    RETURNS TABLE (name text, columns json, copy_out text, copy_in text,
                   shared boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE derived (col) AS (
        SELECT unnest('{agent.known_at,form.known_at,api_key.plan_api,api_key.plan_sequences,job.is_due,
            job.leased_by,job.leased_until,company.domain_key,company.search,
            company.tag_keys,contact.email_key,contact.phone_key,
            contact.phone_digits,contact.search,contact.tag_keys,
            conversation.search}'::text[])),
    own AS (
        SELECT c.oid, c.relname, a.attnum AS key_number, a.attname AS key
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            AND a.attname = CASE c.relname WHEN 'workspace' THEN 'id'
                            ELSE 'workspace_id' END
        WHERE c.relnamespace = 'crmapi'::regnamespace
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.relname NOT IN ('counter', 'contact_change', 'workspace_hold')),
    path AS (       -- more than 64 foreign keys in a row are a circle
        SELECT o.oid, 0 AS n FROM own o
        UNION
        SELECT k.conrelid, p.n + 1 FROM path p
        JOIN pg_constraint k ON k.confrelid = p.oid AND k.contype = 'f'
            AND k.conrelid <> k.confrelid
        WHERE p.n < 64),
    shape AS (
        SELECT o.*, (SELECT max(p.n) FROM path p WHERE p.oid = o.oid) AS depth,
            c.names, c.list, c.shown,
            (SELECT string_agg(format('t.%I', a.attname) || CASE
                WHEN a.attcollation <> 0 THEN ' COLLATE "C"' ELSE '' END, ', '
                ORDER BY array_position(i.indkey::int2[], a.attnum))
             FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                AND a.attnum = ANY (i.indkey::int2[])
             WHERE i.indrelid = o.oid AND i.indisprimary) AS sorted,
            EXISTS (SELECT FROM pg_index i WHERE i.indrelid = o.oid
                AND i.indisunique AND i.indkey[0] <> o.key_number
                AND o.relname <> 'workspace') AS shared
        FROM own o CROSS JOIN LATERAL (
            SELECT json_agg(a.attname ORDER BY a.attnum) AS names,
                string_agg(format(', %I', a.attname), '' ORDER BY a.attnum)
                    AS list,
                string_agg(CASE WHEN (o.relname, a.attname) = ('job', 'state')
                    THEN 'CASE t.state WHEN ''leased'' THEN ''ready'''
                        ' ELSE t.state END'
                    ELSE format('t.%I', a.attname) END, ', '
                    ORDER BY a.attnum) AS shown
            FROM pg_attribute a WHERE a.attrelid = o.oid AND a.attnum > 0
              AND NOT a.attisdropped AND a.attgenerated = ''
              AND a.attname <> o.key AND o.relname || '.' || a.attname
                  NOT IN (SELECT d.col FROM derived d)) c)
    SELECT s.relname, s.names,
        format('COPY (SELECT %s FROM crmapi.%I t WHERE t.%I = current_setting('
            '''crmapi.dump_workspace'')::uuid ORDER BY %s) TO STDOUT', s.shown,
            s.relname, s.key, s.sorted),
        format('COPY crmapi.%I (%I%s) FROM STDIN', s.relname, s.key, s.list),
        s.shared
    FROM shape s ORDER BY s.relname <> 'workspace', s.relname = 'event_feed',
        s.depth, s.relname;
END;
