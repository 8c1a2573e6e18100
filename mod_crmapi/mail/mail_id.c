/* SPDX-License-Identifier: Apache-2.0 */
/* mail_id.c: what a mail answers: Message-IDs and reply tokens */
#include "mail_id.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_mail.h"
#include "crm_text.h"
#include "mail_address.h"
#include "mail_word.h"

#define ID_BYTES 998            /* length of a line (RFC 5322, 2.1.1) */

/* Add the LEN bytes at ID, a Message-ID without brackets, to the end of LIST, unless
 * nothing stands before its '@', as some programs write it in each mail.
 * If it is there already it is moved. If LIST is full, the second entry is
 * dropped: the first identifies the thread. White space in ID comes from
 * folding and is removed. */
static void add_id(apr_array_header_t *list, const char *id, apr_size_t len)
{
    char *made = apr_palloc(list->pool, len + 3), *out = made;
    const char **all;
    int at;

    *out++ = '<';
    for (apr_size_t i = 0; i < len; i++) {
        if (id[i] > ' ' && id[i] != 0x7f) {
            *out++ = id[i];
        }
        else if ((unsigned char)id[i] >= 0x80) {
            *out++ = id[i];
        }
    }
    *out++ = '>';
    *out = '\0';
    if (out - made < 3 || out - made > ID_BYTES || made[1] == '@'
        || !crm_text_valid_utf8(made, (apr_size_t)(out - made))) {
        return;
    }
    all = (const char **)(void *)list->elts;
    for (at = 0; at < list->nelts && strcmp(all[at], made); at++) {
    }
    if (at == list->nelts && list->nelts == CRM_MAIL_LIST_MAX) {
        at = 1;
    }
    if (at < list->nelts) {
        memmove(all + at, all + at + 1,
                sizeof(*all) * (size_t)(list->nelts - at - 1));
        list->nelts--;
    }
    APR_ARRAY_PUSH(list, const char *) = made;
}

/* Those in brackets; without brackets, the words with an '@'. */
void crm_mail_add_ids(apr_array_header_t *list, const char *value)
{
    const char *open = strchr(value, '<');

    if (!open) {
        while (*value) {
            apr_size_t len = strcspn(value, " \t\r\n,;>");

            if (memchr(value, '@', len)) {
                add_id(list, value, len);
            }
            value += len;
            value += strspn(value, " \t\r\n,;>");
        }
    }
    while (open) {
        apr_size_t len = strcspn(++open, "<>");

        add_id(list, open, len);
        open = strchr(open + len, '<');
    }
}

/* Return VALUE, a header with ids, as it was before some programs wrote it as
 * encoded words or escaped its brackets for HTML; in POOL if it is another. */
static const char *plain_ids(const char *value, apr_pool_t *pool)
{
    return crm_mail_unescape(strstr(value, "=?")
                             ? crm_mail_decode(value, NULL, pool) : value,
                             pool);
}

void crm_mail_ids(apr_array_header_t *list, GMimeMessage *mime,
                  const char *name, apr_pool_t *pool)
{
    GMimeHeaderList *headers =
        g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(headers);

    for (int i = 0; i < count; i++) {
        GMimeHeader *header = g_mime_header_list_get_header_at(headers, i);
        const char *raw = g_mime_header_get_raw_value(header);

        if (raw && !strcasecmp(g_mime_header_get_name(header), name)) {
            crm_mail_add_ids(list, plain_ids(raw, pool));
        }
    }
}

#define TOKEN_LEN 32            /* hexadecimal digits */

int crm_mail_add_token(apr_array_header_t *list, const char *text)
{
    char *token;

    text += strspn(text, " \t");
    if (strspn(text, "0123456789abcdefABCDEF") != TOKEN_LEN) {
        return 0;
    }
    /* Some servers change the case of local parts. */
    token = apr_pstrmemdup(list->pool, text, TOKEN_LEN);
    for (char *c = token; *c; c++) {
        *c = (char)apr_tolower(*c);
    }
    if (list->nelts < CRM_MAIL_LIST_MAX && !crm_array_has(list, token)) {
        APR_ARRAY_PUSH(list, const char *) = token;
    }
    return 1;
}

void crm_mail_address_token(apr_array_header_t *list, const char *address)
{
    const char *at = strrchr(address, '@');

    if (at && at - address > TOKEN_LEN + 1 && at[-TOKEN_LEN - 1] == '+') {
        crm_mail_add_token(list, at - TOKEN_LEN);
    }
}
