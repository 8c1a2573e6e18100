/* SPDX-License-Identifier: Apache-2.0 */
/* crm_params_unknown.c: parameters that an operation does not have (contract 7.1) */
#include "crm_params_unknown.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_near.h"
#include "crm_params.h"
#include "crm_rest.h"

#define IGNORED_MAX 10          /* names in X-Ignored-Parameters */
#define NAME_MAX_BYTES 64       /* of each of them */

/* Return whether NAME is KNOWN, or the part of KNOWN before its dot. */
static int is_name(const char *known, const char *name)
{
    size_t len = strlen(name);

    return len == strcspn(known, ".") && !memcmp(known, name, len);
}

#define UNKNOWN "is not a known parameter"

/* Return the rule that NAME breaks, a parameter that no operation has. */
static const char *unknown_rule(const char *name)
{
    static const struct {
        const char *name, *rule;
    } rules[] = {
        {"filter", UNKNOWN "; each filter is a parameter of its own"},
        {"where", UNKNOWN "; each filter is a parameter of its own"},
        {"fields", UNKNOWN "; an answer has all fields"},
        {"select", UNKNOWN "; an answer has all fields"},
        {"sort", UNKNOWN "; the list has one order"},
        {"order", UNKNOWN "; the list has one order"},
        {"expand", UNKNOWN "; an object names others by their ids"},
        {"embed", UNKNOWN "; an object names others by their ids"},
    };

    for (size_t i = 0; i < CRM_NELTS(rules); i++) {
        if (!strcmp(rules[i].name, name)) {
            return rules[i].rule;
        }
    }
    return UNKNOWN;
}

/* Return the rule that the unknown parameter NAME breaks, NULL if it is
 * ignored. */
static const char *unknown_check(const crm_call_t *call, const char *name)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    size_t len = strcspn(name, "[");
    const char *bare = apr_pstrmemdup(call->pool, name, len), *near = NULL;

    if (operation->kind == CRM_OP_LOG && !strcmp(bare, "page")) {
        return "is not available: send the next_cursor as cursor";
    }
    if (name[len] && crm_param_name(operation, bare, is_name)) {
        return "must be written without brackets";
    }
    if (!crm_rest(call)->strict) {
        return NULL;
    }
    for (int i = 0; !near && crm_near_ways[i]; i++) {
        near = crm_param_name(operation, name, crm_near_ways[i]);
    }
    return near ? crm_near_ask(UNKNOWN, near, call->pool) : unknown_rule(bare);
}

/* Return NAME, of any characters, as it can be in a header, in POOL. */
static const char *header_name(const char *name, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, NAME_MAX_BYTES * 3 + 1), *at = out;

    for (int i = 0; name[i] && i < NAME_MAX_BYTES; i++) {
        unsigned char c = (unsigned char)name[i];

        if (apr_isalnum(c) || strchr("-._~[]", c)) {
            *at++ = (char)c;
        }
        else {
            at += apr_snprintf(at, 4, "%%%02X", c);
        }
    }
    *at = '\0';
    return out;
}

/* Tell CALL's client that the parameter NAME is ignored. NAMES are those that
 * it has been told. The query may be read again: the header is not added to. */
static void tell(crm_call_t *call, apr_array_header_t *names,
                 const char *name)
{
    const char *text = header_name(name, call->pool), *told = "";

    for (int i = 0; i < names->nelts; i++) {
        const char *one = APR_ARRAY_IDX(names, i, const char *);

        if (!strcmp(one, text)) {
            return;
        }
        told = apr_pstrcat(call->pool, told, one, ", ", NULL);
    }
    if (*text && names->nelts < IGNORED_MAX) {
        APR_ARRAY_PUSH(names, const char *) = text;
        apr_table_setn(call->response->headers, "X-Ignored-Parameters",
                       apr_pstrcat(call->pool, told, text, NULL));
    }
}

void crm_params_unknown(crm_input_t *input, crm_call_t *call,
                        apr_array_header_t *ignored, const char *name)
{
    const char *rule = unknown_check(call, name);

    if (rule) {
        crm_input_error(input, name, rule);
    }
    else {
        tell(call, ignored, name);
    }
}
