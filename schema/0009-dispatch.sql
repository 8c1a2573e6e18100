-- SPDX-License-Identifier: Apache-2.0
-- 0009-dispatch.sql: pacing, approval, stops, sending, review
--
-- Each function here that changes an enrollment, its steps or its jobs locks
-- the enrollment first. The functions that the API and the worker call are
-- SECURITY DEFINER; neither role may change the tables itself.

-- ---- pacing (contract 11.8) ------------------------------------------------

-- The first time from MOMENT on at which PACING permits sending:
-- {"time_zone": "Europe/Berlin", "from": "09:00", "to": "17:00",
-- "days": [1, 2, 3, 4, 5]}, days by ISO 8601; without "days" any time. The
-- window's bounds are local times, also on days of a clock change: where the clock
-- jumps over one of them, or shows it twice, the clock decides.
CREATE FUNCTION crmapi.pacing_fit(pacing jsonb, moment timestamptz)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    zone text := coalesce(pacing ->> 'time_zone', 'UTC');
    today date := (moment AT TIME ZONE zone)::date;
    clock tsrange;
    begins timestamptz;
    ends timestamptz;
    opens timestamptz[];
    fits timestamptz;
BEGIN
    IF pacing -> 'days' IS NULL THEN
        RETURN moment;
    END IF;
    FOR day IN 0..14 LOOP       -- one of them may be left out in spring
        CONTINUE WHEN NOT pacing -> 'days'
            @> to_jsonb(extract(isodow FROM today + day)::integer);
        clock := tsrange(today + day + (pacing ->> 'from')::interval,
                         today + day + (pacing ->> 'to')::interval);
        opens := ARRAY[lower(clock) AT TIME ZONE zone];
        begins := opens[1] - interval '3 hours';
        ends := upper(clock) AT TIME ZONE zone;
        IF ends AT TIME ZONE zone - begins AT TIME ZONE zone <> ends - begins
        THEN
            -- it changes: it may jump into the window, and show it twice
            opens := ARRAY(SELECT m FROM generate_series(begins, ends,
                                                         interval '1 minute') m
                WHERE m AT TIME ZONE zone <@ clock AND NOT clock
                    @> ((m - interval '1 minute') AT TIME ZONE zone)
                ORDER BY m);
        END IF;
        FOREACH fits IN ARRAY opens LOOP
            fits := greatest(moment, fits);
            IF fits AT TIME ZONE zone <@ clock THEN
                RETURN fits;
            END IF;
        END LOOP;
    END LOOP;
    RAISE EXCEPTION 'no day is left in %', pacing
        USING ERRCODE = 'invalid_parameter_value';
END
$$;

-- Set scheduled_for of an enrollment's steps after number AFTER: of the first
-- of them its delay after MOMENT, of each later one its delay after the one
-- before. Step 1 has no delay (specification). The caller has locked the
-- enrollment. Internal.
CREATE FUNCTION crmapi.steps_schedule(workspace uuid, enrollment uuid,
                                      after integer, moment timestamptz)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    paced jsonb;
    due timestamptz := moment;
    step record;
BEGIN
    SELECT e.pacing INTO paced FROM crmapi.enrollment e
    WHERE e.workspace_id = steps_schedule.workspace
      AND e.id = steps_schedule.enrollment;
    FOR step IN
        SELECT s.id, s.sort_order, s.delay_seconds
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = steps_schedule.workspace
          AND s.enrollment_id = steps_schedule.enrollment
          AND s.sort_order > after AND s.status = 'scheduled'
        ORDER BY s.sort_order
    LOOP
        IF step.sort_order > 1 THEN
            due := due + step.delay_seconds * interval '1 second';
        END IF;
        due := crmapi.pacing_fit(paced, due);
        UPDATE crmapi.enrollment_step s SET scheduled_for = due
        WHERE s.workspace_id = steps_schedule.workspace AND s.id = step.id;
    END LOOP;
END
$$;

-- Insert the job that sends the next step of an enrollment. Returns whether a
-- step is left. The caller has locked the enrollment. Internal.
CREATE FUNCTION crmapi.step_queue(workspace uuid, enrollment uuid)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
    SELECT s.workspace_id, 'sequence.step', jsonb_build_object(
        'enrollment_id', s.enrollment_id, 'step_id', s.id), s.scheduled_for
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_queue.workspace
      AND s.enrollment_id = step_queue.enrollment AND s.status = 'scheduled'
    ORDER BY s.sort_order LIMIT 1;
    RETURN FOUND;
END
$$;

-- ---- the end of an enrollment ----------------------------------------------

-- End an enrollment that is live as OUTCOME because of REASON: scheduled steps
-- and ready jobs are cancelled. A step that is being sent, and its job, are
-- left to the worker, which has handed it over. Returns the status
-- before, NULL if there is no such enrollment. Locks: enrollment, step, job.
-- Internal.
CREATE FUNCTION crmapi.enrollment_end(workspace uuid,
        enrollment uuid, outcome text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment FOR UPDATE;
    IF had IS NULL OR NOT crmapi.enrollment_is_live(had) THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment e SET status = outcome,
        stop_reason = CASE WHEN outcome <> 'failed' THEN reason END,
        generation_error = CASE WHEN outcome = 'failed' THEN reason END
    WHERE e.workspace_id = enrollment_end.workspace
      AND e.id = enrollment_end.enrollment;
    UPDATE crmapi.enrollment_step s SET status = 'cancelled'
    WHERE s.workspace_id = enrollment_end.workspace
      AND s.enrollment_id = enrollment_end.enrollment
      AND s.status = 'scheduled';
    UPDATE crmapi.job j SET state = 'cancelled', finished_at = crmapi.now_ms()
    WHERE j.workspace_id = enrollment_end.workspace AND j.state = 'ready'
      AND j.payload ->> 'enrollment_id' = enrollment_end.enrollment::text
      AND NOT EXISTS (SELECT FROM crmapi.enrollment_step s
          WHERE s.workspace_id = enrollment_end.workspace
            AND s.status = 'sending'
            AND s.id = (j.payload ->> 'step_id')::uuid);
    RETURN had;
END
$$;

-- Stop an enrollment at a user's request because of REASON. Returns as
-- enrollment_end(). Locks: enrollment, step, job. For the API and the worker.
CREATE FUNCTION crmapi.enrollment_stop(workspace uuid, enrollment uuid,
                                       reason text) RETURNS text
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                 reason);

-- A contact has replied: stop its live enrollments whose template has
-- stop_on_reply. Returns how many stopped. Locks: enrollment, step, job. For the
-- API and the worker.
CREATE FUNCTION crmapi.contact_replied(workspace uuid, contact uuid)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrollment uuid;
    n bigint := 0;
BEGIN
    FOR enrollment IN
        SELECT e.id FROM crmapi.enrollment e
        JOIN crmapi.sequence q
            ON q.workspace_id = e.workspace_id AND q.id = e.sequence_id
        JOIN crmapi.sequence_template p
            ON p.workspace_id = q.workspace_id AND p.id = q.template_id
        WHERE e.workspace_id = contact_replied.workspace
          AND e.contact_id = contact_replied.contact
          AND e.status IN ('generating', 'pending_approval', 'approved',
                           'running')
          AND p.stop_on_reply
        ORDER BY e.id
    LOOP
        IF crmapi.enrollment_is_live(crmapi.enrollment_end(workspace,
               enrollment, 'stopped_reply', 'reply')) THEN
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END
$$;

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
-- meanwhile: first who looks for them by an address or external_id, and who opens
-- conversations with them; then their companies, because who deletes a company
-- locks it before its contacts; each in the order of numbers or ids. Locks: the
-- participants' advisory ones, the contacts' advisory ones, company, contact.
-- Internal.
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

-- ---- approval --------------------------------------------------------------

-- Approve an enrollment at MOMENT (null: now): its first step is due then.
-- Returns the status before, NULL if there is no such enrollment; nothing
-- changes unless it was pending_approval. Locks: enrollment, step. For the API
-- and the worker.
CREATE FUNCTION crmapi.enrollment_approve(workspace uuid, enrollment uuid,
                                          moment timestamptz DEFAULT NULL)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    at timestamptz := date_trunc('milliseconds',
                                 coalesce(moment, statement_timestamp()));
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_approve.workspace
      AND e.id = enrollment_approve.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment e SET status = 'approved', approved_at = at
    WHERE e.workspace_id = enrollment_approve.workspace
      AND e.id = enrollment_approve.enrollment;
    PERFORM crmapi.steps_schedule(workspace, enrollment, 0, at);
    PERFORM crmapi.step_queue(workspace, enrollment);
    RETURN had;
