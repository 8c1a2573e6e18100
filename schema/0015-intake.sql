-- SPDX-License-Identifier: Apache-2.0
-- 0015-intake.sql: intake tokens, events, and the function that takes them
--
-- crmapi.intake() alone inserts conversations, messages and submissions. The
-- internal functions are called by it alone and inherit its settings.
--
-- Locks: the token's row (skipped if it is locked), intake_event in the order
-- of event ids, the advisory locks of all participants in the order of their
-- numbers; then for each event contact, conversation, chat_unseen, enrollment;
-- then agent.
--
-- A source that has verified its participant says so. Otherwise the event is a
-- claim: whoever fills in a form may enter any address. A claim may find a
-- contact or create one. It changes no existing contact and stops nothing.
-- What it says stays in the conversation.

-- ---- tokens ----------------------------------------------------------------

-- Tokens that permit sending events and nothing else; otherwise like
-- crmapi.api_key.
CREATE TABLE crmapi.intake_key (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.title NOT NULL,
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    display text COLLATE "C" NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3),
    PRIMARY KEY (workspace_id, id)
) WITH (fillfactor = 70);
CREATE TRIGGER id_fixed
    BEFORE UPDATE OF workspace_id, id, key_hash ON crmapi.intake_key
    FOR EACH ROW WHEN ((NEW.workspace_id, NEW.id, NEW.key_hash)
                       IS DISTINCT FROM (OLD.workspace_id, OLD.id, OLD.key_hash))
    EXECUTE FUNCTION crmapi.refuse_change('what a key is and where it belongs');
CREATE TRIGGER revoked_fixed BEFORE UPDATE OF revoked_at ON crmapi.intake_key
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL
                       AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION crmapi.refuse_change('the revocation of a key');

-- The tokens that are not revoked.
CREATE VIEW crmapi.live_intake AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug
    FROM crmapi.intake_key k JOIN crmapi.workspace w ON w.id = k.workspace_id
    WHERE k.revoked_at IS NULL;

-- The live token with the hash HASH: one row or none, as key_look_up(). For the
-- API.
CREATE FUNCTION crmapi.intake_key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug
    FROM crmapi.live_intake k WHERE k.key_hash = intake_key_find.hash;
END
$$;

-- The first eight bytes of the hash of each key and token that is not revoked, in
-- no order; null if there are none. The module asks for them when an address has
-- used up its look-ups (contract 2.4): it refuses a key that is not among them.
-- They do not tell the key. For the API.
CREATE FUNCTION crmapi.key_roll() RETURNS bytea
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT string_agg(substr(l.key_hash, 1, 8), '')
            FROM (SELECT k.key_hash FROM crmapi.api_key k
                  WHERE k.revoked_at IS NULL
                  UNION ALL
                  SELECT i.key_hash FROM crmapi.intake_key i
                  WHERE i.revoked_at IS NULL) l);
END
$$;

-- Whether the token with the hash KEY is live. Its use is recorded at most
-- once a minute, and not if another transaction holds the row. Internal.
CREATE FUNCTION crmapi.intake_use_key(workspace uuid, key bytea)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := crmapi.now_ms();
    before timestamptz := moment - interval '1 minute';
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.live_intake k
                   WHERE k.workspace_id = workspace AND k.key_hash = key) THEN
        RETURN false;
    END IF;
    UPDATE crmapi.intake_key k SET last_used_at = moment
    WHERE k.workspace_id = workspace AND k.id = (
        SELECT i.id FROM crmapi.intake_key i
        WHERE i.workspace_id = workspace
          AND i.key_hash = key
          AND (i.last_used_at IS NULL OR i.last_used_at < before)
        FOR NO KEY UPDATE SKIP LOCKED);
    RETURN true;
END
$$;

-- ---- events ----------------------------------------------------------------

-- The events that were taken, and the result of each. result is NULL only
-- within the transaction that takes the event.
CREATE TABLE crmapi.intake_event (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    event_id text COLLATE "C" NOT NULL
        CHECK (char_length(event_id) BETWEEN 1 AND 255),
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    result jsonb,
    PRIMARY KEY (workspace_id, event_id)
) WITH (fillfactor = 70);
-- events that upkeep deletes
CREATE INDEX intake_event_old ON crmapi.intake_event (created_at);

-- An event as crm_intake() writes it. email to visitor_id are the
-- participant's, whether sender or recipient. verified: the source knows that
-- the participant is who the event says; NULL is false. failed: why the mail of
-- step_id or answer_id was returned; with bounced, that speaks of the address, or,
-- of answer_id, of several with spaces between them.
CREATE TYPE crmapi.intake_item AS (
    event_id text, channel smallint, bot_id uuid, occurred_at timestamptz,
    outbound boolean, email text, phone_number text, name text,
    visitor_id text, author text, conversation_id uuid, thread text,
    subject text,
    external_id text, role text, content text, content_type text, status text,
    tool_used text, tool_arguments jsonb, metadata jsonb, minutes numeric,
    audio_url text, ended boolean, positive boolean, score numeric,
    summary text, takeover boolean, refs text[], step_id uuid,
    automatic boolean, suppress text, bounced text, reason text, lift text,
    form_id uuid, responses jsonb, internal boolean, contact jsonb,
    verified boolean, failed text, answer_id uuid);

