/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_header.c: the headers that repeat what is in a message (MCP 2026-07-28,
 * basic/transports/streamable-http, "Request Metadata") */
#include "mcp_header.h"

#include <string.h>

#include "apr_base64.h"
#include "apr_strings.h"

#include "crm_text.h"

#define PREFIX "=?base64?"
#define SUFFIX "?="

/* Return, in POOL, what the LEN bytes of base64 at DIGITS encode. NULL: they are
 * not the base64 of a text, with its padding. */
static const char *decode(const char *digits, apr_size_t len, apr_pool_t *pool)
{
    char *copy = apr_pstrmemdup(pool, digits, len);
    char *text = apr_palloc(pool, (apr_size_t)apr_base64_decode_len(copy) + 1);
    char *again;
    int count = apr_base64_decode_binary((unsigned char *)text, copy);

    text[count] = '\0';
    again = apr_palloc(pool, (apr_size_t)apr_base64_encode_len(count));
    apr_base64_encode_binary(again, (unsigned char *)text, count);
    return !strcmp(again, copy) && strlen(text) == (size_t)count
           && crm_text_valid_utf8(text, (apr_size_t)count) ? text : NULL;
}

const char *mcp_header_text(const char *value, apr_pool_t *pool)
{
    apr_size_t len = strlen(value), first = sizeof(PREFIX) - 1;
    apr_size_t last = sizeof(SUFFIX) - 1;

    if (len < first + last || strncmp(value, PREFIX, first)
        || strcmp(value + len - last, SUFFIX)) {
        return value;
    }
    return decode(value + first, len - first - last, pool);
}

const char *mcp_header_check(const char *name, const char *value,
                             const char *expected, int encoded,
                             apr_pool_t *pool)
{
    if (!value) {
        return apr_pstrcat(pool, "Header mismatch: ", name, " is missing",
                           NULL);
    }
    value = encoded ? mcp_header_text(value, pool) : value;
    if (!value) {
        return apr_pstrcat(pool, "Header mismatch: ", name, " is not valid"
                           " base64", NULL);
    }
    return expected && !strcmp(value, expected) ? NULL
           : apr_pstrcat(pool, "Header mismatch: ", name, " differs from the"
                         " body", NULL);
}
