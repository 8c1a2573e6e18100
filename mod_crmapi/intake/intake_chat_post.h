/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_post.h: messages sent by visitors of a chat */
#ifndef CRM_INTAKE_CHAT_POST_H
#define CRM_INTAKE_CHAT_POST_H

#include "intake_chat.h"

/* The maximum length of a visitor's message, in characters. */
#define CRM_CHAT_CONTENT_MAX 4000

/* Serve POST chat/{bot_id}/messages. */
crm_error_t *crm_chat_post(crm_chat_t *chat);

#endif /* CRM_INTAKE_CHAT_POST_H */
