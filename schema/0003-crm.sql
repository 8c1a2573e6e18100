-- SPDX-License-Identifier: Apache-2.0
-- 0003-crm.sql: agents, pipelines, companies, contacts, cards, activities
--
-- Columns have the names and the order of the specification's fields; internal
-- and computed columns follow. What is derived from other rows has no column:
-- last_contacted_at, total_deal_value, last_activity_at.
--
-- Triggers named "compute" set the computed columns, also if a statement tries
-- to. A generated column would be simpler, but PostgreSQL parses and plans its
-- expression again for each statement: for a contact, that took longer than the
-- rest of an UPDATE. A session plans the expressions of a PL/pgSQL function
-- once. Rows of agents are rarely written, and have a generated column.

-- Find the operator classes below in whatever schema the extensions are.
SELECT set_config('search_path', 'pg_catalog, ' || string_agg(DISTINCT
           quote_ident(n.nspname), ', '), true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname IN ('pg_trgm', 'btree_gin');

-- ---- keys of tags ----------------------------------------------------------

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

-- What an index (jsonb_path_ops) has of FIELDS, custom fields, in WORKSPACE: they
-- themselves below its id, so that an entry is of a workspace, a name and a value. NULL
-- if there are none. Each write of the row makes an entry for each member, so of more
-- than 8,000 bytes there is one entry: that they must be looked at. STABLE, as
-- jsonb_build_object() is: else it is called instead of being a part of its caller.
CREATE FUNCTION crmapi.fields_indexed(workspace uuid, fields jsonb) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL UNSAFE
    RETURN CASE WHEN fields = '{}' THEN NULL
        WHEN pg_column_size(fields) > 8000 THEN jsonb_build_object(workspace, true)
        ELSE jsonb_build_object(workspace, fields) END;

-- What such an index is asked for: rows of WORKSPACE that may have the member of one of
-- OBJECTS, each of one member. A path, because the planner takes "@> ANY" for ten times
-- as many rows. For the API.
CREATE FUNCTION crmapi.fields_wanted(workspace uuid, objects jsonb[]) RETURNS jsonpath
    LANGUAGE plpgsql STABLE PARALLEL UNSAFE AS $$
DECLARE
    path text := format('$.%s == true', to_json(workspace));
    member record;
BEGIN
    FOR member IN SELECT m.key, m.value FROM unnest(objects) o, jsonb_each(o) m LOOP
        path := format('%s || $.%s.%s == %s', path, to_json(workspace),
                       to_json(member.key), member.value);
    END LOOP;
    RETURN path;
END
$$;

-- A key for each of ADDRESSES, keys of e-mails and phone numbers that are not a
-- contact's primary ones. The same holds for these keys.
CREATE FUNCTION crmapi.address_keys(workspace uuid, addresses text[])
    RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
DECLARE
    seed constant bigint := uuid_hash_extended(workspace, 2);
    keys bigint[];
    address text;
BEGIN
    FOREACH address IN ARRAY addresses LOOP
        IF address IS NOT NULL THEN
            keys := keys || hashtextextended(address COLLATE "C", seed);
        END IF;
    END LOOP;
    RETURN keys;
END
$$;

-- Compute tag_keys and indexed_fields of a company that is changed, whatever the
-- statement writes there. <table>_compute() does it for a new row: a second trigger
-- would cost each INSERT about 20,000 instructions. A trigger function.
CREATE FUNCTION crmapi.tags_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.tag_keys := crmapi.tag_keys(NEW.workspace_id, NEW.tags);
    NEW.indexed_fields := crmapi.fields_indexed(NEW.workspace_id, NEW.custom_fields);
    RETURN NEW;
END
$$;

-- ---- agents ----------------------------------------------------------------

CREATE TABLE crmapi.agent (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.line,
    slug crmapi.line,
    summary crmapi.prose,
    is_agent boolean NOT NULL DEFAULT true,
    enabled boolean NOT NULL DEFAULT true,
    public boolean NOT NULL DEFAULT false,
    agent_role crmapi.line,
    agent_type crmapi.line
        CHECK (agent_type IN ('internal', 'external', 'both')),
    agent_status crmapi.line,
    agent_color crmapi.line,
    agent_email crmapi.line,
    agent_phone crmapi.line,
    chat_greeting crmapi.prose,
    chat_avatar_intro crmapi.prose,
    chat_avatar_image_url crmapi.url,
    phone_greeting crmapi.prose,
    phone_voice_id crmapi.line,
    text_greeting crmapi.prose,
    email_inbound boolean,
    email_outbound_autoreply boolean,
    email_outbound_email crmapi.line,
    email_outbound_name crmapi.line,
    booking_provider crmapi.line,
    enabled_event_type_ids text[] COLLATE "C",
    allow_human_takeover boolean NOT NULL DEFAULT false,
    escalation_detection_enabled boolean NOT NULL DEFAULT false,
    sentiment_analysis_enabled boolean NOT NULL DEFAULT false,
    knowledge_count crmapi.amount NOT NULL DEFAULT 0,
    number_of_conversations crmapi.amount NOT NULL DEFAULT 0,
    popular_topics text[] COLLATE "C",
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    chat_origins text[] COLLATE "C" NOT NULL DEFAULT '{}',
    -- minutes until a visitor who has not seen an answer gets a mail; NULL: none
    chat_mail_fallback integer CHECK (chat_mail_fallback BETWEEN 1 AND 10080),
    search text COLLATE "C" GENERATED ALWAYS AS (crmapi.fold(
        coalesce(name, '') || chr(31) || coalesce(slug, '') || chr(31)
        || coalesce(summary, ''))) STORED,
    -- since when this database knows the row; no import or dump sets it
    known_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, id)
);
-- A workspace has some dozens at most: search and the flags scan them all.
CREATE INDEX agent_created ON crmapi.agent (workspace_id, created_at, id);
CREATE UNIQUE INDEX agent_slug ON crmapi.agent (workspace_id, slug);
-- Channels find the agent, and by it the workspace: mail and text messages by
-- its address, mail to its second one, a chat by its id. email_key() and phone_key()
-- become parts of a statement, which the planner does not take for NOT NULL: with a
-- WHERE their indexes would not be used.
CREATE INDEX agent_by_email ON crmapi.agent (crmapi.email_key(agent_email));
CREATE INDEX agent_by_outbound_email ON crmapi.agent
    (crmapi.email_key(email_outbound_email));
