-- SPDX-License-Identifier: Apache-2.0
-- 0007-events.sql: events and webhooks

-- A sequence travels with the default of a column. Each server counts in a range
-- of its own.
CREATE TABLE crmapi.number_home (
    workspace_id uuid PRIMARY KEY,
    event bigint NOT NULL DEFAULT nextval('crmapi.event_number'),
    intake bigint NOT NULL DEFAULT nextval('crmapi.intake_order')
);
