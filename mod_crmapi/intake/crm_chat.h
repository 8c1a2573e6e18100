/* SPDX-License-Identifier: Apache-2.0 */
/* crm_chat.h: declarations shared by the files of the web chat */
#ifndef CRM_CHAT_H
#define CRM_CHAT_H

#include "crm_intake_site.h"
#include "crm_token.h"

/* The maximum length of a visitor's message, in characters. */
#define CRM_CHAT_CONTENT_MAX 4000

/* A visitor sees at most this many conversations, the latest ones. */
#define CRM_CHAT_CONVERSATIONS_MAX 8

/* The size of a cursor as text, with its NUL. */
#define CRM_CHAT_CURSOR_SIZE 80

/* ---- the script (generated from widget/crmapi-chat.js by build/embed) ---- */

extern const unsigned char crm_chat_script[];
extern const apr_size_t crm_chat_script_len;
extern const char crm_chat_script_etag[];   /* with quotes */

/* ---- pure parts (intake_chat_parts.c) ------------------------------------ */

/* A position in the messages of a visitor: after the message ID with the time
 * MS. A message may appear late, before this position, if its time is in the
 * past or its transaction took long. NEAR_COUNT, the number of messages in the
 * last minutes before the position, detects that. */
typedef struct crm_chat_cursor_t {
    apr_int64_t ms;             /* milliseconds since 1970 */
    char id[CRM_UUID_LEN + 1];
    int near_count;
} crm_chat_cursor_t;

/* Set *CURSOR from TEXT ("0", "" or NULL: the beginning). Return 0 if it is not
 * a cursor. */
int crm_chat_cursor_read(crm_chat_cursor_t *cursor, const char *text);

/* Write CURSOR as text to OUT. */
void crm_chat_cursor_write(char out[CRM_CHAT_CURSOR_SIZE],
                           const crm_chat_cursor_t *cursor);

/* Return whether a page of ORIGIN (the header's value, RFC 6454; NULL: not
 * cross-origin) may use a chat whose agent allows ALLOWED (of const char *).
 * The server's own origins, SCHEME with HOST (may be NULL) and PUBLIC_URL (may
 * be NULL), are always allowed. */
int crm_chat_origin_ok(const char *origin, const apr_array_header_t *allowed,
                       const char *scheme, const char *host,
                       const char *public_url);

/* Return whether ID is a valid client id of a message: 1 to 64 characters of
 * [A-Za-z0-9_-]. */
int crm_chat_id_ok(const char *id);

/* Return whether TOKEN is a visitor's token for the agent BOT_ID of
 * WORKSPACE_ID that has not expired at NOW. Its subject is the visitor. */
int crm_chat_token_ok(const crm_token_t *token, const char *workspace_id,
                      const char *bot_id, apr_time_t now);

/* ---- a request ----------------------------------------------------------- */

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

/* The conversations of a visitor with an agent, latest first. */
typedef struct crm_chat_conversations_t {
    int count;
    const char *ids[CRM_CHAT_CONVERSATIONS_MAX];
    const char *array;          /* IDS as a bind of uuid[] */
    const char *open;           /* the open one, or NULL */
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

/* Serve GET chat/{bot_id}/messages: new messages for CHAT's visitor
 * (intake_chat_poll.c). */
crm_error_t *crm_chat_poll(crm_chat_t *chat);

/* Serve POST chat/{bot_id}/messages (intake_chat_post.c). */
crm_error_t *crm_chat_post(crm_chat_t *chat);

#endif /* CRM_CHAT_H */
