/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_load.h: loading and writing the messages of a chat */
#ifndef CRM_INTAKE_CHAT_LOAD_H
#define CRM_INTAKE_CHAT_LOAD_H

#include "intake_chat.h"
#include "intake_chat_parts.h"

/* A visitor sees at most this many conversations, the latest ones. */
#define CRM_CHAT_CONVERSATIONS_MAX 8

/* The conversations of a visitor with an agent, latest first. */
typedef struct crm_chat_conversations_t {
    int count;
    const char *ids[CRM_CHAT_CONVERSATIONS_MAX];
    const char *array;          /* IDS as a bind of uuid[] */
    const char *open;           /* the open one, or NULL */
    apr_int64_t unseen;         /* since when there are answers that no page has
                                   confirmed, in milliseconds, or 0 */
} crm_chat_conversations_t;

/* Set *LIST to the conversations of CHAT's visitor. */
crm_error_t *crm_chat_conversations(crm_chat_conversations_t *list,
                                    crm_chat_t *chat);

/* Set *MESSAGES_P to up to 100 messages of LIST after *CURSOR, in order, for
 * crm_chat_write_messages(), and *CURSOR to the position after them. If a
 * message appeared late, those of some minutes before *CURSOR are included. */
crm_error_t *crm_chat_after(PGresult **messages_p, crm_chat_cursor_t *cursor,
                            crm_chat_t *chat,
                            const crm_chat_conversations_t *list);

/* Record that a page of CHAT's visitor has shown the messages of LIST up to
 * CURSOR. */
crm_error_t *crm_chat_seen(crm_chat_t *chat,
                           const crm_chat_conversations_t *list,
                           const crm_chat_cursor_t *cursor);

/* Set *MESSAGES_P to the last 50 messages of LIST's open conversation and
 * *CURSOR to the end of all conversations in LIST. */
crm_error_t *crm_chat_latest(PGresult **messages_p, crm_chat_cursor_t *cursor,
                             crm_chat_t *chat,
                             const crm_chat_conversations_t *list);

/* Set *MESSAGE_P to the message ID of CHAT's workspace: one row or none. */
crm_error_t *crm_chat_message(PGresult **message_p, crm_chat_t *chat,
                              const char *id);

/* Write the message in ROW of MESSAGES to BODY as JSON. */
void crm_chat_write_message(crm_buf_t *body, const PGresult *messages,
                            int row);

/* Write the members "messages" and "cursor" to BODY. */
void crm_chat_write_messages(crm_buf_t *body, const PGresult *messages,
                             const crm_chat_cursor_t *cursor);

/* Add the member NAME to BODY: TEXT, or null if it is NULL. */
void crm_chat_write_text(crm_buf_t *body, const char *name, const char *text);

#endif /* CRM_INTAKE_CHAT_LOAD_H */
