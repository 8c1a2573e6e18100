/* SPDX-License-Identifier: Apache-2.0 */
/* crm_chat.h: what the files of the chat of web pages share */
#ifndef CRM_CHAT_H
#define CRM_CHAT_H

#include "crm_intake_site.h"
#include "crm_token.h"

/* The longest message of a visitor, in characters. */
#define CRM_CHAT_CONTENT_MAX 4000

/* Visitors whose conversations are many see the latest ones. */
#define CRM_CHAT_CONVERSATIONS_MAX 8

/* Room for a cursor's text with its NUL. */
#define CRM_CHAT_CURSOR_SIZE 80

/* ---- the script (made of widget/crmapi-chat.js by build/embed) ----------- */

extern const unsigned char crm_chat_script[];
extern const apr_size_t crm_chat_script_len;
extern const char crm_chat_script_etag[];   /* with its quotes */

/* ---- pure parts (intake_chat_parts.c) ------------------------------------ */

/* A place in what was said to and by a visitor: behind the message ID of the
 * moment MS. Messages may come late: with the time of a moment that is past,
 * or from a transaction that took longer. NEAR_COUNT, how many messages there
 * were within the last minutes up to that place, tells whether one did. */
typedef struct crm_chat_cursor_t {
    apr_int64_t ms;             /* milliseconds since 1970 */
    char id[CRM_UUID_LEN + 1];
    int near_count;
} crm_chat_cursor_t;

/* Set *CURSOR to what TEXT says ("0", "" or NULL: the beginning). Return 0 if
 * it is no cursor. */
int crm_chat_cursor_read(crm_chat_cursor_t *cursor, const char *text);

/* Write CURSOR and a NUL to OUT. */
void crm_chat_cursor_write(char out[CRM_CHAT_CURSOR_SIZE],
                           const crm_chat_cursor_t *cursor);

/* Return whether a page of ORIGIN (the header, RFC 6454; NULL: no page of
 * another site) may use a chat whose agent lists ALLOWED (const char *), on a
 * server that it calls SCHEME and HOST (may be NULL), or PUBLIC_URL (may be
 * NULL): what is from here is from no other site. */
int crm_chat_origin_ok(const char *origin, const apr_array_header_t *allowed,
                       const char *scheme, const char *host,
                       const char *public_url);

/* Return whether ID may be a client's name for a message: 1 to 64 characters
 * of [A-Za-z0-9_-]. */
int crm_chat_id_ok(const char *id);

/* Return whether TOKEN is a visitor's, for the agent BOT_ID of WORKSPACE_ID,
 * and worth something at NOW: its subject is the visitor. */
int crm_chat_token_ok(const crm_token_t *token, const char *workspace_id,
                      const char *bot_id, apr_time_t now);

/* ---- a request ----------------------------------------------------------- */

/* A request to the chat of an agent. */
typedef struct crm_chat_t {
    crm_call_t *call;
    const char *workspace_id;
    const char *bot_id;
    const char *name, *greeting, *color, *avatar;   /* the agent's, or NULL */
    const char *token_text;     /* of the visitor, or NULL */
    crm_token_t token;          /* the same */
    int is_signed;              /* TOKEN is the workspace's */
    char visitor[CRM_UUID_LEN + 1]; /* whose token it carries */
    json_object *body;          /* of a POST: an object */
} crm_chat_t;

/* Conversations of a visitor with an agent, the latest first. */
typedef struct crm_chat_conversations_t {
    int count;
    const char *ids[CRM_CHAT_CONVERSATIONS_MAX];
    const char *array;          /* the same as a bind of a uuid[] */
    const char *open;           /* the one that goes on, or NULL */
} crm_chat_conversations_t;

/* Set *LIST to those of CHAT's visitor. */
crm_error_t *crm_chat_conversations(crm_chat_conversations_t *list,
                                    crm_chat_t *chat);

/* Set *MESSAGES_P to up to 100 messages of LIST behind *CURSOR, in order, for
 * crm_chat_write_messages(), and *CURSOR to the place behind them; if one came
 * late, with those of some minutes before *CURSOR. */
crm_error_t *crm_chat_after(PGresult **messages_p, crm_chat_cursor_t *cursor,
                            crm_chat_t *chat,
                            const crm_chat_conversations_t *list);

/* Set *MESSAGES_P to the last 50 of LIST's open conversation and *CURSOR to
 * the end of all LIST. */
crm_error_t *crm_chat_latest(PGresult **messages_p, crm_chat_cursor_t *cursor,
                             crm_chat_t *chat,
                             const crm_chat_conversations_t *list);

/* Set *MESSAGE_P to the message ID of CHAT's workspace: one row, or none. */
crm_error_t *crm_chat_message(PGresult **message_p, crm_chat_t *chat,
                              const char *id);

/* Write to BODY the message in ROW of MESSAGES as JSON. */
void crm_chat_write_message(crm_buf_t *body, const PGresult *messages,
                            int row);

/* Write to BODY, in an object, the members "messages" and "cursor". */
void crm_chat_write_messages(crm_buf_t *body, const PGresult *messages,
                             const crm_chat_cursor_t *cursor);

/* Add to BODY the member NAME: TEXT or null. */
void crm_chat_write_text(crm_buf_t *body, const char *name, const char *text);

/* Serve GET chat/{bot_id}/messages: what is new for CHAT's visitor
 * (intake_chat_poll.c). */
crm_error_t *crm_chat_poll(crm_chat_t *chat);

/* Serve POST chat/{bot_id}/messages (intake_chat_post.c). */
crm_error_t *crm_chat_post(crm_chat_t *chat);

#endif /* CRM_CHAT_H */
