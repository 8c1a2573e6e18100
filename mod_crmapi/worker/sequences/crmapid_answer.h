/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_answer.h: sending an answer in a conversation */
#ifndef CRMAPID_ANSWER_H
#define CRMAPID_ANSWER_H

#include "crmapid_job.h"

/* Handler of "answer.chat": make a mail of what a chat's visitor has missed. */
crm_error_t *crmd_answer_chat(crmd_work_t *work);

/* Handler of "answer.send": send an answer (contract 19.2). */
crm_error_t *crmd_answer_send(crmd_work_t *work);

/* Record that WORK's answer has failed after too many attempts. */
crm_error_t *crmd_answer_give_up(crmd_work_t *work);

#endif /* CRMAPID_ANSWER_H */
