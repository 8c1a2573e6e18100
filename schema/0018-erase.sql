-- SPDX-License-Identifier: Apache-2.0
-- 0018-erase.sql: erasing a person (contract 14.4)
--
-- A person is contacts, also those that were deleted, and addresses. What belongs to
-- the person: the contacts, their activities, enrollments with sequences and steps;
-- conversations of the contacts, and others with an address, with messages and files;
-- submissions; and whatever names one of these rows by its id: events with their
-- deliveries, jobs, stored answers, results of intake. Cards stay, without the link
-- and their texts. Of a suppression a hash stays.

-- The journal of erasures. It says who was erased without saying who that was:
-- by ids and hashes, so that a person whom an older dump brings back is erased
-- again. It outlives the workspace, so no foreign key deletes it.
CREATE TABLE crmapi.erasure (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    contact_ids uuid[] NOT NULL,
    hashes bytea[] NOT NULL,            -- erased_hash() of the addresses
    key bytea NOT NULL,                 -- erase_key.key
    sent_ids uuid[] NOT NULL,           -- of messages that a relay may have
    erased_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    PRIMARY KEY (workspace_id, id)
);
-- how far an erasure is; messages to people who were erased, in an outbox
CREATE INDEX erasure_find ON crmapi.erasure
    USING gin (workspace_id, contact_ids, sent_ids);

