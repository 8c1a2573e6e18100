/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_usable.h: whether the database of a pool can be used */
#ifndef MOD_CRMAPI_USABLE_H
#define MOD_CRMAPI_USABLE_H

#include "mod_crmapi_pool.h"

/* The verdicts of crmapi_health_t. */
typedef enum crmapi_verdict_t {
    CRMAPI_NEVER_CHECKED,
    CRMAPI_USABLE,
    CRMAPI_NO_CONFIGURATION,
    CRMAPI_NO_DATABASE,
    CRMAPI_DATABASE_FULL,
    CRMAPI_OTHER_SCHEMA
} crmapi_verdict_t;

/* The time that a check takes at most: a little less than the second of
 * contract 15.2. */
#define CRMAPI_CHECK_TIME apr_time_from_msec(900)

/* Return the verdict about the database of POOL, which may be NULL: the last
 * one of any process if it is at most TRUST old, otherwise a new one. What a new
 * one has found is logged for the server S. Scratch memory is in P. */
crmapi_verdict_t crmapi_usable(crmapi_pool_t *pool, apr_interval_time_t trust,
                               const server_rec *s, apr_pool_t *p);

/* Return the last verdict about the database of POOL, however old. */
crmapi_verdict_t crmapi_usable_last(const crmapi_pool_t *pool);

#endif /* MOD_CRMAPI_USABLE_H */
