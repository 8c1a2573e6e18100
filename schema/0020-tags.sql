-- SPDX-License-Identifier: Apache-2.0
-- 0020-tags.sql: the filter tags costs the same in a large workspace
--
-- contact_find has a list of all rows of a workspace and a list of all rows with
-- a tag, of any workspace. What is in both is found by looking up each row of
-- the shorter list in the longer one. So 20 rows of a workspace with a million
-- contacts took 20 descents in its list, each of which ends with decoding half a
-- page. The keys of the indexes below are of a workspace and a tag: there is one
-- short list to read, and it has no rows of other workspaces.
--
-- contact_find and company_find stay as they are. They serve tags together with
-- a search, the count of a frequent tag, and the programs of before. The keys
-- have a column. An index on the expression would need none, but PostgreSQL
-- prepares and computes it in each statement, also for rows without tags: about
-- 40,000 instructions, a twelfth of a PATCH.
--
-- min_module: 12

-- step: transaction: keys of tags

-- A key for each of TAGS in WORKSPACE, NULL if there are none. Rows and indexes
-- have them: the keys must never change. PARALLEL UNSAFE is not for what it
-- does: the planner believes that any tag has many rows, and may start parallel
-- workers to read them.
CREATE FUNCTION crmapi.tag_keys(workspace uuid, tags text[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
DECLARE
    seed constant bigint := uuid_hash_extended(workspace, 0);
    keys bigint[];
    tag text;
BEGIN
    FOREACH tag IN ARRAY tags LOOP
        keys := keys || hashtextextended(tag COLLATE "C", seed);
    END LOOP;
    RETURN keys;
END
$$;

-- Compute tag_keys of a row that is changed, whatever the statement writes
-- there. <table>_compute() does it for a new row: a second trigger would cost
-- each INSERT about 20,000 instructions. A trigger function.
CREATE FUNCTION crmapi.tags_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.tag_keys := crmapi.tag_keys(NEW.workspace_id, NEW.tags);
    RETURN NEW;
END
$$;

-- The tables with rows of a workspace, each after those that it refers to. They
-- come from the catalog, so that a later migration's table is not forgotten.
--   columns   what a dump has of a row
--   copy_out  reads the rows of the workspace in the setting
--             crmapi.dump_workspace, by their primary key. Texts have the order
--             of their bytes, so that it is the same in every database.
--   copy_in   takes rows with the workspace's id before COLUMNS
--   shared    some values are unique in the whole database: hashes of keys
-- A dump lacks counter (triggers count what is restored) and workspace_hold (what
-- is restored is held, whatever was before); of each row the workspace's id,
-- generated columns, and those in "derived", which defaults or triggers fill in:
-- so they are what this database makes of the others, by its own plans and its
-- own ICU. A migration that adds such a column replaces this function. A leased
-- job is in the dump as job_reap() leaves one whose daemon died. For the owner.
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
          AND c.relname NOT IN ('counter', 'workspace_hold')),
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

-- step: transaction: column crmapi.company.tag_keys
ALTER TABLE crmapi.company ADD COLUMN tag_keys bigint[];

-- Compute domain_key, search (contract 7.8) and tag_keys if what the first two
-- are made of, or they themselves, would change. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.company_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND (NEW.name, NEW.domain, NEW.industry, NEW.domain_key, NEW.search)
        IS NOT DISTINCT FROM
            (OLD.name, OLD.domain, OLD.industry, OLD.domain_key, OLD.search)
    THEN
        RETURN NEW;
    END IF;
    IF cardinality(NEW.tags) > 0 OR NEW.tag_keys IS NOT NULL THEN
        NEW.tag_keys := crmapi.tag_keys(NEW.workspace_id, NEW.tags);
    END IF;
    NEW.domain_key := crmapi.fold(NEW.domain);
    NEW.search := crmapi.fold(NEW.name || chr(31)
        || coalesce(NEW.domain, '') || chr(31) || coalesce(NEW.industry, ''));
    RETURN NEW;
END
$$;
CREATE TRIGGER compute_tags BEFORE UPDATE OF tags, tag_keys
    ON crmapi.company FOR EACH ROW EXECUTE FUNCTION crmapi.tags_compute();

-- An event tells what a field was changed to, and tag_keys is none: the trigger
-- event_update has a list of all other columns, so that the batches below make no
-- event. A migration that adds a column creates the trigger again.
DO $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER event_update AFTER UPDATE OF %s
        ON crmapi.company FOR EACH ROW
        EXECUTE FUNCTION crmapi.company_event(''company.updated'')',
        (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
         FROM pg_attribute a
         WHERE a.attrelid = 'crmapi.company'::regclass AND a.attnum > 0
           AND NOT a.attisdropped AND a.attname <> 'tag_keys'));