-- A UUID of version 7 for the time AT, with the clock's microseconds after the time
-- (RFC 9562, 6.2): messages of one millisecond sort as they were taken. A counter
-- would tell who sees two ids how many all workspaces got in between. AT is 48 bits
-- from 1970 on: what is older has that of 1970. Of the microseconds there are 42
-- bits, 50 days. Internal.
CREATE FUNCTION crmapi.uuid_v7(at timestamptz) RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    n bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    ms bigint := greatest(floor(extract(epoch FROM at) * 1000), 0);
BEGIN
    RETURN (lpad(to_hex(ms), 12, '0')
        || '7' || lpad(to_hex(n >> 30 & 4095), 3, '0')
        || to_hex(8 | (n >> 28 & 3)) || lpad(to_hex(n & 268435455), 7, '0')
        || right(gen_random_uuid()::text, 8))::uuid;
END
$$;

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

-- Insert the events' ids of EVENTS; return the places of those that are new,
-- counted from 1, NULL if none is. A transaction that takes the same event
-- waits here; all insert in the order of ids. Internal.
CREATE FUNCTION crmapi.intake_register(workspace uuid, events jsonb)
    RETURNS bigint[]
    LANGUAGE plpgsql AS $$
DECLARE
    fresh bigint[];
BEGIN
    WITH brought AS (
        SELECT e.one ->> 'event_id' AS event_id, min(e.n) AS n
        FROM jsonb_array_elements(events) WITH ORDINALITY e(one, n)
        GROUP BY 1),
    made AS (
        INSERT INTO crmapi.intake_event AS v (workspace_id, event_id)
        SELECT workspace, b.event_id FROM brought b ORDER BY b.event_id
        ON CONFLICT (workspace_id, event_id) DO NOTHING
        RETURNING v.event_id)
    SELECT array_agg(b.n) INTO fresh
    FROM made m JOIN brought b USING (event_id);
    RETURN fresh;
END
$$;

-- Lock the participants of ITEMS until the end of the transaction, by the
-- names that an upsert locks identities by (contract 10.5). Locks: the
-- participants' advisory ones. Internal.
CREATE FUNCTION crmapi.intake_lock(workspace uuid, items crmapi.intake_item[])
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(l.h) FROM (
        SELECT DISTINCT hashtextextended(workspace || k.name, 0) AS h
        FROM unnest(items) i, LATERAL (VALUES
            (':e:' || crmapi.email_key(i.email)),
            (':p:' || crmapi.phone_key(i.phone_number)),
            (':v:' || i.visitor_id),
            (':t:' || i.thread)) k(name)
        WHERE k.name IS NOT NULL ORDER BY h) l;
END
$$;

-- ---- contacts --------------------------------------------------------------

-- The contact of ITEM's participant: of its step, else by primary e-mail, else
-- by primary phone; the oldest (contract 10.1). NULL if there is none.
-- Internal.
CREATE FUNCTION crmapi.intake_find_contact(workspace uuid,
        item crmapi.intake_item)
    RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid := crmapi.step_contact(workspace, item.step_id);
BEGIN
    IF found_id IS NULL AND item.email IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.contact c
        WHERE c.workspace_id = workspace
          AND c.email_key = crmapi.email_key(item.email)
        ORDER BY c.created_at, c.id LIMIT 1;
    END IF;
    IF found_id IS NULL AND item.phone_number IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.contact c
        WHERE c.workspace_id = workspace
          AND c.phone_key = crmapi.phone_key(item.phone_number)
        ORDER BY c.created_at, c.id LIMIT 1;
    END IF;
    RETURN found_id;
END
$$;

-- The contact that got the mail which ITEM proves to answer (contract 18.4): of
-- its step, or of TALK, the conversation that it names, if one of its references
-- is a message of ours in it. A message from outside proves nothing, since its
-- sender chose its name. NULL: it proves nothing. Internal.
CREATE FUNCTION crmapi.intake_answers(workspace uuid, item crmapi.intake_item,
                                      talk crmapi.conversation)
    RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF item.step_id IS NOT NULL THEN
        RETURN crmapi.step_contact(workspace, item.step_id);
    END IF;
    RETURN CASE WHEN talk.contact_id IS NOT NULL AND EXISTS (
        SELECT FROM crmapi.message m
        WHERE m.workspace_id = workspace
          AND (m.external_id = ANY (item.refs) OR m.id = item.answer_id)
          AND m.conversation_id = talk.id
          AND (m.role IN ('assistant', 'human') OR m.reply_id IS NOT NULL))
        THEN talk.contact_id END;
END
$$;

-- Whether ITEM is verified to be from PERSON. ANSWERED: the contact whose mail
-- it proves to answer. Whoever has got that mail may answer it, so the proof
-- counts for an address of that contact only; TALK's contact is not known by
-- what verifies an address that is not its own. Internal.
CREATE FUNCTION crmapi.intake_is_verified(workspace uuid,
        item crmapi.intake_item, talk crmapi.conversation, person uuid,
        answered uuid)
    RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF item.verified AND ((item.step_id IS NULL AND item.refs IS NULL)
       OR ((item.step_id IS NULL OR answered IS NULL)
           AND (person IS NOT NULL OR talk.contact_id IS NULL))) THEN
        RETURN true;
    END IF;
    RETURN answered = person AND EXISTS (
        SELECT FROM crmapi.contact c
        WHERE c.workspace_id = workspace AND c.id = answered
          AND crmapi.email_key(item.email) = ANY (crmapi.email_keys(c.emails)));
END
$$;

-- ADDRESS as a contact's list of addresses with the member MEMBER. Internal.
CREATE FUNCTION crmapi.intake_address(member text, address text)
    RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN address IS NULL THEN '[]'::jsonb
        ELSE jsonb_build_array(jsonb_build_object(member, address,
                                                  'is_primary', true)) END;

