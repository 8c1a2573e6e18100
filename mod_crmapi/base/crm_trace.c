/* SPDX-License-Identifier: Apache-2.0 */
/* crm_trace.c: the value of the header traceparent of W3C Trace Context
 * (https://www.w3.org/TR/trace-context/#traceparent-header) */
#include "crm_trace.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "apr_strings.h"

#include "crm_array.h"

/* The offsets of trace id and flags. */
#define TRACE_ID 3
#define TRACE_ID_LEN 32
#define FLAGS 53

/* The flags that a request of ours passes on. The others must be 0. */
#define KNOWN_FLAGS 3

/* The fields of version 00, each followed by '-' or the end. */
static const struct {
    size_t len;
    const char *invalid;        /* a value that it must not have, or NULL */
} fields[] = {
    {2, "ff"},
    {TRACE_ID_LEN, "00000000000000000000000000000000"},
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

const char *crm_trace_read(const char *text, apr_pool_t *pool)
{
    if (!text || !is_valid(text)
        || (text[CRM_TRACE_LEN] && !strncmp(text, "00", 2))) {
        return NULL;
    }
    return apr_pstrmemdup(pool, text, CRM_TRACE_LEN);
}

const char *crm_trace_child(const char *trace, apr_pool_t *pool)
{
    apr_uint64_t parent = 0;

    while (!parent) {
        if (RAND_bytes((unsigned char *)&parent, sizeof(parent)) != 1) {
            abort();            /* as crm_uuid_v7() does */
        }
    }
    return apr_psprintf(pool, "00-%.*s-%016" APR_UINT64_T_HEX_FMT "-%02x",
                        TRACE_ID_LEN, trace + TRACE_ID, parent,
                        (unsigned)strtoul(trace + FLAGS, NULL, 16)
                        & KNOWN_FLAGS);
}
