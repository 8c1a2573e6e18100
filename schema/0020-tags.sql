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
-- are computed for the index only: a column would cost an INSERT as much, and
-- every existing row would have to be written.
--
-- min_module: 12

-- step: transaction: keys of tags

-- A key for each of TAGS in WORKSPACE, NULL if there are none. Indexes are made
-- of them: the keys must never change. PARALLEL RESTRICTED is not for what it
-- does: the planner takes every tag for one of a hundredth of all rows, and would
-- start parallel workers to read them.
CREATE FUNCTION crmapi.tag_keys(workspace uuid, tags text[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
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

-- Each use of the index reads its pending list, with new entries of all
-- workspaces: 64 kB is the least that it can be limited to.

-- step: index company_tags
CREATE INDEX CONCURRENTLY company_tags ON crmapi.company
    USING gin (crmapi.tag_keys(workspace_id, tags))
    WITH (gin_pending_list_limit = 64);

-- step: index contact_tags
CREATE INDEX CONCURRENTLY contact_tags ON crmapi.contact
    USING gin (crmapi.tag_keys(workspace_id, tags))
    WITH (gin_pending_list_limit = 64);