END
$$;

-- Reject an enrollment: it stops. Returns as enrollment_approve(). Locks:
-- enrollment, step, job. For the API and the worker.
CREATE FUNCTION crmapi.enrollment_reject(workspace uuid, enrollment uuid)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_reject.workspace
      AND e.id = enrollment_reject.enrollment FOR UPDATE;
    IF had = 'pending_approval' THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'stopped_user',
                                      'rejected');
    END IF;
    RETURN had;
END
$$;

-- Change the texts of a step of an enrollment that waits for approval. A null
-- text keeps the old one; a text that the step's channel does not have is
-- ignored. Returns the enrollment's status, NULL if there is no such step;
-- nothing changes unless that is pending_approval. Locks: enrollment, step.
-- Internal.
CREATE FUNCTION crmapi.step_edit(workspace uuid, enrollment uuid, step uuid,
                                 subject text, body text, objective text)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_edit.workspace
      AND e.id = step_edit.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    UPDATE crmapi.enrollment_step s SET
        email_subject = CASE WHEN s.channel = 'email'
            THEN coalesce(step_edit.subject, s.email_subject)
            ELSE s.email_subject END,
        email_body = CASE WHEN s.channel = 'email'
            THEN coalesce(step_edit.body, s.email_body)
            ELSE s.email_body END,
        sms_body = CASE WHEN s.channel = 'sms'
            THEN coalesce(step_edit.body, s.sms_body) ELSE s.sms_body END,
        voice_script = CASE WHEN s.channel = 'voice'
            THEN coalesce(step_edit.body, s.voice_script)
            ELSE s.voice_script END,
        voice_objective = CASE WHEN s.channel = 'voice'
            THEN coalesce(step_edit.objective, s.voice_objective)
            ELSE s.voice_objective END
    WHERE s.workspace_id = step_edit.workspace AND s.id = step_edit.step
      AND s.enrollment_id = step_edit.enrollment;
    RETURN CASE WHEN FOUND THEN had END;
END
$$;

-- ---- the review page -------------------------------------------------------

-- A hash of the texts of an enrollment's steps. It changes with each of them:
-- a page approves what it showed. For the API.
CREATE FUNCTION crmapi.review_digest(workspace uuid,
                                     enrollment uuid)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT encode(sha256(convert_to(coalesce(jsonb_agg(
            jsonb_build_array(s.id, s.channel, s.to_identifier,
            s.email_subject, s.email_body, s.sms_body, s.voice_objective,
            s.voice_script) ORDER BY s.sort_order)::text, ''), 'UTF8')), 'hex')
        FROM crmapi.enrollment_step s
        WHERE s.workspace_id = review_digest.workspace
          AND s.enrollment_id = review_digest.enrollment);
END
$$;

