/* SPDX-License-Identifier: Apache-2.0 */
/* crm_query.h: taking a query string apart */
#ifndef CRM_QUERY_H
#define CRM_QUERY_H

#include "apr_pools.h"
#include "apr_tables.h"

/* A parameter as it was sent, decoded. */
typedef struct crm_query_param_t {
    const char *name;
    const char *value;          /* "" if there was no '=' */
    apr_size_t value_len;
    const char *bad;            /* the rule that its encoding breaks, or NULL */
} crm_query_param_t;

/* Set *PARAMS_P to the parameters of QUERY (undecoded, without '?'; NULL: none)
 * in order, an array of crm_query_param_t in RESULT_POOL. '+' is a space
 * (application/x-www-form-urlencoded). What cannot be decoded is marked, so
 * that it only matters where the parameter does. */
void crm_query_parse(apr_array_header_t **params_p, const char *query,
                     apr_pool_t *result_pool);

#endif /* CRM_QUERY_H */