-- NAME, as a channel gives it, without what programs add to it: "[EXT] Ada", "Ada King
-- via Support", quotes and pictures around it. Null if it says nobody's name: an address,
-- a number, or what a program calls a name that it does not have. Internal.
CREATE FUNCTION crmapi.intake_name(name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    marks text := '(ext|external|extern|externe|externo|esterno|spam|suspected spam'
        '|possible spam|caution)';
    picture text := '[\u00A9\u00AE\u2122\u2190-\u2BFF\u3030\uFE0E\uFE0F\u200D'
        '\U0001F000-\U0001FAFF\U000E0020-\U000E007F]';
    plain text := btrim(name);
    pattern text;
BEGIN
    FOREACH pattern IN ARRAY ARRAY[
        '(?i)^([[(*<{]+ *' || marks || ' *[])*>}]+ *:? *|' || marks || ': *)+',
        '(?i) *[[(*<{]+ *' || marks || ' *[])*>}]+$',
        '(?i) +\(?via .+$',
        ' *<[^<>]*@[^<>]*>$',
        '(^' || picture || '+ *| *' || picture || '+$)'
    ] LOOP
        plain := coalesce(nullif(regexp_replace(plain, pattern, '', 'g'), ''), plain);
    END LOOP;
    plain := regexp_replace(plain, '^["''\u2018\u201C\u201E] *(.+?) *["''\u2019\u201C\u201D]$',
        '\1');
    RETURN CASE WHEN plain !~ '^\S+@\S+$' AND plain !~ '^[-+0-9 ()./]+$'
            AND plain !~* ('^[[(]?(undefined|null|none|nil|n/a|unknown|anonymous'
                '|no name|noname|object object)( +\1)?[])]?$') THEN plain END;
END
$$;

-- The contact's fields in ITEM. First and last name come from the words of the
-- participant's name unless ITEM has them, or the name is what ITEM has of them: of a
-- last name alone no word is a first name. Directories write "Lovelace, Ada"; what
-- follows the comma of "Ada Lovelace, PhD" or "..., Example Ltd." is no first name,
-- nor what follows that of "Ada Lovelace (Example, London)" or "King & Sons, London".
-- "Lovelace, Ada (Example)" is Ada. A title is no name: "Dr. Lovelace" and "Mr & Mrs
-- Lovelace" have no first one. "LOVELACE Ada" has the last name first. Internal.
CREATE FUNCTION crmapi.intake_texts(item crmapi.intake_item) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    titles text := '(?i)^((mr|mrs|ms|mx|miss|dr|prof|professor|sir|rev|herr|frau|mme|mlle'
        '|monsieur|madame|dott|sra|srta|dhr|mevr|dipl\.-ing)\.? +((&|and|und|et) +)?'
        '|(ing|mag|sr|sig)\. +)+';
    jobs text := '(sales|support|service|team|marketing|manager|director|directeur'
        '|directrice|head|engineer|developer|consultant|officer|president|founder|owner'
        '|assistant|accountant|ceo|cto|cfo|coo|cio|vp|hr|leiter(in)?|vertrieb'
        '|gesch\u00E4ftsf\u00FChrer(in)?|kundenservice|responsable|g\u00E9rante?)';
    name text := btrim(item.name);
    plain text := crmapi.intake_name(name);
    own text := regexp_replace(plain, titles, '');
    first text := split_part(own, ' ', 1);
    last text := btrim(substr(own, length(first) + 1));
    parts text[] := regexp_match(own,
        '^([^,&([]*[^,&([ ]) *, *([^,([]*[^,([ ])');
BEGIN
    IF own <> plain AND last = '' THEN
        last := first;
        first := NULL;
    END IF;
    IF translate(lower(parts[2]), '.', '') !~ ('[@&0-9]|(^| )(jr|sr|ii|iii|iv|'
        'phd|md|dds|rn|esq|mba|cpa|cfa|inc|ltd|llc|llp|plc|corp|gmbh|kg|ag)$'
        '|(^| )' || jobs || '( |$)') THEN
        first := regexp_replace(parts[2], titles, '');
        last := parts[1];
    ELSIF first ~ '^[^ ]{4,}$' AND first = upper(first) AND first !~ '[0-9.&]'
        AND first <> lower(first) AND last ~ '^[^ ][^ ]+$' AND last <> upper(last)
        AND last <> lower(last) AND lower(last) !~ ('^' || jobs || '$') THEN
        SELECT last, first INTO first, last;
    END IF;
    RETURN CASE WHEN name <> concat_ws(' ', item.contact ->> 'first_name',
                item.contact ->> 'last_name') THEN jsonb_strip_nulls(jsonb_build_object(
            'first_name', first, 'last_name', nullif(last, '')))
        ELSE '{}' END || coalesce(item.contact, '{}');
END
$$;

-- Create a contact of the agent BOT for ITEM's participant. Returns its id.
-- Internal.
CREATE FUNCTION crmapi.intake_create_contact(workspace uuid, bot uuid,
                                             item crmapi.intake_item)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    texts jsonb := crmapi.intake_texts(item);
    made uuid := crmapi.uuid_v7(clock_timestamp());
BEGIN
    INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails,
        phone_numbers, first_name, last_name, company, job_title, lead_source,
        address_line1, address_line2, city, state, postal_code, country,
        linkedin_url)
    VALUES (made, workspace, bot,
        crmapi.intake_address('email', item.email),
        crmapi.intake_address('phone_number', item.phone_number),
        texts ->> 'first_name', texts ->> 'last_name', texts ->> 'company',
        texts ->> 'job_title', texts ->> 'lead_source',
        texts ->> 'address_line1', texts ->> 'address_line2',
        texts ->> 'city', texts ->> 'state', texts ->> 'postal_code',
        texts ->> 'country', texts ->> 'linkedin_url');
    RETURN made;
