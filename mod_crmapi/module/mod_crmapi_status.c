/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.c: the section of mod_status */
#include "mod_crmapi_status.h"

#include <stdlib.h>
#include <string.h>

#include "apr_lib.h"
#include "apr_optional_hooks.h"
#include "apr_strings.h"

#include "http_protocol.h"
#include "mod_status.h"

#include "crm_array.h"
#include "crm_metrics.h"

#include "mod_crmapi_metrics.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_shm.h"

/* The vhosts that the page shows by themselves. */
#define ROWS_SHOWN 50

static crm_limit_t *limit;
static crm_limit_t *addresses;  /* NULL if addresses are not limited */
static crm_store_shared_t *store;

/* A line of the section: name in ?auto, text in HTML, value. */
typedef struct line_t {
    const char *name;
    const char *text;
    apr_uint64_t value;
} line_t;

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

/* Print the sum of the requests of MOUNT in SUMS. */
static void print_mount(request_rec *r, int flags, int mount,
                        const crmapi_sums_t *sums)
{
    const char *name = crmapi_mount_name(mount);
    const line_t line = {
        apr_psprintf(r->pool, "%c%sRequests", apr_toupper(*name), name + 1),
        apr_pstrcat(r->pool, "Requests to ", name, NULL),
        crmapi_metrics_of(sums, mount, -1)
    };

    print_line(r, flags, &line);
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

/* ---- virtual hosts ------------------------------------------------------- */

/* The requests of a vhost. */
typedef struct row_t {
    const char *name;
    crmapi_sums_t sums;
    apr_uint64_t all;
} row_t;

/* Compare for qsort(): the row with more requests comes first. */
static int compare_rows(const void *a, const void *b)
{
    const row_t *left = a, *right = b;

    return left->all < right->all ? 1 : left->all > right->all ? -1 : 0;
}

/* Return a row for each vhost, *COUNT_P of them, the busiest first, in POOL. */
static row_t *make_rows(int *count_p, apr_pool_t *pool)
{
    const apr_array_header_t *vhosts = crmapi_metrics_vhosts();
    apr_size_t count = (apr_size_t)vhosts->nelts;
    row_t *rows = apr_pcalloc(pool, (count + 1) * sizeof(*rows));

    for (int i = 0; i < vhosts->nelts; i++) {
        const crmapi_vhost_t *vhost = &APR_ARRAY_IDX(vhosts, i,
                                                     crmapi_vhost_t);

        rows[i].name = vhost->name;
        crmapi_metrics_sum(&rows[i].sums, vhost->counts);
        rows[i].all = crmapi_metrics_of(&rows[i].sums, -1, -1);
    }
    qsort(rows, count, sizeof(*rows), compare_rows);
    *count_p = vhosts->nelts;
    return rows;
}

/* Make the rows from ROWS_SHOWN on one row. Return the number of rows. */
static int join_rows(row_t *rows, int count, apr_pool_t *pool)
{
    row_t *rest = &rows[ROWS_SHOWN];

    if (count <= ROWS_SHOWN + 1) {
        return count;
    }
    for (const row_t *row = rest + 1; row < rows + count; row++) {
        for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
            for (int class = 0; class < CRMAPI_CLASSES; class++) {
                rest->sums.n[mount][class] += row->sums.n[mount][class];
            }
        }
    }
    rest->name = apr_psprintf(pool, "%d others", count - ROWS_SHOWN);
    return ROWS_SHOWN + 1;
}

/* Print the requests of ROW for programs, without zeros. */
static void print_short(request_rec *r, const row_t *row)
{
    for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
        for (int class = 0; class < CRMAPI_CLASSES; class++) {
            if (row->sums.n[mount][class]) {
                ap_rprintf(r, "CrmApiRequests{%s,%s,%dxx}: %"
                           APR_UINT64_T_FMT "\n", row->name,
                           crmapi_mount_name(mount), class + 1,
                           row->sums.n[mount][class]);
            }
        }
    }
}

/* Print the requests of ROW as rows of the table: one for each mount that has
 * any. */
static void print_row(request_rec *r, const row_t *row)
{
    for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
        if (crmapi_metrics_of(&row->sums, mount, -1)) {
            ap_rvputs(r, "<tr><td>", ap_escape_html(r->pool, row->name),
                      "</td><td>", crmapi_mount_name(mount), "</td>", NULL);
            for (int class = 1; class < CRMAPI_CLASSES; class++) {
                ap_rprintf(r, "<td>%" APR_UINT64_T_FMT "</td>",
                           row->sums.n[mount][class]);
            }
            ap_rputs("</tr>\n", r);
        }
    }
}

