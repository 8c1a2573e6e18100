/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_load.c: loading and writing the messages of a chat */
#include "intake_chat_load.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_sql.h"
#include "crm_time.h"

#define PAGE "100"
#define LATEST "50"
/* How late a message may appear and still be seen by a poll. */
#define LATE "interval '10 minutes'"
#define NO_ID "'00000000-0000-0000-0000-000000000000'::uuid"

/* Messages that the visitor may see, without those of tools and system notes, and
 * what a program has answered by itself to a mail about the chat: the visitor may have
 * claimed the address. $1 is the workspace, $2 the conversations. */
#define VISIBLE "m.workspace_id = $1::uuid" \
    " AND m.conversation_id = ANY ($2::uuid[])" \
    " AND m.role IN ('user', 'assistant', 'human')" \
    " AND m.tool_used IS NULL AND m.content <> ''" \
    " AND (m.role <> 'user' OR NOT m.metadata ? 'automatic')"
#define COLUMNS "m.id, m.role, m.content, m.created_at," \
    " m.metadata ->> 'client_id' AS client_id," \
    " m.metadata ->> 'author' AS author," \
    " CASE WHEN m.metadata ? 'attachments' THEN (SELECT json_agg(" \
    "json_build_object('id', a.id, 'filename', coalesce(a.filename, '')," \
    " 'content_type', a.content_type, 'size', a.size) ORDER BY a.number)" \
    " FROM crmapi.attachment a WHERE a.workspace_id = $1::uuid" \
    " AND a.message_id = m.id AND a.stored) END AS attachments"
#define MS(time) "(extract(epoch FROM " time ") * 1000)::bigint"
/* The number of messages in the interval LATE that ends at the row L. */
#define NEAR(l) "(SELECT count(*) FROM crmapi.message m WHERE " VISIBLE \
    " AND m.created_at > " l ".created_at - " LATE \
    " AND (m.created_at, m.id) <= (" l ".created_at, " l ".id))"

/* Conversations are found by the visitor's id only, never by an address, which
 * anybody can claim. */
static const char conversations_sql[] =
    "SELECT c.id, c.active AND c.archived IS NOT TRUE AND c.thread IS NULL,"
    " (SELECT " MS("u.since") " FROM crmapi.chat_unseen u"
    "  WHERE u.workspace_id = $1::uuid AND u.conversation_id = c.id)"
    " FROM crmapi.conversation c"
    " WHERE c.workspace_id = $1::uuid AND c.visitor_id = $2::text"
    " AND c.bot_id = $3::uuid AND c.type = 1 AND NOT c.internal"
    " AND c.deleted IS NOT TRUE"
    " ORDER BY c.created_at DESC, c.id DESC LIMIT 8";

/* The messages after the cursor: its time $3, id $4 and count $5. If more
 * messages than $5 are near it now, one has appeared late: begin LATE earlier.
 * Each row also has the cursor after the last of them. */
static const char after_sql[] =
    "WITH at AS (SELECT timestamptz 'epoch'"
    "  + $3::bigint * interval '1 millisecond' AS created_at, $4::uuid AS id),"
    " near AS (SELECT " NEAR("at") " > $5::bigint AS late FROM at),"
    " start AS (SELECT CASE WHEN late THEN created_at - " LATE
    "  ELSE created_at END AS created_at,"
    "  CASE WHEN late THEN " NO_ID " ELSE id END AS id FROM at, near),"
    " page AS (SELECT " COLUMNS " FROM crmapi.message m WHERE " VISIBLE
    "  AND (m.created_at, m.id) > ((SELECT created_at FROM start),"
    "  (SELECT id FROM start)) ORDER BY m.created_at, m.id LIMIT " PAGE "),"
    " last AS (SELECT created_at, id FROM page"
    "  ORDER BY created_at DESC, id DESC LIMIT 1)"
    " SELECT p.*, (SELECT " MS("created_at") " FROM last),"
    " (SELECT id FROM last), (SELECT " NEAR("last") " FROM last)"
    " FROM page p ORDER BY p.created_at, p.id";

/* The cursor after the latest message. */
static const char end_sql[] =
    "WITH last AS (SELECT m.created_at, m.id FROM crmapi.message m"
    "  WHERE " VISIBLE " ORDER BY m.created_at DESC, m.id DESC LIMIT 1)"
    " SELECT " MS("created_at") ", id, " NEAR("last") " FROM last";

/* The latest messages, in order. */
static const char latest_sql[] =
    "SELECT * FROM (SELECT " COLUMNS " FROM crmapi.message m WHERE " VISIBLE
    " ORDER BY m.created_at DESC, m.id DESC LIMIT " LATEST ") l"
    " ORDER BY l.created_at, l.id";

/* The message $2 of the workspace $1. */
static const char message_sql[] =
    "SELECT " COLUMNS " FROM crmapi.message m"
    " WHERE m.workspace_id = $1::uuid AND m.id = $2::uuid";

enum { ID, ROLE, CONTENT, CREATED_AT, CLIENT_ID, AUTHOR, ATTACHMENTS,
       CURSOR };

/* ---- reading ------------------------------------------------------------- */

crm_error_t *crm_chat_conversations(crm_chat_conversations_t *list,
                                    crm_chat_t *chat)
{
    const char *values[3];
    PGresult *result;

    values[0] = chat->workspace_id;
    values[1] = chat->visitor;
    values[2] = chat->bot_id;
    CRM_ERR(crm_call_run(&result, chat->call, conversations_sql, 3, values));
    memset(list, 0, sizeof(*list));
    list->count = PQntuples(result);
    for (int i = 0; i < list->count; i++) {
        list->ids[i] = PQgetvalue(result, i, 0);
        if (!list->open && *PQgetvalue(result, i, 1) == 't') {
            list->open = list->ids[i];
        }
        if (!PQgetisnull(result, i, 2)) {
            apr_int64_t since = apr_atoi64(PQgetvalue(result, i, 2));

            list->unseen = list->unseen && list->unseen < since
                           ? list->unseen : since;
        }
    }
    list->array = crm_sql_words(list->ids, list->count, chat->call->pool);
    return NULL;
}