END
$$;

-- What the contact PERSON lacks and ITEM or TEXTS, its fields, have: names of
-- columns, "name" for first and last name, "address" for all parts of an
-- address. Internal.
CREATE FUNCTION crmapi.intake_contact_lacks(workspace uuid, person uuid,
        item crmapi.intake_item, texts jsonb)
    RETURNS text[]
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    lacks text[];
BEGIN
    SELECT array_remove(ARRAY[
        CASE WHEN c.emails = '[]' AND item.email IS NOT NULL
            THEN 'emails' END,
        CASE WHEN c.phone_numbers = '[]' AND item.phone_number IS NOT NULL
            THEN 'phone_numbers' END,
        CASE WHEN c.first_name IS NULL AND c.last_name IS NULL
                AND texts ?| '{first_name,last_name}' THEN 'name' END,
        CASE WHEN c.company IS NULL AND texts ? 'company'
            THEN 'company' END,
        CASE WHEN c.job_title IS NULL AND texts ? 'job_title'
            THEN 'job_title' END,
        CASE WHEN c.lead_source IS NULL AND texts ? 'lead_source'
            THEN 'lead_source' END,
        CASE WHEN c.linkedin_url IS NULL AND texts ? 'linkedin_url'
            THEN 'linkedin_url' END,
        CASE WHEN coalesce(c.address_line1, c.address_line2, c.city, c.state,
                c.postal_code, c.country) IS NULL
                AND texts ?| '{address_line1,address_line2,city,state,'
                    'postal_code,country}' THEN 'address' END], NULL)
    INTO lacks
    FROM crmapi.contact c WHERE c.workspace_id = workspace AND c.id = person;
    RETURN lacks;
END
$$;

-- Fill what the contact PERSON lacks and ITEM has; what it has stays, because
-- the source has no API key. Looking first is cheap; a lock is not. Then it is
-- looked again: somebody else may have filled it meanwhile. Locks: contact (if it
-- lacks something). Internal.
CREATE FUNCTION crmapi.intake_fill_contact(workspace uuid, person uuid,
                                           item crmapi.intake_item)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    texts jsonb := crmapi.intake_texts(item);
    lacks text[] := crmapi.intake_contact_lacks(workspace, person, item,
                                                texts);
BEGIN
    IF lacks = '{}' THEN
        RETURN;
    END IF;
    PERFORM FROM crmapi.contact c
    WHERE c.workspace_id = workspace AND c.id = person FOR NO KEY UPDATE;
    lacks := crmapi.intake_contact_lacks(workspace, person, item, texts);
    IF lacks = '{}' THEN
        RETURN;
    END IF;
    UPDATE crmapi.contact c SET
        emails = CASE WHEN 'emails' = ANY (lacks)
            THEN crmapi.intake_address('email', item.email)
            ELSE c.emails END,
        phone_numbers = CASE WHEN 'phone_numbers' = ANY (lacks)
            THEN crmapi.intake_address('phone_number', item.phone_number)
            ELSE c.phone_numbers END,
        first_name = CASE WHEN 'name' = ANY (lacks)
            THEN texts ->> 'first_name' ELSE c.first_name END,
        last_name = CASE WHEN 'name' = ANY (lacks)
            THEN texts ->> 'last_name' ELSE c.last_name END,
        company = coalesce(c.company, texts ->> 'company'),
        job_title = coalesce(c.job_title, texts ->> 'job_title'),
        lead_source = coalesce(c.lead_source, texts ->> 'lead_source'),
        linkedin_url = coalesce(c.linkedin_url, texts ->> 'linkedin_url'),
        address_line1 = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'address_line1' ELSE c.address_line1 END,
        address_line2 = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'address_line2' ELSE c.address_line2 END,
        city = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'city' ELSE c.city END,
        state = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'state' ELSE c.state END,
        postal_code = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'postal_code' ELSE c.postal_code END,
        country = CASE WHEN 'address' = ANY (lacks)
            THEN texts ->> 'country' ELSE c.country END,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = workspace AND c.id = person;
END
$$;

-- ---- conversations ---------------------------------------------------------

-- The conversation that ITEM names, unless it is deleted: by its id, by the
-- source's name for it, by a message that ITEM answers or is about. Messages of
-- ours go before those that came in, whose ids their senders chose (contract
-- 18.6). Of several messages with one id the participant's own goes first, then
-- the oldest; if ITEM answers a step, those of its contact's conversations
-- alone count. Internal.
CREATE FUNCTION crmapi.intake_named(workspace uuid,
                                    item crmapi.intake_item)
    RETURNS crmapi.conversation
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    talk crmapi.conversation;
    enrolled uuid;
BEGIN
    IF item.conversation_id IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.id = item.conversation_id
          AND c.deleted IS NOT TRUE;
        RETURN talk;
    END IF;
    IF item.thread IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.thread = item.thread
          AND (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    ELSIF item.refs IS NOT NULL THEN
        enrolled := crmapi.step_contact(workspace, item.step_id);
        SELECT c.* INTO talk
        FROM unnest(item.refs) WITH ORDINALITY r(external_id, place)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.external_id = r.external_id
        JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
            AND c.id = m.conversation_id
        WHERE (item.channel IS NULL OR c.type = item.channel)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id)
          AND (item.step_id IS NULL OR m.role IN ('assistant', 'human')
               OR c.contact_id = enrolled)
        ORDER BY m.role IN ('assistant', 'human') DESC, r.place DESC,
            (crmapi.email_key(c.email) = crmapi.email_key(item.email)) IS TRUE DESC,
            m.created_at, m.id LIMIT 1;
    END IF;
    IF talk.id IS NULL AND coalesce(item.step_id, item.answer_id) IS NOT NULL
    THEN
        SELECT c.* INTO talk FROM crmapi.message m
        JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
            AND c.id = m.conversation_id
        WHERE m.workspace_id = workspace
          AND (m.step_id = item.step_id OR m.id = item.answer_id)
          AND (c.type = item.channel OR m.id = item.answer_id)
          AND c.deleted IS NOT TRUE
          AND (item.bot_id IS NULL OR c.bot_id = item.bot_id) LIMIT 1;
    END IF;
    RETURN talk;
