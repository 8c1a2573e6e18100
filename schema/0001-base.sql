-- SPDX-License-Identifier: Apache-2.0
-- 0001-base.sql: roles, value types, matching keys, workspaces, plans, API keys

DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'PostgreSQL 15 or newer is needed, this is %',
            current_setting('server_version');
    ELSIF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database must be encoded in UTF8, this one is %',
            current_setting('server_encoding');
    ELSIF NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN
        RAISE EXCEPTION 'PostgreSQL must be built with ICU';
    END IF;
END
$$;

-- Both are trusted: whoever may create objects in the database can have them.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;

-- Roles belong to the whole cluster: another database's migration may make
-- them at this moment, or somebody else may have made them long ago.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['crmapi_api', 'crmapi_worker'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = wanted);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role % is missing and % may not create it',
                    wanted, current_user
                    USING HINT = format('CREATE ROLE %I NOLOGIN;', wanted);
        END;
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA crmapi TO crmapi_api, crmapi_worker;
-- the schema's version, which the programs compare with their own
GRANT SELECT (number) ON crmapi.migration TO crmapi_api, crmapi_worker;

-- ---- value types (contract 6.3, 6.4) ----------------------------------------
-- Text is compared by its bytes: indexes are faster, and no update of the
-- operating system's locales can spoil them. Case is a matter of fold().

CREATE DOMAIN crmapi.line AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 1000);
CREATE DOMAIN crmapi.title AS text COLLATE "C"
    CHECK (char_length(VALUE) BETWEEN 1 AND 1000);
CREATE DOMAIN crmapi.prose AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 65536);
CREATE DOMAIN crmapi.url AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 2048);
-- The precision bounds it; the CHECK is for NaN.
CREATE DOMAIN crmapi.amount AS numeric(19,4) CHECK (abs(VALUE) < 1e15);
CREATE DOMAIN crmapi.object AS jsonb CHECK (jsonb_typeof(VALUE) = 'object');
CREATE DOMAIN crmapi.list AS jsonb CHECK (jsonb_typeof(VALUE) = 'array');
CREATE DOMAIN crmapi.tags AS text[] COLLATE "C"
    CHECK (cardinality(VALUE) <= 100 AND array_position(VALUE, NULL) IS NULL);
-- [{"email": "x@y", "is_primary": true}, ...], or the same with "phone_number".
CREATE DOMAIN crmapi.addresses AS jsonb
    CHECK (CASE WHEN jsonb_typeof(VALUE) = 'array'
           THEN jsonb_array_length(VALUE) <= 50 ELSE false END);

-- ---- functions --------------------------------------------------------------
-- Those that generated columns use are plain expressions without a search_path
-- of their own, so that the planner puts them in line.

-- The present moment in whole milliseconds, so that a value that was returned
-- is an inclusive bound for its own row (contract 9.1). It is that of the
-- statement: the created_at and updated_at of a new row are equal.
CREATE FUNCTION crmapi.now_ms() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN date_trunc('milliseconds', statement_timestamp());

-- Lower case as Unicode has it, whatever the database's locale (contract 7.8).
-- Both small sigmas (U+03C2, U+03C3) are one letter.
CREATE FUNCTION crmapi.fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate(lower($1 COLLATE "und-x-icu"), chr(962), chr(963)) COLLATE "C";

