-- SPDX-License-Identifier: Apache-2.0
-- 3-reference.sql: in a distributed database
-- min_module: @VERSION@

-- step: transaction: the table
CREATE TABLE crmapi.region (
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

-- step: transaction: an index
CREATE INDEX region_name ON crmapi.region (name);

-- step: alone: distribute it
SELECT create_distributed_table('crmapi.region', 'workspace_id',
                                colocate_with => 'crmapi.workspace')
WHERE NOT EXISTS (SELECT FROM pg_dist_partition
                  WHERE logicalrelid = 'crmapi.region'::regclass);

-- step: transaction: it is of a workspace
ALTER TABLE crmapi.region ADD CONSTRAINT region_workspace_id_fkey
    FOREIGN KEY (workspace_id) REFERENCES crmapi.workspace ON DELETE CASCADE;

-- step: alone: a region for each
INSERT INTO crmapi.region (workspace_id, name)
SELECT w.id, 'all' FROM crmapi.workspace w
ON CONFLICT DO NOTHING;

-- step: transaction: the column
ALTER TABLE crmapi.company ADD COLUMN region text;

-- step: transaction: the reference
ALTER TABLE crmapi.company ADD CONSTRAINT company_region
    FOREIGN KEY (workspace_id, region)
    REFERENCES crmapi.region (workspace_id, name) NOT VALID;

-- step: alone: check it
ALTER TABLE crmapi.company VALIDATE CONSTRAINT company_region;
