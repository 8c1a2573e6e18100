/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat.h: a request to a chat, and its routes */
#ifndef CRM_INTAKE_CHAT_H
#define CRM_INTAKE_CHAT_H

#include "crm_serve.h"
#include "crm_token.h"

/* A request to the chat of an agent. */
typedef struct crm_chat_t {
    crm_call_t *call;
    const char *workspace_id;
    const char *bot_id;
    const char *name, *greeting, *color, *avatar;   /* the agent's, or NULL */
    const char *token_text;     /* the visitor's token, or NULL */
    crm_token_t token;          /* the same, decoded */
    int is_signed;              /* TOKEN was signed by the workspace */
    char visitor[CRM_UUID_LEN + 1]; /* the visitor that TOKEN is for */
    json_object *body;          /* for POST: an object */
} crm_chat_t;

/* The routes of the web chat. */
extern const crm_route_t crm_intake_chat_routes[];

#endif /* CRM_INTAKE_CHAT_H */