-- The ASCII digits of a text, and the separators of list_text().
CREATE FUNCTION crmapi.digits(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate($1, translate($1, E'0123456789\x1f', ''), '');

-- What phone numbers are matched by: digits and a leading plus sign (contract
-- 9.2).
CREATE FUNCTION crmapi.phone_fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN left(ltrim($1), 1) = '+' THEN '+' ELSE '' END
        || crmapi.digits($1);

-- The member MEMBER of the primary entry of LIST, an array of addresses; the
-- first entry if none says so. NULL if the list is empty.
CREATE FUNCTION crmapi.list_primary(list jsonb, member text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_array_length(list) < 2 THEN list -> 0 ->> member
        ELSE coalesce(jsonb_path_query_first(list,
                          '$[*] ? (@.is_primary == true)'), list -> 0)
             ->> member END;

-- The members MEMBER of all entries of LIST, folded, as an array: what
-- suppressed addresses are looked up by.
CREATE FUNCTION crmapi.email_keys(list jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT crmapi.fold(e ->> 'email')
                 FROM jsonb_array_elements(list) e);
CREATE FUNCTION crmapi.phone_keys(list jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT crmapi.phone_fold(e ->> 'phone_number')
                 FROM jsonb_array_elements(list) e);

-- The same as one text, with unit separators between them, where no search
-- can match across. Most lists have one entry: only longer ones are taken
-- apart by a query.
CREATE FUNCTION crmapi.list_join(list jsonb, member text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT string_agg(e ->> member, chr(31))
            FROM jsonb_array_elements(list) e);
CREATE FUNCTION crmapi.list_text(list jsonb, member text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_array_length(list) < 2 THEN list -> 0 ->> member
        ELSE crmapi.list_join(list, member) END;

-- What identifies a row never changes: the module's shared memory, counters
-- and whoever has seen an id rely on it. For triggers with a WHEN.
CREATE FUNCTION crmapi.refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.%: % never changes', TG_TABLE_SCHEMA, TG_TABLE_NAME,
        TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;

-- ---- plans, workspaces, keys ------------------------------------------------

-- Rows, so that an operator can change them (contract 3.3).
CREATE TABLE crmapi.plan (
    name crmapi.title PRIMARY KEY,
    api boolean NOT NULL,
    sequences boolean NOT NULL
);
INSERT INTO crmapi.plan (name, api, sequences) VALUES
    ('free', false, false),
    ('starter', false, false),
    ('standard', true, false),
    ('pro', true, true),
    ('enterprise', true, true);

CREATE TABLE crmapi.workspace (
    id uuid PRIMARY KEY,
    name crmapi.title NOT NULL,
    slug text COLLATE "C" NOT NULL UNIQUE
        CHECK (slug ~ '^[a-z0-9-]{1,63}$'),
    plan crmapi.title NOT NULL DEFAULT 'standard'
        REFERENCES crmapi.plan (name),
    time_zone text NOT NULL DEFAULT 'UTC',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms()
);

-- The module remembers both with the keys of the workspace.
CREATE TRIGGER id_fixed BEFORE UPDATE OF id ON crmapi.workspace
    FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id)
    EXECUTE FUNCTION crmapi.refuse_change('id');
CREATE TRIGGER slug_fixed BEFORE UPDATE OF slug ON crmapi.workspace
    FOR EACH ROW WHEN (NEW.slug IS DISTINCT FROM OLD.slug)
    EXECUTE FUNCTION crmapi.refuse_change('slug');

CREATE FUNCTION crmapi.workspace_time_zone() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM now() AT TIME ZONE NEW.time_zone;   -- fails if there is no such
    RETURN NEW;
END
$$;
CREATE TRIGGER time_zone BEFORE INSERT OR UPDATE OF time_zone
    ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_time_zone();

CREATE TABLE crmapi.api_key (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.title NOT NULL,
    -- SHA-256 of the key. It alone is unique without the workspace: it is what
    -- the workspace is found by.
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    display text COLLATE "C" NOT NULL,
    can_read boolean NOT NULL DEFAULT true,
    can_write boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3),
    PRIMARY KEY (workspace_id, id),
    CHECK (can_read)            -- write implies read, and no scope is no key
) WITH (fillfactor = 70);       -- last_used_at moves within the page

CREATE TRIGGER id_fixed
    BEFORE UPDATE OF workspace_id, id, key_hash ON crmapi.api_key
    FOR EACH ROW WHEN ((NEW.workspace_id, NEW.id, NEW.key_hash)
                       IS DISTINCT FROM (OLD.workspace_id, OLD.id, OLD.key_hash))
    EXECUTE FUNCTION crmapi.refuse_change('what a key is and where it belongs');
CREATE TRIGGER revoked_fixed BEFORE UPDATE OF revoked_at ON crmapi.api_key
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL
                       AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION crmapi.refuse_change('the revocation of a key');

-- The keys that are good at this moment and what they may do (contract 3.2,
-- 3.3). By workspace_id and key_hash it is three look-ups in unique indexes.
CREATE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug,
           k.can_read AS read, k.can_write AS write,
           p.api AS plan_api, p.api AND p.sequences AS plan_sequences
    FROM crmapi.api_key k
    JOIN crmapi.workspace w ON w.id = k.workspace_id
    JOIN crmapi.plan p ON p.name = w.plan
    WHERE k.revoked_at IS NULL;

GRANT SELECT ON crmapi.live_key TO crmapi_api;
GRANT SELECT (id, workspace_id, last_used_at), UPDATE (last_used_at)
    ON crmapi.api_key TO crmapi_api;
GRANT SELECT ON crmapi.workspace, crmapi.plan TO crmapi_api, crmapi_worker;
