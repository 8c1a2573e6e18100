-- SPDX-License-Identifier: Apache-2.0
-- 0022-hot.sql: an UPDATE of a contact writes no index, unless it changes what
-- an index has
--
-- PostgreSQL leaves all indexes of a table alone (a heap-only tuple, HOT) if an
-- UPDATE changes no indexed column and the row's page has room. contact_updated
-- had updated_at, which each UPDATE of a contact changes. So each one wrote all
-- eleven indexes, three of them GIN. A table beside has the times now: such an
-- UPDATE writes one short row there, and one entry of one index.
--
-- An older program lists by updated_at without an index until it is replaced: it
-- reads and sorts all contacts of the workspace.
--
-- min_module: 12

-- step: transaction: the times of contacts

-- updated_at of each contact, for updated_after and sort=updated_at. A contact
-- goes with its workspace, and its row here with the contact.
CREATE TABLE crmapi.contact_change (
    workspace_id uuid NOT NULL,
    updated_at timestamptz(3) NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (workspace_id, updated_at, id)
);

-- Add the contacts of a statement, the transition table "made". A trigger
-- function.
CREATE FUNCTION crmapi.change_add() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO crmapi.contact_change (workspace_id, updated_at, id)
    SELECT m.workspace_id, m.updated_at, m.id FROM made m;
    RETURN NULL;
END
$$;

-- Move a contact to its new updated_at, unless the batches below have not come to
-- it. Locks: contact_change; the contact is locked already. A trigger function.
CREATE FUNCTION crmapi.change_move() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.contact_change c SET updated_at = NEW.updated_at
    WHERE c.workspace_id = OLD.workspace_id AND c.updated_at = OLD.updated_at
      AND c.id = OLD.id;
    RETURN NULL;
END
$$;

-- Remove a contact. A trigger function.
CREATE FUNCTION crmapi.change_remove() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM crmapi.contact_change c
    WHERE c.workspace_id = OLD.workspace_id AND c.updated_at = OLD.updated_at
      AND c.id = OLD.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER change_add AFTER INSERT ON crmapi.contact
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.change_add();
CREATE TRIGGER change_move AFTER UPDATE ON crmapi.contact
    FOR EACH ROW WHEN (NEW.updated_at IS DISTINCT FROM OLD.updated_at)
    EXECUTE FUNCTION crmapi.change_move();
CREATE TRIGGER change_remove AFTER DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.change_remove();

-- room for the next version of a row on its page
ALTER TABLE crmapi.contact SET (fillfactor = 90);

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
        SELECT unnest('{api_key.plan_api,api_key.plan_sequences,job.is_due,
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

GRANT SELECT ON crmapi.contact_change TO crmapi_api;

-- step: batches crmapi.contact: times of the contacts that there are
-- FOR SHARE: a contact that is being changed is read when that has ended.
INSERT INTO crmapi.contact_change (workspace_id, updated_at, id)
SELECT t.workspace_id, t.updated_at, t.id
FROM crmapi.contact t JOIN batch b
    ON t.workspace_id = b.workspace_id AND t.id = b.id
FOR SHARE OF t
ON CONFLICT DO NOTHING;

-- step: alone: drop the index by updated_at
DROP INDEX CONCURRENTLY IF EXISTS crmapi.contact_updated;