CREATE INDEX agent_by_base ON crmapi.agent (crmapi.email_base(agent_email))
    WHERE agent_email IS NOT NULL;
CREATE INDEX agent_by_outbound_base
    ON crmapi.agent (crmapi.email_base(email_outbound_email))
    WHERE email_outbound_email IS NOT NULL;
CREATE INDEX agent_by_phone ON crmapi.agent (crmapi.phone_key(agent_phone));
CREATE INDEX agent_by_id ON crmapi.agent (id);

-- ---- pipelines and stages --------------------------------------------------

CREATE TABLE crmapi.pipeline (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name crmapi.title NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    is_private boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent
);
CREATE INDEX pipeline_created ON crmapi.pipeline
    (workspace_id, created_at, id);
CREATE INDEX pipeline_bot ON crmapi.pipeline
    (workspace_id, bot_id, created_at, id);

CREATE TABLE crmapi.pipeline_stage (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    name crmapi.title NOT NULL,
    color crmapi.line NOT NULL DEFAULT '#888888',
    order_index integer NOT NULL DEFAULT 0 CHECK (order_index >= 0),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, pipeline_id) REFERENCES crmapi.pipeline
);
-- /pipelines/{id}/stages, and cards by their pipeline
CREATE INDEX pipeline_stage_order ON crmapi.pipeline_stage
    (workspace_id, pipeline_id, order_index, created_at, id);
-- cards by the agent of their stage
CREATE INDEX pipeline_stage_bot ON crmapi.pipeline_stage
    (workspace_id, bot_id);

-- ---- companies -------------------------------------------------------------

