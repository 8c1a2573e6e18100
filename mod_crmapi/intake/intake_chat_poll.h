/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_poll.h: long polls for new messages of a chat */
#ifndef CRM_INTAKE_CHAT_POLL_H
#define CRM_INTAKE_CHAT_POLL_H

#include "intake_chat.h"

/* Serve GET chat/{bot_id}/messages: new messages for CHAT's visitor. */
crm_error_t *crm_chat_poll(crm_chat_t *chat);

#endif /* CRM_INTAKE_CHAT_POLL_H */
