-- SPDX-License-Identifier: Apache-2.0
-- 0023-contact-write.sql: a write of a contact costs less, above all if nobody
-- wants its event
--
-- A contact had one trigger for its time (0022) and one for its event. A trigger
-- costs about 12,000 instructions, a WHEN 16,000, SECURITY DEFINER with a
-- search_path 16,000, and a statement that reads event_feed 28,000. One trigger
-- does both now, with the writer's rights. The statement that writes the time
-- also reads event_feed, which costs 7,000.
--
-- min_module: 12

-- step: transaction: one trigger for the time of a contact and its event

-- Add a new contact to contact_change, and its event if somebody wants it. A
-- trigger function.
CREATE FUNCTION crmapi.contact_created() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    types text[];       -- null: nobody wants the event
    event uuid;
BEGIN
    INSERT INTO crmapi.contact_change (workspace_id, updated_at, id)
    VALUES (NEW.workspace_id, NEW.updated_at, NEW.id)
    RETURNING (SELECT f.types FROM crmapi.event_feed f
               WHERE f.workspace_id = NEW.workspace_id
                 AND (f.log OR 'contact.created' = ANY (f.types))) INTO types;
    IF types IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    VALUES (crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, 'contact.created', json_object(
        '{id,workspace_id,bot_id,first_name,last_name,emails,'
            'phone_numbers,company,company_id,job_title,lead_source,'
            'tags,deal_value,pipeline_stage_id,contact_type,'
            'address_line1,address_line2,city,state,postal_code,'
            'country,linkedin_url,notes,custom_fields,created_at,'
            'updated_at,last_contacted_at}',
        ARRAY[NEW.id::text, NEW.workspace_id::text, NEW.bot_id::text,
            NEW.first_name, NEW.last_name, NEW.emails::text,
            NEW.phone_numbers::text, NEW.company, NEW.company_id::text,
            NEW.job_title, NEW.lead_source, NEW.tags::text,
            NEW.deal_value::text, NEW.pipeline_stage_id::text,
            NEW.contact_type, NEW.address_line1, NEW.address_line2, NEW.city,
            NEW.state, NEW.postal_code, NEW.country, NEW.linkedin_url,
            NEW.notes, NEW.custom_fields::text,
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at),
            NULL]))
    RETURNING v.id INTO event;
    IF 'contact.created' = ANY (types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, 'contact.created');
    END IF;
    RETURN NULL;
END
$$;

-- Move a contact in contact_change to its new updated_at, and add an event if
-- somebody wants it. updated_at is the same if a foreign key was set null or
-- nothing has changed. Locks: contact_change; the contact is locked already. A
-- trigger function.
CREATE FUNCTION crmapi.contact_updated() RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    types text[];       -- null: nobody wants the event
    event uuid;
BEGIN
    IF NEW.updated_at = OLD.updated_at THEN
        IF OLD IS DISTINCT FROM NEW THEN
            SELECT f.types INTO types FROM crmapi.event_feed f
            WHERE f.workspace_id = NEW.workspace_id
              AND (f.log OR 'contact.updated' = ANY (f.types));
        END IF;
    ELSE
        UPDATE crmapi.contact_change c SET updated_at = NEW.updated_at
        WHERE c.workspace_id = NEW.workspace_id
          AND c.updated_at = OLD.updated_at AND c.id = NEW.id
        RETURNING (SELECT f.types FROM crmapi.event_feed f
               WHERE f.workspace_id = NEW.workspace_id
                 AND (f.log OR 'contact.updated' = ANY (f.types))) INTO types;
    END IF;
    IF types IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO crmapi.event AS v (id, workspace_id, type, fields)
    SELECT crmapi.event_id(crmapi.event_next(NEW.workspace_id)),
        NEW.workspace_id, 'contact.updated', json_object(
        '{id,workspace_id,bot_id,first_name,last_name,emails,'
            'phone_numbers,company,company_id,job_title,lead_source,'
            'tags,deal_value,pipeline_stage_id,contact_type,'
            'address_line1,address_line2,city,state,postal_code,'
            'country,linkedin_url,notes,custom_fields,created_at,'
            'updated_at,last_contacted_at}',
        ARRAY[NEW.id::text, NEW.workspace_id::text, NEW.bot_id::text,
            NEW.first_name, NEW.last_name, NEW.emails::text,
            NEW.phone_numbers::text, NEW.company, NEW.company_id::text,
            NEW.job_title, NEW.lead_source, NEW.tags::text,
            NEW.deal_value::text, NEW.pipeline_stage_id::text,
            NEW.contact_type, NEW.address_line1, NEW.address_line2, NEW.city,
            NEW.state, NEW.postal_code, NEW.country, NEW.linkedin_url,
            NEW.notes, NEW.custom_fields::text,
            crmapi.event_time(NEW.created_at),
            crmapi.event_time(NEW.updated_at),
            crmapi.event_time((SELECT a.created_at FROM crmapi.activity a
                WHERE a.workspace_id = NEW.workspace_id
                  AND a.contact_id = NEW.id
                ORDER BY a.created_at DESC LIMIT 1))])
    RETURNING v.id INTO event;
    IF 'contact.updated' = ANY (types) THEN
        PERFORM crmapi.webhook_plan(NEW.workspace_id, event, 'contact.updated');
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER event_insert AFTER INSERT ON crmapi.contact
    FOR EACH ROW EXECUTE FUNCTION crmapi.contact_created();
-- all columns but tag_keys: 0020 explains it
DO $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER event_update AFTER UPDATE OF %s
        ON crmapi.contact FOR EACH ROW
        EXECUTE FUNCTION crmapi.contact_updated()',
        (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
         FROM pg_attribute a
         WHERE a.attrelid = 'crmapi.contact'::regclass AND a.attnum > 0
           AND NOT a.attisdropped AND a.attname <> 'tag_keys'));
END
$$;

-- Only bench/events uses their functions now, and nothing contact_event().
-- unused since: 12
DROP TRIGGER change_add ON crmapi.contact;
DROP TRIGGER change_move ON crmapi.contact;

GRANT INSERT, UPDATE (updated_at) ON crmapi.contact_change TO crmapi_api;
