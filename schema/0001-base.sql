-- SPDX-License-Identifier: Apache-2.0
-- 0001-base.sql: extensions, roles, value types, functions on values
--
-- This file and those that follow, up to 0014, are the schema of the first release.
-- A change of it is a migration: a file with the next number (schema/README).

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

-- All three are trusted: CREATE on the database is enough to install them. An
-- extension that exists stays in its schema.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pgcrypto SCHEMA public;

-- ---- roles -----------------------------------------------------------------
-- repeat/0002-rights.sql has their rights.

-- Roles belong to the cluster. They may exist, and the migration of another
-- database may create them at the same time.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['crmapi_api', 'crmapi_worker'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = role);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role % is missing and % may not create it',
                    role, current_user
                    USING HINT = format('CREATE ROLE %I NOLOGIN;', role);
        END;
    END LOOP;
END
$$;

-- ---- value types (contract 6.3, 6.4) ---------------------------------------
-- Collation "C" compares bytes. Indexes are faster, and an update of the
-- operating system's locales cannot corrupt them. fold() ignores case.

CREATE DOMAIN crmapi.line AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 1000);
CREATE DOMAIN crmapi.title AS text COLLATE "C"
    CHECK (char_length(VALUE) BETWEEN 1 AND 1000);
CREATE DOMAIN crmapi.prose AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 65536);
CREATE DOMAIN crmapi.url AS text COLLATE "C"
    CHECK (char_length(VALUE) <= 2048);
-- The precision limits the value; the CHECK refuses NaN.
CREATE DOMAIN crmapi.amount AS numeric(19,4) CHECK (abs(VALUE) < 1e15);
CREATE DOMAIN crmapi.object AS jsonb CHECK (jsonb_typeof(VALUE) = 'object');
CREATE DOMAIN crmapi.list AS jsonb CHECK (jsonb_typeof(VALUE) = 'array');
CREATE DOMAIN crmapi.tags AS text[] COLLATE "C"
    CHECK (cardinality(VALUE) <= 100 AND array_position(VALUE, NULL) IS NULL);
-- [{"email": "x@y", "is_primary": true}, ...], or the same with "phone_number"
CREATE DOMAIN crmapi.addresses AS jsonb
    CHECK (VALUE IS NULL OR CASE WHEN jsonb_typeof(VALUE) = 'array'
           THEN jsonb_array_length(VALUE) <= 50 ELSE false END);

-- ---- functions on values ---------------------------------------------------
-- Any role may call them. Those that compute columns set no search_path, so that
-- the planner can inline them.

-- The statement's time, cut to milliseconds, so that a returned value is an
-- inclusive bound for its own row (contract 9.1). created_at and updated_at of
-- a new row are equal.
CREATE FUNCTION crmapi.now_ms() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN date_trunc('milliseconds', statement_timestamp());

-- Unicode lower case, whatever the database's locale (contract 7.8). The two
-- forms of small sigma, U+03C2 and U+03C3, are equal.
CREATE FUNCTION crmapi.fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate(lower($1 COLLATE "und-x-icu"), chr(962), chr(963)) COLLATE "C";

-- EMAIL without case and without what follows a "+": mail to ada+x@ is for ada@.
CREATE FUNCTION crmapi.email_base(email text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN crmapi.fold(regexp_replace(email, '\+[^@]*@', '@'));

-- The ASCII digits of a text, and the separators of list_text().
CREATE FUNCTION crmapi.digits(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate($1, translate($1, E'0123456789\x1f', ''), '');

-- The key that phone numbers match by: digits and a leading plus sign
-- (contract 9.2).
CREATE FUNCTION crmapi.phone_fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE -- STRICT could not be inlined
    RETURN CASE WHEN left(ltrim($1), 1) = '+' THEN '+' ELSE '' END
        || crmapi.digits($1);

-- The member MEMBER of the primary entry of LIST, an array of addresses; of
-- the first entry if none is primary. NULL if LIST is empty.
CREATE FUNCTION crmapi.list_primary(list jsonb, member text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_array_length(list) < 2 THEN list -> 0 ->> member
        ELSE coalesce(jsonb_path_query_first(list,
                          '$[*] ? (@.is_primary == true)'), list -> 0)
             ->> member END;

-- The keys of all e-mail addresses in LIST; suppressions match by them.
CREATE FUNCTION crmapi.email_keys(list jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT crmapi.fold(e ->> 'email')
                 FROM jsonb_array_elements(list) e);

-- The keys of all phone numbers in LIST.
CREATE FUNCTION crmapi.phone_keys(list jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT crmapi.phone_fold(e ->> 'phone_number')
                 FROM jsonb_array_elements(list) e);

-- The members MEMBER of all entries of LIST in one text. No search matches
-- across the unit separators between them. In PL/pgSQL, a session plans the
-- query once; as SQL, each statement would.
CREATE FUNCTION crmapi.list_join(list jsonb, member text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT string_agg(e ->> member, chr(31))
            FROM jsonb_array_elements(list) e);
END
$$;

-- The same. Most lists have one entry: only longer ones need a query.
CREATE FUNCTION crmapi.list_text(list jsonb, member text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_array_length(list) < 2 THEN list -> 0 ->> member
        ELSE crmapi.list_join(list, member) END;

-- The function below binds hmac() when it is created.
SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname),
                  true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto';

-- HMAC-SHA-256 of DATA by KEY, in whatever schema pgcrypto is. Internal.
CREATE FUNCTION crmapi.mac(data bytea, key bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hmac(data, key, 'sha256');

-- Refuse the update: columns that identify a row never change, since shared
-- memory, totals and callers rely on them. The trigger's WHEN compares; its
-- argument says what was to change. A trigger function.
CREATE FUNCTION crmapi.refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.%: % never changes', TG_TABLE_SCHEMA, TG_TABLE_NAME,
        TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;
