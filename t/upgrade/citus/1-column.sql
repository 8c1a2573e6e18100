-- SPDX-License-Identifier: Apache-2.0
-- 1-column.sql: in a distributed database
-- min_module: @VERSION@

-- step: transaction: add the column
ALTER TABLE crmapi.contact ADD COLUMN name_length integer;

-- step: transaction: what fills it
CREATE FUNCTION crmapi.contact_name_length() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.name_length := coalesce(length(NEW.first_name), 0)
        + coalesce(length(NEW.last_name), 0);
    RETURN NEW;
END
$$;

-- step: transaction: the trigger
CREATE TRIGGER name_length BEFORE INSERT OR UPDATE OF first_name, last_name
    ON crmapi.contact FOR EACH ROW
    EXECUTE FUNCTION crmapi.contact_name_length();

-- step: alone: fill the column, a transaction for each workspace
DO $$
DECLARE
    workspace uuid;
BEGIN
    FOR workspace IN SELECT w.id FROM crmapi.workspace w LOOP
        UPDATE crmapi.contact t
        SET name_length = coalesce(length(t.first_name), 0)
            + coalesce(length(t.last_name), 0)
        WHERE t.workspace_id = workspace AND t.name_length IS NULL;
        COMMIT;
    END LOOP;
END
$$;

-- step: transaction: every row has it from now on
ALTER TABLE crmapi.contact ADD CONSTRAINT contact_name_length
    CHECK (name_length IS NOT NULL) NOT VALID;

-- step: alone: check the rows of before
ALTER TABLE crmapi.contact VALIDATE CONSTRAINT contact_name_length;

-- step: transaction: the check spares this the scan
ALTER TABLE crmapi.contact ALTER COLUMN name_length SET NOT NULL;
