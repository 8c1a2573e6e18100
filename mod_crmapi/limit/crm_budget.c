/* SPDX-License-Identifier: Apache-2.0 */
/* crm_budget.c: charging a request and setting the headers */
#include "crm_budget.h"

#include "apr_strings.h"
#include "apr_time.h"

/* Return MICROSECONDS as whole seconds, rounded up. */
static apr_int64_t seconds_up(apr_int64_t microseconds)
{
    return (microseconds + APR_USEC_PER_SEC - 1) / APR_USEC_PER_SEC;
}

/* Set the headers of contract 4.2. NOW is in microseconds since 1970. */
static void set_headers(apr_table_t *headers,
                        const crm_limit_verdict_t *verdict, apr_int64_t now,
                        apr_pool_t *pool)
{
    apr_table_setn(headers, "X-RateLimit-Limit",
                   apr_psprintf(pool, "%u", verdict->limit));
    apr_table_setn(headers, "X-RateLimit-Remaining",
                   apr_psprintf(pool, "%u", verdict->remaining));
    apr_table_setn(headers, "X-RateLimit-Reset",
                   apr_psprintf(pool, "%" APR_INT64_T_FMT,
                                seconds_up(now + verdict->reset_us)));
}

crm_error_t *crm_budget_charge(crm_limit_verdict_t *verdict,
                               crm_limit_key_t *key, crm_limit_t *limit,
                               crm_store_t *store, crm_limit_class_t class,
                               apr_uint32_t max, apr_uint32_t ceiling,
                               apr_table_t *headers, apr_pool_t *pool)
{
    crm_error_t *error;

    crm_limit_admit(verdict, key, limit, key->hash, key->realm, class, max,
                    ceiling);
    if (!verdict->known) {
        return NULL;
    }
    if (verdict->full) {
        return crm_error_logf(CRM_E_UNAVAILABLE, pool, CRM_BUDGET_FULL);
    }
    if (store && verdict->limit && verdict->admitted) {
        crm_store_admit(store, verdict, limit, key, class);
    }
    if (verdict->limit && headers) {
        set_headers(headers, verdict, crm_store_time(store), pool);
    }
    if (verdict->admitted) {
        return NULL;
    }
    error = crm_error_create(CRM_E_RATE_LIMITED, NULL, pool);
    error->retry_after = (int)seconds_up(verdict->reset_us);
    if (error->retry_after < 1) {
        error->retry_after = 1;
    }
    return error;
}

void crm_budget_show(const crm_limit_key_t *key, crm_limit_t *limit,
                     crm_store_t *store, crm_limit_class_t class,
                     apr_uint32_t max, apr_uint32_t ceiling,
                     apr_table_t *headers, apr_pool_t *pool)
{
    crm_limit_verdict_t verdict;

    crm_limit_look(&verdict, limit, key->hash, key->realm, class, max,
                   ceiling);
    if (verdict.limit) {
        set_headers(headers, &verdict, crm_store_time(store), pool);
    }
}
