/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.c: metrics, and the section of mod_status */
#include "mod_crmapi.h"

#include <string.h>

#include "apr_optional_hooks.h"
#include "apr_shm.h"
#include "apr_strings.h"

#include "http_protocol.h"
#include "mod_status.h"

#include "crm_array.h"

/* Counters of all processes since the parent started. */
typedef struct metrics_t {
    apr_uint64_t classes[6];    /* responses by class, 1xx to 5xx */
    apr_uint64_t requests;
    apr_uint64_t db_requests;   /* requests that used the database */
    apr_uint64_t db_us;
    apr_uint64_t busy;          /* requests that got no connection in time */
    apr_uint64_t batches;       /* statements that requests shared */
    apr_uint64_t batched;       /* and these requests */
} metrics_t;

static metrics_t *metrics;
static crm_limit_t *limit;
static crm_limit_t *addresses;  /* NULL if addresses are not limited */
static crm_store_shared_t *store;

/* A line of the section: name in ?auto, text in HTML, value. */
typedef struct line_t {
    const char *name;
    const char *text;
    apr_uint64_t value;
} line_t;

static apr_uint64_t read_count(const apr_uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Add N to COUNT. */
static void add(apr_uint64_t *count, apr_uint64_t n)
{
    __atomic_add_fetch(count, n, __ATOMIC_RELAXED);
}

void crmapi_status_count(int status, const crm_response_t *response)
{
    if (status < 100 || status >= 600) {
        return;
    }
    add(&metrics->classes[status / 100], 1);
    add(&metrics->requests, 1);
    add(&metrics->db_requests, response->db_us > 0);
    add(&metrics->db_us, (apr_uint64_t)response->db_us);
    if (response->batched) {
        add(&metrics->batches, 1);
        add(&metrics->batched, (apr_uint64_t)response->batched);
    }
}

void crmapi_status_busy(void)
{
    add(&metrics->busy, 1);
}

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
    /* Only one of the processes that get here at the same time logs it. */
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

/* Return the number of key look-ups refused to addresses. */
static apr_uint64_t refused_look_ups(void)
{
    crm_limit_stats_t stats;

    if (!addresses) {
        return 0;
    }
    crm_limit_stats(&stats, addresses);
    return stats.refused[CRM_LIMIT_READ];
}

static int status_hook(request_rec *r, int flags)
{
    crm_limit_stats_t stats;
    int used, max;

    if (!metrics || !limit) {
        return OK;
    }
    crm_limit_stats(&stats, limit);
    crmapi_pools_stats(&used, &max);
    const line_t lines[] = {
        {"Requests", "Requests", read_count(&metrics->requests)},
        {"Answers2xx", "Answers 2xx", read_count(&metrics->classes[2])},
        {"Answers3xx", "Answers 3xx", read_count(&metrics->classes[3])},
        {"Answers4xx", "Answers 4xx", read_count(&metrics->classes[4])},
        {"Answers5xx", "Answers 5xx", read_count(&metrics->classes[5])},
        {"DatabaseRequests", "Requests that used the database",
         read_count(&metrics->db_requests)},
        {"DatabaseMicroseconds", "Time spent on the database, in microseconds",
         read_count(&metrics->db_us)},
        {"DatabaseBusy", "Requests that got no connection in time",
         read_count(&metrics->busy)},
        {"Batches", "Statements that several requests shared",
         read_count(&metrics->batches)},
        {"BatchedRequests", "Requests that shared a statement",
         read_count(&metrics->batched)},
        {"ReadsAdmitted", "Reads admitted", stats.admitted[CRM_LIMIT_READ]},
        {"WritesAdmitted", "Writes admitted",
         stats.admitted[CRM_LIMIT_WRITE]},
        {"ReadsRefused", "Reads over the limit",
         stats.refused[CRM_LIMIT_READ]},
        {"WritesRefused", "Writes over the limit",
         stats.refused[CRM_LIMIT_WRITE]},
        {"KeysRefused", "Keys refused because the table was full", stats.full},
        {"LookUpsRefused", "Look-ups of unknown keys over an address's limit",
         refused_look_ups()},
        {"Keys", "Keys known", stats.slots},
        {"KeysMax", "Maximum number of keys", stats.capacity},
        {"LocksRecovered", "Locks taken over from killed processes",
         stats.recovered},
        {"StoreAway", "This host counts without the rate limit store",
         __atomic_load_n(&store->away, __ATOMIC_RELAXED)},
        {"StoreRequests", "Requests that the rate limit store counted",
         read_count(&store->asked)},
        {"StoreRoundTrips", "Round trips to the rate limit store",
         read_count(&store->trips)},
        {"StoreAlone", "Requests counted without the rate limit store",
         read_count(&store->alone)},
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

const char *crmapi_status_init(server_rec *main_server,
                               const crmapi_shm_t *shm, apr_pool_t *ptemp)
{
    static const char key[] = "mod_crmapi_metrics";
    metrics_t **retained = ap_retained_data_get(key);
    apr_status_t status;
    apr_shm_t *made;

    if (!retained) {
        retained = ap_retained_data_create(key, sizeof(*retained));
    }
    if (!*retained) {
        status = apr_shm_create(&made, sizeof(metrics_t), NULL,
                                main_server->process->pool);
        if (status) {
            return apr_psprintf(ptemp, "CRM1405: cannot create shared memory "
                                "for the metrics: %pm", &status);
        }
        *retained = apr_shm_baseaddr_get(made);
        memset(*retained, 0, sizeof(metrics_t));
    }
    limit = shm->limit;
    addresses = shm->addresses;
    store = shm->store;
    metrics = *retained;
    return NULL;
}

void crmapi_status_register(apr_pool_t *p)
{
    (void)p;
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL,
                      APR_HOOK_MIDDLE);
}
