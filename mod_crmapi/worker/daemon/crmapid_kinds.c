/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_kinds.c: the kinds of jobs and their handlers */
#include "crmapid_kinds.h"

#include "crmapid_answer.h"
#include "crmapid_erase.h"
#include "crmapid_review.h"
#include "crmapid_sequence.h"
#include "crmapid_step.h"
#include "crmapid_webhook.h"

const crmd_kind_t crmd_kinds[] = {
    {"generate.steps", crmd_sequence_generate, crmd_sequence_give_up},
    /* dumps of earlier versions have it */
    {"sequence.generate", crmd_sequence_generate, crmd_sequence_give_up},
    {"sequence.step", crmd_step_send, crmd_sequence_give_up},
    {"answer.send", crmd_answer_send, crmd_answer_give_up},
    {"answer.chat", crmd_answer_chat, NULL},
    {"sequence.review", crmd_review_mail, NULL},
    {"sequence.erase", crmd_erase_contact, NULL},
    {"webhook.deliver", crmd_webhook_deliver, NULL},
    {NULL, NULL, NULL}
};
