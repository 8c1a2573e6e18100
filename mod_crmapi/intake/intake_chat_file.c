/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_file.c: files of a chat's messages */
#include "intake_chat_file.h"

#include "crm_op_file.h"
#include "crm_uuid.h"

/* The attachment $2 of a message that the visitor $3 sees in a chat with the agent
 * $4, of the workspace $1: see crm_op_file_respond(). */
static const char file_sql[] =
    "SELECT a.filename, a.content_type, a.size, a.id,"
    " (SELECT p.bytes FROM crmapi.attachment_piece p"
    "  WHERE p.workspace_id = $1::uuid AND p.attachment_id = a.id"
    "  AND p.number = 1)"
    " FROM crmapi.attachment a"
    " JOIN crmapi.message m ON m.workspace_id = a.workspace_id"
    " AND m.id = a.message_id"
    " JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id"
    " AND c.id = m.conversation_id"
    " WHERE a.workspace_id = $1::uuid AND a.id = $2::uuid AND a.stored"
    " AND m.role IN ('user', 'assistant', 'human') AND m.tool_used IS NULL"
    " AND c.visitor_id = $3::text AND c.bot_id = $4::uuid AND c.type = 1"
    " AND NOT c.internal AND c.deleted IS NOT TRUE";

static const char piece_sql[] =
    "SELECT p.bytes FROM crmapi.attachment_piece p"
    " WHERE p.workspace_id = $1::uuid AND p.attachment_id = $2::uuid"
    " AND p.number = $3::integer";

crm_error_t *crm_chat_file(crm_chat_t *chat, const crm_arg_t *arg)
{
    crm_call_t *call = chat->call;
    char id[CRM_UUID_LEN + 1];
    const char *values[4] = {
        chat->workspace_id, id, chat->visitor, chat->bot_id
    };
    PGresult *result;

    if (!crm_uuid_parse(id, arg->text, arg->len)) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    CRM_ERR(crm_call_run(&result, call, file_sql, 4, values));
    if (!PQntuples(result)) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    return crm_op_file_respond(call, chat->workspace_id, piece_sql, result);
}
