-- SPDX-License-Identifier: Apache-2.0
-- 0006-queue.sql: the worker's queue

-- No server but the coordinator is listened to.
DROP TRIGGER notify ON crmapi.job;
DROP TRIGGER notify_again ON crmapi.job;