CREATE TABLE crmapi.company (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    bot_id uuid NOT NULL,
    name crmapi.title NOT NULL,
    domain crmapi.line,
    website crmapi.url,
    industry crmapi.line,
    company_size crmapi.line,
    company_type crmapi.line,
    employee_count crmapi.amount,
    annual_revenue crmapi.amount,
    description crmapi.prose,
    emails crmapi.addresses NOT NULL DEFAULT '[]',
    phone_numbers crmapi.addresses NOT NULL DEFAULT '[]',
    tags crmapi.tags NOT NULL DEFAULT '{}',
    pipeline_stage_id uuid,
    address_line1 crmapi.line,
    address_line2 crmapi.line,
    city crmapi.line,
    state crmapi.line,
    postal_code crmapi.line,
    country crmapi.line,
    linkedin_url crmapi.url,
    notes crmapi.prose,
    custom_fields crmapi.object NOT NULL DEFAULT '{}',
    external_id text COLLATE "C"
        CHECK (char_length(external_id) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    domain_key text COLLATE "C",
    search text COLLATE "C",
    tag_keys bigint[],
    indexed_fields jsonb,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage
        ON DELETE SET NULL (pipeline_stage_id)
);
CREATE INDEX company_created ON crmapi.company (workspace_id, created_at, id);
-- sort=updated_at; no update is HOT
CREATE INDEX company_updated ON crmapi.company (workspace_id, updated_at, id);
CREATE INDEX company_bot ON crmapi.company
    (workspace_id, bot_id, created_at, id);
CREATE INDEX company_industry ON crmapi.company
    (workspace_id, industry, created_at, id) WHERE industry IS NOT NULL;
CREATE INDEX company_domain ON crmapi.company
    (workspace_id, domain_key, created_at, id) WHERE domain_key IS NOT NULL;
-- the id in another system: one company of a workspace has it
CREATE UNIQUE INDEX company_external ON crmapi.company
    (workspace_id, external_id) WHERE external_id IS NOT NULL;
-- for the foreign key only
CREATE INDEX company_stage ON crmapi.company
    (workspace_id, pipeline_stage_id) WHERE pipeline_stage_id IS NOT NULL;
-- the filters tags and search together; the filter tags alone: contact_tags
CREATE INDEX company_find ON crmapi.company
    USING gin (workspace_id, tags, search gin_trgm_ops);
CREATE INDEX company_tags ON crmapi.company USING gin (tag_keys)
    WITH (gin_pending_list_limit = 64) WHERE tag_keys IS NOT NULL;
-- the filter custom_fields.NAME
CREATE INDEX company_fields ON crmapi.company
    USING gin (indexed_fields jsonb_path_ops)
    WITH (gin_pending_list_limit = 64) WHERE indexed_fields IS NOT NULL;

-- Compute domain_key and search (contract 7.8) if what they are made of, or they
-- themselves, would change; of a new company what tags_compute() computes, too. A trigger
-- function.
CREATE FUNCTION crmapi.company_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND (NEW.name, NEW.domain, NEW.industry, NEW.domain_key, NEW.search)
        IS NOT DISTINCT FROM
            (OLD.name, OLD.domain, OLD.industry, OLD.domain_key, OLD.search)
    THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF cardinality(NEW.tags) > 0 OR NEW.tag_keys IS NOT NULL THEN
            NEW.tag_keys := crmapi.tag_keys(NEW.workspace_id, NEW.tags);
        END IF;
        NEW.indexed_fields
            := crmapi.fields_indexed(NEW.workspace_id, NEW.custom_fields);
    END IF;
    NEW.domain_key := crmapi.fold(NEW.domain);
    NEW.search := crmapi.fold(NEW.name || chr(31)
        || coalesce(NEW.domain, '') || chr(31) || coalesce(NEW.industry, ''));
    RETURN NEW;
END
$$;
CREATE TRIGGER compute BEFORE INSERT
    OR UPDATE OF name, domain, industry, domain_key, search
    ON crmapi.company FOR EACH ROW EXECUTE FUNCTION crmapi.company_compute();
CREATE TRIGGER compute_tags BEFORE UPDATE
    OF tags, custom_fields, tag_keys, indexed_fields
    ON crmapi.company FOR EACH ROW EXECUTE FUNCTION crmapi.tags_compute();

-- ---- contacts --------------------------------------------------------------

-- The workspace is no foreign key: the check would be a tenth of what an INSERT costs.
-- The agent is one, and the agent has the workspace.
CREATE TABLE crmapi.contact (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    bot_id uuid NOT NULL,
    first_name crmapi.line,
    last_name crmapi.line,
    emails crmapi.addresses NOT NULL DEFAULT '[]',
    phone_numbers crmapi.addresses NOT NULL DEFAULT '[]',
    company crmapi.line,
    company_id uuid,
    job_title crmapi.line,
    lead_source crmapi.line,
    tags crmapi.tags NOT NULL DEFAULT '{}',
    deal_value crmapi.amount,
    pipeline_stage_id uuid,
    contact_type crmapi.line,
    address_line1 crmapi.line,
    address_line2 crmapi.line,
    city crmapi.line,
    state crmapi.line,
    postal_code crmapi.line,
    country crmapi.line,
    linkedin_url crmapi.url,
    notes crmapi.prose,
    custom_fields crmapi.object NOT NULL DEFAULT '{}',
    external_id text COLLATE "C"
        CHECK (char_length(external_id) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    -- by-email and upsert match these
    email_key text COLLATE "C",
    phone_key text COLLATE "C",
    -- "first last", e-mails, phones as written, company (contract 7.8)
    search text COLLATE "C",
    phone_digits text COLLATE "C",
    tag_keys bigint[],
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, bot_id) REFERENCES crmapi.agent,
    FOREIGN KEY (workspace_id, company_id) REFERENCES crmapi.company
        ON DELETE SET NULL (company_id),
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage
        ON DELETE SET NULL (pipeline_stage_id)
-- room for the next version of a row on its page
) WITH (fillfactor = 90);
-- the list and created_after, created_before
CREATE INDEX contact_created ON crmapi.contact (workspace_id, created_at, id);
CREATE INDEX contact_bot ON crmapi.contact
    (workspace_id, bot_id, created_at, id);
CREATE INDEX contact_lead_source ON crmapi.contact
    (workspace_id, lead_source, created_at, id) WHERE lead_source IS NOT NULL;
CREATE INDEX contact_stage ON crmapi.contact
    (workspace_id, pipeline_stage_id, created_at, id)
    WHERE pipeline_stage_id IS NOT NULL;
CREATE INDEX contact_type ON crmapi.contact
    (workspace_id, contact_type, created_at, id)
    WHERE contact_type IS NOT NULL;
-- a company's contacts, and the sum of their deals by an index-only scan
CREATE INDEX contact_company ON crmapi.contact
    (workspace_id, company_id, created_at, id)
    INCLUDE (deal_value) WHERE company_id IS NOT NULL;
-- the filter has_company: each contact is in one of them
CREATE INDEX contact_employed ON crmapi.contact (workspace_id, created_at, id)
    WHERE company_id IS NOT NULL;
CREATE INDEX contact_single ON crmapi.contact (workspace_id, created_at, id)
    WHERE company_id IS NULL;
-- the id in another system: one contact of a workspace has it
CREATE UNIQUE INDEX contact_external ON crmapi.contact
    (workspace_id, external_id) WHERE external_id IS NOT NULL;
-- the oldest match wins (contract 9.5)
CREATE INDEX contact_email ON crmapi.contact
    (workspace_id, email_key, created_at, id) WHERE email_key IS NOT NULL;
CREATE INDEX contact_phone ON crmapi.contact
    (workspace_id, phone_key, created_at, id) WHERE phone_key IS NOT NULL;
-- the filters tags and search together; a search alone; the count of a frequent
-- tag
CREATE INDEX contact_find ON crmapi.contact USING gin
    (workspace_id, tags, search gin_trgm_ops, phone_digits gin_trgm_ops);
-- The filter tags alone. contact_find has a list of all rows of a workspace and a
-- list of all rows with a tag, of any workspace. What is in both is found by
-- looking up each row of the shorter list in the longer one: 20 rows of a
-- workspace with a million contacts took 20 descents in its list, each of which
-- ends with decoding half a page. The keys of this index are of a workspace and a
-- tag: there is one short list to read, and it has no rows of other workspaces.
-- The keys have a column. An index on the expression would need none, but
-- PostgreSQL prepares and computes it in each statement, also for rows without
-- tags: about 40,000 instructions, a twelfth of a PATCH. Each use of the index
-- reads its pending list, with new entries of all workspaces: 64 kB is the least
-- that it can be limited to.
CREATE INDEX contact_tags ON crmapi.contact USING gin (tag_keys)
    WITH (gin_pending_list_limit = 64) WHERE tag_keys IS NOT NULL;

-- The keys of a contact's tags and of its addresses beside the primary ones, for its
-- column tag_keys: with few rows for each, one index has them all. NULL if there are
-- none.
CREATE FUNCTION crmapi.contact_keys(workspace uuid, tags text[], emails jsonb,
                                    phones jsonb)
    RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
    RETURN crmapi.tag_keys(workspace, tags)
        || CASE WHEN jsonb_array_length(emails) > 1
            THEN crmapi.address_keys(workspace, crmapi.email_keys(emails)) END
        || CASE WHEN jsonb_array_length(phones) > 1
            THEN crmapi.address_keys(workspace, crmapi.phone_keys(phones)) END;

-- Compute tag_keys of a contact: see tags_compute(). A trigger function.
CREATE FUNCTION crmapi.contact_tags_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.tag_keys := crmapi.contact_keys(NEW.workspace_id, NEW.tags, NEW.emails,
                                        NEW.phone_numbers);
    RETURN NEW;
END
$$;

-- Compute email_key, phone_key, search, phone_digits and tag_keys if what the
-- first four are made of, or they themselves, would change. A trigger function.
CREATE FUNCTION crmapi.contact_compute() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    email text;
    emails text;
    phone text;
    phones text;
    words text;
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
    IF cardinality(NEW.tags) > 0 OR NEW.tag_keys IS NOT NULL
        OR jsonb_array_length(NEW.emails) > 1
        OR jsonb_array_length(NEW.phone_numbers) > 1 THEN
        NEW.tag_keys := crmapi.contact_keys(NEW.workspace_id, NEW.tags, NEW.emails,
                                            NEW.phone_numbers);
    END IF;
    phone := crmapi.list_primary(NEW.phone_numbers, 'phone_number');
    phones := crmapi.list_text(NEW.phone_numbers, 'phone_number');
    email := crmapi.list_primary(NEW.emails, 'email');
    emails := crmapi.list_text(NEW.emails, 'email');
    NEW.email_key := crmapi.email_key(email);
    NEW.phone_key := crmapi.phone_key(phone);
    words := coalesce(NEW.first_name || ' ' || NEW.last_name,
                      NEW.first_name, NEW.last_name, '')
        || chr(31) || coalesce(emails, '')
        || chr(31) || coalesce(phones, '')
        || chr(31) || coalesce(NEW.company, '');
    words := crmapi.fold(words);
    IF octet_length(emails) > char_length(emails) OR strpos(emails, '"') > 0
        OR strpos(emails || chr(31), '.' || chr(31)) > 0 THEN
        words := words || chr(31)               -- what contacts_with() looks for
            || array_to_string(crmapi.email_keys(NEW.emails), chr(31));
    END IF;
    NEW.search := words;
    phones := crmapi.phone_plain(phones);
    NEW.phone_digits := crmapi.digits(phones);
    IF phones LIKE '%(0)%' THEN     -- it is not dialled
        NEW.phone_digits := NEW.phone_digits || chr(31) || crmapi.digits(
            array_to_string(crmapi.phone_keys(NEW.phone_numbers), chr(31)));
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compute BEFORE INSERT
    OR UPDATE OF first_name, last_name, company, emails, phone_numbers,
                 email_key, phone_key, search, phone_digits
    ON crmapi.contact FOR EACH ROW EXECUTE FUNCTION crmapi.contact_compute();
CREATE TRIGGER compute_tags BEFORE UPDATE OF tags, tag_keys ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_tags_compute();

-- updated_at of each contact, for updated_after and sort=updated_at, and what the
-- filter custom_fields.NAME finds contacts by. PostgreSQL leaves all indexes of a table
-- alone (a heap-only tuple, HOT) if an UPDATE changes no indexed column and the row's
-- page has room. An index of contact by updated_at, which each UPDATE changes, would
-- have each one write all eleven indexes, three of them GIN; an index of custom fields
-- those that change them. So a table beside has both: an UPDATE writes one short row
-- there, and its indexes. The trigger that writes a contact's events writes that row
-- (0013-events.sql). A contact goes with its workspace, and its row here with the
-- contact.
CREATE TABLE crmapi.contact_change (
    workspace_id uuid NOT NULL,
    updated_at timestamptz(3) NOT NULL,
    id uuid NOT NULL,
    indexed_fields jsonb,
    PRIMARY KEY (workspace_id, updated_at, id)
);
-- Each PATCH of such a contact has new entries here: with less than 256 kB it costs more.
CREATE INDEX contact_fields ON crmapi.contact_change
    USING gin (indexed_fields jsonb_path_ops)
    WITH (gin_pending_list_limit = 256) WHERE indexed_fields IS NOT NULL;

-- Remove a contact from contact_change. A trigger function.
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
CREATE TRIGGER change_remove AFTER DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.change_remove();
CREATE TRIGGER zz_contact AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_forget('contact');

-- The contacts that were merged into others: contact_merge() (0010-contacts.sql).
-- Their ids lead there for ever (contract 20.5). merged_into is the contact that it
-- all came to in the end; it is no foreign key, because the answer stays when that
-- one is deleted.
CREATE TABLE crmapi.contact_merged (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    merged_into uuid NOT NULL,
    merged_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id)
);
-- those that came to a contact, when it is merged or erased
CREATE INDEX contact_merged_into ON crmapi.contact_merged
    (workspace_id, merged_into);

