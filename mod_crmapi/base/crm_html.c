/* SPDX-License-Identifier: Apache-2.0 */
/* crm_html.c: writing HTML */
#include "crm_html.h"

#include <stdarg.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "apr_strings.h"

/* Return the entity for C, or NULL if C needs none. */
static const char *entity_of(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\r': return "&#13;";  /* parsers turn a CR into LF */
    default: return NULL;
    }
}

void crm_html_text(crm_buf_t *buf, const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "&<>\"'\r");

        crm_buf_add(buf, text, len);
        text += len;
        if (*text) {
            crm_buf_puts(buf, entity_of(*text++));
        }
    }
}

void crm_html_put(crm_buf_t *buf, const char *markup, ...)
{
    const char *next = markup;
    int is_text = 0;
    va_list args;

    va_start(args, markup);
    while (next) {
        if (is_text) {
            crm_html_text(buf, next);
        }
        else {
            crm_buf_puts(buf, next);
        }
        is_text = !is_text;
        next = va_arg(args, const char *);
    }
    va_end(args);
}

const char *crm_html_policy(const char *style, apr_size_t len, const char *more,
                            apr_pool_t *result_pool)
{
    unsigned char hash[EVP_MAX_MD_SIZE], base64[48];

    if (!EVP_Digest(style, len, hash, NULL, EVP_sha256(), NULL)) {
        abort();                /* out of memory */
    }
    EVP_EncodeBlock(base64, hash, 32);
    return apr_psprintf(result_pool, "default-src 'none'; style-src "
                        "'sha256-%s'; %s; frame-ancestors 'none'; "
                        "base-uri 'none'", (const char *)base64, more);
}
