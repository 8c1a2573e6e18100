-- SPDX-License-Identifier: Apache-2.0
-- 3-reference.sql: a new table with its rows, and a reference to it
-- min_module: @VERSION@

-- step: transaction: the table
CREATE TABLE crmapi.region (
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    name text NOT NULL,
    PRIMARY KEY (workspace_id, name)
);
CREATE INDEX region_name ON crmapi.region (name);

-- step: batches crmapi.workspace: a region for each
INSERT INTO crmapi.region (workspace_id, name)
SELECT b.id, 'all' FROM batch b
ON CONFLICT DO NOTHING;

-- step: transaction: the reference
ALTER TABLE crmapi.company ADD COLUMN region text;
ALTER TABLE crmapi.company ADD CONSTRAINT company_region
    FOREIGN KEY (workspace_id, region)
    REFERENCES crmapi.region (workspace_id, name) NOT VALID;

-- step: alone: check it
ALTER TABLE crmapi.company VALIDATE CONSTRAINT company_region;