static void print_vhosts(request_rec *r, int flags)
{
    int count, is_short = flags & AP_STATUS_SHORT;
    row_t *rows = make_rows(&count, r->pool);

    if (!is_short) {
        count = join_rows(rows, count, r->pool);
        ap_rputs("<table border=\"0\"><tr><th>Virtual host</th><th>Mount</th>"
                 "<th>2xx</th><th>3xx</th><th>4xx</th><th>5xx</th></tr>\n", r);
    }
    for (int i = 0; i < count; i++) {
        if (is_short) {
            print_short(r, &rows[i]);
        }
        else {
            print_row(r, &rows[i]);
        }
    }
    if (!is_short) {
        ap_rputs("</table>\n", r);
    }
}

/* ---- the section --------------------------------------------------------- */

/* Print the COUNT LINES. */
static void print_lines(request_rec *r, int flags, const line_t *lines,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        print_line(r, flags, &lines[i]);
    }
}

static void print_totals(request_rec *r, int flags,
                         const crmapi_totals_t *totals)
{
    const crmapi_sums_t *requests = &totals->requests;
    const line_t lines[] = {
        {"Requests", "Requests", crmapi_metrics_of(requests, -1, -1)},
        {"Answers2xx", "Answers 2xx", crmapi_metrics_of(requests, -1, 1)},
        {"Answers3xx", "Answers 3xx", crmapi_metrics_of(requests, -1, 2)},
        {"Answers4xx", "Answers 4xx", crmapi_metrics_of(requests, -1, 3)},
        {"Answers5xx", "Answers 5xx", crmapi_metrics_of(requests, -1, 4)},
        {"DatabaseRequests", "Requests that used the database",
         totals->db_requests},
        {"DatabaseMicroseconds", "Time spent on the database, in microseconds",
         totals->db_us},
        {"DatabaseBusy", "Requests that got no connection in time",
         totals->busy},
        {"Batches", "Statements that several requests shared",
         totals->batches},
        {"BatchedRequests", "Requests that shared a statement",
         totals->batched},
    };

    print_lines(r, flags, lines, CRM_NELTS(lines));
}

/* Print the counts of the rate limits and of their store. */
static void print_limits(request_rec *r, int flags)
{
    crm_limit_stats_t stats, others;
    crmapi_totals_t totals;

    crmapi_status_limits(&stats, &others);
    crmapi_metrics_totals(&totals);
    const line_t lines[] = {
        {"ReadsAdmitted", "Reads admitted", stats.admitted[CRM_LIMIT_READ]},
        {"WritesAdmitted", "Writes admitted",
         stats.admitted[CRM_LIMIT_WRITE]},
        {"ReadsRefused", "Reads over the limit",
         stats.refused[CRM_LIMIT_READ]},
        {"WritesRefused", "Writes over the limit",
         stats.refused[CRM_LIMIT_WRITE]},
        {"KeysRefused", "Keys refused because the table was full", stats.full},
        {"LookUpsRefused", "Look-ups of unknown keys over an address's limit",
         totals.refused},
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
    };

    print_lines(r, flags, lines, CRM_NELTS(lines));
}

static void print_connections(request_rec *r, int flags)
{
    int used, max;

    crmapi_pools_stats(&used, &max);
    const line_t lines[] = {
        {"ConnectionsUsed", "Database connections in use in this process",
         (apr_uint64_t)used},
        {"ConnectionsMax", "Database connections allowed in this process",
         (apr_uint64_t)max},
    };

    print_lines(r, flags, lines, CRM_NELTS(lines));
}

static int status_hook(request_rec *r, int flags)
{
    crmapi_totals_t totals;

    if (!crmapi_metrics_vhosts()) {
        return OK;
    }
    crmapi_metrics_totals(&totals);
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("<hr />\n<h2>mod_crmapi</h2>\n<dl>\n", r);
    }
    print_totals(r, flags, &totals);
    print_limits(r, flags);
    print_connections(r, flags);
    for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
        print_mount(r, flags, mount, &totals.requests);
    }
    if (!(flags & AP_STATUS_SHORT)) {
        ap_rputs("</dl>\n", r);
    }
    print_vhosts(r, flags);
    return OK;
}

void crmapi_status_init(const crmapi_shm_t *shm)
{
    limit = shm->limit;
    addresses = shm->addresses;
    store = shm->store;
}

void crmapi_status_register(void)
{
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL,
                      APR_HOOK_MIDDLE);
}
