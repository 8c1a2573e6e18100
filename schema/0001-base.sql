-- SPDX-License-Identifier: Apache-2.0
-- 0001-base.sql: extensions, roles, value types, functions on values
--
-- This file and those that follow are the schema of the first release.
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

-- TARGET after the JSON Merge Patch PATCH (RFC 7396, 2). In PL/pgSQL
-- because it calls itself, at most as deep as a stored object is. For the API.
CREATE FUNCTION crmapi.json_merge(target jsonb, patch jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF jsonb_typeof(patch) <> 'object' THEN
        RETURN patch;
    END IF;
    IF jsonb_typeof(target) IS DISTINCT FROM 'object' THEN
        target := '{}';
    END IF;
    RETURN (SELECT (target - coalesce(array_agg(p.key)
                       FILTER (WHERE jsonb_typeof(p.value) = 'null'), '{}'))
            || coalesce(jsonb_object_agg(p.key,
                   CASE WHEN jsonb_typeof(p.value) = 'object'
                        THEN crmapi.json_merge(target -> p.key, p.value)
                        ELSE p.value END)
                   FILTER (WHERE jsonb_typeof(p.value) <> 'null'), '{}')
            FROM jsonb_each(patch) p);
END
$$;

-- Whether OBJECT has at most 64 KiB (contract 6.3). The text of jsonb has a blank
-- behind each comma and colon, which bodies are measured without. For the API.
CREATE FUNCTION crmapi.json_fits(object jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    size bigint := octet_length(object::text);
BEGIN
    IF size > 65536 THEN
        size := size - (SELECT sum(CASE jsonb_typeof(p.part)
            WHEN 'array' THEN greatest(jsonb_array_length(p.part) - 1, 0)
            WHEN 'object' THEN greatest(2 * (
                SELECT count(*) FROM jsonb_object_keys(p.part)) - 1, 0)
            ELSE 0 END)
            FROM jsonb_path_query(object, 'strict $.**') p(part));
    END IF;
    RETURN size <= 65536;
END
$$;

-- Unicode lower case in Normalization Form C, whatever the database's locale
-- (contract 7.8). The two forms of small sigma, U+03C2 and U+03C3, are equal. Most
-- texts are ASCII: as many bytes as characters. PL/pgSQL, as most functions here: a
-- session plans it once, SQL that is not inlined in each statement.
CREATE FUNCTION crmapi.fold(text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN octet_length($1) = char_length($1)
        THEN lower($1 COLLATE "C")
        ELSE normalize(translate(lower(normalize($1) COLLATE "und-x-icu"),
                                 chr(962), chr(963))) COLLATE "C" END;
END
$$;

-- The Punycode of LABEL, part of a domain (RFC 3492, 6.3): "kln-sna" of U+006B
-- U+00F6 U+006C U+006E.
CREATE FUNCTION crmapi.punycode(label text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    digits CONSTANT text := 'abcdefghijklmnopqrstuvwxyz0123456789';
    points CONSTANT integer[] := ARRAY(SELECT ascii(c)
        FROM regexp_split_to_table(label, '') WITH ORDINALITY s(c, n) ORDER BY n);
    basic CONSTANT text := regexp_replace(label, '[^\u0001-\u007F]', '', 'g');
    made text := CASE WHEN basic <> '' THEN basic || '-' ELSE '' END;
    coded integer := char_length(basic);    -- how many of POINTS are coded
    next integer;           -- the least one that is not
    last integer := 128;
    bias integer := 72;
    delta integer := 0;
    point integer;
    q integer;
    t integer;
BEGIN
    WHILE coded < cardinality(points) LOOP
        next := (SELECT min(p) FROM unnest(points) p WHERE p >= last);
        delta := delta + (next - last) * (coded + 1);
        last := next;
        FOREACH point IN ARRAY points LOOP
            delta := delta + (point < last)::integer;
            CONTINUE WHEN point <> last;
            q := delta;
            FOR k IN 1 .. 99 LOOP
                t := greatest(1, least(26, 36 * k - bias));
                EXIT WHEN q < t;
                made := made || substr(digits, t + (q - t) % (36 - t) + 1, 1);
                q := (q - t) / (36 - t);
            END LOOP;
            made := made || substr(digits, q + 1, 1);
            coded := coded + 1;
            delta := CASE WHEN coded = char_length(basic) + 1 THEN delta / 700
                ELSE delta / 2 END;
            delta := delta + delta / coded;
            bias := 0;
            WHILE delta > 455 LOOP
                delta := delta / 35;
                bias := bias + 36;
            END LOOP;
            bias := bias + 36 * delta / (delta + 38);
            delta := 0;
        END LOOP;
        delta := delta + 1;
        last := last + 1;
    END LOOP;
    RETURN made;
END
$$;

-- C, a character, as UTS 46 maps it, not transitionally: as its compatibility
-- decomposition in lower case, with these exceptions. U+1E9E is U+00DF, as since
-- Unicode 15.1.
CREATE FUNCTION crmapi.domain_character(c text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    made text;
    point integer;
BEGIN
    IF c ~ '[\u00AD\u034F\u180B-\u180D\u180F\u200B\u2060\u2064\uFE00-\uFE0F'
        '\uFEFF\U0001BCA0-\U0001BCA3\U000E0100-\U000E01EF]' THEN
        RETURN '';
    ELSIF c = chr(962) THEN         -- a final sigma, nothing else that is like one
        RETURN c;
    END IF;
    made := normalize(lower(normalize(c, NFKC) COLLATE "und-x-icu"), NFKC);
    -- the iota below, and small letters of Cherokee
    IF normalize(made, NFD) LIKE '%' || chr(837) || '%' THEN
        RETURN replace(normalize(made, NFD), chr(837), chr(953));
    END IF;
    point := ascii(made);
    RETURN CASE WHEN point BETWEEN 43888 AND 43967 THEN chr(point - 38864)
        WHEN point BETWEEN 5112 AND 5117 THEN chr(point - 8)
        ELSE translate(made, U&'\03C2\3002\1C80\1C81\1C82\1C83\1C84\1C85\1C86'
            '\1C87\1C88', U&'\03C3.\0432\0434\043E\0441\0442\0442\044A\0463\A64B')
        END;
END
$$;

-- DOMAIN as A-labels in lower case, without a trailing dot (UTS 46); NULL if it has
-- no such form. What UTS 46 says of right-to-left text, of joiners and of A-labels
-- that are none is checked by the C function only.
CREATE FUNCTION crmapi.domain_ascii(domain text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF octet_length(domain) > char_length(domain) THEN
        IF domain ~ '[\u115F\u1160\u17B4\u17B5\u1806\u2024-\u2026\u2488-\u249B'
            '\u3164\u33C2\u33C7\u33D8\uE000-\uF8FF\uFE12\uFE19\uFE30\uFE52\uFFA0'
            '\uFFFC\uFFFD\U0001F100\U000F0000-\U0010FFFF]' THEN
            RETURN NULL;
        END IF;
        domain := (SELECT normalize(string_agg(crmapi.domain_character(s.c), ''
                ORDER BY s.n))
            FROM regexp_split_to_table(normalize(domain), '')
                WITH ORDINALITY s(c, n));
    END IF;
    domain := regexp_replace(lower(domain COLLATE "C"), '\.$', '');
    IF domain COLLATE "und-x-icu" ~ '[^[:graph:]]' OR domain ~ '(^|\.)-|-(\.|$)'
    THEN
        RETURN NULL;
    END IF;
    IF octet_length(domain) > char_length(domain) THEN
        domain := (SELECT string_agg(CASE
                WHEN octet_length(s.label) = char_length(s.label) THEN s.label
                ELSE 'xn--' || crmapi.punycode(s.label) END, '.' ORDER BY s.n)
            FROM unnest(string_to_array(domain, '.'))
                WITH ORDINALITY s(label, n));
    END IF;
    RETURN CASE WHEN char_length(domain) <= 253 AND domain !~ '[^.]{64}'
        AND domain ~ '^[a-z0-9_-]+(\.[a-z0-9_-]+)*$' THEN domain END;
END
$$;

-- The canonical form of the address EMAIL (contract 17.2); NULL if mail cannot be
-- sent to it. The local part is folded; quotes that it does not need are left out
-- (RFC 5321, 4.1.2). The C function is crm_email_canonical().
CREATE FUNCTION crmapi.email_canonical(email text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    local text := split_part(email, '@', 1);
    domain text := split_part(email, '@', 2);
BEGIN
    IF local = '' OR split_part(email, '@', 3) <> '' OR email LIKE '%@%@%'
       OR char_length(email) > 254
       OR email ~ '[\u0001- \u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F'
            '\u205F\u3000]' THEN
        RETURN NULL;
    END IF;
    IF local ~ '^"([^"\\]|\\.)+"$' THEN
        local := regexp_replace(substr(local, 2, char_length(local) - 2),
                                '\\(.)', '\1', 'g');
        IF local ~ '[]"(),:;<>@[\\]' THEN
            local := '"' || regexp_replace(local, '(["\\])', '\\\1', 'g') || '"';
        END IF;
    END IF;
    email := crmapi.fold(local) || '@' || crmapi.domain_ascii(domain);
    RETURN CASE WHEN char_length(email) <= 254 THEN email END;
END
$$;

-- What e-mail addresses are matched by: their canonical form, else the text without
-- case. Most have no other form. The C function is crm_email_key().
CREATE FUNCTION crmapi.email_key(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN octet_length($1) = char_length($1) AND strpos($1, '"') = 0
            AND right($1, 1) <> '.'
        THEN lower($1 COLLATE "C")
        ELSE coalesce(crmapi.email_canonical($1), crmapi.fold($1)) END;

-- The key of EMAIL without what follows a "+": mail to ada+x@ is for ada@.
CREATE FUNCTION crmapi.email_base(email text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN crmapi.email_key(regexp_replace(email, '\+[^@]*@', '@'));

-- The ASCII digits of a text, and the separators of list_text(). translate() costs less,
-- but compares each character of a text with all others.
CREATE FUNCTION crmapi.digits(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE -- STRICT could not be inlined
    RETURN CASE WHEN octet_length($1) < 200
        THEN translate($1, translate($1, E'0123456789\x1f', ''), '')
        ELSE regexp_replace($1, '[^0-9\x1f]+', '', 'g') END;

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
    -- translate() looks at all of them for each character: of a long text it would
    -- take a millisecond for each kilobyte
    IF octet_length(number) = char_length(number) OR number !~ (
        SELECT '[' || string_agg(chr(z) || '-' || chr(z + 9), '') || ']'
        FROM unnest(zeros) z) THEN
        RETURN number;
    END IF;
    RETURN translate(number, (SELECT string_agg(chr(z + d), '' ORDER BY z, d)
            FROM unnest(zeros) z, generate_series(0, 9) d),
        repeat('0123456789', cardinality(zeros)));
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
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT crmapi.email_key(e ->> 'email')
                 FROM jsonb_array_elements(list) e);
END
$$;

-- The keys of all phone numbers in LIST.
CREATE FUNCTION crmapi.phone_keys(list jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT crmapi.phone_key(e ->> 'phone_number')
                 FROM jsonb_array_elements(list) e);
END
$$;

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