/* Set *CURSOR from the first row of RESULT, if there is one. Its columns begin
 * at COLUMN. */
static void read_cursor(crm_chat_cursor_t *cursor, const PGresult *result,
                        int column)
{
    if (PQntuples(result)) {
        cursor->ms = apr_atoi64(PQgetvalue(result, 0, column));
        apr_cpystrn(cursor->id, PQgetvalue(result, 0, column + 1),
                    sizeof(cursor->id));
        cursor->near_count = atoi(PQgetvalue(result, 0, column + 2));
    }
}

crm_error_t *crm_chat_after(PGresult **messages_p, crm_chat_cursor_t *cursor,
                            crm_chat_t *chat,
                            const crm_chat_conversations_t *list)
{
    const char *values[5];

    values[0] = chat->workspace_id;
    values[1] = list->array;
    values[2] = apr_psprintf(chat->call->pool, "%" APR_INT64_T_FMT,
                             cursor->ms);
    values[3] = cursor->id;
    values[4] = apr_itoa(chat->call->pool, cursor->near_count);
    CRM_ERR(crm_call_run(messages_p, chat->call, after_sql, 5, values));
    read_cursor(cursor, *messages_p, CURSOR);
    return NULL;
}

crm_error_t *crm_chat_latest(PGresult **messages_p, crm_chat_cursor_t *cursor,
                             crm_chat_t *chat,
                             const crm_chat_conversations_t *list)
{
    const char *values[2];
    PGresult *end;

    values[0] = chat->workspace_id;
    values[1] = list->array;
    crm_chat_cursor_read(cursor, NULL);
    /* The cursor is read first: a message that arrives in between is then seen
     * twice rather than never. */
    CRM_ERR(crm_call_run(&end, chat->call, end_sql, 2, values));
    read_cursor(cursor, end, 0);
    values[1] = crm_sql_words(&list->open, list->open != NULL,
                              chat->call->pool);
    return crm_call_run(messages_p, chat->call, latest_sql, 2, values);
}

crm_error_t *crm_chat_message(PGresult **message_p, crm_chat_t *chat,
                              const char *id)
{
    const char *values[2];

    values[0] = chat->workspace_id;
    values[1] = id;
    return crm_call_run(message_p, chat->call, message_sql, 2, values);
}

crm_error_t *crm_chat_seen(crm_chat_t *chat,
                           const crm_chat_conversations_t *list,
                           const crm_chat_cursor_t *cursor)
{
    const char *values[4];
    PGresult *result;

    if (!list->unseen || cursor->ms < list->unseen) {
        return NULL;
    }
    values[0] = chat->workspace_id;
    values[1] = list->array;
    values[2] = apr_psprintf(chat->call->pool, "%" APR_INT64_T_FMT,
                             cursor->ms);
    values[3] = cursor->id;
    return crm_call_run(&result, chat->call, "SELECT crmapi.chat_seen($1::uuid,"
                        " $2::uuid[], timestamptz 'epoch' + $3::bigint"
                        " * interval '1 millisecond', $4::uuid)", 4, values);
}

/* ---- writing ------------------------------------------------------------- */

void crm_chat_write_text(crm_buf_t *body, const char *name, const char *text)
{
    if (body->len && body->data[body->len - 1] != '{'
        && body->data[body->len - 1] != ',') {
        crm_buf_putc(body, ',');
    }
    crm_buf_printf(body, "\"%s\":", name);
    if (text) {
        crm_buf_json_text(body, text);
    }
    else {
        crm_buf_puts(body, "null");
    }
}

void crm_chat_write_message(crm_buf_t *body, const PGresult *messages,
                            int row)
{
    char time[CRM_TIME_SIZE];
    int known = crm_time_from_pg(time, PQgetvalue(messages, row, CREATED_AT));

    crm_buf_putc(body, '{');
    crm_chat_write_text(body, "id", PQgetvalue(messages, row, ID));
    crm_chat_write_text(body, "role", PQgetvalue(messages, row, ROLE));
    crm_chat_write_text(body, "content", PQgetvalue(messages, row, CONTENT));
    crm_chat_write_text(body, "created_at", known ? time : NULL);
    crm_chat_write_text(body, "client_id",
                        crm_db_value(messages, row, CLIENT_ID));
    if (!PQgetisnull(messages, row, AUTHOR)) {
        crm_chat_write_text(body, "author",
                            PQgetvalue(messages, row, AUTHOR));
    }
    if (!PQgetisnull(messages, row, ATTACHMENTS)) {
        crm_buf_puts(body, ",\"attachments\":");
        crm_buf_puts(body, PQgetvalue(messages, row, ATTACHMENTS));
    }
    crm_buf_putc(body, '}');
}

void crm_chat_write_messages(crm_buf_t *body, const PGresult *messages,
                             const crm_chat_cursor_t *cursor)
{
    char text[CRM_CHAT_CURSOR_SIZE];

    crm_buf_puts(body, "\"messages\":[");
    for (int i = 0; i < PQntuples(messages); i++) {
        if (i) {
            crm_buf_putc(body, ',');
        }
        crm_chat_write_message(body, messages, i);
    }
    crm_chat_cursor_write(text, cursor);
    crm_buf_puts(body, "],\"cursor\":");
    crm_buf_json_text(body, text);
}
