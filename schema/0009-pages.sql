-- SPDX-License-Identifier: Apache-2.0
-- 0009-pages.sql: what the page of a review does

-- What the texts of an enrollment are, in short: the same only while nobody
-- changes one. A page is good for what it showed.
CREATE FUNCTION crmapi.review_digest(workspace uuid, enrollment uuid)
    RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT encode(sha256(convert_to(coalesce(jsonb_agg(jsonb_build_array(s.id,
        s.channel, s.to_identifier, s.email_subject, s.email_body, s.sms_body,
        s.voice_objective, s.voice_script) ORDER BY s.sort_order)::text, ''),
        'UTF8')), 'hex')
    FROM crmapi.enrollment_step s
    WHERE s.workspace_id = review_digest.workspace
      AND s.enrollment_id = review_digest.enrollment;
END;

-- Do ACTION (approve, reject, save) with an enrollment that waits for approval,
-- at once with EDITS of its steps: an array of {"step": id, "subject",
-- "body", "objective"}, as crmapi.step_edit() takes them. SEEN is the digest
-- that the page showed. Returns the status that the enrollment had, null if
-- there is no such, "changed" if its texts are others now; nothing has changed
-- unless that is pending_approval.
CREATE FUNCTION crmapi.review_act(workspace uuid, enrollment uuid, seen text,
                                  action text, edits jsonb) RETURNS text
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
    IF action = 'reject' THEN
        RETURN crmapi.enrollment_reject(workspace, enrollment);
    END IF;
    IF crmapi.review_digest(workspace, enrollment) IS DISTINCT FROM seen THEN
        RETURN 'changed';
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

-- When the steps of an enrollment go out: what has been sent or is paced, as it
-- is; of one that waits for approval, as if that came at MOMENT.
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

-- ---- rights -----------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION crmapi.review_act(uuid, uuid, text, text, jsonb)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION crmapi.review_act(uuid, uuid, text, text, jsonb)
    TO crmapi_api;
-- An admin who is one no longer opens no page.
GRANT SELECT ON crmapi.admin TO crmapi_api;
