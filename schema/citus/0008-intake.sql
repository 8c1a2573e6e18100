-- SPDX-License-Identifier: Apache-2.0
-- 0008-intake.sql: intake

-- Forced plans have no values to find the server by.
ALTER FUNCTION crmapi.intake RESET plan_cache_mode;