END
$$;

-- The thread of a participant of whom only an address is known: its next event
-- finds the same conversation by it. NULL if there is a contact PERSON, a
-- visitor or no address. Internal.
CREATE FUNCTION crmapi.intake_thread(person uuid, item crmapi.intake_item)
    RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN person IS NULL AND item.visitor_id IS NULL
        THEN 'address:' || coalesce(crmapi.email_key(item.email),
                                    crmapi.phone_key(item.phone_number)) END;
END
$$;

-- The open conversation of the agent BOT with ITEM's participant, who is the
-- contact PERSON (may be null), on ITEM's channel. An archived one is not
-- open. Locks: the visitor's or contact's advisory lock. Internal.
CREATE FUNCTION crmapi.intake_open(workspace uuid, bot uuid, person uuid,
                                   item crmapi.intake_item)
    RETURNS crmapi.conversation
    LANGUAGE plpgsql AS $$
DECLARE
    talk crmapi.conversation;
BEGIN
    -- the same person may use another address at the same time
    PERFORM pg_advisory_xact_lock(hashtextextended(workspace || ':c:'
        || coalesce(item.visitor_id, person::text, ''), 0));
    IF item.visitor_id IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.visitor_id = item.visitor_id
          AND c.bot_id = bot AND c.type = item.channel AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    ELSIF person IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = workspace AND c.contact_id = person
          AND c.bot_id = bot AND c.type = item.channel AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL AND c.visitor_id IS NULL AND NOT c.internal
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    END IF;
    RETURN talk;
END
$$;

-- Append ITEM's message of the time AT to CONVERSATION; return its id. A
-- claim's metadata says that it is one. Internal.
CREATE FUNCTION crmapi.intake_message(workspace uuid,
        conversation uuid, item crmapi.intake_item, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    made uuid := crmapi.uuid_v7(at);
BEGIN
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
        content, content_type, status, tool_used, tool_arguments, created_at,
        external_id, metadata)
    VALUES (made, workspace, conversation, coalesce(item.role,
            CASE WHEN item.outbound THEN 'assistant' ELSE 'user' END),
        coalesce(item.content, ''), item.content_type, item.status,
        item.tool_used, item.tool_arguments, at, item.external_id,
        coalesce(item.metadata, '{}') || CASE WHEN item.author IS NULL
            THEN '{}' ELSE jsonb_build_object('user_id', item.author) END
        || CASE WHEN item.verified THEN '{}'::jsonb
           ELSE '{"verified": false}' END);
    RETURN made;
END
$$;

-- Whether a conversation of the type CHANNEL waits for an answer after ITEM's
-- message, if it is later than all others; WAITED: whether it did before, OPENS: the
-- message opens it. Calls cannot be answered, a request to send nothing more needs
-- none, and what a program says by itself, such as a greeting, is none. Internal.
CREATE FUNCTION crmapi.intake_unanswered(waited boolean, channel smallint,
        item crmapi.intake_item, opens boolean) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE coalesce(item.role, CASE WHEN item.outbound THEN 'assistant'
                ELSE 'user' END)
        WHEN 'user' THEN waited OR (opens AND channel <> 2
            AND item.suppress IS NULL AND item.lift IS NULL)
        WHEN 'assistant' THEN waited AND (item.automatic IS TRUE
            OR item.tool_used IS NOT NULL)
        WHEN 'human' THEN false
        ELSE waited END;

-- Update CONVERSATION for ITEM of the time AT from the contact PERSON. SAYS:
-- it has a message, which opens the conversation again unless a program has
-- answered. Locks: conversation, chat_unseen. Internal.
CREATE FUNCTION crmapi.intake_update_conversation(workspace uuid,
        conversation uuid, person uuid, item crmapi.intake_item,
        says boolean, at timestamptz)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    opens CONSTANT boolean := says AND NOT (item.automatic IS TRUE
        AND crmapi.mail_is_notice(item.metadata));
BEGIN
    UPDATE crmapi.conversation c SET
        contact_id = coalesce(c.contact_id, person),
        email = coalesce(item.email, c.email),
        phone_number = coalesce(item.phone_number, c.phone_number),
        human = coalesce(item.name, c.human),
        visitor_id = coalesce(c.visitor_id, item.visitor_id),
        thread = coalesce(c.thread, item.thread),
        subject = coalesce(c.subject, item.subject),
        last_message = CASE WHEN says AND item.content <> ''
                AND at >= coalesce(c.last_message_at, '-infinity')
            THEN left(item.content, 255) ELSE c.last_message END,
        last_message_at = CASE WHEN says
            THEN greatest(c.last_message_at, at) ELSE c.last_message_at END,
        last_active_at = greatest(c.last_active_at, at),
        unanswered = CASE WHEN says AND at >= coalesce(c.last_message_at,
                                                       '-infinity')
            THEN crmapi.intake_unanswered(c.unanswered, c.type, item, opens)
            ELSE c.unanswered END,
        active = CASE WHEN item.ended THEN false
            ELSE c.active OR opens END,
        archived = CASE WHEN opens AND c.archived THEN false
            ELSE c.archived END,
        archived_at = CASE WHEN NOT (opens AND c.archived IS TRUE)
            THEN c.archived_at END,
        human_takeover = coalesce(item.takeover, c.human_takeover),
        sentiment_positive = coalesce(item.positive, c.sentiment_positive),
        sentiment_score = coalesce(item.score, c.sentiment_score),
        sentiment_summary = coalesce(item.summary, c.sentiment_summary),
        minutes = coalesce(item.minutes, c.minutes),
        audio_url = coalesce(item.audio_url, c.audio_url)
    WHERE c.workspace_id = workspace
      AND c.id = conversation;
    IF says AND item.tool_used IS NULL AND coalesce(item.role, CASE
            WHEN item.outbound THEN 'assistant' END) IN ('human', 'assistant')
    THEN
        PERFORM crmapi.chat_answered(workspace, conversation, at);
    END IF;
