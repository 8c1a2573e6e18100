/* SPDX-License-Identifier: Apache-2.0 */
/* chat_script.h: the chat's script, as build/embed writes it to chat_script.c */
#ifndef CRM_CHAT_SCRIPT_H
#define CRM_CHAT_SCRIPT_H

#include "apr.h"

/* crmapi-chat.js of widget/, its length, and its ETag with quotes. */
extern const unsigned char crm_chat_script[];
extern const apr_size_t crm_chat_script_len;
extern const char crm_chat_script_etag[];

#endif /* CRM_CHAT_SCRIPT_H */
