/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_step.c: sending a due step */
#include "crmapid_step.h"

#include "crmapid_send.h"

static const crmd_source_t steps = {
    .word = "step", .group_member = "enrollment_id", .id_member = "step_id",
    .part_member = "part", .gone = "its enrollment has ended",
    .unsubscribe = 1,
    .read = "SELECT s.channel, s.to_identifier, s.email_subject,"
    " CASE s.channel WHEN 'email' THEN s.email_body WHEN 'sms' THEN s.sms_body"
    " ELSE s.voice_script END, s.voice_objective,"
    " nullif(coalesce(nullif(a.email_outbound_email, ''), a.agent_email), ''),"
    " nullif(a.agent_email, ''),"
    " nullif(a.agent_phone, ''),"
    " nullif(coalesce(nullif(a.email_outbound_name, ''), a.name), ''),"
    " nullif(concat_ws(' ', nullif(c.first_name, ''),"
    " nullif(c.last_name, '')), ''),"
    " s.sort_order, s.status = 'sending', NULL, NULL, NULL,"
    " nullif(a.phone_voice_id, ''), NULL"
    " FROM crmapi.enrollment_step s"
    " JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id"
    " AND e.id = s.enrollment_id"
    " JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id"
    " AND q.id = e.sequence_id"
    " JOIN crmapi.agent a ON a.workspace_id = q.workspace_id"
    " AND a.id = q.bot_id"
    " LEFT JOIN crmapi.contact c ON c.workspace_id = e.workspace_id"
    " AND c.id = e.contact_id"
    " WHERE s.workspace_id = $1::uuid AND s.id = $2::uuid",
    .take = CRMD_TAKE("step_take", "step_names"),
    .sent = "SELECT crmapi.step_sent(" CRMD_LEASE ","
    " coalesce($7::timestamptz, statement_timestamp()), $8::text)",
    .failed = "SELECT crmapi.step_failed(" CRMD_LEASE ", $7::text,"
    " $8::interval)",
    .refused = "SELECT crmapi.step_refused(" CRMD_LEASE ", $7::text,"
               " $8::text)",
    .wait = "SELECT crmapi.step_wait(" CRMD_LEASE ", $7::timestamptz)",
};

crm_error_t *crmd_step_send(crmd_work_t *work)
{
    return crmd_send(work, &steps);
}
