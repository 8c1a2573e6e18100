-- SPDX-License-Identifier: Apache-2.0
-- 1-column.sql: a column that is computed, filled in and checked
-- t/lib/CrmTest/Upgrade.pm gives it a number, and @VERSION@ a value.
-- min_module: @VERSION@

-- step: transaction: add the column, and a trigger that fills it
ALTER TABLE crmapi.contact ADD COLUMN name_length integer;

CREATE FUNCTION crmapi.contact_name_length() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.name_length := coalesce(length(NEW.first_name), 0)
        + coalesce(length(NEW.last_name), 0);
    RETURN NEW;
END
$$;

CREATE TRIGGER name_length BEFORE INSERT OR UPDATE OF first_name, last_name
    ON crmapi.contact FOR EACH ROW
    EXECUTE FUNCTION crmapi.contact_name_length();

-- step: batches crmapi.contact: fill the column
UPDATE crmapi.contact t
SET name_length = coalesce(length(t.first_name), 0)
    + coalesce(length(t.last_name), 0)
FROM batch b
WHERE t.workspace_id = b.workspace_id AND t.id = b.id
    AND t.name_length IS NULL;

-- step: transaction: every row has it from now on
ALTER TABLE crmapi.contact ADD CONSTRAINT contact_name_length
    CHECK (name_length IS NOT NULL) NOT VALID;

-- step: alone: check the rows of before
ALTER TABLE crmapi.contact VALIDATE CONSTRAINT contact_name_length;

-- step: transaction: the check spares this the scan
ALTER TABLE crmapi.contact ALTER COLUMN name_length SET NOT NULL;