-- ---- cards -----------------------------------------------------------------

CREATE TABLE crmapi.pipeline_card (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    pipeline_stage_id uuid NOT NULL,
    contact_id uuid,
    title crmapi.title NOT NULL,
    description crmapi.prose,
    tags crmapi.tags NOT NULL DEFAULT '{}',
    order_index integer NOT NULL CHECK (order_index >= 0),
    archived_at timestamptz(3),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, pipeline_stage_id)
        REFERENCES crmapi.pipeline_stage,
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id)
);
-- a stage's cards in order, and the last of them
CREATE INDEX pipeline_card_order ON crmapi.pipeline_card
    (workspace_id, pipeline_stage_id, order_index, created_at, id);
-- sort=updated_at; no update is HOT
CREATE INDEX pipeline_card_updated ON crmapi.pipeline_card
    (workspace_id, updated_at, id);
CREATE INDEX pipeline_card_contact ON crmapi.pipeline_card
    (workspace_id, contact_id) WHERE contact_id IS NOT NULL;

-- Put a card without order_index at the end of its stage (contract 9.8). It
-- takes the lock first: the next statement of a volatile function sees what was
-- committed while it waited. Locks: an advisory one of the stage. A trigger
-- function.
CREATE FUNCTION crmapi.pipeline_card_position() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    last integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(
        'stage:' || NEW.workspace_id || ':' || NEW.pipeline_stage_id, 0));
    SELECT c.order_index INTO last FROM crmapi.pipeline_card c
    WHERE c.workspace_id = NEW.workspace_id
      AND c.pipeline_stage_id = NEW.pipeline_stage_id AND c.id <> NEW.id
    ORDER BY c.order_index DESC LIMIT 1;
    -- 2147483647 is the maximum: created_at orders the cards that have it
    NEW.order_index := least(coalesce(last::bigint + 1, 0), 2147483647);
    RETURN NEW;
