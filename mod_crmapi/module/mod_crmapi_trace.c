/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_trace.c: the header traceparent of W3C Trace Context (contract
 * 15.4, https://www.w3.org/TR/trace-context/#traceparent-header) */
#include "mod_crmapi_trace.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"

/* The length of "00-<trace id>-<parent id>-<flags>". */
#define LEN 55

/* The fields of version 00, each followed by '-' or the end. */
static const struct {
    size_t len;
    const char *invalid;        /* a value that it must not have, or NULL */
} fields[] = {
    {2, "ff"},
    {32, "00000000000000000000000000000000"},
    {16, "0000000000000000"},
    {2, NULL},
};

/* Return whether TEXT begins with the fields of a valid traceparent. */
static int is_valid(const char *text)
{
    for (size_t i = 0; i < CRM_NELTS(fields); i++) {
        if (strspn(text, "0123456789abcdef") != fields[i].len
            || (fields[i].invalid
                && !strncmp(text, fields[i].invalid, fields[i].len))) {
            return 0;
        }
        text += fields[i].len;
        if (*text != '-') {
            return !*text && !fields[i].invalid;
        }
        text++;
    }
    return 1;
}

const char *crmapi_trace(const request_rec *r)
{
    const char *text = apr_table_get(r->headers_in, "traceparent");

    if (!text || !is_valid(text)
        || (text[LEN] && !strncmp(text, "00", 2))) {
        return NULL;
    }
    return apr_pstrmemdup(r->pool, text, LEN);
}