END
$$;

-- Whether a message's status LATER may replace EARLIER: providers report in
-- any order, and some in words of their own. As an earlier one such a word says that
-- the message is on its way. Internal.
CREATE FUNCTION crmapi.status_follows(earlier text, later text)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN later IS DISTINCT FROM earlier
        AND coalesce(earlier, '') <> ALL ('{failed,undelivered,canceled,cancelled,'
                                          'bounced,rejected,expired}'::text[])
        AND coalesce(array_position('{accepted,scheduled,queued,sending,sent,'
                         'delivered,read}'::text[], later), 8)
            > coalesce(array_position('{accepted,scheduled,queued,sending,sent,'
                           'delivered,read}'::text[], earlier),
                       CASE WHEN earlier IS NULL THEN 0 ELSE 4 END);

-- Set the status of the message that ITEM names, unless a later one is known. A
-- message that crmapid sends is "queued" until it was handed over. If it was not
-- delivered, it is "failed", and its address is suppressed for the REASON of ITEM
-- (null: it is not), as if the relay had refused it at once (contract 17.5).
-- RESULT is the result of the event; if there is no such message, REFUSAL is
-- the field and the rule. Locks: enrollment, step, job, message. Internal.
CREATE FUNCTION crmapi.intake_status(workspace uuid, item crmapi.intake_item,
                                     OUT result jsonb, OUT refusal text[])
    LANGUAGE plpgsql AS $$
DECLARE
    conversation uuid;
    said uuid;
BEGIN
    SELECT m.conversation_id, m.id INTO conversation, said
    FROM crmapi.message m
    WHERE m.workspace_id = workspace AND m.external_id = item.external_id
    ORDER BY m.created_at DESC LIMIT 1;
    IF said IS NULL AND item.answer_id IS NOT NULL THEN
        SELECT m.conversation_id, m.id INTO conversation, said
        FROM crmapi.message m
        WHERE m.workspace_id = workspace AND m.handed_over
          AND (m.id = item.answer_id OR m.step_id = item.answer_id) LIMIT 1;
    END IF;
    IF said IS NULL THEN
        refusal := '{message.external_id,must be that of a message}';
        RETURN;
    END IF;
    IF item.reason IS NOT NULL THEN
        PERFORM crmapi.suppress_refused(workspace, m.to_identifier, item.reason)
        FROM crmapi.message m
        WHERE m.workspace_id = workspace AND m.id = said AND m.handed_over;
    END IF;
    UPDATE crmapi.message m SET status = CASE WHEN m.handed_over
            AND item.status = 'undelivered' THEN 'failed' ELSE item.status END,
        metadata = CASE WHEN item.failed IS NULL THEN m.metadata
            ELSE m.metadata || jsonb_build_object('error', item.failed) END
    WHERE m.workspace_id = workspace AND m.id = said
      AND crmapi.status_follows(m.status, item.status)
      AND (m.handed_over IS NULL
           OR item.status NOT IN ('accepted', 'scheduled', 'queued',
                                  'sending'));
    result := jsonb_build_object('conversation', conversation,
                                 'message', said);
END
$$;

-- ---- taking an event -------------------------------------------------------

-- Why ITEM is refused: the fields and the rules, a line for each; NULL if it is valid.
-- CONVERSATION is the one that it names. Internal.
CREATE FUNCTION crmapi.intake_refusal(workspace uuid,
        item crmapi.intake_item, conversation uuid)
    RETURNS text[]
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    named CONSTANT boolean := item.conversation_id IS NOT NULL
        OR conversation IS NOT NULL;
    fields text[] := '{}';
    rules text[] := '{}';
BEGIN
    IF item.conversation_id IS NOT NULL AND conversation IS NULL THEN
        fields := fields || text 'conversation.id';
        rules := rules
            || text 'must be the id of a conversation of this workspace';
    END IF;
    IF item.bot_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM crmapi.agent a
            WHERE a.workspace_id = workspace AND a.id = item.bot_id) THEN
        fields := fields || text 'bot_id';
        rules := rules || text 'must be the id of an agent of this workspace';
    ELSIF item.bot_id IS NULL AND NOT named THEN
        fields := fields || text 'bot_id';
        rules := rules || text 'is required unless a conversation is named';
    END IF;
    IF item.channel IS NULL AND NOT named THEN
        fields := fields || text 'channel';
        rules := rules || text 'is required unless a conversation is named';
    END IF;
    IF item.form_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM crmapi.form f
            WHERE f.workspace_id = workspace AND f.id = item.form_id) THEN
        fields := fields || text 'form_id';
        rules := rules || text 'must be the id of a form of this workspace';
    END IF;
    IF NOT named AND item.email IS NULL
       AND item.phone_number IS NULL AND item.visitor_id IS NULL
       AND item.thread IS NULL AND item.form_id IS NULL THEN
        fields := fields || CASE WHEN item.outbound THEN 'to' ELSE 'from' END;
        rules := rules || text 'must have an email, a phone_number, a '
            'visitor_id or a user_id unless a conversation is named';
    END IF;
    RETURN CASE WHEN fields <> '{}' THEN ARRAY[array_to_string(fields, E'\n'),
                                               array_to_string(rules, E'\n')]
        END;
