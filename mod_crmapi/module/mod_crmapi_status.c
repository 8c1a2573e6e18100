/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.c: the section of mod_status, and what was logged last */
#include "mod_crmapi_status.h"

#include <string.h>

#include "apr_optional_hooks.h"

#include "http_protocol.h"
#include "mod_status.h"

#include "crm_array.h"
#include "crm_metrics.h"

#include "mod_crmapi_metrics.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_shm.h"

static crm_limit_t *limit;
static crm_limit_t *addresses;  /* NULL if addresses are not limited */
static crm_store_shared_t *store;

/* A line of the section: name in ?auto, text in HTML, value. */
typedef struct line_t {
    const char *name;
    const char *text;
    apr_uint64_t value;
} line_t;

int crmapi_status_news(crmapi_news_t *news, apr_uint32_t state,
                       apr_interval_time_t again)
{
    apr_uint32_t before = __atomic_exchange_n(&news->state, state,
                                              __ATOMIC_ACQ_REL);
    apr_int64_t at = __atomic_load_n(&news->at, __ATOMIC_ACQUIRE);
    apr_int64_t now = apr_time_now();

    if (before == state && (!again || (at && now - at < again))) {
        return 0;
    }
    /* If several processes get here at the same time, one of them logs it. */
    return __atomic_compare_exchange_n(&news->at, &at, now, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void print_line(request_rec *r, int flags, const line_t *line)
{
    if (flags & AP_STATUS_SHORT) {
        ap_rprintf(r, "CrmApi%s: %" APR_UINT64_T_FMT "\n", line->name,
                   line->value);
    }
    else {
        ap_rprintf(r, "<dt>%s: %" APR_UINT64_T_FMT "</dt>\n", line->text,
                   line->value);
    }
}

void crmapi_status_limits(crm_limit_stats_t *keys,
                          crm_limit_stats_t *of_addresses)
{
    crm_limit_stats(keys, limit);
    memset(of_addresses, 0, sizeof(*of_addresses));
    if (addresses) {
        crm_limit_stats(of_addresses, addresses);
    }
}

const crm_store_shared_t *crmapi_status_store(void)
{
    return store;
}

static int status_hook(request_rec *r, int flags)
{
    crm_limit_stats_t stats, look_ups;
    crmapi_totals_t totals;
    int used, max;

    if (!crmapi_metrics_vhosts()) {
        return OK;
    }
    crmapi_metrics_totals(&totals);
    crmapi_status_limits(&stats, &look_ups);
    crmapi_pools_stats(&used, &max);
    const line_t lines[] = {
        {"Requests", "Requests", totals.requests},
        {"Answers2xx", "Answers 2xx", totals.classes[1]},
        {"Answers3xx", "Answers 3xx", totals.classes[2]},
        {"Answers4xx", "Answers 4xx", totals.classes[3]},
        {"Answers5xx", "Answers 5xx", totals.classes[4]},
        {"DatabaseRequests", "Requests that used the database",
         totals.db_requests},
        {"DatabaseMicroseconds", "Time spent on the database, in microseconds",
         totals.db_us},
        {"DatabaseBusy", "Requests that got no connection in time",
         totals.busy},
        {"Batches", "Statements that several requests shared",
         totals.batches},
        {"BatchedRequests", "Requests that shared a statement",
         totals.batched},
        {"ReadsAdmitted", "Reads admitted", stats.admitted[CRM_LIMIT_READ]},
        {"WritesAdmitted", "Writes admitted",
         stats.admitted[CRM_LIMIT_WRITE]},
        {"ReadsRefused", "Reads over the limit",
         stats.refused[CRM_LIMIT_READ]},
        {"WritesRefused", "Writes over the limit",
         stats.refused[CRM_LIMIT_WRITE]},
        {"KeysRefused", "Keys refused because the table was full", stats.full},
        {"LookUpsRefused", "Look-ups of unknown keys over an address's limit",
         look_ups.refused[CRM_LIMIT_READ]},
        {"Keys", "Keys known", stats.slots},
        {"KeysMax", "Maximum number of keys", stats.capacity},
        {"LocksRecovered", "Locks taken over from killed processes",
         stats.recovered},
        {"StoreAway", "This host counts without the rate limit store",
         __atomic_load_n(&store->away, __ATOMIC_RELAXED)},
        {"StoreRequests", "Requests that the rate limit store counted",
         crm_metrics_peek(&store->counted)},
        {"StoreRoundTrips", "Round trips to the rate limit store",
         crm_metrics_peek(&store->trips)},
        {"StoreAlone", "Requests counted without the rate limit store",
         crm_metrics_peek(&store->alone)},
        {"ConnectionsUsed", "Database connections in use in this process",
         (apr_uint64_t)used},
        {"ConnectionsMax", "Database connections allowed in this process",
         (apr_uint64_t)max},
    };
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("<hr />\n<h2>mod_crmapi</h2>\n<dl>\n", r);
    }
    for (size_t i = 0; i < CRM_NELTS(lines); i++) {
        print_line(r, flags, &lines[i]);
    }
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("</dl>\n", r);
    }
    return OK;
}

void crmapi_status_init(const crmapi_shm_t *shm)
{
    limit = shm->limit;
    addresses = shm->addresses;
    store = shm->store;
}

void crmapi_status_register(apr_pool_t *p)
{
    (void)p;
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL,
                      APR_HOOK_MIDDLE);
}
