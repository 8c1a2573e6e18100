-- SPDX-License-Identifier: Apache-2.0
-- 0011-far-pages.sql: far pages of conversations are found in their indexes alone
--
-- A list passes over rows that are deleted, so what it goes by must tell.

DROP INDEX crmapi.conversation_created;
DROP INDEX crmapi.conversation_latest;
DROP INDEX crmapi.conversation_earliest;
DROP INDEX crmapi.conversation_bot;
-- sort=created_at; created_after, created_before
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at, id) INCLUDE (deleted);
-- sort=last_message_at, nulls last in both directions (contract 7.10), which
-- one index cannot give; last_message_after, last_message_before
CREATE INDEX conversation_latest ON crmapi.conversation
    (workspace_id, last_message_at DESC NULLS LAST, id DESC)
    INCLUDE (deleted);
CREATE INDEX conversation_earliest ON crmapi.conversation
    (workspace_id, last_message_at, id) INCLUDE (deleted);
CREATE INDEX conversation_bot ON crmapi.conversation
    (workspace_id, bot_id, created_at, id) INCLUDE (deleted);