END
$$;
CREATE TRIGGER position
    BEFORE INSERT OR UPDATE OF order_index ON crmapi.pipeline_card
    FOR EACH ROW WHEN (NEW.order_index IS NULL)
    EXECUTE FUNCTION crmapi.pipeline_card_position();

-- ---- activities ------------------------------------------------------------

CREATE TABLE crmapi.activity (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    contact_id uuid,
    company_id uuid,
    activity_type crmapi.line NOT NULL CHECK (activity_type IN
        ('note', 'call', 'meeting', 'video_call', 'task', 'todo',
         'reminder')),
    title crmapi.line,
    description crmapi.prose,
    due_date timestamptz(3),
    duration_minutes crmapi.amount,
    completed_at timestamptz(3),
    metadata crmapi.object NOT NULL DEFAULT '{}',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    updated_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id),
    CHECK (contact_id IS NOT NULL OR company_id IS NOT NULL),
    FOREIGN KEY (workspace_id, contact_id) REFERENCES crmapi.contact
        ON DELETE SET NULL (contact_id),
    FOREIGN KEY (workspace_id, company_id) REFERENCES crmapi.company
        ON DELETE SET NULL (company_id)
);
CREATE INDEX activity_created ON crmapi.activity
    (workspace_id, created_at, id);
