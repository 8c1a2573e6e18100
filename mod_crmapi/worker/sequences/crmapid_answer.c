/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_answer.c: sending an answer in a conversation (contract 19) */
#include "crmapid_answer.h"

#include "crmapid_log.h"
#include "crmapid_send.h"

static const crmd_source_t answers = {
    .word = "answer", .group_member = "conversation_id",
    .id_member = "message_id", .part_member = "message_id",
    .gone = "it has ended, or an address is suppressed", .subject_whole = 1,
    .read = "SELECT crmapi.message_channel(c.type, m.role), m.to_identifier,"
    " coalesce(m.metadata ->> 'subject', crmapi.answer_subject($1::uuid,"
    " $2::uuid)), m.content, NULL,"
    " nullif(coalesce(nullif(a.email_outbound_email, ''), a.agent_email), ''),"
    " nullif(a.agent_email, ''),"
    " nullif(a.agent_phone, ''),"
    " nullif(coalesce(nullif(a.email_outbound_name, ''), a.name), ''),"
    " coalesce(nullif(concat_ws(' ', nullif(p.first_name, ''),"
    " nullif(p.last_name, '')), ''), nullif(c.human, '')),"
    " NULL, m.handed_over, m.content_type, m.metadata -> 'cc',"
    " m.metadata ? 'attachments', NULL,"
    " (SELECT nullif(l.metadata ->> 'via', '') FROM crmapi.message l"
    " WHERE l.workspace_id = $1::uuid"
    " AND l.conversation_id = m.conversation_id AND l.role = 'user'"
    " ORDER BY l.created_at DESC, l.id DESC LIMIT 1)"
    " FROM crmapi.message m"
    " JOIN crmapi.conversation c ON c.workspace_id = m.workspace_id"
    " AND c.id = m.conversation_id"
    " JOIN crmapi.agent a ON a.workspace_id = c.workspace_id"
    " AND a.id = c.bot_id"
    " LEFT JOIN crmapi.contact p ON p.workspace_id = c.workspace_id"
    " AND p.id = c.contact_id"
    " WHERE m.workspace_id = $1::uuid AND m.id = $2::uuid",
    .files = "SELECT coalesce(a.filename, ''),"
    " coalesce(a.content_type, 'application/octet-stream'), coalesce("
    "(SELECT translate(encode(string_agg(p.bytes, ''::bytea ORDER BY p.number),"
    " 'base64'), chr(10), '')"
    " FROM crmapi.attachment_piece p WHERE p.workspace_id = $1::uuid"
    " AND p.attachment_id = a.id), '') FROM crmapi.attachment a"
    " WHERE a.workspace_id = $1::uuid AND a.stored AND a.id IN ("
    "SELECT (f.one ->> 'id')::uuid FROM crmapi.message m,"
    " jsonb_array_elements(m.metadata -> 'attachments') f(one)"
    " WHERE m.workspace_id = $1::uuid AND m.id = $2::uuid)"
    " ORDER BY a.message_id, a.number",
    .take = CRMD_TAKE("answer_take", "answer_names"),
    .sent = "SELECT crmapi.answer_sent(" CRMD_LEASE ","
    " coalesce($7::timestamptz, statement_timestamp()), $8::text)",
    .failed = "SELECT crmapi.answer_failed(" CRMD_LEASE ", $7::text,"
    " $8::interval)",
    .refused = "SELECT crmapi.answer_refused(" CRMD_LEASE ", $7::text,"
               " $8::text)",
};

crm_error_t *crmd_answer_send(crmd_work_t *work)
{
    return crmd_send(work, &answers);
}

crm_error_t *crmd_answer_chat(crmd_work_t *work)
{
    const char *values[5];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = crmd_payload(work, "conversation_id");
    work->end = CRMD_ENDED;
    return crmd_query(&result, work, "SELECT crmapi.chat_mail($1::uuid,"
                      " $2::bigint, $3::text, $4::integer, $5::uuid)", 5,
                      values);
}

crm_error_t *crmd_answer_give_up(crmd_work_t *work)
{
    const char *values[5];
    PGresult *result;

    crmd_logf(CRM_LOG_ERR, "CRM3127: answer %s failed after too many attempts:"
              " %s", crmd_payload(work, "message_id"), work->reason);
    crmd_lease_values(values, work);
    values[4] = crmd_payload(work, "message_id");
    return crmd_query(&result, work, "SELECT crmapi.answer_failed($1::uuid,"
                      " $2::bigint, $3::text, $4::integer, NULL, $5::uuid,"
                      " CASE WHEN (SELECT m.handed_over FROM crmapi.message m"
                      " WHERE m.workspace_id = $1::uuid AND m.id = $5::uuid)"
                      " THEN 'delivery_unknown' ELSE 'internal_error' END,"
                      " NULL)", 5, values);
}
