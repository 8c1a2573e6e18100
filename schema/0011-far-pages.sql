-- SPDX-License-Identifier: Apache-2.0
-- 0011-far-pages.sql: conversations are counted, and passed over, in indexes alone
--
-- A list passes over rows that are deleted, and an inbox asks for what is
-- active, not archived, waits for a human: what an index goes by must tell.
-- Columns of the key decide before a row is fetched, the others only where none
-- is.

DROP INDEX crmapi.conversation_created;
DROP INDEX crmapi.conversation_latest;
DROP INDEX crmapi.conversation_earliest;
DROP INDEX crmapi.conversation_bot;
DROP INDEX crmapi.conversation_assigned;
DROP INDEX crmapi.conversation_type;
-- sort=created_at; created_after, created_before; the count of all other lists
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at, id)
    INCLUDE (deleted, archived, active, human_takeover);
-- sort=last_message_at, nulls last in both directions (contract 7.10), which
-- one index cannot give; last_message_after, last_message_before
CREATE INDEX conversation_latest ON crmapi.conversation
    (workspace_id, last_message_at DESC NULLS LAST, id DESC)
    INCLUDE (deleted);
CREATE INDEX conversation_earliest ON crmapi.conversation
    (workspace_id, last_message_at, id) INCLUDE (deleted);
CREATE INDEX conversation_bot ON crmapi.conversation
    (workspace_id, bot_id, created_at, id)
    INCLUDE (deleted, archived, active, human_takeover);
CREATE INDEX conversation_assigned ON crmapi.conversation
    (workspace_id, assigned_to, created_at, id, type, active)
    INCLUDE (deleted, archived, human_takeover)
    WHERE assigned_to IS NOT NULL;
CREATE INDEX conversation_type ON crmapi.conversation
    (workspace_id, type, created_at, id, active)
    INCLUDE (deleted, archived, human_takeover);
