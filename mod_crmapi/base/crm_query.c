/* SPDX-License-Identifier: Apache-2.0 */
/* crm_query.c: parsing a query string */
#include "crm_query.h"

#include <string.h>

#include "apr_escape.h"
#include "apr_strings.h"

#include "crm_text.h"

const char crm_query_nul[] = "must not contain U+0000";
static const char nul_in_name[] = "must not contain U+0000";

/* Set *C_P to the byte that the two hexadecimal digits at DIGITS encode. Return
 * 0 if they are other characters. */
static int decode_hex(char *c_p, const char *digits)
{
    apr_size_t len = 0;

    return apr_unescape_hex(c_p, digits, 2, 0, &len) == APR_SUCCESS
           && len == 1;
}

/* Return the LEN bytes at TEXT decoded, in POOL: *OUT_LEN_P bytes and a NUL. If
 * they are invalid, set *BAD_P to the rule that they break. */
static const char *decode(apr_size_t *out_len_p, const char **bad_p,
                          const char *text, apr_size_t len, apr_pool_t *pool)
{
    char *decoded = apr_palloc(pool, len + 1);
    char *out = decoded;

    for (apr_size_t i = 0; i < len; i++) {
        char c = text[i] == '+' ? ' ' : text[i];

        if (c == '%') {
            if (i + 2 < len && decode_hex(&c, text + i + 1)) {
                i += 2;
            }
            else {
                c = '%';
                *bad_p = "must be percent-encoded properly";
            }
        }
        *out++ = c;
    }
    *out = '\0';
    *out_len_p = (apr_size_t)(out - decoded);
    if (!crm_text_valid_utf8(decoded, *out_len_p)) {
        *bad_p = "must be valid UTF-8";
    }
    else if (!*bad_p && strlen(decoded) != *out_len_p) {
        *bad_p = crm_query_nul;
    }
    return decoded;
}

/* Return the LEN bytes of a name at TEXT without decoding, in POOL, with '?'
 * for characters that an error message cannot show. */
static const char *raw_name(const char *text, apr_size_t len,
                            apr_pool_t *pool)
{
    char *name = apr_pstrmemdup(pool, text, len);

    for (char *c = name; *c; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) {
            *c = '?';
        }
    }
    return name;
}

/* Set *PARAM to the parameter in the LEN bytes at TEXT, in POOL. */
static void read_param(crm_query_param_t *param, const char *text,
                       apr_size_t len, apr_pool_t *pool)
{
    const char *equals = memchr(text, '=', len);
    apr_size_t name_len = equals ? (apr_size_t)(equals - text) : len;
    apr_size_t ignored;

    param->bad = NULL;
    param->name = decode(&ignored, &param->bad, text, name_len, pool);
    if (param->bad) {
        param->name = raw_name(text, name_len, pool);
        if (param->bad == crm_query_nul) {
            param->bad = nul_in_name;
        }
    }
    param->value = decode(&param->value_len, &param->bad,
                          equals ? equals + 1 : "",
                          equals ? len - name_len - 1 : 0, pool);
}

void crm_query_parse(apr_array_header_t **params_p, const char *query,
                     apr_pool_t *result_pool)
{
    *params_p = apr_array_make(result_pool, 8, sizeof(crm_query_param_t));
    while (query && *query) {
        apr_size_t len = strcspn(query, "&");

        if (len) {
            read_param(apr_array_push(*params_p), query, len, result_pool);
        }
        query += len;
        query += *query == '&';
    }
}
