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

-- Unicode lower case in Normalization Form C, whatever the database's locale
-- (contract 7.8). The two forms of small sigma, U+03C2 and U+03C3, are equal. Most
-- texts are ASCII: as many bytes as characters.
CREATE FUNCTION crmapi.fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN octet_length($1) = char_length($1)
        THEN lower($1 COLLATE "C")
        ELSE normalize(translate(lower(normalize($1) COLLATE "und-x-icu"),
                                 chr(962), chr(963))) COLLATE "C" END;

-- EMAIL without case and without what follows a "+": mail to ada+x@ is for ada@.
CREATE FUNCTION crmapi.email_base(email text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN crmapi.fold(regexp_replace(email, '\+[^@]*@', '@'));

-- The ASCII digits of a text, and the separators of list_text().
CREATE FUNCTION crmapi.digits(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN translate($1, translate($1, E'0123456789\x1f', ''), '');

-- NUMBER, a phone number with characters that are not ASCII: see phone_plain().
CREATE FUNCTION crmapi.phone_ascii(number text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    -- the zeros of the scripts, each with its nine digits after it
    zeros CONSTANT integer[] := ARRAY[1632, 1776, 1984, 2406, 2534, 2662, 2790,
        2918, 3046, 3174, 3302, 3430, 3558, 3664, 3792, 3872, 4160, 4240, 6112,
        6160, 6470, 6608, 6784, 6800, 6992, 7088, 7232, 7248, 42528, 43216, 43264,
        43472, 43504, 43600, 44016];
BEGIN
    number := translate(regexp_replace(normalize(number, NFKC),
            '[\u00AD\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u180E'
            '\u200B-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u206F\uFEFF'
            '\uFFF9-\uFFFB\U000110BD\U000110CD\U00013430-\U0001343F'
            '\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0001'
            '\U000E0020-\U000E007F]', '', 'g'),
        -- U+2010 to U+2015, U+2212
        chr(8208) || chr(8209) || chr(8210) || chr(8211) || chr(8212) || chr(8213)
            || chr(8722), '-------');
    RETURN CASE WHEN octet_length(number) = char_length(number) THEN number
        ELSE translate(number, (SELECT string_agg(chr(z + d), '' ORDER BY z, d)
                FROM unnest(zeros) z, generate_series(0, 9) d),
            repeat('0123456789', cardinality(zeros))) END;
END
$$;

-- A phone number in Normalization Form KC, without characters of category Cf,
-- with the digits of all scripts (of the Basic Multilingual Plane) as ASCII digits
-- and Unicode's hyphens and dashes as "-". The C function is crm_phone_plain().
CREATE FUNCTION crmapi.phone_plain(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE -- STRICT could not be inlined
    RETURN CASE WHEN octet_length($1) = char_length($1) THEN $1
        ELSE crmapi.phone_ascii($1) END;

-- The E.164 form of NUMBER, which is written in another way: see phone_e164().
CREATE FUNCTION crmapi.phone_read(number text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    -- No country code is the beginning of another one (E.164, 6.2.1).
    code CONSTANT text := '([17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]'
        '|9[0-58]|(2[1-689]|3[578]|42|5[09]|6[7-9]|8[035789]|9[679])[0-9])';
    written text := btrim(regexp_replace(
        btrim(crmapi.phone_plain(number), E' \t\n\v\f\r'), '^tel:', '', 'i'),
        E' \t\n\v\f\r');
BEGIN
    written := regexp_replace(written, '^\(\+' || code || '\)', '+\1)');
    written := regexp_replace(written,
        '^(\+[ ./()-]*' || code || '[ ./()-]*)\(0\)', '\1');
    -- A zero at the start of a bracket is a trunk prefix: who dials it after a
    -- country code reaches somebody else, or nobody.
    IF written ~ '^\+[0-9 ./()-]+$' AND written !~ '\([ ./()-]*0' THEN
        written := '+' || crmapi.digits(written);
        RETURN CASE WHEN written ~ '^\+[1-9][0-9]{7,14}$' THEN written END;
    END IF;
    RETURN NULL;
END
$$;

-- The E.164 form of a phone number (contract 17.1), NULL if it is not plainly one
-- number with its country code. A message or a call goes to nothing else. The C
-- function is crm_phone_e164().
CREATE FUNCTION crmapi.phone_e164(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN $1 ~ '^\+[1-9][0-9]{7,14}$' THEN $1
        ELSE crmapi.phone_read($1) END;

-- What phone numbers are matched by: their E.164 form. Without it, only an equal
-- text is the same number. The C function is crm_phone_key().
CREATE FUNCTION crmapi.phone_key(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(crmapi.phone_e164($1), $1);

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
    RETURN ARRAY(SELECT crmapi.phone_key(e ->> 'phone_number')
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