END
$$;

-- The contact PERSON has written ITEM, which is verified, or has got the mail
-- that it answers: stop its sequences. IS_NEW: the contact was created for ITEM,
-- so its address may be a secondary one of other contacts. A text or a call has no
-- proof of what it answers: it comes from whoever got a step at its number, also if
-- an older contact has that as well, or the contact has another one now. Locks:
-- enrollment, step, job. Internal.
CREATE FUNCTION crmapi.intake_replied(workspace uuid, person uuid,
        is_new boolean, item crmapi.intake_item)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_new THEN
        PERFORM crmapi.contact_replied(workspace, person);
    ELSE
        PERFORM crmapi.contact_replied(workspace, c.id)
        FROM crmapi.contacts_with(workspace, item.email,
            CASE WHEN item.email IS NULL THEN item.phone_number END) c(id);
    END IF;
    IF item.channel IN (2, 3) THEN
        PERFORM crmapi.contact_replied(workspace, r.id)
        FROM (SELECT DISTINCT c.contact_id AS id FROM crmapi.conversation c
              WHERE c.workspace_id = workspace AND c.phone_number IS NOT NULL
                AND crmapi.phone_key(c.phone_number)
                    = crmapi.phone_key(item.phone_number)
                AND c.contact_id <> person AND EXISTS (
                    SELECT FROM crmapi.message m
                    WHERE m.workspace_id = workspace
                      AND m.conversation_id = c.id AND m.step_id IS NOT NULL)
              ORDER BY 1) r;
    END IF;
END
$$;

-- What ITEM does to sequences and suppressions. IS_NEW: the contact PERSON was
-- created for it; ANSWERED: the contact whose mail it proves to answer; SAYS: it
-- has something that may be a reply. A claim does nothing, except a bounce or a
-- complaint, which comes with the step whose mail it returns, and a reply that
-- is proven. Locks: enrollment, step, job. Internal.
CREATE FUNCTION crmapi.intake_effects(workspace uuid, person uuid,
        is_new boolean, answered uuid, item crmapi.intake_item, says boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF item.answer_id IS NOT NULL
       AND coalesce(item.failed, item.bounced) IS NOT NULL THEN
        PERFORM crmapi.answer_returned(workspace, item.answer_id, item.bounced,
            item.failed, coalesce(item.reason, 'bounced'));
    ELSIF item.failed IS NOT NULL AND item.step_id IS NOT NULL THEN
        PERFORM crmapi.step_returned(workspace, item.step_id, item.bounced,
                                     item.failed);
    ELSIF item.bounced IS NOT NULL AND item.step_id IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.bounced, NULL,
                                coalesce(item.reason, 'bounced'));
    END IF;
    IF item.verified AND item.suppress = 'phone'
       AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, NULL, item.phone_number,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.verified AND item.suppress = 'email'
          AND item.email IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, item.email, NULL,
                                coalesce(item.reason, 'unsubscribed'));
    ELSIF item.verified AND item.lift = 'phone'
          AND item.phone_number IS NOT NULL THEN
        PERFORM crmapi.suppress_lift(workspace, NULL, item.phone_number,
                                     'unsubscribed');
    END IF;
    IF NOT says OR item.outbound OR item.automatic
       OR coalesce(item.role, 'user') <> 'user' THEN
        RETURN;
    END IF;
    IF item.verified THEN
        PERFORM crmapi.intake_replied(workspace, person, is_new, item);
    END IF;
    IF answered IS NOT NULL AND (answered = person AND item.verified)
                                IS NOT TRUE THEN
        PERFORM crmapi.contact_replied(workspace, answered);
    END IF;
END
$$;

-- Insert the submission of ITEM's form by the contact PERSON (may be null) at
-- the time AT; return its id. Internal.
CREATE FUNCTION crmapi.intake_submission(workspace uuid, person uuid,
        item crmapi.intake_item, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    made uuid := crmapi.uuid_v7(at);
BEGIN
    INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id,
        custom_field_responses, is_internal, submitted_at)
    VALUES (made, workspace, item.form_id, person,
        coalesce(item.responses, '{}'), coalesce(item.internal, false), at);
    RETURN made;
END
$$;

-- When a message was said: AT; but behind LATEST, the one before, if the channel has
-- given no time, OCCURRED_AT. The clock may have been set back since: see
-- message_answer(). Internal.
CREATE FUNCTION crmapi.intake_said_at(at timestamptz, occurred_at timestamptz,
        latest timestamptz) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN greatest(at, CASE WHEN occurred_at IS NULL
        THEN latest + interval '1 millisecond' END);

-- Do what the valid ITEM says, as far as it is more than a claim. TALK is the
-- conversation that it names, or has no id. SAYS: it has a message. RESULT is
-- the result of the event, OPENED the agent if a conversation was opened.
-- Internal.
CREATE FUNCTION crmapi.intake_apply(workspace uuid,
        item crmapi.intake_item, talk crmapi.conversation, says boolean,
        OUT result jsonb, OUT opened uuid)
    LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := date_trunc('milliseconds', least(clock_timestamp(),
        coalesce(item.occurred_at, 'infinity')));
    bot uuid := coalesce(talk.bot_id, item.bot_id);
    person uuid := crmapi.intake_find_contact(workspace, item);
    is_new boolean := coalesce(person, talk.contact_id) IS NULL
        AND item.automatic IS NOT TRUE
        AND coalesce(item.email, item.phone_number) IS NOT NULL;
    answered uuid := crmapi.intake_answers(workspace, item, talk);
    said uuid;
    submission uuid;