-- TEXT as a part of a pattern of LIKE. Internal.
CREATE FUNCTION crmapi.like_text(text text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN replace(replace(replace(text, '\', '\\'), '%', '\%'), '_', '\_');

-- VALUE, the text of a JSON value, with blanks in place of its escapes. Internal.
CREATE FUNCTION crmapi.json_plain(value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(value, '\\(u[0-9a-f]{4}|.)', ' ', 'g');

-- The e-mail addresses in VALUE, the text of a JSON value, as email_key() has them.
-- Internal.
CREATE FUNCTION crmapi.json_mails(value text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- what ends an address in a text, and what only ends its domain
    ends CONSTANT text := '\s\u00A0\u2000-\u200A\u202F\u3000"<>()\[\],:;=@';
    stops CONSTANT text := ends || '''*`{}|/?&!';
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT crmapi.email_key(ltrim(m[1], '''*`{|/'))
        FROM regexp_matches(crmapi.json_plain(value), '([^' || ends || ']+@[^'
            || stops || ']*[^' || stops || '.])', 'g') m);
END
$$;

-- The phone numbers in VALUE, the text of a JSON value, as phone_key() has them: with
-- separators, and between them. Internal.
CREATE FUNCTION crmapi.json_phones(value text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT crmapi.phone_key(m[1])
        FROM unnest(ARRAY['(\+?\(?[0-9][0-9 ()./-]*[0-9])', '(\+?[0-9]+)']) r
        CROSS JOIN LATERAL regexp_matches(crmapi.phone_plain(
            crmapi.json_plain(value)), r, 'g') m);
END
$$;

-- Whether VALUE, the text of a JSON value, has one of MAILS and PHONES, as
-- email_key() and phone_key() have them. Most have none: that is seen by parts of
-- the addresses that stay the same in all notations. Internal.
CREATE FUNCTION crmapi.json_has_address(value text, mails text[], phones text[])
    RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    folded CONSTANT text := crmapi.fold(value);
    digits text;
BEGIN
    IF EXISTS (SELECT FROM unnest(mails) m
               WHERE position(split_part(m, '@', 1) || '@' IN folded) > 0)
        AND crmapi.json_mails(value) && mails
        OR EXISTS (SELECT FROM unnest(mails || phones) k
                   WHERE position('"' || k || '"' IN folded) > 0) THEN
        RETURN true;
    END IF;
    digits := CASE WHEN phones <> '{}' THEN
        regexp_replace(crmapi.phone_plain(value), '[^0-9]+', '', 'g') END;
    RETURN EXISTS (SELECT FROM unnest(phones) p
                   WHERE position(right(crmapi.digits(p), 6) IN digits) > 0)
        AND crmapi.json_phones(value) && phones;
END
$$;

-- What the person with KEY has beside it: the addresses of a contact, as email_key()
-- and phone_key() have them, or the contacts with an address. KIND says what KEY is:
-- contact, mail or phone. Internal.
CREATE FUNCTION crmapi.person_next(workspace uuid, kind text, key text)
    RETURNS TABLE (next_kind text, next_key text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind <> 'contact' THEN
        RETURN QUERY SELECT 'contact', w.id::text
        FROM crmapi.contacts_with(workspace,
            CASE kind WHEN 'mail' THEN key END,
            CASE kind WHEN 'phone' THEN key END) w(id);
        RETURN;
    END IF;
    RETURN QUERY SELECT a.kind, k FROM crmapi.contact c
    CROSS JOIN LATERAL (VALUES ('mail', crmapi.email_keys(c.emails)),
        ('phone', crmapi.phone_keys(c.phone_numbers))) a(kind, keys)
    CROSS JOIN LATERAL unnest(a.keys) k
    WHERE c.workspace_id = person_next.workspace
      AND c.id = person_next.key::uuid AND k <> '';
END
$$;

-- The ids of contacts of WORKSPACE that are no more and had one of MAILS and PHONES,
-- as far as their sequences and events tell. Internal.
CREATE FUNCTION crmapi.person_gone(workspace uuid, mails text[], phones text[])
    RETURNS uuid[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        WITH gone AS MATERIALIZED (
            SELECT e.id, e.contact_id FROM crmapi.enrollment e
            WHERE e.workspace_id = person_gone.workspace AND NOT EXISTS (
                SELECT FROM crmapi.contact c
                WHERE c.workspace_id = person_gone.workspace
                  AND c.id = e.contact_id))
        SELECT g.contact_id FROM gone g
        JOIN crmapi.enrollment_step t ON t.enrollment_id = g.id
        WHERE t.workspace_id = person_gone.workspace
          AND (crmapi.email_key(t.to_identifier) = ANY (mails)
               OR crmapi.phone_key(t.to_identifier) = ANY (phones))
    ) || ARRAY(
        WITH gone AS MATERIALIZED (
            SELECT v.row_id, coalesce(v.fields::text, v.body) AS value
            FROM crmapi.event v
            WHERE v.workspace_id = person_gone.workspace
              AND v.type IN ('contact.created', 'contact.updated')
              AND NOT EXISTS (
                  SELECT FROM crmapi.contact c
                  WHERE c.workspace_id = person_gone.workspace
                    AND c.id = v.row_id))
        SELECT g.row_id FROM gone g
        WHERE crmapi.json_has_address(g.value, mails, phones));
END
$$;

-- The person CONTACTS, MAILS, PHONES, with all addresses of the contacts and all
-- contacts that have one of the addresses. Each of them is looked up once: UNION leaves
-- out what is there already. Internal.
CREATE FUNCTION crmapi.person_now(workspace uuid, INOUT contacts uuid[],
                                  INOUT mails text[], INOUT phones text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    WITH RECURSIVE person (kind, key) AS (
        SELECT s.kind, s.key
        FROM (SELECT 'contact' AS kind, unnest(contacts)::text AS key
              UNION ALL SELECT 'mail', unnest(mails)
              UNION ALL SELECT 'phone', unnest(phones)) s
        UNION
        SELECT n.next_kind, n.next_key FROM person p
        CROSS JOIN LATERAL crmapi.person_next(workspace, p.kind, p.key) n)
    SELECT coalesce(array_agg(p.key::uuid) FILTER (WHERE p.kind = 'contact'),
                    '{}'),
        coalesce(array_agg(p.key) FILTER (WHERE p.kind = 'mail'), '{}'),
        coalesce(array_agg(p.key) FILTER (WHERE p.kind = 'phone'), '{}')
    INTO contacts, mails, phones FROM person p;
END
$$;

-- The person CONTACTS, MAILS, PHONES as person_now() has it, with the contacts that are
-- no more: that reads all enrollments and events of WORKSPACE. Internal.
CREATE FUNCTION crmapi.person_whole(workspace uuid, INOUT contacts uuid[],
                                    INOUT mails text[], INOUT phones text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT n.* INTO contacts, mails, phones
    FROM crmapi.person_now(workspace, contacts, mails, phones) n;
    contacts := ARRAY(
        SELECT unnest(contacts)
        UNION
        SELECT unnest(crmapi.person_gone(workspace, mails, phones)) ORDER BY 1);
END
$$;

-- The person whom CONTACT, EMAIL or PHONE names; the other two are null. CONTACT is an
-- id, which may be that of a contact that was merged. The result is the addresses of
-- the person, as email_key() and phone_key() have them, and all contacts that have, or
-- had, one of these. For the owner.
CREATE FUNCTION crmapi.person(workspace uuid, contact uuid, email text,
        phone text, OUT contacts uuid[], OUT mails text[], OUT phones text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT p.* INTO contacts, mails, phones
    FROM crmapi.person_whole(workspace,
        ARRAY(SELECT c.id FROM crmapi.contact c
              WHERE c.workspace_id = person.workspace
                AND c.id = coalesce((SELECT m.merged_into
                    FROM crmapi.contact_merged m
                    WHERE m.workspace_id = person.workspace
                      AND m.id = person.contact), person.contact)),
        ARRAY(SELECT k FROM crmapi.email_key(email) k WHERE k <> ''),
        ARRAY(SELECT k FROM crmapi.phone_key(phone) k WHERE k <> '')) p;
END
$$;

-- The conversations of the person CONTACTS, MAILS, PHONES. Internal.
CREATE FUNCTION crmapi.person_talks(workspace uuid, contacts uuid[],
                                    mails text[], phones text[])
    RETURNS uuid[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT c.id FROM crmapi.conversation c
        WHERE c.workspace_id = person_talks.workspace
          AND c.contact_id = ANY (contacts)
        UNION
        SELECT c.id FROM unnest(mails) m(address)
        JOIN crmapi.conversation c ON c.workspace_id = person_talks.workspace
            AND c.search LIKE '%' || crmapi.like_text(m.address) || '%'
            AND crmapi.email_key(c.email) = m.address
        UNION
        SELECT c.id FROM crmapi.conversation c
        WHERE c.workspace_id = person_talks.workspace
          AND c.phone_number IS NOT NULL
          AND crmapi.phone_key(c.phone_number) = ANY (phones));
END
$$;

-- The tables that have rows of the person CONTACTS, MAILS, PHONES, with the ids of
-- these rows. For the owner.
CREATE FUNCTION crmapi.person_rows(workspace uuid, contacts uuid[],
                                   mails text[], phones text[])
    RETURNS TABLE (of text, id uuid)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    talks CONSTANT uuid[] := crmapi.person_talks(workspace, contacts, mails,
                                                 phones);
BEGIN
    RETURN QUERY
    SELECT 'contact', c.id FROM crmapi.contact c
    WHERE c.workspace_id = person_rows.workspace AND c.id = ANY (contacts)
    UNION ALL
    SELECT 'activity', a.id FROM crmapi.activity a
    WHERE a.workspace_id = person_rows.workspace
      AND a.contact_id = ANY (contacts)
    UNION ALL
    SELECT 'pipeline_card', d.id FROM crmapi.pipeline_card d
    WHERE d.workspace_id = person_rows.workspace
      AND d.contact_id = ANY (contacts)
    UNION ALL SELECT 'conversation', unnest(talks)
    UNION ALL
    SELECT 'message', m.id FROM crmapi.message m
    WHERE m.workspace_id = person_rows.workspace
      AND m.conversation_id = ANY (talks)
    UNION ALL
    SELECT 'attachment', f.id FROM crmapi.attachment f
    JOIN crmapi.message m ON m.workspace_id = f.workspace_id
        AND m.id = f.message_id
    WHERE f.workspace_id = person_rows.workspace
      AND m.workspace_id = person_rows.workspace
      AND m.conversation_id = ANY (talks)
    UNION ALL
    SELECT 'submission', s.id FROM crmapi.submission s
    WHERE s.workspace_id = person_rows.workspace
      AND s.contact_id = ANY (contacts)
    UNION ALL
    SELECT 'submission', s.id FROM crmapi.submission s
    WHERE s.workspace_id = person_rows.workspace AND s.contact_id IS NULL
      AND crmapi.json_has_address(s.custom_field_responses::text, mails, phones)
    UNION ALL
    SELECT r.of, CASE r.of WHEN 'sequence' THEN e.sequence_id ELSE e.id END
    FROM crmapi.enrollment e
    CROSS JOIN (VALUES ('sequence'), ('enrollment')) r(of)
    WHERE e.workspace_id = person_rows.workspace
      AND e.contact_id = ANY (contacts)
    UNION ALL
    SELECT 'enrollment_step', t.id FROM crmapi.enrollment_step t
    JOIN crmapi.enrollment e ON e.workspace_id = t.workspace_id
        AND e.id = t.enrollment_id
    WHERE t.workspace_id = person_rows.workspace
      AND e.workspace_id = person_rows.workspace
      AND e.contact_id = ANY (contacts)
    UNION ALL
    SELECT 'suppression', s.id FROM crmapi.suppression s
    WHERE s.workspace_id = person_rows.workspace
      AND s.address = ANY (CASE s.kind WHEN 'email' THEN mails
                           ELSE phones END);
END
$$;

-- The events of WORKSPACE that are about a row with one of IDS, or about what
-- belonged to it. A conversation that is no more may have events, and so may its
-- messages. That a conversation was deleted stays: no other event tells a reader who
-- comes later. Internal.
CREATE FUNCTION crmapi.person_events(workspace uuid, ids uuid[])
    RETURNS uuid[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone CONSTANT uuid[] := ARRAY(SELECT DISTINCT v.row_id FROM crmapi.event v
        WHERE v.workspace_id = person_events.workspace
          AND v.owner_id = ANY (ids) AND v.type LIKE 'conversation.%'
          AND NOT EXISTS (SELECT FROM crmapi.conversation c
              WHERE c.workspace_id = person_events.workspace
                AND c.id = v.row_id));
BEGIN
    RETURN ARRAY(
        SELECT v.id FROM crmapi.event v
        WHERE v.workspace_id = person_events.workspace
          AND v.row_id = ANY (ids || gone)
          AND v.type <> 'conversation.deleted'
        UNION
        SELECT v.id FROM crmapi.event v
        WHERE v.workspace_id = person_events.workspace
          AND v.owner_id = ANY (ids || gone));
END
$$;

-- The jobs of WORKSPACE that are about a row with one of IDS, or that tell an
-- endpoint one of EVENTS. The job of an erasure is not about the person: it would
-- wait for itself. Internal.
CREATE FUNCTION crmapi.person_jobs(workspace uuid, ids uuid[], events uuid[])
    RETURNS bigint[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.id FROM crmapi.job j
        WHERE j.workspace_id = person_jobs.workspace AND j.lane <> 'webhook'
          AND j.kind <> 'sequence.erase'
          AND crmapi.job_about(j.payload) = ANY (ids::text[])
        UNION ALL
        SELECT d.job_id FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = person_jobs.workspace
          AND d.event_id = ANY (events));
END
$$;

-- Lock what sends for the person with the rows IDS, or tells EVENTS. Returns whether
-- something is being sent now; then what is not sent yet is stopped. Locks:
-- enrollment, step, job. Internal.
CREATE FUNCTION crmapi.erase_busy(workspace uuid, enrollments uuid[],
                                  ids uuid[], events uuid[]) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    enrollment uuid;
    jobs bigint[];
    leased boolean;
BEGIN
    FOR enrollment IN SELECT e.id FROM unnest(enrollments) e(id) ORDER BY e.id LOOP
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                      'contact_erased');
    END LOOP;
    jobs := crmapi.person_jobs(workspace, ids, events);
    WITH mine AS MATERIALIZED (
        SELECT j.state FROM crmapi.job j
        WHERE j.workspace_id = erase_busy.workspace AND j.id = ANY (jobs)
          AND j.state IN ('ready', 'leased')
        ORDER BY j.id FOR UPDATE)
    SELECT coalesce(bool_or(m.state = 'leased'), false) INTO leased
    FROM mine m;
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = crmapi.now_ms()
    WHERE j.workspace_id = erase_busy.workspace AND j.id = ANY (jobs)
      AND j.state = 'ready';
    RETURN leased;
END
$$;

-- Keep the hashes of MAILS and PHONES: in the journal, with CONTACTS and SENT, the
-- ids of messages to them, and of those that are suppressed in erased_address.
-- Returns the journal's id. Internal.
CREATE FUNCTION crmapi.erase_note(workspace uuid, contacts uuid[],
                                  mails text[], phones text[], sent uuid[])
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made CONSTANT uuid := gen_random_uuid();
    -- what was restored may lack the key that the journal has
    fresh CONSTANT bytea := coalesce(
        (SELECT k.key FROM crmapi.erase_key k
         WHERE k.workspace_id = erase_note.workspace),
        (SELECT j.key FROM crmapi.erasure j
         WHERE j.workspace_id = erase_note.workspace
         ORDER BY j.erased_at DESC, j.id LIMIT 1),
        sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
BEGIN
    INSERT INTO crmapi.erase_key AS k (workspace_id, key)
    VALUES (erase_note.workspace, fresh)
    ON CONFLICT ON CONSTRAINT erase_key_pkey DO NOTHING;
    INSERT INTO crmapi.erased_address AS a (workspace_id, kind, hash, reason,
                                            created_at)
    SELECT s.workspace_id, s.kind,
        crmapi.erased_hash(s.workspace_id, s.kind, s.address),
        CASE WHEN s.reason IN ('unsubscribed', 'bounced', 'complaint')
        THEN s.reason ELSE 'erased' END, s.created_at
    FROM crmapi.suppression s
    WHERE s.workspace_id = erase_note.workspace
      AND s.address = ANY (CASE s.kind WHEN 'email' THEN mails
                           ELSE phones END)
    ON CONFLICT ON CONSTRAINT erased_address_pkey DO NOTHING;
    INSERT INTO crmapi.erasure AS j (workspace_id, id, contact_ids, hashes, key,
                                     sent_ids)
    SELECT erase_note.workspace, made, contacts, ARRAY(
        SELECT crmapi.erased_hash(workspace, 'email', m) FROM unnest(mails) m
        UNION
        SELECT crmapi.erased_hash(workspace, 'phone', p) FROM unnest(phones) p),
        k.key, sent
    FROM crmapi.erase_key k WHERE k.workspace_id = erase_note.workspace;
    RETURN made;
END
$$;

-- Delete what names a row with one of IDS, or one of EVENTS, MAILS, PHONES. Stored
-- answers and results of intake are kept for some hours or days: all of WORKSPACE are
-- read (erase_is_long()). Internal.
CREATE FUNCTION crmapi.erase_traces(workspace uuid, ids uuid[], events uuid[],
                                    mails text[], phones text[])
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named CONSTANT text[] := ids::text[];
    jobs CONSTANT bigint[] := crmapi.person_jobs(workspace, ids, events);
BEGIN
    DELETE FROM crmapi.job j
    WHERE j.workspace_id = erase_traces.workspace AND j.id = ANY (jobs);
    DELETE FROM crmapi.event v      -- deliveries and attempts follow
    WHERE v.workspace_id = erase_traces.workspace AND v.id = ANY (events);
    DELETE FROM crmapi.idempotent_answer a
    WHERE a.workspace_id = erase_traces.workspace AND (
        EXISTS (SELECT FROM json_each_text(a.fields) f
                WHERE f.value = ANY (named))
        OR EXISTS (SELECT FROM unnest(named) i WHERE position(i IN a.body) > 0)
        -- a suppression, which no row has any more
        OR crmapi.email_key(a.fields ->> 'email') = ANY (mails)
        OR crmapi.phone_key(a.fields ->> 'phone_number') = ANY (phones)
        OR a.body IS NOT NULL
            AND crmapi.json_has_address(a.body, mails, phones));
    DELETE FROM crmapi.intake_event i
    WHERE i.workspace_id = erase_traces.workspace AND EXISTS (
        SELECT FROM jsonb_each_text(i.result) r WHERE r.value = ANY (named));
END
$$;

-- The event that CONTACT was erased, if somebody wants it. Internal.
CREATE FUNCTION crmapi.erase_event(workspace uuid, contact uuid) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    feed record;
BEGIN
    SELECT f.log, f.types INTO feed FROM crmapi.event_feed f
    WHERE f.workspace_id = erase_event.workspace;
    IF feed.log OR 'contact.erased' = ANY (feed.types) THEN
        PERFORM crmapi.event_add(workspace, 'contact.erased', feed.types,
            json_build_object('id', contact), contact, NULL);
    END IF;
END
$$;

-- Delete the rows of the person CONTACTS, MAILS, PHONES. If no contact has the
-- addresses, readers of events are told to forget what is no more by the id of no
-- contact. Internal.
CREATE FUNCTION crmapi.erase_rows(workspace uuid, contacts uuid[],
        mails text[], phones text[], talks uuid[], submissions uuid[],
        sequences uuid[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    contact uuid;
BEGIN
    DELETE FROM crmapi.sequence q
    WHERE q.workspace_id = erase_rows.workspace AND q.id = ANY (sequences);
    DELETE FROM crmapi.activity a
    WHERE a.workspace_id = erase_rows.workspace
      AND a.contact_id = ANY (contacts);
    UPDATE crmapi.pipeline_card d SET contact_id = NULL, title = '(erased)',
        description = NULL, tags = '{}', updated_at = greatest(
            crmapi.now_ms(), d.updated_at + interval '1 millisecond')
    WHERE d.workspace_id = erase_rows.workspace
      AND d.contact_id = ANY (contacts);
    DELETE FROM crmapi.submission s
    WHERE s.workspace_id = erase_rows.workspace AND s.id = ANY (submissions);
    DELETE FROM crmapi.conversation c   -- messages and files follow
    WHERE c.workspace_id = erase_rows.workspace AND c.id = ANY (talks);
    DELETE FROM crmapi.contact_merged m
    WHERE m.workspace_id = erase_rows.workspace AND m.id = ANY (contacts);
    DELETE FROM crmapi.contact c
    WHERE c.workspace_id = erase_rows.workspace AND c.id = ANY (contacts);
    DELETE FROM crmapi.suppression s
    WHERE s.workspace_id = erase_rows.workspace
      AND s.address = ANY (CASE s.kind WHEN 'email' THEN mails
                           ELSE phones END);
    FOREACH contact IN ARRAY contacts || CASE WHEN contacts = '{}'
        AND talks <> '{}' THEN gen_random_uuid() END LOOP
        PERFORM crmapi.erase_event(workspace, contact)
        WHERE contact IS NOT NULL;
    END LOOP;
END
$$;

-- Lock the rows MINE of a person: no event about them or what belongs to them is
-- recorded any more. Locks: enrollment, activity, card, conversation, message,
-- contact. Internal.
CREATE FUNCTION crmapi.erase_lock(workspace uuid, mine jsonb) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = erase_lock.workspace
      AND e.id = ANY (crmapi.id_list(mine -> 'enrollment'))
    ORDER BY e.id FOR UPDATE;
    PERFORM FROM crmapi.activity a
    WHERE a.workspace_id = erase_lock.workspace
      AND a.id = ANY (crmapi.id_list(mine -> 'activity'))
    ORDER BY a.id FOR UPDATE;
    PERFORM FROM crmapi.pipeline_card d
    WHERE d.workspace_id = erase_lock.workspace
      AND d.id = ANY (crmapi.id_list(mine -> 'pipeline_card'))
    ORDER BY d.id FOR UPDATE;
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = erase_lock.workspace
      AND c.id = ANY (crmapi.id_list(mine -> 'conversation'))
    ORDER BY c.id FOR UPDATE;
    PERFORM FROM crmapi.message m
    WHERE m.workspace_id = erase_lock.workspace
      AND m.id = ANY (crmapi.id_list(mine -> 'message'))
    ORDER BY m.id FOR UPDATE;
    PERFORM FROM crmapi.contact c
    WHERE c.workspace_id = erase_lock.workspace
      AND c.id = ANY (crmapi.id_list(mine -> 'contact'))
    ORDER BY c.id FOR UPDATE;
END
$$;

-- Lock the addresses MAILS, PHONES until the end of the transaction, by the names
-- that intake and upserts lock participants by (contract 10.5), as they do: before any
-- row. All sessions share PostgreSQL's room for locks, for 10,000 or so, and fail
-- without. So of more than 2,000 addresses, which no person has, not all are locked.
-- Locks: the participants' advisory ones. Internal.
CREATE FUNCTION crmapi.person_lock(workspace uuid, mails text[], phones text[])
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(l.h) FROM (
        SELECT hashtextextended(workspace || n.name, 0) AS h
        FROM (SELECT ':e:' || m FROM unnest(mails) m
              UNION SELECT ':p:' || p FROM unnest(phones) p) n(name)
        ORDER BY h LIMIT 2000) l;
END
$$;

-- Erase the person CONTACTS, MAILS, PHONES, as person() has it; if it is WHOLE, with
-- the addresses that the contacts have got since, and what belongs to these. Returns
-- how many rows of which tables are gone, or NULL: something is being sent to the
-- person, or to an endpoint about it. Then nothing is gone, and nothing more is sent:
-- call it again in another transaction. Locks: the participants' advisory ones,
-- enrollment, activity, card, conversation, message, contact, step, job. For the owner.
CREATE FUNCTION crmapi.erase(workspace uuid, contacts uuid[], mails text[],
                             phones text[], whole boolean DEFAULT false)
    RETURNS jsonb
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine jsonb;         -- {"table": [ids]}
    locked jsonb;       -- MINE, when its rows were locked
    counted jsonb;
    ids uuid[];
    events uuid[];
    merged uuid[];      -- others that were merged into them (contract 20.5)
BEGIN
    -- what is added until they are locked is theirs, too
    LOOP
        IF whole THEN
            SELECT p.* INTO contacts, mails, phones
            FROM crmapi.person_whole(workspace, contacts, mails, phones) p;
        END IF;
        SELECT coalesce(jsonb_object_agg(r.of, r.ids), '{}'),
            jsonb_object_agg(r.of, r.n)
        INTO mine, counted
        FROM (SELECT p.of, jsonb_agg(p.id ORDER BY p.id) AS ids,
                  count(*) AS n
              FROM crmapi.person_rows(workspace, contacts, mails, phones) p
              GROUP BY p.of) r;
        EXIT WHEN mine = locked;
        PERFORM crmapi.person_lock(workspace, mails, phones),
            crmapi.erase_lock(workspace, mine);
        locked := mine;
    END LOOP;
    merged := ARRAY(SELECT m.id FROM crmapi.contact_merged m
                    WHERE m.workspace_id = erase.workspace
                      AND m.merged_into = ANY (contacts)
                      AND m.id <> ALL (contacts));
    ids := ARRAY(SELECT (i #>> '{}')::uuid FROM jsonb_each(mine) t(of, list)
                 CROSS JOIN LATERAL jsonb_array_elements(t.list) i
                 WHERE t.of <> 'suppression') || contacts || merged;
    events := crmapi.person_events(workspace, ids);
    IF crmapi.erase_busy(workspace, crmapi.id_list(mine -> 'enrollment'), ids,
                         events) THEN
        RETURN NULL;
    END IF;
    PERFORM crmapi.erase_note(workspace, contacts || merged, mails, phones,
            crmapi.id_list(mine -> 'message')
            || crmapi.id_list(mine -> 'enrollment_step')
            || crmapi.review_mails(workspace, crmapi.id_list(
                mine -> 'enrollment'))),
        crmapi.erase_traces(workspace, ids, events, mails, phones),
        crmapi.erase_rows(workspace, contacts || merged, mails, phones,
            crmapi.id_list(mine -> 'conversation'),
            crmapi.id_list(mine -> 'submission'),
            crmapi.id_list(mine -> 'sequence'));
    RETURN coalesce(counted, '{}')
        || jsonb_build_object('event', cardinality(events));
END
$$;

-- Whether an erasure in WORKSPACE may take longer than a request: it reads all stored
-- answers and results of intake, and looks at all enrollments and events. Internal.
CREATE FUNCTION crmapi.erase_is_long(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.idempotent_answer a
                   WHERE a.workspace_id = erase_is_long.workspace OFFSET 20000)
        OR EXISTS (SELECT FROM crmapi.intake_event i
                   WHERE i.workspace_id = erase_is_long.workspace OFFSET 20000)
        OR EXISTS (SELECT FROM crmapi.enrollment e
                   WHERE e.workspace_id = erase_is_long.workspace OFFSET 200000)
        OR EXISTS (SELECT FROM crmapi.event v
                   WHERE v.workspace_id = erase_is_long.workspace OFFSET 200000);
END
$$;

-- Make the job that does for CONTACT what contact_erase() could not. Its payload
-- names the contact in a list: one that has the id as a text is a job of the person,
-- which an erasure waits for. Internal.
CREATE FUNCTION crmapi.erase_later(workspace uuid, contact uuid) RETURNS text
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    what CONSTANT jsonb := jsonb_build_object('contact_ids', ARRAY[contact]);
BEGIN
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    SELECT erase_later.workspace, 'sequence.erase', what
    WHERE NOT EXISTS (SELECT FROM crmapi.job j
        WHERE j.workspace_id = erase_later.workspace AND j.state = 'ready'
          AND j.lane <> 'webhook' AND j.kind = 'sequence.erase'
          AND crmapi.job_about(j.payload) = contact::text);
    RETURN 'pending';
END
$$;

-- The status of the erasure of CONTACT, which is no contact: "missing", "erased", or
-- "pending" while its job is not done. Internal.
CREATE FUNCTION crmapi.erase_status(workspace uuid, contact uuid) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.erasure e
                   WHERE e.workspace_id = erase_status.workspace
                     AND e.contact_ids @> ARRAY[contact]) THEN
        RETURN 'missing';
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM crmapi.job j
        WHERE j.workspace_id = erase_status.workspace
          AND j.lane <> 'webhook' AND j.kind = 'sequence.erase'
          AND j.state NOT IN ('done', 'cancelled')
          AND crmapi.job_about(j.payload) = contact::text)
        THEN 'pending' ELSE 'erased' END;
END
$$;

-- Erase the person who is CONTACT, with all contacts and addresses of person().
-- Returns "erased"; "pending": a job does the rest, because something is being sent,
-- the workspace is large, or messages may be in an outbox of the relay maildir;
-- "missing". Of a contact that was erased it says how far that is. KEY asks for it, a
-- client at ORIGIN; null: that job. Then it returns "busy" if something is being
-- sent. Locks: the participants' advisory ones, enrollment, activity, card,
-- conversation, message, contact, step, job. For the API and the worker.
CREATE FUNCTION crmapi.contact_erase(workspace uuid, contact uuid, key uuid,
                                     origin text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    late CONSTANT boolean := key IS NULL;
    who record;
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.contact c
                   WHERE c.workspace_id = contact_erase.workspace
                     AND c.id = contact_erase.contact) THEN
        RETURN crmapi.erase_status(workspace, contact);
    END IF;
    IF NOT late THEN
        PERFORM crmapi.audit_add(workspace, 'key', key::text, origin,
            'contact erase', 'contact', contact::text, '{}');
    END IF;
    IF NOT late AND crmapi.erase_is_long(workspace) THEN
        -- contacts that are no more have no live enrollment
        PERFORM crmapi.erase_busy(workspace, ARRAY(
            SELECT e.id FROM crmapi.person_now(workspace, ARRAY[contact], '{}',
                                               '{}') n
            JOIN crmapi.enrollment e ON e.workspace_id = contact_erase.workspace
                AND e.contact_id = ANY (n.contacts)), '{}', '{}');
        RETURN crmapi.erase_later(workspace, contact);
    END IF;
    SELECT p.* INTO who FROM crmapi.person(workspace, contact, NULL, NULL) p;
    IF crmapi.erase(workspace, who.contacts, who.mails, who.phones, true) IS NULL
    THEN
        RETURN CASE WHEN late THEN 'busy'
               ELSE crmapi.erase_later(workspace, contact) END;
    END IF;
    IF NOT late AND EXISTS (SELECT FROM crmapi.erasure e
        WHERE e.workspace_id = contact_erase.workspace
          AND e.contact_ids @> ARRAY[contact] AND e.sent_ids <> '{}') THEN
        RETURN crmapi.erase_later(workspace, contact);
    END IF;
    RETURN 'erased';
END
$$;

-- The ids of the mails that asked the admins of WORKSPACE for reviews of
-- ENROLLMENTS, as crmapid makes them. Internal.
CREATE FUNCTION crmapi.review_mails(workspace uuid, enrollments uuid[])
    RETURNS uuid[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT md5(e.id::text || a.id::text)::uuid
                 FROM crmapi.admin a CROSS JOIN unnest(enrollments) e(id)
                 WHERE a.workspace_id = review_mails.workspace);
END
$$;

-- Those of IDS that are messages to people who were erased. For the worker.
CREATE FUNCTION crmapi.erased_sent(ids uuid[]) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT i.id FROM unnest(ids) i(id)
    WHERE EXISTS (SELECT FROM crmapi.erasure j
                  WHERE j.sent_ids @> ARRAY[i.id]);
END
$$;

-- The ids in LIST, an array of JSON or null. Internal.
CREATE FUNCTION crmapi.id_list(list jsonb) RETURNS uuid[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT (i #>> '{}')::uuid
                 FROM jsonb_array_elements(coalesce(list, '[]')) i);
END
$$;

-- Erase in WORKSPACE, which was restored and is held, whom the journal of ORIGIN says
-- to have been erased: the same workspace, or the one that it is a copy of. Returns
-- how many contacts and addresses there were. For the owner.
CREATE FUNCTION crmapi.erase_again(workspace uuid, origin uuid)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids CONSTANT uuid[] := ARRAY(
        SELECT DISTINCT unnest(j.contact_ids) FROM crmapi.erasure j
        WHERE j.workspace_id = erase_again.origin);
    found uuid[];
    mails text[];
    phones text[];
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.erasure j
                   WHERE j.workspace_id = erase_again.origin) THEN
        RETURN 0;
    END IF;
    mails := ARRAY(SELECT crmapi.erased_addresses(workspace, origin, 'email'));
    phones := ARRAY(SELECT crmapi.erased_addresses(workspace, origin, 'phone'));
    found := ARRAY(
        SELECT c.id FROM crmapi.contact c
        WHERE c.workspace_id = erase_again.workspace
          AND (c.id = ANY (ids) OR crmapi.email_keys(c.emails) && mails
               OR crmapi.phone_keys(c.phone_numbers) && phones)
        UNION
        SELECT e.contact_id FROM crmapi.enrollment e
        WHERE e.workspace_id = erase_again.workspace
          AND e.contact_id = ANY (ids)
        UNION
        SELECT v.row_id FROM crmapi.event v
        WHERE v.workspace_id = erase_again.workspace AND v.row_id = ANY (ids)
          AND v.type <> 'contact.erased');
    IF found = '{}' AND mails = '{}' AND phones = '{}' THEN
        RETURN 0;
    END IF;
    IF crmapi.erase(workspace, found, mails, phones) IS NULL THEN
        RAISE EXCEPTION 'something is being sent to a person who was erased'
            USING ERRCODE = 'object_in_use';
    END IF;
    RETURN cardinality(found) + cardinality(mails) + cardinality(phones);
END
$$;

-- The addresses of KIND in WORKSPACE by which a person is found, with the time of the
-- latest row that has each. Internal.
CREATE FUNCTION crmapi.addresses_kept(workspace uuid, kind text)
    RETURNS TABLE (address text, latest timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    is_mail CONSTANT boolean := addresses_kept.kind = 'email';
BEGIN
    RETURN QUERY SELECT a.address, max(a.created_at) FROM (
        SELECT unnest(CASE WHEN is_mail THEN crmapi.email_keys(c.emails)
                      ELSE crmapi.phone_keys(c.phone_numbers) END),
               c.created_at
        FROM crmapi.contact c
        WHERE c.workspace_id = addresses_kept.workspace
        UNION ALL
        SELECT CASE WHEN is_mail THEN crmapi.email_key(t.email)
               ELSE crmapi.phone_key(t.phone_number) END, t.created_at
        FROM crmapi.conversation t
        WHERE t.workspace_id = addresses_kept.workspace
        UNION ALL
        SELECT unnest(CASE
                WHEN is_mail THEN crmapi.json_mails(s.custom_field_responses::text)
                ELSE crmapi.json_phones(s.custom_field_responses::text) END),
               s.submitted_at
        FROM crmapi.submission s
        WHERE s.workspace_id = addresses_kept.workspace
          AND s.contact_id IS NULL
        UNION ALL
        SELECT CASE WHEN is_mail THEN crmapi.email_key(t.to_identifier)
               ELSE crmapi.phone_key(t.to_identifier) END, e.created_at
        FROM crmapi.enrollment_step t
        JOIN crmapi.enrollment e ON e.workspace_id = t.workspace_id
            AND e.id = t.enrollment_id
        WHERE t.workspace_id = addresses_kept.workspace
          AND e.workspace_id = addresses_kept.workspace
        UNION ALL
        SELECT s.address, s.created_at FROM crmapi.suppression s
        WHERE s.workspace_id = addresses_kept.workspace
          AND s.kind = addresses_kept.kind) a(address, created_at)
    WHERE a.address <> '' GROUP BY a.address;
END
$$;

-- The addresses of KIND in WORKSPACE that the journal of ORIGIN has, and that no row
-- has which is younger: who came back after the erasure stays. Each address is hashed
-- once for each key, of which there is one but for what was restored. Internal.
CREATE FUNCTION crmapi.erased_addresses(workspace uuid, origin uuid, kind text)
    RETURNS SETOF text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY WITH journal AS MATERIALIZED (
        SELECT j.key, h.hash, max(j.erased_at) AS erased_at
        FROM crmapi.erasure j CROSS JOIN unnest(j.hashes) h(hash)
        WHERE j.workspace_id = erased_addresses.origin
        GROUP BY j.key, h.hash
    ), kept AS MATERIALIZED (
        SELECT a.address, a.latest, k.key, crmapi.address_mac(
            erased_addresses.kind, a.address, k.key) AS hash
        FROM crmapi.addresses_kept(workspace, kind) a
        CROSS JOIN (SELECT DISTINCT j.key FROM journal j) k
    )
    SELECT DISTINCT k.address FROM kept k
    JOIN journal j ON j.key = k.key AND j.hash = k.hash
    WHERE j.erased_at >= k.latest;
END
$$;
