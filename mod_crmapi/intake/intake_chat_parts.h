/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_parts.h: origins, cursors and tokens of chats, without I/O */
#ifndef CRM_INTAKE_CHAT_PARTS_H
#define CRM_INTAKE_CHAT_PARTS_H

#include "apr_tables.h"
#include "apr_time.h"

#include "crm_token.h"
#include "crm_uuid.h"

/* The size of a cursor as text, with its NUL. */
#define CRM_CHAT_CURSOR_SIZE 80

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

#endif /* CRM_INTAKE_CHAT_PARTS_H */
