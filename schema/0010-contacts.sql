-- SPDX-License-Identifier: Apache-2.0
-- 0010-contacts.sql: suppressing, deleting and merging contacts, which stops their
-- enrollments

-- ---- suppressing an address ------------------------------------------------

-- The contacts of a workspace with the address EMAIL or PHONE (the other is
-- null), as the primary or another one. Internal.
CREATE FUNCTION crmapi.contacts_with(workspace uuid, email text, phone text)
    RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail CONSTANT text := crmapi.email_key(email);
    number CONSTANT text := crmapi.phone_key(phone);
    digits CONSTANT text := crmapi.digits(crmapi.phone_plain(number));
BEGIN
    IF mail IS NOT NULL THEN
        RETURN QUERY SELECT c.id FROM crmapi.contact c
        WHERE c.workspace_id = contacts_with.workspace
          AND c.search LIKE '%' || replace(replace(replace(mail, '\', '\\'),
                  '%', '\%'), '_', '\_') || '%'
          AND mail = ANY (crmapi.email_keys(c.emails));
    END IF;
    IF number IS NOT NULL THEN
        RETURN QUERY SELECT c.id FROM crmapi.contact c
        WHERE c.workspace_id = contacts_with.workspace
          AND c.phone_digits LIKE '%' || digits || '%'
          AND number = ANY (crmapi.phone_keys(c.phone_numbers));
    END IF;
END
$$;

-- Never write to EMAIL or PHONE (the other is null) again, because of REASON:
-- the live enrollments of contacts with the address stop. Returns how many
-- stopped. An address may be suppressed already; of "unsubscribed" and what
-- forbids answers as well, "bounced" or "complaint", the latter stays. MADE is the
-- id of a new suppression. Locks: enrollment, step, job. For the API and the worker.
CREATE FUNCTION crmapi.suppress(workspace uuid, email text, phone text,
                                reason text, made uuid DEFAULT NULL)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fresh CONSTANT uuid := coalesce(made, crmapi.uuid_v7(clock_timestamp()));
    contacts uuid[];
    enrollment uuid;
    n bigint := 0;
BEGIN
    INSERT INTO crmapi.suppression AS s (id, workspace_id, email, phone_number,
                                         reason)
    VALUES (fresh, suppress.workspace, suppress.email, suppress.phone,
            suppress.reason)
    ON CONFLICT ON CONSTRAINT suppression_workspace_id_address_kind_key
    DO UPDATE SET reason = excluded.reason,
        updated_at = greatest(crmapi.now_ms(),
                              s.updated_at + interval '1 millisecond')
    WHERE s.reason = 'unsubscribed'
      AND excluded.reason IN ('bounced', 'complaint');
    IF NOT EXISTS (SELECT FROM crmapi.enrollment e
                   WHERE e.workspace_id = suppress.workspace
                     AND e.status IN ('generating', 'pending_approval',
                                      'approved', 'running')) THEN
        RETURN 0;       -- most often: contacts are not looked for
    END IF;
    contacts := ARRAY(SELECT crmapi.contacts_with(workspace, email, phone));
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = suppress.workspace
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND e.contact_id = ANY (contacts)
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_unsubscribed', reason)) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

-- suppress(), for a client: the suppression of EMAIL or PHONE, and whether this call
-- made it. Locks: enrollment, step, job. For the API.
CREATE FUNCTION crmapi.suppression_add(workspace uuid, email text, phone text,
                                       reason text)
    RETURNS TABLE (id uuid, email_as text, phone_as text, reason_as text,
                   created_at timestamptz, updated_at timestamptz,
                   is_new boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    made CONSTANT uuid := crmapi.uuid_v7(clock_timestamp());
BEGIN
    PERFORM crmapi.suppress(suppression_add.workspace, suppression_add.email,
                            suppression_add.phone, suppression_add.reason, made);
    RETURN QUERY SELECT s.id, s.email::text, s.phone_number::text,
        s.reason::text, s.created_at, s.updated_at, s.id = made
    FROM crmapi.suppression s
    WHERE s.workspace_id = suppression_add.workspace
      AND s.kind = CASE WHEN suppression_add.email IS NOT NULL
                   THEN 'email' ELSE 'phone' END
      AND s.address = coalesce(crmapi.email_key(suppression_add.email),
                               crmapi.phone_key(suppression_add.phone));
END
$$;

-- ---- deleting a contact (contract 9.6) -------------------------------------

-- Delete the activities that have no company, detach the contact's others and its
-- cards, and stop its live enrollments; as company_before_delete(). Locks:
-- activity, card, enrollment, step, job. A trigger function.
CREATE FUNCTION crmapi.contact_before_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrollment uuid;
BEGIN
    -- The cascade of a workspace deletes everything by itself.
    IF pg_trigger_depth() > 1 AND NOT EXISTS (
        SELECT FROM crmapi.workspace w WHERE w.id = OLD.workspace_id) THEN
        RETURN OLD;
    END IF;
    PERFORM FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.contact_id = OLD.id
      AND a.company_id IS NOT NULL
    ORDER BY a.id FOR UPDATE;
    DELETE FROM crmapi.activity a
    WHERE a.workspace_id = OLD.workspace_id AND a.contact_id = OLD.id
      AND a.company_id IS NULL;
    UPDATE crmapi.activity a SET contact_id = NULL,
        updated_at = greatest(crmapi.now_ms(),
                              a.updated_at + interval '1 millisecond')
    WHERE a.workspace_id = OLD.workspace_id AND a.contact_id = OLD.id;
    UPDATE crmapi.pipeline_card c SET contact_id = NULL,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = OLD.workspace_id AND c.contact_id = OLD.id;
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        WHERE e.workspace_id = OLD.workspace_id AND e.contact_id = OLD.id
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
        ORDER BY e.id
    LOOP
        PERFORM crmapi.enrollment_end(OLD.workspace_id, enrollment,
                                      'stopped_user', 'contact_deleted');
    END LOOP;
    RETURN OLD;
END
$$;
CREATE TRIGGER before_delete BEFORE DELETE ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_before_delete();

-- ---- merging contacts (contract 20.5) --------------------------------------

-- The addresses MINE and those of MORE that it lacks, which come behind. MEMBER
-- says what they are: email or phone_number. Internal.
CREATE FUNCTION crmapi.list_union(mine jsonb, more jsonb, member text)
    RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys CONSTANT text[] := CASE member WHEN 'email'
        THEN crmapi.email_keys(mine) ELSE crmapi.phone_keys(mine) END;
BEGIN
    IF mine = '[]' THEN
        RETURN more;
    END IF;
    RETURN mine || coalesce((
        SELECT jsonb_agg(x.e || '{"is_primary": false}' ORDER BY x.n)
        FROM jsonb_array_elements(more) WITH ORDINALITY x(e, n)
        WHERE (CASE member WHEN 'email' THEN crmapi.email_key(x.e ->> member)
               ELSE crmapi.phone_key(x.e ->> member) END = ANY (keys))
              IS NOT TRUE), '[]');
END
$$;

-- Lock the contacts ONE and OTHER of a workspace, so that nothing can refer to them
-- meanwhile. The advisory locks keep out who looks for them by an address or
-- external_id, and who opens conversations with them. Their companies are locked
-- before them, as by who deletes a company. Locks of one kind are taken in the order
-- of their numbers or ids. Locks: the participants' advisory ones, the contacts'
-- advisory ones, company, contact. Internal.
CREATE FUNCTION crmapi.contact_merge_lock(workspace uuid, one uuid, other uuid)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    companies uuid[];
BEGIN
    PERFORM pg_advisory_xact_lock(l.h) FROM (
        SELECT DISTINCT hashtextextended(workspace || k.name, 0) AS h
        FROM crmapi.contact c, LATERAL (VALUES
            (':e:' || c.email_key), (':p:' || c.phone_key),
            (':i:' || c.external_id)) k(name)
        WHERE c.workspace_id = contact_merge_lock.workspace
          AND c.id IN (one, other) AND k.name IS NOT NULL
        ORDER BY h) l;
    PERFORM pg_advisory_xact_lock(l.h) FROM (
        SELECT hashtextextended(workspace || ':c:' || i.id, 0) AS h
        FROM unnest(ARRAY[one, other]) i(id) ORDER BY h) l;
    companies := ARRAY(SELECT c.company_id FROM crmapi.contact c
        WHERE c.workspace_id = contact_merge_lock.workspace
          AND c.id IN (one, other));
    PERFORM FROM crmapi.company o
    WHERE o.workspace_id = contact_merge_lock.workspace
      AND o.id = ANY (companies) ORDER BY o.id FOR NO KEY UPDATE;
    PERFORM FROM crmapi.contact c
    WHERE c.workspace_id = contact_merge_lock.workspace
      AND c.id IN (one, other) ORDER BY c.id FOR UPDATE;
END
$$;

-- Have what refers to the contact SOURCE refer to TARGET; both are locked. Each
-- table with a contact_id is here: t/05-computed.t compares with the catalog. Locks:
-- activity, card, conversation, enrollment. Internal.
CREATE FUNCTION crmapi.contact_move(workspace uuid, target uuid, source uuid)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM crmapi.activity a
    WHERE a.workspace_id = contact_move.workspace AND a.contact_id = source
    ORDER BY a.id FOR UPDATE;
    UPDATE crmapi.activity a SET contact_id = target,
        updated_at = greatest(crmapi.now_ms(),
                              a.updated_at + interval '1 millisecond')
    WHERE a.workspace_id = contact_move.workspace AND a.contact_id = source;
    UPDATE crmapi.pipeline_card c SET contact_id = target,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = contact_move.workspace AND c.contact_id = source;
    UPDATE crmapi.conversation c SET contact_id = target,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = contact_move.workspace AND c.contact_id = source;
    UPDATE crmapi.submission s SET contact_id = target
    WHERE s.workspace_id = contact_move.workspace AND s.contact_id = source;
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = contact_move.workspace AND e.contact_id = source
    ORDER BY e.id FOR UPDATE;
    UPDATE crmapi.enrollment e SET contact_id = target,
        updated_at = greatest(crmapi.now_ms(),
                              e.updated_at + interval '1 millisecond')
    WHERE e.workspace_id = contact_move.workspace AND e.contact_id = source;
END
$$;

-- The contact MINE with what it lacks and MORE has. The lists that both have must
-- fit: contact_merge() looks. Internal.
CREATE FUNCTION crmapi.contact_filled(mine crmapi.contact, more crmapi.contact,
        emails jsonb, phones jsonb, tags text[], fields jsonb)
    RETURNS crmapi.contact
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    texts CONSTANT jsonb := jsonb_strip_nulls(to_jsonb(more));
    filled crmapi.contact;
BEGIN
    -- what has a value stays, "" counts as none
    filled := jsonb_populate_record(mine, (
        SELECT coalesce(jsonb_object_agg(f.name, texts -> f.name), '{}')
        FROM unnest('{first_name,last_name,company,company_id,job_title,'
            'lead_source,deal_value,pipeline_stage_id,contact_type,'
            'address_line1,address_line2,city,state,postal_code,country,'
            'linkedin_url,notes,external_id}'::text[]) f(name)
        WHERE texts ? f.name
          AND coalesce(to_jsonb(mine) ->> f.name, '') = ''));
    filled.emails := emails;
    filled.phone_numbers := phones;
    filled.tags := tags;
    filled.custom_fields := fields;
    RETURN filled;
END
$$;

-- Write FILLED, the new values of a contact that is locked. Internal.
CREATE FUNCTION crmapi.contact_fill(filled crmapi.contact) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE crmapi.contact c SET first_name = filled.first_name,
        last_name = filled.last_name, emails = filled.emails,
        phone_numbers = filled.phone_numbers, company = filled.company,
        company_id = filled.company_id, job_title = filled.job_title,
        lead_source = filled.lead_source, tags = filled.tags,
        deal_value = filled.deal_value,
        pipeline_stage_id = filled.pipeline_stage_id,
        contact_type = filled.contact_type,
        address_line1 = filled.address_line1,
        address_line2 = filled.address_line2, city = filled.city,
        state = filled.state, postal_code = filled.postal_code,
        country = filled.country, linkedin_url = filled.linkedin_url,
        notes = filled.notes, custom_fields = filled.custom_fields,
        external_id = filled.external_id,
        updated_at = greatest(crmapi.now_ms(),
                              c.updated_at + interval '1 millisecond')
    WHERE c.workspace_id = filled.workspace_id AND c.id = filled.id;
END
$$;

-- The first of a contact's lists that has more than contract 6.3 allows, or NULL.
-- Internal.
CREATE FUNCTION crmapi.contact_excess(emails jsonb, phones jsonb, tags text[],
                                      fields jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN jsonb_array_length(emails) > 50 THEN 'emails'
        WHEN jsonb_array_length(phones) > 50 THEN 'phone_numbers'
        WHEN cardinality(tags) > 100 THEN 'tags'
        WHEN NOT crmapi.json_fits(fields) THEN 'custom_fields' END;

-- Merge the contact SOURCE of a workspace into TARGET: what refers to SOURCE refers
-- to TARGET, lists are united, what TARGET lacks is filled, and SOURCE is gone.
-- Returns "merged", "done" (it was before), "missing" (there is no TARGET),
-- "unknown" (no SOURCE), "elsewhere" (SOURCE was merged into another one), or the
-- list that would be too long; nothing changes then. Locks: the participants'
-- advisory ones, the contacts' advisory ones, company, contact, activity, card,
-- conversation, enrollment. For the API.
CREATE FUNCTION crmapi.contact_merge(workspace uuid, target uuid, source uuid)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mine crmapi.contact;
    more crmapi.contact;
    filled crmapi.contact;
    emails jsonb;
    phones jsonb;
    tags text[];
    fields jsonb;
    excess text;
BEGIN
    PERFORM crmapi.contact_merge_lock(workspace, target, source);
    SELECT c.* INTO mine FROM crmapi.contact c
    WHERE c.workspace_id = contact_merge.workspace AND c.id = target;
    SELECT c.* INTO more FROM crmapi.contact c
    WHERE c.workspace_id = contact_merge.workspace AND c.id = source;
    IF mine.id IS NULL THEN
        RETURN 'missing';
    ELSIF more.id IS NULL THEN
        RETURN coalesce((SELECT CASE WHEN m.merged_into = target THEN 'done'
                ELSE 'elsewhere' END FROM crmapi.contact_merged m
            WHERE m.workspace_id = contact_merge.workspace
              AND m.id = source), 'unknown');
    END IF;
    emails := crmapi.list_union(mine.emails, more.emails, 'email');
    phones := crmapi.list_union(mine.phone_numbers, more.phone_numbers,
                                'phone_number');
    tags := mine.tags || ARRAY(SELECT t.tag
        FROM unnest(more.tags) WITH ORDINALITY t(tag, n)
        WHERE t.tag <> ALL (mine.tags) ORDER BY t.n);
    fields := mine.custom_fields || more.custom_fields || coalesce((
        SELECT jsonb_object_agg(f.key, f.value)
        FROM jsonb_each(mine.custom_fields) f
        WHERE f.value <> 'null'), '{}');
    excess := crmapi.contact_excess(emails, phones, tags, fields);
    IF excess IS NOT NULL THEN
        RETURN excess;
    END IF;
    PERFORM crmapi.contact_move(workspace, target, source);
    UPDATE crmapi.contact_merged m SET merged_into = target
    WHERE m.workspace_id = contact_merge.workspace AND m.merged_into = source;
    INSERT INTO crmapi.contact_merged (workspace_id, id, merged_into)
    VALUES (contact_merge.workspace, source, target);
    DELETE FROM crmapi.contact c
    WHERE c.workspace_id = contact_merge.workspace AND c.id = source;
    filled := crmapi.contact_filled(mine, more, emails, phones, tags, fields);
    IF filled IS DISTINCT FROM mine THEN
        PERFORM crmapi.contact_fill(filled);
    END IF;
    RETURN 'merged';
END
$$;
