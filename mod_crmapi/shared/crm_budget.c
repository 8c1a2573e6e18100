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

/* Set BUDGET's headers to those of VERDICT. */
static void set_headers(const crm_budget_t *budget,
                        const crm_limit_verdict_t *verdict, apr_pool_t *pool)
{
    apr_int64_t now = crm_store_time(budget->store);

    if (!verdict->limit || !budget->headers) {
        return;
    }
    apr_table_setn(budget->headers, "X-RateLimit-Limit",
                   apr_psprintf(pool, "%u", verdict->limit));
    apr_table_setn(budget->headers, "X-RateLimit-Remaining",
                   apr_psprintf(pool, "%u", verdict->remaining));
    apr_table_setn(budget->headers, "X-RateLimit-Reset",
                   apr_psprintf(pool, "%" APR_INT64_T_FMT,
                                seconds_up(now + verdict->reset_us)));
}

/* Set the headers for BUDGET's verdict, which is final, and return its
 * error. */
static crm_error_t *decide(const crm_budget_t *budget, apr_pool_t *pool)
{
    const crm_limit_verdict_t *verdict = &budget->verdict;
    crm_error_t *error;

    set_headers(budget, verdict, pool);
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

crm_error_t *crm_budget_settle(crm_budget_t *budget, apr_pool_t *pool)
{
    crm_store_settle(budget->store, &budget->check, &budget->verdict,
                     budget->limit, budget->key);
    budget->undecided = 0;
    if (!budget->verdict.admitted && budget->headers) {
        apr_table_clear(budget->headers);
    }
    return decide(budget, pool);
}

crm_error_t *crm_budget_charge(crm_budget_t *budget, apr_pool_t *pool)
{
    crm_limit_verdict_t *verdict = &budget->verdict;
    crm_limit_key_t *key = budget->key;

    budget->undecided = 0;
    crm_limit_admit(verdict, key, budget->limit, key->hash, key->realm,
                    budget->class, budget->max, budget->ceiling);
    if (!verdict->known) {
        return NULL;
    }
    if (verdict->full) {
        return crm_error_logf(CRM_E_UNAVAILABLE, pool, CRM_BUDGET_FULL);
    }
    if (!budget->store || !verdict->limit || !verdict->admitted) {
        return decide(budget, pool);
    }
    crm_store_charge(budget->store, &budget->check, verdict, key,
                     budget->class);
    budget->undecided = budget->later && !verdict->closed_lately;
    return budget->undecided ? NULL : crm_budget_settle(budget, pool);
}

void crm_budget_show(const crm_budget_t *budget, apr_pool_t *pool)
{
    const crm_limit_key_t *key = budget->key;
    crm_limit_verdict_t verdict;

    crm_limit_look(&verdict, budget->limit, key->hash, key->realm,
                   budget->class, budget->max, budget->ceiling);
    set_headers(budget, &verdict, pool);
}
