/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.c: what mod_status shows of the API */
#include "mod_crmapi.h"

#include "apr_optional_hooks.h"
#include "apr_shm.h"

#include "http_protocol.h"
#include "mod_status.h"

/* Counts of all processes since the parent started. */
typedef struct metrics_t {
    apr_uint64_t classes[6];    /* answers 1xx to 5xx, by their hundreds */
    apr_uint64_t requests;
    apr_uint64_t db_us;
} metrics_t;

static metrics_t *metrics;
static crm_limit_t *limit;

/* A line of the section: its name for machines and for people. */
typedef struct line_t {
    const char *name;
    const char *text;
    apr_uint64_t value;
} line_t;

static apr_uint64_t read_count(const apr_uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

void crmapi_status_count(int status, apr_int64_t db_us)
{
    if (metrics && status >= 100 && status < 600) {
        __atomic_add_fetch(&metrics->classes[status / 100], 1,
                           __ATOMIC_RELAXED);
        __atomic_add_fetch(&metrics->requests, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&metrics->db_us, (apr_uint64_t)db_us,
                           __ATOMIC_RELAXED);
    }
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

static int status_hook(request_rec *r, int flags)
{
    crm_limit_stats_t stats;
    int used, max;

    if (!metrics || !limit) {
        return OK;
    }
    crm_limit_stats(&stats, limit);
    crmapi_gates_stats(&used, &max);
    const line_t lines[] = {
        {"Requests", "Requests", read_count(&metrics->requests)},
        {"Answers2xx", "Answers 2xx", read_count(&metrics->classes[2])},
        {"Answers4xx", "Answers 4xx", read_count(&metrics->classes[4])},
        {"Answers5xx", "Answers 5xx", read_count(&metrics->classes[5])},
        {"DatabaseMicroseconds", "Time at the database, in microseconds",
         read_count(&metrics->db_us)},
        {"ReadsAdmitted", "Reads admitted", stats.admitted[CRM_LIMIT_READ]},
        {"WritesAdmitted", "Writes admitted",
         stats.admitted[CRM_LIMIT_WRITE]},
        {"ReadsRefused", "Reads over the limit",
         stats.refused[CRM_LIMIT_READ]},
        {"WritesRefused", "Writes over the limit",
         stats.refused[CRM_LIMIT_WRITE]},
        {"KeysRefused", "Keys that found the table full", stats.full},
        {"Keys", "Keys known", stats.slots},
        {"KeysMax", "Keys that may be known", stats.capacity},
        {"LocksRecovered", "Locks taken over from killed processes",
         stats.recovered},
        {"ConnectionsUsed", "Database connections in use in this process",
         (apr_uint64_t)used},
        {"ConnectionsMax", "Database connections allowed in this process",
         (apr_uint64_t)max},
    };
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("<hr />\n<h2>mod_crmapi</h2>\n<dl>\n", r);
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        print_line(r, flags, &lines[i]);
    }
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("</dl>\n", r);
    }
    return OK;
}

void crmapi_status_init(server_rec *main_server, crm_limit_t *shared)
{
    static const char key[] = "mod_crmapi_metrics";
    metrics_t **retained = ap_retained_data_get(key);
    apr_shm_t *shm;

    limit = shared;
    if (!retained) {
        retained = ap_retained_data_create(key, sizeof(*retained));
        if (!apr_shm_create(&shm, sizeof(metrics_t), NULL,
                            main_server->process->pool)) {
            *retained = apr_shm_baseaddr_get(shm);
            memset(*retained, 0, sizeof(metrics_t));
        }
    }
    metrics = *retained;
}

void crmapi_status_register(apr_pool_t *p)
{
    (void)p;
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL,
                      APR_HOOK_MIDDLE);
}
