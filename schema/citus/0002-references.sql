-- SPDX-License-Identifier: Apache-2.0
-- 0002-references.sql: references that are set null

-- Citus has no ON DELETE SET NULL for a key with workspace_id. The trigger of
-- the row that leaves does the same.

-- Set the references to the row that leaves null. The trigger's arguments are
-- pairs: the table and its column. If the workspace leaves, too, so do they. A
-- trigger function.
CREATE FUNCTION crmapi.forget_references() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM crmapi.workspace w
                   WHERE w.id = OLD.workspace_id) THEN
        RETURN OLD;
    END IF;
    FOR i IN 0 .. TG_NARGS - 1 BY 2 LOOP
        EXECUTE format('UPDATE crmapi.%I t SET %I = NULL
            WHERE t.workspace_id = $1 AND t.%I = $2', TG_ARGV[i],
            TG_ARGV[i + 1], TG_ARGV[i + 1]) USING OLD.workspace_id, OLD.id;
    END LOOP;
    RETURN OLD;
END
$$;

-- "zz": after the triggers that need the references.
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.contact FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('pipeline_card', 'contact_id',
        'activity', 'contact_id', 'conversation', 'contact_id',
        'submission', 'contact_id');
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.company FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('contact', 'company_id',
        'activity', 'company_id');
CREATE TRIGGER zz_forget BEFORE DELETE ON crmapi.pipeline_stage FOR EACH ROW
    EXECUTE FUNCTION crmapi.forget_references('contact', 'pipeline_stage_id',
        'company', 'pipeline_stage_id');
