/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_file.h: files of a chat's messages */
#ifndef CRM_INTAKE_CHAT_FILE_H
#define CRM_INTAKE_CHAT_FILE_H

#include "crm_route.h"
#include "intake_chat.h"

/* Respond with the attachment that ARG, a path's parameter, names, if its message
 * is one that CHAT's visitor sees. Errors: CRM_E_NOT_FOUND. */
crm_error_t *crm_chat_file(crm_chat_t *chat, const crm_arg_t *arg);

#endif /* CRM_INTAKE_CHAT_FILE_H */
