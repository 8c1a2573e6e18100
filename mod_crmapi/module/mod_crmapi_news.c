/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_news.c: what was logged last, so that it is logged once */
#include "mod_crmapi_news.h"

#include "crm_time.h"

/* Return whether STATE, which was BEFORE and logged AT, is to be logged NOW. */
static int is_news(apr_uint32_t before, apr_uint32_t state, apr_int64_t at,
                   apr_int64_t now, apr_interval_time_t again)
{
    return before != state || (again && (!at || now - at >= again));
}

int crmapi_is_news(const crmapi_news_t *news, apr_uint32_t state,
                   apr_interval_time_t again)
{
    return is_news(__atomic_load_n(&news->state, __ATOMIC_ACQUIRE), state,
                   __atomic_load_n(&news->at, __ATOMIC_ACQUIRE),
                   crm_time_monotonic(), again);
}

int crmapi_news(crmapi_news_t *news, apr_uint32_t state,
                apr_interval_time_t again)
{
    apr_uint32_t before = __atomic_exchange_n(&news->state, state,
                                              __ATOMIC_ACQ_REL);
    apr_int64_t at = __atomic_load_n(&news->at, __ATOMIC_ACQUIRE);
    apr_int64_t now = crm_time_monotonic();

    /* If several processes get here at the same time, one of them logs it. */
    return is_news(before, state, at, now, again)
           && __atomic_compare_exchange_n(&news->at, &at, now, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