-- sort=updated_at; no update is HOT
CREATE INDEX activity_updated ON crmapi.activity
    (workspace_id, updated_at, id);
CREATE INDEX activity_type ON crmapi.activity
    (workspace_id, activity_type, created_at, id);
-- sort=due_date; due_after, due_before. What has none is last in both directions.
CREATE INDEX activity_due ON crmapi.activity (workspace_id, due_date, id);
CREATE INDEX activity_due_last ON crmapi.activity
    (workspace_id, due_date DESC NULLS LAST, id DESC);
-- completed=false: what is to be done, in both orders
CREATE INDEX activity_open ON crmapi.activity (workspace_id, created_at, id)
    WHERE completed_at IS NULL;
CREATE INDEX activity_open_due ON crmapi.activity (workspace_id, due_date, id)
    WHERE completed_at IS NULL;
-- the list of a contact, and the last activity of one
CREATE INDEX activity_contact ON crmapi.activity
    (workspace_id, contact_id, created_at, id) WHERE contact_id IS NOT NULL;
-- the list of a company, and the last activity of one
CREATE INDEX activity_company ON crmapi.activity
    (workspace_id, company_id, created_at, id) WHERE company_id IS NOT NULL;

-- ---- ids -------------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['agent', 'pipeline', 'pipeline_stage',
        'company', 'contact', 'pipeline_card', 'activity'] LOOP
        EXECUTE format('CREATE TRIGGER id_fixed
            BEFORE UPDATE OF workspace_id, id ON crmapi.%I FOR EACH ROW
            WHEN (NEW.workspace_id <> OLD.workspace_id OR NEW.id <> OLD.id)
            EXECUTE FUNCTION crmapi.refuse_change(''an id'')', name);
    END LOOP;
END
$$;

-- ---- deleting a company (contract 9.6) -------------------------------------
-- A BEFORE trigger runs before the foreign keys' actions. The row is locked,
-- so no new reference to it can appear. Rows that lose their reference change,
-- so their updated_at moves (contract 6.6). An activity with both a contact
-- and a company is locked first, since the other one may be deleted at the
-- same time. The trigger of a contact is in 0010-contacts.sql: it stops enrollments as
-- well.

-- Delete the activities that have no contact, and detach the company's other
-- activities and contacts. Locks: activity, contact. A trigger function.
CREATE FUNCTION crmapi.company_before_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The cascade of a workspace deletes everything by itself.
    IF pg_trigger_depth() > 1 AND NOT EXISTS (
        SELECT FROM crmapi.workspace w WHERE w.id = OLD.workspace_id) THEN
        RETURN OLD;
    END IF;
    PERFORM FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.company_id = OLD.id
      AND a.contact_id IS NOT NULL
    ORDER BY a.id FOR UPDATE;
    DELETE FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.company_id = OLD.id
      AND a.contact_id IS NULL;
    UPDATE crmapi.activity a SET company_id = NULL,
        updated_at = greatest(crmapi.now_ms(),
                              a.updated_at + interval '1 millisecond')
    WHERE a.workspace_id = OLD.workspace_id AND a.company_id = OLD.id;
    UPDATE crmapi.contact c SET company_id = NULL,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = OLD.workspace_id AND c.company_id = OLD.id;
    RETURN OLD;
END
$$;
CREATE TRIGGER before_delete BEFORE DELETE ON crmapi.company
    FOR EACH ROW EXECUTE FUNCTION crmapi.company_before_delete();
