/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_parts.c: origins, cursors and tokens of chats, without I/O */
#include "intake_chat_parts.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_lib.h"
#include "apr_strings.h"

#define ID_MAX 64
#define MS_MAX APR_INT64_C(4102444800000)       /* the year 2100 */
#define NEAR_MAX 1000000
#define NO_ID "00000000-0000-0000-0000-000000000000"

/* ---- cursors ------------------------------------------------------------- */

/* Set *NUMBER_P to the decimal number at *TEXT_P, at most MAX, and *TEXT_P to
 * the text after it. Return 0 if there is none. */
static int read_number(apr_int64_t *number_p, const char **text_p,
                       apr_int64_t max)
{
    const char *c = *text_p;

    *number_p = 0;
    while (apr_isdigit(*c)) {
        *number_p = 10 * *number_p + (*c++ - '0');
        if (*number_p > max) {
            return 0;
        }
    }
    if (c == *text_p) {
        return 0;
    }
    *text_p = c;
    return 1;
}

int crm_chat_cursor_read(crm_chat_cursor_t *cursor, const char *text)
{
    apr_int64_t near_count;

    cursor->ms = 0;
    cursor->near_count = 0;
    memcpy(cursor->id, NO_ID, sizeof(NO_ID));
    if (!text || !*text || !strcmp(text, "0")) {
        return 1;
    }
    if (!read_number(&cursor->ms, &text, MS_MAX) || *text++ != '.'
        || strlen(text) <= CRM_UUID_LEN
        || !crm_uuid_parse(cursor->id, text, CRM_UUID_LEN)) {
        return 0;
    }
    text += CRM_UUID_LEN;
    if (*text++ != '.' || !read_number(&near_count, &text, NEAR_MAX)) {
        return 0;
    }
    cursor->near_count = (int)near_count;
    return !*text;
}

void crm_chat_cursor_write(char out[CRM_CHAT_CURSOR_SIZE],
                           const crm_chat_cursor_t *cursor)
{
    apr_snprintf(out, CRM_CHAT_CURSOR_SIZE, "%" APR_INT64_T_FMT ".%s.%d",
                 cursor->ms, cursor->id, cursor->near_count);
}

/* ---- origins ------------------------------------------------------------- */

int crm_chat_origin_ok(const char *origin, const apr_array_header_t *allowed,
                       const char *scheme, const char *host,
                       const char *public_url)
{
    size_t len = strlen(scheme);

    if (!origin || (public_url && !apr_cstr_casecmp(origin, public_url))) {
        return 1;
    }
    if (host && !strncasecmp(origin, scheme, len)
        && !strncmp(origin + len, "://", 3)
        && !apr_cstr_casecmp(origin + len + 3, host)) {
        return 1;
    }
    for (int i = 0; i < allowed->nelts; i++) {
        const char *one = APR_ARRAY_IDX(allowed, i, const char *);

        if (!strcmp(one, "*") || !apr_cstr_casecmp(one, origin)) {
            return 1;
        }
    }
    return 0;
}

/* ---- ids and tokens ------------------------------------------------------ */

int crm_chat_id_ok(const char *id)
{
    size_t len = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "abcdefghijklmnopqrstuvwxyz0123456789_-");

    return len && len <= ID_MAX && !id[len];
}

int crm_chat_token_ok(const crm_token_t *token, const char *workspace_id,
                      const char *bot_id, apr_time_t now)
{
    return token->purpose == CRM_TOKEN_VISITOR
           && !strcmp(token->workspace_id, workspace_id)
           && !strcmp(token->other_id, bot_id)
           && !crm_token_expired(token, now);
}