-- Do ACTION (approve, reject, save) with an enrollment that waits for
-- approval, after EDITS of its steps: an array of {"step": id, "subject",
-- "body", "objective"}, as step_edit() takes them. SEEN is the digest that the
-- page showed. Returns the status before, NULL if there is no such enrollment,
-- "changed" if the texts differ from SEEN; nothing changes unless it returns
-- pending_approval, and then there is a row of crmapi.audit: ADMIN did it, at the
-- address ORIGIN. Locks: enrollment, step, job (reject only). For the API.
CREATE FUNCTION crmapi.review_act(workspace uuid, enrollment uuid, seen text,
        action text, edits jsonb, admin uuid, origin text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    edit jsonb;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = review_act.workspace
      AND e.id = review_act.enrollment FOR UPDATE;
    IF had IS DISTINCT FROM 'pending_approval' THEN
        RETURN had;
    END IF;
    IF action <> 'reject' AND crmapi.review_digest(workspace, enrollment)
        IS DISTINCT FROM seen THEN
        RETURN 'changed';
    END IF;
    PERFORM crmapi.audit_add(workspace, 'admin', admin::text, origin,
        'enrollment ' || action, 'enrollment', enrollment::text,
        jsonb_build_object('edited', jsonb_array_length(edits)));
    IF action = 'reject' THEN
        RETURN crmapi.enrollment_reject(workspace, enrollment);
    END IF;
    FOR edit IN SELECT v FROM jsonb_array_elements(edits) v LOOP
        PERFORM crmapi.step_edit(workspace, enrollment,
            (edit ->> 'step')::uuid, edit ->> 'subject', edit ->> 'body',
            edit ->> 'objective');
    END LOOP;
    IF action = 'approve' THEN
        RETURN crmapi.enrollment_approve(workspace, enrollment);
    END IF;
    RETURN had;
END
$$;

-- The times of an enrollment's steps: sent_at, else scheduled_for; of one that
-- waits for approval, the times if it were approved at MOMENT. For the API.
CREATE FUNCTION crmapi.review_times(workspace uuid, enrollment uuid,
                                    moment timestamptz)
    RETURNS TABLE (step uuid, due timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    enrolled crmapi.enrollment;
    s crmapi.enrollment_step;
BEGIN
    SELECT e.* INTO enrolled FROM crmapi.enrollment e
    WHERE e.workspace_id = review_times.workspace
      AND e.id = review_times.enrollment;
    due := moment;
    FOR s IN SELECT t.* FROM crmapi.enrollment_step t
             WHERE t.workspace_id = review_times.workspace
               AND t.enrollment_id = review_times.enrollment
             ORDER BY t.sort_order
    LOOP
        step := s.id;
        IF enrolled.status = 'pending_approval' THEN
            IF s.sort_order > 1 THEN
                due := due + s.delay_seconds * interval '1 second';
            END IF;
            due := crmapi.pacing_fit(enrolled.pacing, due);
        ELSE
            due := coalesce(s.sent_at, s.scheduled_for);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- ---- generation (contract 11.8) --------------------------------------------

-- Store the STEPS of an enrollment, an array of objects with the columns'
-- names, and its PACING. If its sequence has auto_approve, it is approved at
-- MOMENT and its first step due; otherwise it waits, and a job asks each admin
-- of the workspace to review it. Ends JOB. Returns the new status; only the
-- job changes if the enrollment was not generating. Locks: enrollment, job. For
-- the worker.
CREATE FUNCTION crmapi.enrollment_generated(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, steps jsonb,
        pacing jsonb, moment timestamptz)
    RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at timestamptz := date_trunc('milliseconds', moment);
    ids CONSTANT uuid[] := ARRAY(SELECT crmapi.uuid_v7(moment)
                                 FROM jsonb_array_elements(steps));
    had text;
    auto boolean;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
    IF had IS DISTINCT FROM 'generating' THEN
        RETURN had;
    END IF;
    INSERT INTO crmapi.enrollment_step (id, workspace_id, enrollment_id,
        sort_order, channel, to_identifier, delay_seconds, voice_objective,
        voice_script, email_subject, email_body, sms_body)
    SELECT ids[t.n], enrollment_generated.workspace,
           enrollment_generated.enrollment, t.n, t.step ->> 'channel',
           t.step ->> 'to_identifier', (t.step ->> 'delay_seconds')::bigint,
           t.step ->> 'voice_objective', t.step ->> 'voice_script',
           t.step ->> 'email_subject', t.step ->> 'email_body',
           t.step ->> 'sms_body'
    FROM jsonb_array_elements(steps) WITH ORDINALITY t(step, n);
    SELECT q.auto_approve INTO auto FROM crmapi.sequence q
    JOIN crmapi.enrollment e ON e.workspace_id = q.workspace_id
        AND e.sequence_id = q.id
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment;
    UPDATE crmapi.enrollment e SET status = CASE WHEN auto
            THEN 'approved' ELSE 'pending_approval' END,
        approved_at = CASE WHEN auto THEN at END,
        pacing = enrollment_generated.pacing
    WHERE e.workspace_id = enrollment_generated.workspace
      AND e.id = enrollment_generated.enrollment;
    PERFORM crmapi.steps_schedule(workspace, enrollment, 0, moment);
    IF auto THEN
        PERFORM crmapi.step_queue(workspace, enrollment);
        RETURN 'approved';
    END IF;
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    SELECT a.workspace_id, 'sequence.review', jsonb_build_object(
        'enrollment_id', enrollment_generated.enrollment, 'admin_id', a.id)
    FROM crmapi.admin a
    WHERE a.workspace_id = enrollment_generated.workspace;
    RETURN 'pending_approval';
END
$$;

-- Fail an enrollment for good because of REASON, during generation or after
-- it. Ends JOB. Locks: enrollment, job, step. For the worker.
CREATE FUNCTION crmapi.enrollment_failed(workspace uuid, job bigint,
        owner text, attempt integer, enrollment uuid, reason text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = enrollment_failed.workspace
      AND e.id = enrollment_failed.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', reason,
                           NULL);
    UPDATE crmapi.enrollment_step s SET status = 'failed',
        error = left(reason, 2000)
    WHERE s.workspace_id = enrollment_failed.workspace
      AND s.enrollment_id = enrollment_failed.enrollment
      AND s.status = 'sending';
    PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed', reason);
END
$$;

-- ---- sending (contract 11.10, 11.11) ---------------------------------------

-- Count the step TAKEN of ENROLLED, to be sent at MOMENT, against DAILY_LIMIT of
-- its agent: once on a day, however many attempts it takes. Returns NULL if the
-- limit permits it, otherwise the first time that its pacing permits from the next
-- day on, in the workspace's time zone. The caller has locked the step. Locks:
-- send_count, step. Internal.
CREATE FUNCTION crmapi.step_limit(enrolled crmapi.enrollment,
        taken crmapi.enrollment_step, moment timestamptz, daily_limit integer)
    RETURNS timestamptz
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sender uuid;
    zone text;
    today date;
BEGIN
    SELECT q.bot_id, w.time_zone INTO sender, zone FROM crmapi.sequence q
    JOIN crmapi.workspace w ON w.id = q.workspace_id
    WHERE q.workspace_id = enrolled.workspace_id
      AND q.id = enrolled.sequence_id;
    today := (moment AT TIME ZONE zone)::date;
    IF taken.counted = today THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.send_count AS c (workspace_id, bot_id, day, n)
    VALUES (enrolled.workspace_id, sender, today, 1)
    ON CONFLICT ON CONSTRAINT send_count_pkey
    DO UPDATE SET n = c.n + 1 WHERE c.n < daily_limit;
    IF NOT FOUND THEN
        -- a date itself would be one in the session's time zone
        RETURN crmapi.pacing_fit(enrolled.pacing,
                                 (today + 1)::timestamp AT TIME ZONE zone);
    END IF;
    UPDATE crmapi.enrollment_step s SET counted = today
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    RETURN NULL;
END
$$;

-- Whether a step that TAKEN and ENROLLED say may be sent is sent at MOMENT: the
-- verdict "wait" with its time, or "send". Locks: send_count, step. Internal.
CREATE FUNCTION crmapi.step_permit(enrolled crmapi.enrollment,
        taken crmapi.enrollment_step, moment timestamptz, daily_limit integer,
        OUT verdict text, OUT until timestamptz)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    until := crmapi.pacing_fit(enrolled.pacing, moment);
    IF until <= moment AND daily_limit > 0 THEN
        until := crmapi.step_limit(enrolled, taken, moment, daily_limit);
    END IF;
    IF until > moment THEN
        verdict := 'wait';
        RETURN;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'sending', error = NULL
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    verdict := 'send';
    until := NULL;
END
$$;

-- Record a step that was handed over before the database was restored: it is
-- sent, or it is unknown whether it is. Ends JOB. Returns whether it was handed
-- over. The caller has locked the enrollment, the step and the job. Internal.
CREATE FUNCTION crmapi.step_past(workspace uuid, job bigint, owner text,
                                 attempt integer, taken crmapi.enrollment_step)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    past crmapi.past_send;
BEGIN
    SELECT p.* INTO past FROM crmapi.past_send p
    WHERE p.workspace_id = step_past.workspace
      AND p.enrollment_id = taken.enrollment_id
      AND p.part = taken.sort_order::text AND p.state <> 'free';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'sending', error = NULL
    WHERE s.workspace_id = step_past.workspace AND s.id = taken.id;
    IF past.state = 'sent' THEN
        PERFORM crmapi.step_sent(workspace, job, owner, attempt,
            taken.enrollment_id, taken.id, past.sent_at, past.provider_id);
    ELSE
        PERFORM crmapi.step_failed(workspace, job, owner, attempt,
            taken.enrollment_id, taken.id, 'delivery_unknown', NULL);
    END IF;
    RETURN true;
END
$$;

-- Skip the step TAKEN of ENROLLED if it was due before the bound of its
-- workspace, as if it had been sent when it was due: the next one is scheduled
-- its delay after that, and without one the enrollment is complete. Returns
-- whether it was skipped. The first step of an enrollment that was approved
-- without a user, but not before the release, was due when the sequence was
-- started. The caller has locked the enrollment and the step. Internal.
CREATE FUNCTION crmapi.step_skip(enrolled crmapi.enrollment,
                                 taken crmapi.enrollment_step) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound crmapi.step_bound;
    due timestamptz := taken.scheduled_for;
BEGIN
    SELECT b.* INTO bound FROM crmapi.step_bound b
    WHERE b.workspace_id = enrolled.workspace_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF taken.sort_order = 1 AND enrolled.approved_at >= bound.released_at
       AND (SELECT q.auto_approve FROM crmapi.sequence q
            WHERE q.workspace_id = enrolled.workspace_id
              AND q.id = enrolled.sequence_id) THEN
        due := crmapi.pacing_fit(enrolled.pacing, enrolled.created_at);
    END IF;
    IF (due < bound.due_before) IS NOT TRUE THEN
        RETURN false;
    END IF;
    UPDATE crmapi.enrollment_step s SET status = 'skipped',
        error = 'due before the time that the release was given'
    WHERE s.workspace_id = taken.workspace_id AND s.id = taken.id;
    PERFORM crmapi.steps_schedule(enrolled.workspace_id, enrolled.id,
                                  taken.sort_order, due);
    IF NOT crmapi.step_queue(enrolled.workspace_id, enrolled.id) THEN
        UPDATE crmapi.enrollment e SET status = 'completed'
        WHERE e.workspace_id = enrolled.workspace_id AND e.id = enrolled.id;
    END IF;
    RETURN true;
END
$$;

-- Take a step for sending. VERDICT:
--   send     the step is "sending" now; no other worker takes it
--   again    it was "sending": a worker has died, and nothing tells whether it
--            was sent
--   lost     the same, and its enrollment has ended, or ends now because its
--            address is suppressed
--   gone     it must not be sent, or no longer
--   wait     not before UNTIL: the agent has sent DAILY_LIMIT (0: no limit)
--            today, or the window of its pacing is closed
--   held     not before its workspace is released: the job is given back
--   past     it was handed over before the database was restored, and is
--            recorded as that; the job has ended
--   skipped  it was due before the bound of its workspace
--   stopped  its address is suppressed, so the enrollment has ended
-- WIRE: the spelling of the address that goes over the wire (contract 17.3).
-- Locks: enrollment, step, job (lost lease: CRM01), send_count. For the
-- worker.
CREATE FUNCTION crmapi.step_take(workspace uuid, job bigint, owner text,
        attempt integer, enrollment uuid, step uuid, moment timestamptz,
        daily_limit integer, wire text, OUT verdict text,
        OUT until timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    enrolled crmapi.enrollment;
    taken crmapi.enrollment_step;
BEGIN
    SELECT e.* INTO enrolled FROM crmapi.enrollment e
    WHERE e.workspace_id = step_take.workspace
      AND e.id = step_take.enrollment FOR UPDATE;
    SELECT s.* INTO taken FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_take.workspace AND s.id = step_take.step
      AND s.enrollment_id = step_take.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    verdict := CASE taken.status WHEN 'sending' THEN 'lost' ELSE 'gone' END;
    IF taken.status IS NULL OR taken.status NOT IN ('scheduled', 'sending')
       OR (taken.status = 'scheduled'
           AND enrolled.status NOT IN ('approved', 'running')) THEN
        RETURN;
    END IF;
    IF crmapi.is_suppressed(workspace, taken.channel, taken.to_identifier)
       OR crmapi.is_suppressed(workspace, taken.channel, wire) THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment,
            'stopped_unsubscribed', 'suppressed');
        IF taken.status = 'scheduled' THEN
            verdict := 'stopped';
        END IF;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM crmapi.hold_of(workspace)) THEN
        PERFORM crmapi.job_return(workspace, job, owner, attempt);
        verdict := 'held';
    ELSIF crmapi.step_past(workspace, job, owner, attempt, taken) THEN
        verdict := 'past';
    ELSIF taken.status = 'scheduled'
          AND crmapi.step_skip(enrolled, taken) THEN
        verdict := 'skipped';
    ELSIF taken.status = 'scheduled' THEN
        SELECT p.verdict, p.until INTO verdict, until
        FROM crmapi.step_permit(enrolled, taken, moment, daily_limit) p;
    ELSIF enrolled.status IN ('approved', 'running') THEN
        verdict := 'again';
    END IF;
END
$$;

-- Postpone a step until LATER: JOB ends, and another one is inserted. Locks:
-- enrollment, job, step. For the worker.
CREATE FUNCTION crmapi.step_wait(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
                                 later timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = step_wait.workspace
      AND e.id = step_wait.enrollment FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET scheduled_for = later
    WHERE s.workspace_id = step_wait.workspace AND s.id = step_wait.step
      AND s.status = 'scheduled';
    IF FOUND THEN
        PERFORM crmapi.step_queue(workspace, enrollment);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- The conversation in which STEP, which is being sent, becomes a message: that of
-- an earlier step of its enrollment and channel, else the open one of the contact
-- with its agent on that channel, as intake_open() finds it. NULL: there is none
-- yet. It is locked before the enrollment, as intake does. Locks: a contact's
-- advisory one, conversation. Internal.
CREATE FUNCTION crmapi.step_talk(workspace uuid, enrollment uuid, step uuid)
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of record;
    talk uuid;
BEGIN
    SELECT s.sort_order, s.channel, e.contact_id, q.bot_id INTO of
    FROM crmapi.enrollment_step s
    JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
        AND e.id = s.enrollment_id
    JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id
        AND q.id = e.sequence_id
    WHERE s.workspace_id = step_talk.workspace AND s.id = step_talk.step;
    PERFORM pg_advisory_xact_lock(hashtextextended(workspace || ':c:'
        || of.contact_id, 0));
    SELECT m.conversation_id INTO talk FROM crmapi.enrollment_step s
    JOIN crmapi.message m ON m.workspace_id = s.workspace_id
        AND m.step_id = s.id
    JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id
        AND c.id = m.conversation_id
    WHERE s.workspace_id = step_talk.workspace
      AND s.enrollment_id = step_talk.enrollment AND s.channel = of.channel
      AND s.sort_order < of.sort_order AND c.deleted IS NOT TRUE
    ORDER BY s.sort_order DESC LIMIT 1;
    IF talk IS NULL THEN
        SELECT c.id INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = step_talk.workspace
          AND c.contact_id = of.contact_id AND c.bot_id = of.bot_id
          AND c.type = crmapi.step_type(of.channel) AND c.active
          AND c.deleted IS NOT TRUE AND c.archived IS NOT TRUE
          AND c.thread IS NULL AND c.visitor_id IS NULL AND NOT c.internal
        ORDER BY c.created_at DESC, c.id DESC LIMIT 1;
    END IF;
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = step_talk.workspace AND c.id = talk
    FOR NO KEY UPDATE;
    RETURN talk;
END
$$;

-- The type of the conversations of a step's CHANNEL. Internal.
CREATE FUNCTION crmapi.step_type(channel text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE channel WHEN 'email' THEN 4 WHEN 'sms' THEN 3 ELSE 2
        END::smallint;

-- A new conversation for STEP with its contact, of the time AT. NULL: the contact
-- was deleted. Internal.
CREATE FUNCTION crmapi.step_open(workspace uuid, step uuid, at timestamptz)
    RETURNS uuid
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of record;
    talk CONSTANT uuid := crmapi.uuid_v7(at);
BEGIN
    SELECT c.id, q.bot_id, crmapi.step_type(s.channel) AS type INTO of
    FROM crmapi.enrollment_step s
    JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
        AND e.id = s.enrollment_id
    JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id
        AND q.id = e.sequence_id
    JOIN crmapi.contact c ON c.workspace_id = e.workspace_id
        AND c.id = e.contact_id
    WHERE s.workspace_id = step_open.workspace AND s.id = step_open.step;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
        created_at)
    VALUES (talk, step_open.workspace, of.bot_id, of.id, of.type, at);
    PERFORM crmapi.intake_count(workspace, ARRAY[of.bot_id]);
    RETURN talk;
END
$$;

-- Add STEP, which was sent at MOMENT, to the conversation TALK as a message; to a
-- new one if TALK is null and its contact is there. The caller has locked both.
-- Internal.
CREATE FUNCTION crmapi.step_message(workspace uuid, talk uuid, step uuid,
                                    moment timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at CONSTANT timestamptz := date_trunc('milliseconds', moment);
    made CONSTANT uuid := crmapi.uuid_v7(at);
    s crmapi.enrollment_step;
    said text;
BEGIN
    talk := coalesce(talk, crmapi.step_open(workspace, step, at));
    IF talk IS NULL THEN
        RETURN;
    END IF;
    SELECT t.* INTO s FROM crmapi.enrollment_step t
    WHERE t.workspace_id = step_message.workspace AND t.id = step_message.step;
    said := coalesce(CASE s.channel WHEN 'email' THEN s.email_body
        WHEN 'sms' THEN s.sms_body
        ELSE coalesce(s.voice_script, s.voice_objective) END, '');
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, content,
        content_type, status, created_at, external_id, metadata, step_id,
        to_identifier, handed_over, provider_id)
    VALUES (made, s.workspace_id, talk, 'assistant', said, 'text/plain', 'sent',
        at, coalesce(s.message_id, s.provider_id),
        jsonb_strip_nulls(jsonb_build_object('enrollment_id', s.enrollment_id,
            'step_id', s.id, 'subject', s.email_subject)),
        s.id, s.to_identifier, true, s.provider_id);
    UPDATE crmapi.conversation c SET active = true,
        email = CASE s.channel WHEN 'email'
            THEN coalesce(c.email, s.to_identifier) ELSE c.email END,
        phone_number = CASE s.channel WHEN 'email' THEN c.phone_number
            ELSE coalesce(c.phone_number, s.to_identifier) END,
        subject = coalesce(c.subject, s.email_subject),
        last_message = CASE WHEN said <> ''
                AND at >= coalesce(c.last_message_at, '-infinity')
            THEN left(said, 255) ELSE c.last_message END,
        last_message_at = greatest(c.last_message_at, at),
        last_active_at = greatest(c.last_active_at, at)
    WHERE c.workspace_id = step_message.workspace AND c.id = talk;
END
$$;

-- Record that a step was sent at MOMENT under the provider's id PROVIDER, add it
-- to the contact's conversation as a message (contract 19.3), and schedule the
-- next one. The first of several steps leaves the enrollment approved, the second
-- makes it running, the last completed. If it was stopped meanwhile, only the step
-- changes. Ends JOB. Locks: a contact's advisory one, conversation, enrollment,
-- step, job. For the worker.
CREATE FUNCTION crmapi.step_sent(workspace uuid, job bigint, owner text,
                                 attempt integer, enrollment uuid, step uuid,
                                 moment timestamptz, provider text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    talk CONSTANT uuid := crmapi.step_talk(workspace, enrollment, step);
    had text;
    place integer;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_sent.workspace
      AND e.id = step_sent.enrollment FOR UPDATE;
    PERFORM FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_sent.workspace AND s.id = step_sent.step
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET status = 'sent', sent_at =
        date_trunc('milliseconds', moment), provider_id = left(provider, 1000)
    WHERE s.workspace_id = step_sent.workspace AND s.id = step_sent.step
      AND s.status = 'sending'
    RETURNING s.sort_order INTO place;
    IF FOUND THEN
        PERFORM crmapi.step_message(workspace, talk, step, moment);
    END IF;
    IF place IS NOT NULL AND crmapi.enrollment_is_live(had) THEN
        IF had = 'approved' AND place > 1 THEN
            UPDATE crmapi.enrollment e SET status = 'running'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
        PERFORM crmapi.steps_schedule(workspace, enrollment, place, moment);
        IF NOT crmapi.step_queue(workspace, enrollment) THEN
            UPDATE crmapi.enrollment e SET status = 'completed'
            WHERE e.workspace_id = step_sent.workspace
              AND e.id = step_sent.enrollment;
        END IF;
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- Record that a step was not sent because of REASON. It is retried AFTER from
-- now while its enrollment is live; AFTER null: never, and the enrollment
-- fails. Ends JOB or makes it ready again. Locks: enrollment, step, job. For
-- the worker.
CREATE FUNCTION crmapi.step_failed(workspace uuid, job bigint, owner text,
                                   attempt integer, enrollment uuid,
                                   step uuid, reason text, after interval)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    had text;
    live boolean;
BEGIN
    SELECT e.status INTO had FROM crmapi.enrollment e
    WHERE e.workspace_id = step_failed.workspace
      AND e.id = step_failed.enrollment FOR UPDATE;
    live := crmapi.enrollment_is_live(had);
    PERFORM FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_failed.workspace AND s.id = step_failed.step
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.enrollment_step s SET error = left(reason, 2000),
        status = CASE WHEN after IS NULL THEN 'failed'
                 WHEN live THEN 'scheduled' ELSE 'cancelled' END
    WHERE s.workspace_id = step_failed.workspace AND s.id = step_failed.step
      AND s.status = 'sending';
    IF after IS NULL THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed',
                                      reason);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt,
        CASE WHEN after IS NOT NULL AND live THEN 'ready' ELSE 'done' END,
        reason, after);
END
$$;

-- Suppress ADDRESS, an e-mail address or a number, null: none, because a relay has
-- refused it: it is "bounced" or "unsubscribed" (BECAUSE). Internal.
CREATE FUNCTION crmapi.suppress_refused(workspace uuid, address text,
                                        because text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF position('@' IN address) > 0 THEN
        PERFORM crmapi.suppress(workspace, address, NULL, because);
    ELSIF address <> '' THEN
        PERFORM crmapi.suppress(workspace, NULL, address, because);
    END IF;
END
$$;

-- The same as step_failed() for good, because the relay has said that nothing can
-- or may be sent to the step's address: it is suppressed (contract 17.5), BECAUSE
-- it is "bounced" or "unsubscribed". Locks: enrollment, step, job. For the worker.
CREATE FUNCTION crmapi.step_refused(workspace uuid, job bigint, owner text,
        attempt integer, enrollment uuid, step uuid, reason text, because text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.suppress_refused(workspace, s.to_identifier, because)
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_refused.workspace
      AND s.id = step_refused.step;
    PERFORM crmapi.step_failed(workspace, job, owner, attempt, enrollment,
                               step, reason, NULL);
END
$$;

-- ---- the names of a step's mail (contract 18.4) ----------------------------

-- The names of the mail of STEP, which was taken for sending, NULL if it is no
-- mail: its Message-ID, whose domain is DOMAIN, and its reply token, both made at
-- the first attempt and kept for further ones; the Message-IDs of the
-- enrollment's earlier mails to the same address, the latest last, NULL if there
-- is none. If a relay has given one another Message-ID, that follows ours.
-- Locks: step; held already. For the worker.
CREATE FUNCTION crmapi.step_names(workspace uuid, step uuid, domain text)
    RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    named text := '<' || gen_random_uuid() || '@' || domain || '>';
    token text := replace(gen_random_uuid()::text, '-', '');
    taken crmapi.enrollment_step;
    refs text;
BEGIN
    UPDATE crmapi.enrollment_step s
    SET message_id = coalesce(s.message_id, named),
        reply_id = coalesce(s.reply_id, token)
    WHERE s.workspace_id = step_names.workspace AND s.id = step_names.step
      AND s.channel = 'email';
    SELECT s.* INTO taken FROM crmapi.enrollment_step s
    WHERE s.workspace_id = step_names.workspace AND s.id = step_names.step;
    SELECT string_agg(i.id, ' ' ORDER BY s.sort_order, i.n) INTO refs
    FROM crmapi.enrollment_step s, LATERAL (VALUES (1, s.message_id),
        (2, CASE WHEN s.provider_id LIKE '<%@%>' THEN nullif(s.provider_id,
            s.message_id) END)) i(n, id)
    WHERE s.workspace_id = step_names.workspace
      AND s.enrollment_id = taken.enrollment_id
      AND s.sort_order < taken.sort_order AND s.channel = 'email'
      AND s.status = 'sent' AND s.to_identifier = taken.to_identifier
      AND i.id IS NOT NULL;
    RETURN CASE WHEN taken.message_id IS NOT NULL
        THEN ARRAY[taken.message_id, taken.reply_id, refs] END;
END
$$;

-- The step or answer whose mail one of REFS, Message-IDs with brackets, or of
-- TOKENS names; the last one named. A Message-ID is compared whole. A relay may
-- have told only what is left of the "@": that counts if it cannot be guessed, and
-- for Amazon SES with SES's own domain. For the worker.
CREATE FUNCTION crmapi.mail_named(workspace uuid, refs text[], tokens text[])
    RETURNS TABLE (step_id uuid, answer_id uuid, to_identifier text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    halves text[] := ARRAY(SELECT CASE
            WHEN h.half ~ '^[0-9a-f]{16}-[0-9a-f-]{36}-[0-9]{6}$'
                AND r.ref !~ '[@.]amazonses\.com>$' THEN NULL
            WHEN h.half ~ '[0-9]' THEN h.half END
        FROM unnest(refs) WITH ORDINALITY r(ref, n), LATERAL (SELECT
            substring(r.ref FROM '^<([^@<>]{16,})@')) h(half) ORDER BY r.n);
BEGIN
    RETURN QUERY
    SELECT f.step, f.answer, f.address FROM (
        SELECT s.id AS step, NULL::uuid AS answer,
               s.to_identifier::text AS address, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.message_id = r.ref AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, r.n
        FROM unnest(refs) WITH ORDINALITY r(ref, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.external_id = r.ref AND m.reply_id IS NOT NULL
        UNION ALL
        SELECT s.id, NULL, s.to_identifier::text, r.n
        FROM unnest(refs, halves) WITH ORDINALITY r(ref, half, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.provider_id IN (r.ref, r.half) AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, r.n
        FROM unnest(refs, halves) WITH ORDINALITY r(ref, half, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.provider_id IN (r.ref, r.half) AND m.reply_id IS NOT NULL
        UNION ALL
        SELECT s.id, NULL, s.to_identifier::text, 1000 + t.n
        FROM unnest(tokens) WITH ORDINALITY t(token, n)
        JOIN crmapi.enrollment_step s ON s.workspace_id = workspace
            AND s.reply_id = t.token AND s.channel = 'email'
        UNION ALL
        SELECT NULL, m.id, m.to_identifier::text, 1000 + t.n
        FROM unnest(tokens) WITH ORDINALITY t(token, n)
        JOIN crmapi.message m ON m.workspace_id = workspace
            AND m.reply_id = t.token) f
    ORDER BY f.n DESC LIMIT 1;
END
$$;

-- The contact of STEP's enrollment, NULL if there is none. Internal.
CREATE FUNCTION crmapi.step_contact(workspace uuid, step uuid) RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_id uuid;
BEGIN
    IF step IS NOT NULL THEN
        SELECT c.id INTO found_id FROM crmapi.enrollment_step s
        JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id
            AND e.id = s.enrollment_id
        JOIN crmapi.contact c ON c.workspace_id = e.workspace_id
            AND c.id = e.contact_id
        WHERE s.workspace_id = workspace AND s.id = step;
    END IF;
    RETURN found_id;
END
$$;

-- The mail of STEP was returned because of FAILURE: the step has failed. If
-- ADDRESS is not null, that speaks of the address, which is suppressed (contract
-- 17.5); else the enrollment fails. Locks: enrollment, step, message, job.
-- Internal.
CREATE FUNCTION crmapi.step_returned(workspace uuid, step uuid, address text,
                                     failure text) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    enrollment uuid;
BEGIN
    IF address IS NOT NULL THEN
        PERFORM crmapi.suppress(workspace, address, NULL, 'bounced');
    END IF;
    SELECT s.enrollment_id INTO enrollment FROM crmapi.enrollment_step s
    WHERE s.workspace_id = workspace AND s.id = step;
    PERFORM FROM crmapi.enrollment e
    WHERE e.workspace_id = workspace AND e.id = enrollment FOR UPDATE;
    UPDATE crmapi.enrollment_step s SET status = 'failed', error = failure
    WHERE s.workspace_id = workspace AND s.id = step
      AND s.status IN ('sending', 'sent');
    UPDATE crmapi.message m SET status = 'failed',
        metadata = m.metadata || jsonb_build_object('error', failure)
    WHERE m.workspace_id = workspace AND m.step_id = step;
    IF address IS NULL THEN
        PERFORM crmapi.enrollment_end(workspace, enrollment, 'failed',
                                      failure);
    END IF;
END
$$;

-- ---- answers (contract 19) --------------------------------------------------
-- An answer is a message whose status is "queued" until crmapid has handed it
-- over: the same way as a step, so that the functions have the same parameters. A
-- conversation is locked before its messages, and an enrollment before both its
-- steps and messages.

-- Whether an answer must not go to ADDRESS, which CHANNEL uses: it is suppressed.
-- Who does not want sequences may get an answer by mail; an opt-out by SMS ends
-- both (contract 19.2). Internal.
CREATE FUNCTION crmapi.answer_forbidden(workspace uuid, channel text,
                                        address text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.suppressed_why(workspace,
            CASE channel WHEN 'email' THEN 'email' ELSE 'phone' END,
            CASE channel WHEN 'email' THEN crmapi.email_key(address)
                         ELSE crmapi.phone_key(address) END) s
        WHERE channel <> 'email' OR s.reason IS DISTINCT FROM 'unsubscribed');
END
$$;

-- The channel that sends an answer in a conversation of the type TYPE; NULL: no
-- channel does. For the worker.
CREATE FUNCTION crmapi.answer_channel(type smallint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE type WHEN 3 THEN 'sms' WHEN 4 THEN 'email' WHEN 5 THEN 'email'
        END;

-- ---- answers in chats (contract 19) -----------------------------------------
-- A visitor's page asks for what is new after a cursor. So a poll without news has
-- seen all answers before its cursor. What no page has confirmed after
-- chat_mail_fallback minutes is told by mail: chat_mail() adds a message with the
-- role "system", which visitors do not see, and crmapid sends it as an answer.

-- The channel that sends a message with ROLE in a conversation of the type TYPE; NULL:
-- no channel does. For the worker.
CREATE FUNCTION crmapi.message_channel(type smallint, role text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN type = 1 AND role = 'system' THEN 'email'
        ELSE crmapi.answer_channel(type) END;

-- CONVERSATION has got an answer at the time AT. If it is a chat, its visitor has
-- not seen that yet, and may get a mail later. What is older than some minutes was
-- copied from elsewhere. Locks: chat_unseen. Internal.
CREATE FUNCTION crmapi.chat_answered(workspace uuid, conversation uuid,
                                     at timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    minutes integer;
BEGIN
    SELECT a.chat_mail_fallback INTO minutes
    FROM crmapi.conversation c
    JOIN crmapi.agent a ON a.workspace_id = c.workspace_id AND a.id = c.bot_id
    WHERE c.workspace_id = chat_answered.workspace
      AND c.id = chat_answered.conversation
      AND c.type = 1 AND c.visitor_id IS NOT NULL;
    IF NOT FOUND OR at < crmapi.now_ms() - interval '10 minutes' THEN
        RETURN;
    END IF;
    -- the row is locked even if nothing changes: see chat_seen()
    INSERT INTO crmapi.chat_unseen AS u (workspace_id, conversation_id, since)
    VALUES (workspace, conversation, at)
    ON CONFLICT (workspace_id, conversation_id) DO UPDATE
    SET since = excluded.since WHERE u.since > excluded.since;
    IF minutes IS NOT NULL THEN
        INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
        VALUES (workspace, 'answer.chat', jsonb_build_object('conversation_id',
            conversation), at + minutes * interval '1 minute');
    END IF;
END
$$;

-- A visitor's page has shown all messages of the chats TALKS up to the time MOMENT
-- and the id LAST. Answers that were "sent" are "delivered". Locks: chat_unseen, in
-- the order of ids, message. For the API.
CREATE FUNCTION crmapi.chat_seen(workspace uuid, talks uuid[],
                                 moment timestamptz, last uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unseen crmapi.chat_unseen;
    later timestamptz;
BEGIN
    FOR unseen IN SELECT u.* FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = ANY (talks) AND u.since <= moment
        ORDER BY u.conversation_id FOR UPDATE
    LOOP
        UPDATE crmapi.message m SET status = 'delivered'
        WHERE m.workspace_id = chat_seen.workspace
          AND m.conversation_id = unseen.conversation_id
          AND m.created_at >= unseen.since
          AND (m.created_at, m.id) <= (moment, last)
          AND m.role IN ('human', 'assistant') AND m.status = 'sent';
        later := (SELECT min(m.created_at) FROM crmapi.message m
            WHERE m.workspace_id = chat_seen.workspace
              AND m.conversation_id = unseen.conversation_id
              AND (m.created_at, m.id) > (moment, last)
              AND m.role IN ('human', 'assistant'));
        DELETE FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = unseen.conversation_id AND later IS NULL;
        UPDATE crmapi.chat_unseen u SET since = later
        WHERE u.workspace_id = chat_seen.workspace
          AND u.conversation_id = unseen.conversation_id AND later IS NOT NULL;
    END LOOP;
END
$$;

-- The address that a mail about the chat TALK goes to: the one that its visitor has
-- given, else its contact's; NULL if there is none, or nobody wants such mails.
-- Internal.
CREATE FUNCTION crmapi.chat_address(workspace uuid, talk crmapi.conversation)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF talk.deleted OR talk.internal OR NOT EXISTS (
        SELECT FROM crmapi.agent a
        WHERE a.workspace_id = chat_address.workspace AND a.id = talk.bot_id
          AND a.chat_mail_fallback IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(nullif(talk.email, ''),
        (SELECT crmapi.list_primary(c.emails, 'email') FROM crmapi.contact c
         WHERE c.workspace_id = chat_address.workspace
           AND c.id = talk.contact_id));
END
$$;

-- The answers in the chat CONVERSATION since SINCE that no mail has told of, the
-- first 100; not those before the bound of a release. Internal.
CREATE FUNCTION crmapi.chat_missed(workspace uuid, conversation uuid,
                                   since timestamptz)
    RETURNS SETOF crmapi.message
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT m.* FROM crmapi.message m
    WHERE m.workspace_id = chat_missed.workspace
      AND m.conversation_id = chat_missed.conversation
      AND m.created_at >= greatest(since, (
          SELECT b.due_before FROM crmapi.step_bound b
          WHERE b.workspace_id = chat_missed.workspace))
      AND m.role IN ('human', 'assistant') AND m.tool_used IS NULL
      AND m.content <> '' AND m.to_identifier IS NULL
      AND m.status IS DISTINCT FROM 'delivered'
    ORDER BY m.created_at, m.id LIMIT 100;
END
$$;

-- Add the mail with the answers IDS of CONVERSATION to ADDRESS, and the job that
-- sends it. Its id follows from the first of them: a database that was restored makes
-- the same. What the visitor wrote is not in it: anybody can claim an address, and
-- would have us send him what he likes. Locks: message. Internal.
CREATE FUNCTION crmapi.chat_mail_add(workspace uuid, conversation uuid,
                                     ids uuid[], address text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail CONSTANT uuid := (left(ids[1]::text, 24)
        || right(md5(ids[1]::text), 12))::uuid;
    files jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object('id', f.id, 'filename', f.filename,
        'content_type', f.content_type, 'size', f.size, 'stored', true)
        ORDER BY f.message_id, f.number) INTO files
    FROM (SELECT a.*, sum(a.size) OVER (ORDER BY a.message_id, a.number) AS sum
          FROM crmapi.attachment a
          WHERE a.workspace_id = chat_mail_add.workspace
            AND a.message_id = ANY (ids) AND a.stored) f
    WHERE f.sum <= 10485760;
    INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
        content, content_type, status, metadata, to_identifier)
    SELECT mail, workspace, conversation, 'system', left(string_agg(coalesce(
            m.metadata ->> 'author' || ': ', '') || m.content, E'\n\n'
            ORDER BY m.created_at, m.id), 65536),
        CASE WHEN bool_and(m.content_type IS NOT DISTINCT FROM 'text/markdown')
            THEN 'text/markdown' ELSE 'text/plain' END,
        'queued', jsonb_strip_nulls(jsonb_build_object('answers', ids,
            'attachments', files)), address
    FROM crmapi.message m
    WHERE m.workspace_id = chat_mail_add.workspace AND m.id = ANY (ids);
    UPDATE crmapi.message m SET to_identifier = address
    WHERE m.workspace_id = chat_mail_add.workspace AND m.id = ANY (ids);
    INSERT INTO crmapi.job (workspace_id, kind, payload)
    VALUES (workspace, 'answer.send', jsonb_build_object('conversation_id',
        conversation, 'message_id', mail));
END
$$;

-- Add a mail with all answers that the visitor of the chat CONVERSATION has missed,
-- if there are any and an address is known. Ends JOB. Locks: chat_unseen, job (lost
-- lease: CRM01), message. For the worker.
CREATE FUNCTION crmapi.chat_mail(workspace uuid, job bigint, owner text,
                                 attempt integer, conversation uuid)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    talk crmapi.conversation;
    begun timestamptz;
    address text;
    ids uuid[];
BEGIN
    SELECT u.since INTO begun FROM crmapi.chat_unseen u
    WHERE u.workspace_id = chat_mail.workspace
      AND u.conversation_id = chat_mail.conversation FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    IF begun IS NOT NULL THEN
        SELECT c.* INTO talk FROM crmapi.conversation c
        WHERE c.workspace_id = chat_mail.workspace
          AND c.id = chat_mail.conversation;
        address := crmapi.chat_address(workspace, talk);
        ids := ARRAY(SELECT m.id FROM crmapi.chat_missed(workspace,
            conversation, begun) m ORDER BY m.created_at, m.id);
    END IF;
    IF address IS NOT NULL AND ids <> '{}' THEN
        PERFORM crmapi.chat_mail_add(workspace, conversation, ids, address);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- Whether TAKEN is a mail about a chat whose visitor has seen it all meanwhile.
-- Internal.
CREATE FUNCTION crmapi.chat_was_seen(workspace uuid, taken crmapi.message)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN taken.role = 'system' AND NOT EXISTS (
        SELECT FROM crmapi.chat_unseen u
        WHERE u.workspace_id = chat_was_seen.workspace
          AND u.conversation_id = taken.conversation_id
          AND u.since <= taken.created_at);
END
$$;

-- ---- adding and sending answers ----------------------------------------------

-- Why CONVERSATION takes no answer with a copy to COPIES (contract 19.1, 19.2),
-- NULL if it takes one: a sentence for the client. For the API.
CREATE FUNCTION crmapi.answer_refusal(workspace uuid, conversation uuid,
                                      copies text[]) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    talk crmapi.conversation;
    channel text;
    address text;
BEGIN
    SELECT c.* INTO talk FROM crmapi.conversation c
    WHERE c.workspace_id = answer_refusal.workspace
      AND c.id = answer_refusal.conversation;
    channel := crmapi.answer_channel(talk.type);
    address := CASE channel WHEN 'email' THEN crmapi.email_canonical(talk.email)
               ELSE crmapi.phone_e164(talk.phone_number) END;
    RETURN CASE
        WHEN talk.deleted THEN 'The conversation is deleted'
        WHEN talk.type = 2 THEN 'A phone conversation cannot be answered'
        WHEN channel IS NULL THEN NULL
        WHEN coalesce(address, '') = '' THEN
            'The participant has no address to answer to'
        WHEN crmapi.answer_forbidden(workspace, channel, address) THEN
            'The participant''s address is suppressed'
        WHEN EXISTS (SELECT FROM unnest(copies) a(address)
            WHERE crmapi.answer_forbidden(workspace, 'email', a.address))
            THEN 'An address of cc is suppressed' END;
END
$$;

-- Store the FILES of the message ANSWER: see message_answer(). Internal.
CREATE FUNCTION crmapi.answer_files(workspace uuid, answer uuid, files json)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO crmapi.attachment (workspace_id, id, message_id, number,
        filename, content_type, size, stored)
    SELECT workspace, (f.one ->> 'id')::uuid, answer, f.number,
           f.one ->> 'filename', f.one ->> 'content_type',
           (f.one ->> 'size')::bigint, true
    FROM json_array_elements(files) WITH ORDINALITY f(one, number);
    INSERT INTO crmapi.attachment_piece (workspace_id, attachment_id, number,
        bytes)
    SELECT workspace, f.id, n,
           substring(f.bytes FROM (n - 1) * 131072 + 1 FOR 131072)
    FROM (SELECT (e.one ->> 'id')::uuid AS id,
                 decode(e.one ->> 'data', 'base64') AS bytes
          FROM json_array_elements(files) e(one) OFFSET 0) f,
         generate_series(1, (octet_length(f.bytes) + 131071) / 131072) n;
END
$$;

-- {"author": name} of the admin with the id or the address ASSIGNED_TO, {} if there
-- is none. Internal.
CREATE FUNCTION crmapi.answer_author(workspace uuid, assigned_to text)
    RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT jsonb_build_object('author', a.name)
        FROM crmapi.admin a
        WHERE a.workspace_id = workspace
          AND (a.id::text = answer_author.assigned_to
               OR a.email_key = crmapi.email_key(answer_author.assigned_to))
        LIMIT 1), '{}');
END
$$;

-- Add the answer ANSWER, an id, to CONVERSATION, and the job that sends it. In a
-- chat it is sent: the next poll shows it, with the name of the admin whom the
-- conversation is assigned to, by id or address. COPIES: addresses for a mail; others
-- have none. METADATA is what the caller says of it. FILES of a mail or a chat: an array
-- of {id, filename, content_type, size, data}, the last in base64. Returns the message;
-- no row if there is no such conversation, or it takes no such answer:
-- answer_refusal().
-- Locks: conversation, chat_unseen. For the API.
CREATE FUNCTION crmapi.message_answer(workspace uuid, conversation uuid,
        answer uuid, role text, content text, content_type text,
        copies text[], metadata jsonb, files json)
    RETURNS SETOF crmapi.message
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
AS $$
DECLARE
    at CONSTANT timestamptz := crmapi.now_ms();
    talk crmapi.conversation;
    channel text;
    said crmapi.message;
BEGIN
    SELECT c.* INTO talk FROM crmapi.conversation c
    WHERE c.workspace_id = message_answer.workspace
      AND c.id = message_answer.conversation FOR NO KEY UPDATE;
    channel := crmapi.answer_channel(talk.type);
    IF talk.id IS NULL
       OR (copies IS NOT NULL AND channel IS DISTINCT FROM 'email')
       OR (files IS NOT NULL AND channel IS DISTINCT FROM 'email'
           AND talk.type <> 1)
       OR crmapi.answer_refusal(workspace, conversation, copies) IS NOT NULL
    THEN
        RETURN;
    END IF;
    INSERT INTO crmapi.message AS m (id, workspace_id, conversation_id, role,
        content, content_type, status, created_at, metadata, to_identifier)
    VALUES (answer, talk.workspace_id, talk.id, message_answer.role,
        message_answer.content, message_answer.content_type,
        CASE WHEN channel IS NULL THEN 'sent' ELSE 'queued' END, at,
        message_answer.metadata || CASE WHEN channel IS NULL AND role = 'human'
            THEN crmapi.answer_author(workspace, talk.assigned_to) ELSE '{}' END,
        CASE channel WHEN 'email' THEN talk.email
            WHEN 'sms' THEN talk.phone_number END)
    RETURNING m.* INTO said;
    UPDATE crmapi.conversation c SET active = true,
        last_message = left(message_answer.content, 255),
        last_message_at = greatest(c.last_message_at, at),
        last_active_at = greatest(c.last_active_at, at)
    WHERE c.workspace_id = message_answer.workspace
      AND c.id = message_answer.conversation;
    IF files IS NOT NULL THEN
        PERFORM crmapi.answer_files(workspace, answer, files);
    END IF;
    PERFORM crmapi.chat_answered(workspace, talk.id, at) WHERE talk.type = 1;
    IF channel IS NOT NULL THEN
        INSERT INTO crmapi.job (workspace_id, kind, payload)
        VALUES (message_answer.workspace, 'answer.send',
            jsonb_build_object('conversation_id', talk.id,
                               'message_id', said.id));
    END IF;
    RETURN NEXT said;
END
$$;

-- The answer MESSAGE has the status OUTCOME, because of REASON unless that is
-- null. Internal.
CREATE FUNCTION crmapi.answer_end(workspace uuid, message uuid, outcome text,
                                  reason text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE crmapi.message m SET status = outcome,
        metadata = CASE WHEN reason IS NULL THEN m.metadata ELSE m.metadata
            || jsonb_build_object('error', left(reason, 2000)) END
    WHERE m.workspace_id = answer_end.workspace AND m.id = answer_end.message;
END
$$;

-- Record an answer that was handed over before the database was restored, as
-- step_past() does. The caller has locked the message and the job. Internal.
CREATE FUNCTION crmapi.answer_past(workspace uuid, job bigint, owner text,
                                   attempt integer, answer uuid)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    past crmapi.past_answer;
BEGIN
    SELECT p.* INTO past FROM crmapi.past_answer p
    WHERE p.workspace_id = answer_past.workspace
      AND p.message_id = answer_past.answer AND p.state <> 'free';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE crmapi.message m SET handed_over = true
    WHERE m.workspace_id = answer_past.workspace AND m.id = answer_past.answer;
    IF past.state = 'sent' THEN
        PERFORM crmapi.answer_sent(workspace, job, owner, attempt, NULL, answer,
                                   past.sent_at, past.provider_id);
    ELSE
        PERFORM crmapi.answer_failed(workspace, job, owner, attempt, NULL,
                                     answer, 'delivery_unknown', NULL);
    END IF;
    RETURN true;
END
$$;

-- Take an answer for sending: see step_take(), whose verdicts but "wait" it has.
-- Neither pacing nor DAILY_LIMIT holds an answer back. "stopped": an address is
-- suppressed, and the answer has failed; "skipped": it was posted before the bound
-- of its workspace, and has failed.
-- WIRE: all addresses that go over the wire, separated by spaces. The message is
-- changed again in this transaction, by answer_names(): PostgreSQL looks for its
-- conversation then, which an erasure locks before the message. Locks: key of the
-- conversation, message, job (lost lease: CRM01). For the worker.
CREATE FUNCTION crmapi.answer_take(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, moment timestamptz,
        daily_limit integer, wire text, OUT verdict text,
        OUT until timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken crmapi.message;
    channel text;
BEGIN
    PERFORM FROM crmapi.conversation c
    WHERE c.workspace_id = answer_take.workspace
      AND c.id = answer_take.conversation FOR KEY SHARE;
    SELECT m.* INTO taken FROM crmapi.message m
    WHERE m.workspace_id = answer_take.workspace AND m.id = answer_take.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    verdict := 'gone';
    IF taken.status IS DISTINCT FROM 'queued' THEN
        RETURN;
    END IF;
    SELECT crmapi.message_channel(c.type, taken.role) INTO channel
    FROM crmapi.conversation c
    WHERE c.workspace_id = answer_take.workspace
      AND c.id = taken.conversation_id;
    IF EXISTS (SELECT FROM unnest(taken.to_identifier::text
            || string_to_array(wire, ' ')
            || ARRAY(SELECT jsonb_array_elements_text(taken.metadata -> 'cc')))
            a(address)
        WHERE crmapi.answer_forbidden(workspace, channel, a.address)) THEN
        verdict := 'lost';
        IF taken.handed_over IS NOT TRUE THEN
            PERFORM crmapi.answer_end(workspace, answer, 'failed',
                                      'suppressed');
            verdict := 'stopped';
        END IF;
    ELSIF EXISTS (SELECT FROM crmapi.hold_of(workspace)) THEN
        PERFORM crmapi.job_return(workspace, job, owner, attempt);
        verdict := 'held';
    ELSIF crmapi.answer_past(workspace, job, owner, attempt, answer) THEN
        verdict := 'past';
    ELSIF taken.handed_over THEN
        verdict := 'again';
    ELSIF EXISTS (SELECT FROM crmapi.step_bound b
                  WHERE b.workspace_id = answer_take.workspace
                    AND b.due_before > taken.created_at) THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed',
            'posted before the time that the release was given');
        verdict := 'skipped';
    ELSIF crmapi.chat_was_seen(workspace, taken) THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed',
            'the visitor has seen it in the chat');
        verdict := 'skipped';
    ELSE
        UPDATE crmapi.message m SET handed_over = true
        WHERE m.workspace_id = answer_take.workspace AND m.id = taken.id;
        verdict := 'send';
    END IF;
END
$$;

-- Record that an answer was sent at MOMENT under the provider's id PROVIDER. A
-- text has no other name. Ends JOB. Locks: message, job. For the worker.
CREATE FUNCTION crmapi.answer_sent(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, moment timestamptz,
        provider text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.message m
    WHERE m.workspace_id = answer_sent.workspace AND m.id = answer_sent.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    -- a report of the provider may have been quicker
    UPDATE crmapi.message m SET status = CASE m.status WHEN 'queued' THEN 'sent'
            ELSE m.status END,
        provider_id = left(provider, 1000),
        external_id = coalesce(m.external_id, left(provider, 1000))
    WHERE m.workspace_id = answer_sent.workspace AND m.id = answer_sent.answer
      AND m.handed_over;
    PERFORM crmapi.job_end(workspace, job, owner, attempt, 'done', NULL, NULL);
END
$$;

-- Record that an answer was not sent because of REASON. It is retried AFTER from
-- now; AFTER null: never. Ends JOB or makes it ready again. Locks: message, job.
-- For the worker.
CREATE FUNCTION crmapi.answer_failed(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, reason text,
        after interval)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.message m
    WHERE m.workspace_id = answer_failed.workspace
      AND m.id = answer_failed.answer
    FOR UPDATE;
    PERFORM crmapi.job_hold(workspace, job, owner, attempt);
    UPDATE crmapi.message m SET handed_over = false
    WHERE m.workspace_id = answer_failed.workspace
      AND m.id = answer_failed.answer AND after IS NOT NULL;
    IF after IS NULL AND EXISTS (SELECT FROM crmapi.message m
        WHERE m.workspace_id = answer_failed.workspace
          AND m.id = answer_failed.answer AND m.status = 'queued') THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed', reason);
    END IF;
    PERFORM crmapi.job_end(workspace, job, owner, attempt,
        CASE WHEN after IS NULL THEN 'done' ELSE 'ready' END, reason, after);
END
$$;

-- The same as answer_failed() for good, because the relay has said that nothing can
-- or may be sent to the answer's address: it is suppressed (contract 17.5), BECAUSE it
-- is "bounced" or "unsubscribed", unless there are copies: the relay may have said
-- that of another one. Locks: enrollment, step, job, message. For the worker.
CREATE FUNCTION crmapi.answer_refused(workspace uuid, job bigint, owner text,
        attempt integer, conversation uuid, answer uuid, reason text,
        because text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM crmapi.suppress_refused(workspace, m.to_identifier, because)
    FROM crmapi.message m
    WHERE m.workspace_id = answer_refused.workspace
      AND m.id = answer_refused.answer AND NOT m.metadata ? 'cc';
    PERFORM crmapi.answer_failed(workspace, job, owner, attempt, conversation,
                                 answer, reason, NULL);
END
$$;

-- The names of the mail of ANSWER, as step_names() returns those of a step. The
-- earlier mails are those that the conversation's last message with a Message-ID
-- names, and that message; at most 20 and its first. Locks: message; held already.
-- For the worker.
CREATE FUNCTION crmapi.answer_names(workspace uuid, answer uuid, domain text)
    RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    named text := '<' || gen_random_uuid() || '@' || domain || '>';
    token text := replace(gen_random_uuid()::text, '-', '');
    taken crmapi.message;
    refs text[];
BEGIN
    UPDATE crmapi.message m SET external_id = coalesce(m.external_id, named),
        reply_id = coalesce(m.reply_id, token)
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer
      AND EXISTS (SELECT FROM crmapi.conversation c
          WHERE c.workspace_id = answer_names.workspace
            AND c.id = m.conversation_id
            AND crmapi.message_channel(c.type, m.role) = 'email');
    SELECT m.* INTO taken FROM crmapi.message m
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer;
    SELECT CASE jsonb_typeof(m.metadata -> 'references') WHEN 'array'
            THEN ARRAY(SELECT jsonb_array_elements_text(
                m.metadata -> 'references')) END || m.external_id::text
    INTO refs FROM crmapi.message m
    WHERE m.workspace_id = answer_names.workspace
      AND m.conversation_id = taken.conversation_id
      AND m.external_id LIKE '<%@%>' AND m.id <> taken.id
      AND (m.role <> 'system' OR m.reply_id IS NOT NULL)
      AND m.created_at <= taken.created_at
    ORDER BY m.created_at DESC, m.id DESC LIMIT 1;
    UPDATE crmapi.message m SET metadata = m.metadata
        || jsonb_build_object('references', refs)
    WHERE m.workspace_id = answer_names.workspace AND m.id = answer_names.answer
      AND m.reply_id IS NOT NULL AND refs IS NOT NULL
      AND NOT m.metadata ? 'references';
    RETURN CASE WHEN taken.reply_id IS NOT NULL THEN ARRAY[
        taken.external_id::text, taken.reply_id, crmapi.answer_thread(refs)] END;
END
$$;

-- REFS, Message-IDs, as the value of the header References: what is no such id is
-- left out, and of many the first and the last 20 are kept. Internal.
CREATE FUNCTION crmapi.answer_thread(refs text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    ids text[] := ARRAY(SELECT r.id FROM unnest(refs) WITH ORDINALITY r(id, n)
        WHERE r.id ~ '^<[!-;=?-~]+@[!-;=?-~]+>$' AND length(r.id) <= 250
        ORDER BY r.n);
    n integer := cardinality(ids);
BEGIN
    RETURN nullif(array_to_string(CASE WHEN n > 21
        THEN ids[1:1] || ids[n - 19:] ELSE ids END, ' '), '');
END
$$;

-- The mail of ANSWER was returned because of FAILURE; null: its copies alone were. If
-- ADDRESSES, with spaces between them, is not null, that speaks of these, which are
-- suppressed because of REASON (contract 17.5). Locks: enrollment, step, job,
-- message. Internal.
CREATE FUNCTION crmapi.answer_returned(workspace uuid, answer uuid, addresses text,
                                       failure text, reason text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM crmapi.suppress(workspace, a.address, NULL, reason)
    FROM (SELECT t.address FROM unnest(string_to_array(addresses, ' ')) t(address)
          ORDER BY 1) a;
    IF failure IS NOT NULL THEN
        PERFORM crmapi.answer_end(workspace, answer, 'failed', failure);
    END IF;
END
$$;
