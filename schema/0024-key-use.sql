-- SPDX-License-Identifier: Apache-2.0
-- 0024-key-use.sql: recording the use of a key writes no index
--
-- last_used_at of a key that is in use changes once a minute. No index has it, so
-- such an UPDATE writes the row only if its page has room (HOT, see 0022). Pages
-- of existing keys get room as their rows are updated and the table is vacuumed.
--
-- min_module: 12

-- step: transaction: room in the pages of keys
ALTER TABLE crmapi.api_key SET (fillfactor = 50);