END
$$;

-- step: transaction: column crmapi.contact.tag_keys
ALTER TABLE crmapi.contact ADD COLUMN tag_keys bigint[];

-- Compute email_key, phone_key, search, phone_digits and tag_keys if what the
-- first four are made of, or they themselves, would change. A trigger function.
CREATE OR REPLACE FUNCTION crmapi.contact_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    phone text;
    phones text;
BEGIN
    IF TG_OP = 'UPDATE'
        AND (NEW.first_name, NEW.last_name, NEW.company, NEW.emails,
             NEW.phone_numbers, NEW.email_key, NEW.phone_key, NEW.search,
             NEW.phone_digits)
        IS NOT DISTINCT FROM
            (OLD.first_name, OLD.last_name, OLD.company, OLD.emails,
             OLD.phone_numbers, OLD.email_key, OLD.phone_key, OLD.search,
             OLD.phone_digits)
    THEN
        RETURN NEW;
    END IF;
    IF cardinality(NEW.tags) > 0 OR NEW.tag_keys IS NOT NULL THEN
        NEW.tag_keys := crmapi.tag_keys(NEW.workspace_id, NEW.tags);
    END IF;
    phone := crmapi.list_primary(NEW.phone_numbers, 'phone_number');
    phones := crmapi.list_text(NEW.phone_numbers, 'phone_number');
    NEW.email_key := crmapi.fold(crmapi.list_primary(NEW.emails, 'email'));
    NEW.phone_key := crmapi.phone_fold(phone);
    NEW.search := crmapi.fold(coalesce(NEW.first_name || ' ' || NEW.last_name,
                                       NEW.first_name, NEW.last_name, '')
        || chr(31) || coalesce(crmapi.list_text(NEW.emails, 'email'), '')
        || chr(31) || coalesce(phones, '')
        || chr(31) || coalesce(NEW.company, ''));
    NEW.phone_digits := crmapi.digits(phones);
    RETURN NEW;
END
$$;
CREATE TRIGGER compute_tags BEFORE UPDATE OF tags, tag_keys
    ON crmapi.contact FOR EACH ROW EXECUTE FUNCTION crmapi.tags_compute();

DO $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER event_update AFTER UPDATE OF %s
        ON crmapi.contact FOR EACH ROW
        EXECUTE FUNCTION crmapi.contact_event(''contact.updated'')',
        (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
         FROM pg_attribute a
         WHERE a.attrelid = 'crmapi.contact'::regclass AND a.attnum > 0
           AND NOT a.attisdropped AND a.attname <> 'tag_keys'));
END
$$;

-- step: batches crmapi.company: keys of the tags that there are
UPDATE crmapi.company t
SET tag_keys = crmapi.tag_keys(t.workspace_id, t.tags)
FROM batch b
WHERE t.workspace_id = b.workspace_id AND t.id = b.id
    AND t.tags <> '{}' AND t.tag_keys IS NULL;

-- step: batches crmapi.contact: keys of the tags that there are
UPDATE crmapi.contact t
SET tag_keys = crmapi.tag_keys(t.workspace_id, t.tags)
FROM batch b
WHERE t.workspace_id = b.workspace_id AND t.id = b.id
    AND t.tags <> '{}' AND t.tag_keys IS NULL;

-- step: index company_tags
-- Each use of the index reads its pending list, with new entries of all
-- workspaces: 64 kB is the least that it can be limited to.
CREATE INDEX CONCURRENTLY company_tags ON crmapi.company USING gin (tag_keys)
    WITH (gin_pending_list_limit = 64) WHERE tag_keys IS NOT NULL;

-- step: index contact_tags
CREATE INDEX CONCURRENTLY contact_tags ON crmapi.contact USING gin (tag_keys)
    WITH (gin_pending_list_limit = 64) WHERE tag_keys IS NOT NULL;
