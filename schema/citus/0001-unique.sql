-- SPDX-License-Identifier: Apache-2.0
-- 0001-unique.sql: what is unique across workspaces

-- All triggers write rows of their row's workspace only.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
-- The servers get objects when tables need them, in their final form.
SET LOCAL citus.enable_ddl_propagation = off;

-- Reference tables, which each server has. crmapictl writes them together with
-- the rows that they lead to: a trigger on one server could not.

-- The workspace of a key or token.
CREATE TABLE crmapi.key_home (
    key_hash bytea PRIMARY KEY,
    workspace_id uuid NOT NULL
);
INSERT INTO crmapi.key_home
    SELECT k.key_hash, k.workspace_id FROM crmapi.api_key k
    UNION ALL
    SELECT k.key_hash, k.workspace_id FROM crmapi.intake_key k;
ALTER TABLE crmapi.api_key DROP CONSTRAINT api_key_key_hash_key,
    ADD UNIQUE (workspace_id, key_hash);
ALTER TABLE crmapi.intake_key DROP CONSTRAINT intake_key_key_hash_key,
    ADD UNIQUE (workspace_id, key_hash);

-- Addresses of agents: a trigger on one server does not see the others. crmapictl,
-- which alone writes agents, asks address_taken() before.
DROP TRIGGER address ON crmapi.agent;

-- The workspace of a slug.
CREATE TABLE crmapi.slug_home (
    slug text COLLATE "C" PRIMARY KEY,
    workspace_id uuid NOT NULL
);
INSERT INTO crmapi.slug_home SELECT w.slug, w.id FROM crmapi.workspace w;
ALTER TABLE crmapi.workspace DROP CONSTRAINT workspace_slug_key;
