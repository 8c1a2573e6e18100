-- SPDX-License-Identifier: Apache-2.0
-- 0002-rights.sql: who may do what
--
-- crmapictl runs the files of this folder at the end of each migrate, so they are
-- not recorded. This one makes the rights of PUBLIC and of the two roles what is
-- listed here: it grants what is missing and revokes everything else. What other
-- roles have stays. It changes nothing if all is right already.
--
-- PUBLIC has nothing. EXECUTE on a trigger function would be enough to become the
-- owner: a trigger of it on a table of one's own, with columns of a type of one's
-- own, makes the owner call the casts of that type. So that there is no such table,
-- nobody but the owner of the database makes temporary objects, or any in "public".

-- step: transaction: the rights in schema crmapi
DO $do$
DECLARE
    statement text;
BEGIN
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    -- twice: to revoke a right on a table revokes it on the columns, too
    FOR turn IN 1 .. 2 LOOP
    FOR statement IN
WITH relation (name, api, worker) AS (VALUES
    -- what          crmapi_api            crmapi_worker
    -- a PATCH leaves what it belongs to and its type
    ('activity', 'SELECT, INSERT, UPDATE (title, description, due_date,'
        ' duration_minutes, completed_at, metadata, updated_at), DELETE',
        'SELECT, INSERT'),
    ('admin', 'SELECT', 'SELECT'),
    ('agent', 'SELECT', 'SELECT'),
    ('api_key', 'SELECT (id, workspace_id, last_used_at),'
        ' UPDATE (last_used_at)', ''),
    ('attachment', 'SELECT', 'SELECT, INSERT'),
    ('attachment_piece', 'SELECT', 'SELECT, INSERT'),
    ('chat_unseen', 'SELECT', ''),
    ('company', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
    ('contact', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
    ('contact_merged', 'SELECT', 'SELECT'),
    ('contact_change', 'SELECT, INSERT, UPDATE (updated_at, indexed_fields)', ''),
    -- a PATCH sets the inbox state; a DELETE sets deleted (specification)
    ('conversation', 'SELECT, UPDATE (human_takeover, assigned_to, assigned_at,'
        ' active, archived, archived_at, deleted, deleted_at, internal_notes,'
        ' unanswered, updated_at)', 'SELECT, UPDATE (active, last_message,'
        ' last_message_at, last_active_at)'),
    ('counter', 'SELECT', 'SELECT'),
    ('enrollment', 'SELECT, INSERT', 'SELECT'),
    ('enrollment_step', 'SELECT', 'SELECT'),
    ('event', 'SELECT, INSERT', 'SELECT, INSERT'),
    ('event_feed', 'SELECT', 'SELECT'),
    ('event_number', 'SELECT, USAGE', 'USAGE'),
    ('form', 'SELECT', 'SELECT'),
    ('idempotent_answer', 'SELECT, INSERT, UPDATE', ''),
    ('instance', 'SELECT (held_at, history, events_lost)', 'SELECT'),
    ('job', 'INSERT, SELECT (workspace_id, lane, payload, state, run_at,'
        ' last_error)', 'SELECT, INSERT, UPDATE, DELETE'),
    ('live_key', 'SELECT (workspace_id, key_id, slug, read, write, plan_api,'
        ' plan_sequences, closed, terms, name, expires_at)', ''),
    ('message', 'SELECT', 'SELECT'),
    ('message_html', 'SELECT', 'INSERT'),
    -- each program compares the schema's version with its own
    ('migration', 'SELECT (number, name, min_module, steps, steps_done, step,'
        ' rows_done, rows_expected)', 'SELECT (number, name, min_module, steps,'
        ' steps_done, step, rows_done, rows_expected)'),
    ('original', 'SELECT', 'INSERT'),
    ('past_send', '', 'SELECT'),
    ('pipeline', 'SELECT', 'SELECT'),
    ('pipeline_card', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
    ('pipeline_stage', 'SELECT', 'SELECT'),
    ('plan', 'SELECT', 'SELECT'),
    ('send_count', '', 'SELECT, DELETE'),
    ('send_mark', '', 'SELECT'),
    ('sequence', 'SELECT, INSERT', 'SELECT'),
    ('sequence_template', 'SELECT', 'SELECT'),
    ('submission', 'SELECT', 'SELECT'),
    ('suppression', 'SELECT, DELETE', 'SELECT, INSERT, DELETE'),
    ('upkeep', '', 'SELECT, INSERT, UPDATE, DELETE'),
    ('webhook_attempt', '', 'SELECT'),
    ('webhook_delivery', '', 'SELECT'),
    ('webhook_endpoint', '', 'SELECT (id, workspace_id, url, events,'
        ' disabled_at, disabled_reason, created_at)'),
    ('worker', '', 'SELECT, INSERT, UPDATE, DELETE'),
    ('workspace', 'SELECT', 'SELECT'),
    -- channels do not look up what is held
    ('workspace_hold', 'SELECT (workspace_id)', 'SELECT')),
citus (name, api, worker) AS (VALUES    -- instead, if the database has them
    ('api_key', 'SELECT (id, workspace_id, name, can_read, can_write, plan_api,'
        ' plan_sequences, closed, terms, read_limit, write_limit, networks,'
        ' revoked_at,'
        ' expires_at, last_used_at), UPDATE (last_used_at)', ''),
    ('event_home', 'SELECT', 'SELECT'),
    ('live_key', 'SELECT', '')),
function (who, names) AS (VALUES
    ('crmapi_api',
        'answer_refusal chat_seen contact_last_contacted_at contact_merge'
        ' contact_suppressed_of event_end event_end_at event_lost fields_wanted'
        ' instance_history intake_key_find json_fits json_merge key_look_up key_may'
        ' key_roll message_answer review_act review_digest review_times'
        ' suppression_add token_sign_page token_signed usage_add'),
    ('crmapi_worker',
        'analyze_grown answer_channel answer_failed answer_names answer_refused'
        ' answer_sent answer_subject answer_take audit_trim chat_mail'
        ' conversation_idle counter_mend counter_trim enrollment_failed'
        ' enrollment_generated erased_sent event_trim idempotency_trim'
        ' instance_hold instance_look intake_trim job_claim job_end job_hold'
        ' job_poll job_reap job_return job_where mail_named mark_next'
        ' mark_refuses message_channel original_trim past_add'
        ' retention_conversations retention_events retention_submissions'
        ' sends_held step_failed step_names step_refused step_sent'
        ' step_take step_wait token_sign_link upkeep_begin usage_due usage_measure'
        ' usage_trim webhook_attempted webhook_body webhook_cancelled'
        ' webhook_sign webhook_wait worker_beat'),
    ('crmapi_api crmapi_worker',
        'bell bell_heard bell_message contact_erase contact_replied'
        ' contact_suppressed enrollment_approve enrollment_reject'
        ' enrollment_stop event_add event_base event_next intake is_suppressed'
        ' suppress suppress_lift webhook_plan'
        -- on values: columns, defaults and checks of the tables call them
        ' address_keys contact_keys conversation_last_activity counter_slot'
        ' digits domain_ascii domain_character email_base email_canonical'
        ' email_key email_keys event_bound event_id event_ticket event_time'
        ' fields_indexed fold job_about list_join list_primary list_text now_ms'
        ' pacing_fit phone_ascii phone_e164 phone_key phone_keys phone_plain'
        ' phone_read punycode tag_keys'
        -- on rows: 0001-events.sql makes them
        ' activity_fields company_fields contact_fields contact_merged_fields'
        ' conversation_fields enrollment_fields message_fields'
        ' pipeline_card_fields submission_fields')),
-- one row for each right: the catalog and number of its object, its column, the
-- right, whom it is granted (0: PUBLIC), and whether he may grant it
listed AS (
    SELECT 'pg_class'::regclass AS catalog, c.oid AS object,
           coalesce(btrim(a.name), '') AS col, p.part[1] AS privilege,
           w.oid AS grantee, false AS grantable
    FROM (SELECT r.* FROM citus r WHERE to_regclass('crmapi.key_home')
              IS NOT NULL
          UNION ALL
          SELECT r.* FROM relation r WHERE to_regclass('crmapi.key_home') IS NULL
              OR r.name NOT IN (SELECT t.name FROM citus t)) r
    JOIN pg_class c ON c.relname = r.name
        AND c.relnamespace = 'crmapi'::regnamespace
    CROSS JOIN LATERAL (VALUES ('crmapi_api', r.api),
                               ('crmapi_worker', r.worker)) g (who, rights)
    JOIN pg_roles w ON w.rolname = g.who
    CROSS JOIN LATERAL regexp_matches(g.rights, '([A-Z]+)(?: \(([^)]*)\))?',
                                      'g') p(part)
    LEFT JOIN LATERAL string_to_table(p.part[2], ',') a(name) ON true
    WHERE a.name IS NULL OR EXISTS (SELECT FROM pg_attribute t
        WHERE t.attrelid = c.oid AND t.attname = btrim(a.name))
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid, '', 'EXECUTE', w.oid, false
    FROM function f CROSS JOIN LATERAL string_to_table(f.names, ' ') n(name)
    JOIN pg_proc p ON p.proname = n.name
        AND p.pronamespace = 'crmapi'::regnamespace
    JOIN pg_roles w ON w.rolname = ANY (string_to_array(f.who, ' '))
    UNION ALL
    SELECT 'pg_namespace'::regclass, 'crmapi'::regnamespace, '', 'USAGE', w.oid,
           false
    FROM pg_roles w WHERE w.rolname IN ('crmapi_api', 'crmapi_worker')),
present AS (
    SELECT o.catalog, o.object, o.col, x.privilege_type AS privilege, x.grantee,
           x.is_grantable AS grantable
    FROM (SELECT 'pg_class'::regclass AS catalog, c.oid AS object, '' AS col,
                 c.relacl AS acl
          FROM pg_class c WHERE c.relnamespace = 'crmapi'::regnamespace
          UNION ALL
          SELECT 'pg_class'::regclass, c.oid, a.attname, a.attacl
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
          WHERE c.relnamespace = 'crmapi'::regnamespace AND a.attnum > 0
            AND NOT a.attisdropped
          UNION ALL
          SELECT 'pg_proc'::regclass, p.oid, '',
                 coalesce(p.proacl, acldefault('f', p.proowner))
          FROM pg_proc p WHERE p.pronamespace = 'crmapi'::regnamespace
          UNION ALL
          SELECT 'pg_type'::regclass, t.oid, '',
                 coalesce(t.typacl, acldefault('T', t.typowner))
          FROM pg_type t WHERE t.typnamespace = 'crmapi'::regnamespace
            AND t.typtype = 'd'
          UNION ALL
          SELECT 'pg_namespace'::regclass, n.oid, '', n.nspacl
          FROM pg_namespace n WHERE n.nspname = 'crmapi') o
    CROSS JOIN LATERAL aclexplode(o.acl) x
    LEFT JOIN pg_roles w ON w.oid = x.grantee
    WHERE x.grantee = 0 OR w.rolname IN ('crmapi_api', 'crmapi_worker')),
change AS (
    SELECT 1 AS turn, 'REVOKE %s%s ON %s FROM %s' AS form, r.*
    FROM (SELECT * FROM present EXCEPT SELECT * FROM listed) r
    UNION ALL
    SELECT 2, 'GRANT %s%s ON %s TO %s', r.*
    FROM (SELECT * FROM listed EXCEPT SELECT * FROM present) r)
SELECT format(c.form, c.privilege,
              CASE WHEN c.col <> '' THEN format(' (%I)', c.col) END,
              CASE c.catalog
                  WHEN 'pg_class'::regclass THEN CASE (SELECT r.relkind
                      FROM pg_class r WHERE r.oid = c.object)
                      WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END
                      || c.object::regclass
                  WHEN 'pg_proc'::regclass
                      THEN 'FUNCTION ' || c.object::regprocedure
                  WHEN 'pg_type'::regclass
                      THEN 'DOMAIN ' || c.object::regtype
                  ELSE 'SCHEMA crmapi' END,
              coalesce((SELECT quote_ident(w.rolname) FROM pg_roles w
                        WHERE w.oid = c.grantee), 'PUBLIC'))
FROM change c ORDER BY c.turn
    LOOP
        EXECUTE statement;
    END LOOP;
    END LOOP;
END
$do$;

-- step: transaction: the database, and what is created from now on
-- What the present role may not do, its owner does: crmapictl says so.
DO $$
DECLARE
    database pg_database;
    owner name := (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n
                   WHERE n.nspname = 'crmapi');
BEGIN
    SELECT d.* INTO database FROM pg_database d
    WHERE d.datname = current_database();
    IF pg_has_role(database.datdba, 'USAGE') AND EXISTS (
        SELECT FROM aclexplode(coalesce(database.datacl,
                                        acldefault('d', database.datdba))) x
        LEFT JOIN pg_roles w ON w.oid = x.grantee
        WHERE x.privilege_type IN ('TEMPORARY', 'CREATE') AND (x.grantee = 0
            OR w.rolname IN ('crmapi_api', 'crmapi_worker'))) THEN
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I',
                       current_database(), owner);
        EXECUTE format('REVOKE TEMPORARY, CREATE ON DATABASE %I'
            ' FROM PUBLIC, crmapi_api, crmapi_worker', current_database());
    END IF;
    IF EXISTS (SELECT FROM pg_namespace n
               CROSS JOIN LATERAL aclexplode(n.nspacl) x
               WHERE n.nspname = 'public' AND x.grantee = 0
                 AND x.privilege_type = 'CREATE'
                 AND pg_has_role(n.nspowner, 'USAGE')) THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_default_acl a
                   WHERE a.defaclrole = current_user::regrole
                     AND a.defaclnamespace = 0 AND a.defaclobjtype = 'f'
                     AND NOT EXISTS (SELECT FROM aclexplode(a.defaclacl) x
                                     WHERE x.grantee = 0)) THEN
        ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    END IF;
END
$$;
