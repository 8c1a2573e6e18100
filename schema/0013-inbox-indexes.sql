-- SPDX-License-Identifier: Apache-2.0
-- 0013-inbox-indexes.sql: conversations are counted in indexes alone
--
-- An inbox asks for what is active, not archived, waits for a human: what an
-- index goes by must tell. Columns of the key decide before a row is fetched,
-- the others only where none is.

DROP INDEX crmapi.conversation_created;
DROP INDEX crmapi.conversation_bot;
DROP INDEX crmapi.conversation_assigned;
DROP INDEX crmapi.conversation_type;
-- sort=created_at; created_after, created_before; the count of all other lists
CREATE INDEX conversation_created ON crmapi.conversation
    (workspace_id, created_at, id)
    INCLUDE (deleted, archived, active, human_takeover);
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