BEGIN
    item.verified := coalesce(crmapi.intake_is_verified(workspace, item,
                                  talk, person, answered), false);
    IF is_new THEN
        person := crmapi.intake_create_contact(workspace, bot, item);
    ELSIF person IS NOT NULL AND item.verified THEN
        PERFORM crmapi.intake_fill_contact(workspace, person, item);
    END IF;
    IF talk.id IS NULL AND item.thread IS NULL THEN
        item.thread := crmapi.intake_thread(person, item);
        talk := CASE WHEN item.thread IS NULL
            THEN crmapi.intake_open(workspace, bot, person, item)
            ELSE crmapi.intake_named(workspace, item) END;
    END IF;
    IF talk.id IS NULL THEN
        opened := bot;
        talk.id := crmapi.uuid_v7(at);
        INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
            email, phone_number, human, visitor_id, subject, created_at)
        VALUES (talk.id, workspace, bot, person, item.channel, item.email,
            item.phone_number, item.name, item.visitor_id, item.subject, at);
    END IF;
    IF says THEN
        at := crmapi.intake_said_at(at, item.occurred_at, talk.last_message_at);
        said := crmapi.intake_message(workspace, talk.id, item, at);
    END IF;
    -- A claim changes no participant, but in the visitor's own conversation.
    IF opened IS NULL AND NOT item.verified
       AND (item.visitor_id = talk.visitor_id) IS NOT TRUE THEN
        item.email := NULL;
        item.phone_number := NULL;
        item.name := NULL;
    END IF;
    PERFORM crmapi.intake_update_conversation(workspace, talk.id, person, item, says, at);
    person := coalesce(person, talk.contact_id);
    IF item.form_id IS NOT NULL THEN
        submission := crmapi.intake_submission(workspace, person, item, at);
    END IF;
    PERFORM crmapi.intake_effects(workspace, person, is_new, answered, item,
        says OR item.minutes IS NOT NULL);
    result := jsonb_build_object('conversation', talk.id, 'message', said,
        'contact', person, 'submission', submission,
        'opened', opened IS NOT NULL);
END
$$;

-- Take ITEM. RESULT and OPENED are as of intake_apply(). REFUSAL: the fields
-- and the rules, if ITEM is refused; then nothing changes. Internal.
CREATE FUNCTION crmapi.intake_one(workspace uuid, item crmapi.intake_item,
        OUT result jsonb, OUT refusal text[], OUT opened uuid)
    LANGUAGE plpgsql AS $$
DECLARE
    says boolean := item.content IS NOT NULL OR item.role IS NOT NULL
        OR item.tool_used IS NOT NULL;
    talk crmapi.conversation;
    done record;
BEGIN
    IF item.status IS NOT NULL AND item.external_id IS NOT NULL AND NOT says
    THEN
        done := crmapi.intake_status(workspace, item);
        result := done.result;
        refusal := done.refusal;
        RETURN;
    END IF;
    talk := crmapi.intake_named(workspace, item);
    refusal := crmapi.intake_refusal(workspace, item, talk.id);
    IF refusal IS NULL THEN
        done := crmapi.intake_apply(workspace, item, talk, says);
        result := done.result;
        opened := done.opened;
    END IF;
END
$$;

-- Add 1 to the number of conversations of each agent of BOTS for each time
-- that it is in BOTS, nulls aside. Locks: agent, in the order of ids. Internal.
CREATE FUNCTION crmapi.intake_count(workspace uuid, bots uuid[]) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    bot uuid;
    more bigint;
BEGIN
    bots := array_remove(bots, NULL);
    IF bots = '{}' THEN
        RETURN;
    END IF;
    FOR bot, more IN
        SELECT t.id, count(*) FROM unnest(bots) t(id) GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE crmapi.agent a
        SET number_of_conversations = a.number_of_conversations + more
        WHERE a.workspace_id = workspace AND a.id = bot;
    END LOOP;
END
$$;

-- Store RESULTS, those of the events IDS, and delete the events REFUSED (ids
-- and reasons), which may come again under the same id. Locks: event; held
-- already. Internal.
CREATE FUNCTION crmapi.intake_store(workspace uuid, ids text[],
        results jsonb[], refused jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF refused <> '{}' THEN
        DELETE FROM crmapi.intake_event v
        WHERE v.workspace_id = workspace
          AND v.event_id = ANY (ARRAY(SELECT jsonb_object_keys(refused)));
    END IF;
    UPDATE crmapi.intake_event v
    SET result = results[array_position(ids, v.event_id)]
    WHERE v.workspace_id = workspace AND v.event_id = ANY (ids);
END
$$;

-- Take EVENTS, an array of at most 500 objects with the members of
-- crmapi.intake_item, each event_id once. Returns a row for each, in their
-- order; FIELD and MESSAGE say why one was refused, a line for each field, AGAIN that
-- it was taken before. KEY is the hash of the intake token, NULL if the source is known
-- otherwise; no row if that token is not live. Fails with CRM03 if the workspace
-- is held. Locks: see the top of this file. The settings give each statement one
-- plan, by indexes, whatever the tables' sizes when it is made: planning takes
-- longer than executing. For the API and the worker.
CREATE FUNCTION crmapi.intake(workspace uuid, key bytea, events jsonb)
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
    PERFORM crmapi.intake_count(workspace, bots);
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
