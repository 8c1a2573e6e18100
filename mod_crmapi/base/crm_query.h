/* SPDX-License-Identifier: Apache-2.0 */
/* crm_query.h: parsing a query string */
#ifndef CRM_QUERY_H
#define CRM_QUERY_H

#include "apr_pools.h"
#include "apr_tables.h"

/* A decoded parameter. */
typedef struct crm_query_param_t {
    const char *name;
    const char *value;          /* "" if there was no '=' */
    apr_size_t value_len;
    const char *bad;            /* the rule that its encoding breaks, or NULL */
} crm_query_param_t;

/* The rule that a value with U+0000 breaks, if its parameter breaks no other
 * one. */
extern const char crm_query_nul[];

/* Set *PARAMS_P to the parameters of QUERY in order, an array of
 * crm_query_param_t in RESULT_POOL. QUERY is encoded, without '?'; NULL: no
 * parameters. '+' is a space (application/x-www-form-urlencoded). Invalid
 * encoding is not an error here: it is noted in the parameter. */
void crm_query_parse(apr_array_header_t **params_p, const char *query,
                     apr_pool_t *result_pool);

#endif /* CRM_QUERY_H */
