-- SPDX-License-Identifier: Apache-2.0
-- 0005-times.sql: the time of a change

-- An UPDATE of a program has infinity for the time of the change, because Citus
-- takes no volatile function there.

-- Put the time in place of infinity: updated_at always grows (contract 6.6). A
-- trigger function.
CREATE FUNCTION crmapi.set_times() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    IF NEW.updated_at = 'infinity' THEN
        NEW.updated_at := greatest(moment,
                                   OLD.updated_at + interval '1 millisecond');
    END IF;
    RETURN NEW;
END
$$;
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attname = 'updated_at'
        WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r' LOOP
        EXECUTE format('CREATE TRIGGER aa_times BEFORE UPDATE OF updated_at
            ON crmapi.%I FOR EACH ROW EXECUTE FUNCTION crmapi.set_times()',
            name);
    END LOOP;
END
$$;

-- The same for the other times of a conversation. A trigger function.
CREATE FUNCTION crmapi.set_conversation_times() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    IF NEW.assigned_at = 'infinity' THEN
        NEW.assigned_at := moment;
    END IF;
    IF NEW.archived_at = 'infinity' THEN
        NEW.archived_at := moment;
    END IF;
    IF NEW.deleted_at = 'infinity' THEN
        NEW.deleted_at := moment;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER aa_conversation_times
    BEFORE UPDATE OF assigned_at, archived_at, deleted_at ON crmapi.conversation
    FOR EACH ROW EXECUTE FUNCTION crmapi.set_conversation_times();

-- Functions update rows, too.
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prokind = 'f'
          AND p.prosrc ~ ' updated_at = greatest' LOOP
        EXECUTE regexp_replace(definition, ' updated_at = greatest\(crmapi'
            || '\.now_ms\(\),\s*\w+\.updated_at \+ interval ''1 millisecond''\)',
            ' updated_at = ''infinity''::timestamptz', 'g');
    END LOOP;
END
$$;
