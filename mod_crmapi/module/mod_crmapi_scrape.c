/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_scrape.c: the handler crmapi-metrics: counters as text for
 * Prometheus and others (contract 15.1) */
#include "mod_crmapi_scrape.h"

#include <string.h>

#include "apr_strings.h"

#include "http_protocol.h"
#include "http_request.h"

#include "crm_array.h"
#include "crm_metrics.h"
#include "crm_schema.h"
#include "crm_time.h"

#include "mod_crmapi_metrics.h"
#include "mod_crmapi_mount.h"
#include "mod_crmapi_permit.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_status.h"
#include "mod_crmapi_usable.h"

#define HANDLER "crmapi-metrics"

/* How old the verdict about a database may be, and how long the search for new
 * ones may take, but for the last. */
#define GAUGE_TRUST apr_time_from_sec(10)
#define GAUGE_TIME apr_time_from_msec(500)

/* A response in progress. */
typedef struct scrape_t {
    crm_metrics_t out;
    crm_limit_stats_t keys, addresses;
    crmapi_process_t processes;
    const server_rec *server;
    apr_pool_t *pool;
} scrape_t;

/* ---- labels -------------------------------------------------------------- */

static const char *vhost_label(const crmapi_vhost_t *vhost, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "vhost=\"",
                       crm_metrics_label(vhost->name, pool), "\"", NULL);
}

static const char *mount_label(const crmapi_vhost_t *vhost, int mount,
                               apr_pool_t *pool)
{
    return apr_pstrcat(pool, vhost_label(vhost, pool), ",mount=\"",
                       crmapi_mount_name(mount), "\"", NULL);
}

/* ---- families ------------------------------------------------------------ */

/* A family of metrics. */
typedef struct family_t {
    const char *name;           /* without "_total" or "_info" */
    const char *type;
    const char *help;
    /* Write the samples. */
    void (*put)(scrape_t *scrape, const struct family_t *family);
    size_t offset;              /* for PUT: of the member that it reads */
} family_t;

#define IN_COUNTS(member) offsetof(crmapi_counts_t, member)

/* Return the counter of COUNTS that FAMILY shows. */
static apr_uint64_t counter_of(const family_t *family,
                               const crmapi_counts_t *counts)
{
    return crm_metrics_peek((const apr_uint64_t *)(const void *)
                       ((const char *)counts + family->offset));
}

/* Return the I-th vhost. */
static const crmapi_vhost_t *vhost_at(int i)
{
    return &APR_ARRAY_IDX(crmapi_metrics_vhosts(), i, crmapi_vhost_t);
}

/* Return the number of vhosts. */
static int vhost_count(void)
{
    return crmapi_metrics_vhosts()->nelts;
}

/* A counter of each vhost. */
static void put_vhosts(scrape_t *scrape, const family_t *family)
{
    for (int i = 0; i < vhost_count(); i++) {
        const crmapi_vhost_t *vhost = vhost_at(i);

        crm_metrics_count(&scrape->out, vhost_label(vhost, scrape->pool),
                          counter_of(family, vhost->counts));
    }
}

/* The requests of ROUTE on the vhost with LABELS. */
static void put_route(scrape_t *scrape, const char *labels, int route,
                      const crmapi_route_counts_t *counts)
{
    for (int class = 0; class < CRMAPI_CLASSES; class++) {
        apr_uint64_t count = crm_metrics_peek(&counts->classes[class]);

        if (count) {
            crm_metrics_count(&scrape->out, apr_psprintf(
                scrape->pool, "%s,route=\"%s\",status=\"%dxx\"", labels,
                crmapi_route_name(route), class + 1), count);
        }
    }
}

static void put_requests(scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int i = 0; i < vhost_count(); i++) {
        const crmapi_vhost_t *vhost = vhost_at(i);

        for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
            const char *labels = mount_label(vhost, mount, scrape->pool);
            int end = crmapi_mount_first(mount + 1);

            for (int j = crmapi_mount_first(mount); j < end; j++) {
                put_route(scrape, labels, j, &vhost->counts->routes[j]);
            }
        }
    }
}

static void put_look_ups(scrape_t *scrape, const family_t *family)
{
    static const char *const results[CRM_LOOK_UPS] = {
        [CRM_LOOK_UP_REFUSED] = "refused",
        [CRM_LOOK_UP_FAILED] = "failed",
        [CRM_LOOK_UP_UNKNOWN] = "unknown",
        [CRM_LOOK_UP_KNOWN] = "known",
    };

    (void)family;
    for (int i = 0; i < vhost_count(); i++) {
        const crmapi_vhost_t *vhost = vhost_at(i);

        for (int j = 1; j < CRM_LOOK_UPS; j++) {
            crm_metrics_count(&scrape->out, apr_pstrcat(
                scrape->pool, vhost_label(vhost, scrape->pool), ",result=\"",
                results[j], "\"", NULL),
                crm_metrics_peek(&vhost->counts->look_ups[j]));
        }
    }
}

/* HISTOGRAM with LABELS, if it has counted anything: there are as many as
 * virtual hosts or routes. */
static void put_times(scrape_t *scrape, const char *labels,
                      const crm_histogram_t *histogram)
{
    if (crm_metrics_counted(histogram)) {
        crm_metrics_histogram(&scrape->out, labels, histogram);
    }
}

/* Histograms of each mount of each vhost. */
static void put_mounts(scrape_t *scrape, const family_t *family)
{
    for (int i = 0; i < vhost_count(); i++) {
        const crmapi_vhost_t *vhost = vhost_at(i);
        const crm_histogram_t *histograms
            = (const void *)((const char *)vhost->counts + family->offset);

        for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
            put_times(scrape, mount_label(vhost, mount, scrape->pool),
                      &histograms[mount]);
        }
    }
}

static void put_waits(scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int i = 0; i < vhost_count(); i++) {
        put_times(scrape, vhost_label(vhost_at(i), scrape->pool),
                  &vhost_at(i)->counts->waits);
    }
}

static void put_routes(scrape_t *scrape, const family_t *family)
{
    const crm_histogram_t *routes = crmapi_metrics_routes();

    (void)family;
    for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
        for (int i = crmapi_mount_first(mount);
             i < crmapi_mount_first(mount + 1); i++) {
            put_times(scrape, apr_pstrcat(
                scrape->pool, "mount=\"", crmapi_mount_name(mount),
                "\",route=\"", crmapi_route_name(i), "\"", NULL),
                &routes[i]);
        }
    }
}

/* Admitted or refused requests of a class, by table. */
static void put_classes(scrape_t *scrape, const family_t *family)
{
    const struct {
        const char *labels;
        const crm_limit_stats_t *stats;
        int class;
    } rows[] = {
        {"table=\"keys\",class=\"read\"", &scrape->keys, CRM_LIMIT_READ},
        {"table=\"keys\",class=\"write\"", &scrape->keys, CRM_LIMIT_WRITE},
        {"table=\"addresses\",class=\"look_up\"", &scrape->addresses,
         CRM_LIMIT_READ},
        {"table=\"addresses\",class=\"unproven\"", &scrape->addresses,
         CRM_LIMIT_WRITE},
    };

    for (size_t i = 0; i < CRM_NELTS(rows); i++) {
        const apr_uint64_t *counts = (const void *)(
            (const char *)rows[i].stats + family->offset);

        crm_metrics_count(&scrape->out, rows[i].labels, counts[rows[i].class]);
    }
}

/* A member of 32 bits of crm_limit_stats_t, by table. */
static void put_tables(scrape_t *scrape, const family_t *family)
{
    const struct {
        const char *labels;
        const crm_limit_stats_t *stats;
    } rows[] = {
        {"table=\"keys\"", &scrape->keys},
        {"table=\"addresses\"", &scrape->addresses},
    };

    for (size_t i = 0; i < CRM_NELTS(rows); i++) {
        crm_metrics_sample(&scrape->out, "", rows[i].labels,
                           *(const apr_uint32_t *)(const void *)(
                               (const char *)rows[i].stats
                               + family->offset));
    }
}

/* A counter of the table of keys. */
static void put_keys(scrape_t *scrape, const family_t *family)
{
    crm_metrics_count(&scrape->out, "", *(const apr_uint64_t *)(const void *)(
        (const char *)&scrape->keys + family->offset));
}

/* A gauge of all processes. */
static void put_processes(scrape_t *scrape, const family_t *family)
{
    apr_int32_t value = *(const apr_int32_t *)(const void *)(
        (const char *)&scrape->processes + family->offset);

    crm_metrics_sample(&scrape->out, "", "",
                       value > 0 ? (apr_uint64_t)value : 0);
}

static void put_connections_max(scrape_t *scrape, const family_t *family)
{
    int used, max;

    (void)family;
    crmapi_pools_stats(&used, &max);
    crm_metrics_sample(&scrape->out, "", "",
                       (apr_uint64_t)max * scrape->processes.pid);
}

/* Whether the database of each vhost can be used. A verdict that is older than
 * GAUGE_TRUST is renewed, as far as GAUGE_TIME permits: a provider has many
 * databases, and they may all hang. */
static void put_usable(scrape_t *scrape, const family_t *family)
{
    apr_time_t end = crm_time_monotonic() + GAUGE_TIME;

    (void)family;
    for (int i = 0; i < vhost_count(); i++) {
        crmapi_pool_t *pool = vhost_at(i)->config->pool;
        crmapi_verdict_t verdict
            = crm_time_monotonic() < end
              ? crmapi_usable(pool, GAUGE_TRUST, scrape->server, scrape->pool)
              : crmapi_usable_last(pool);

        if (verdict != CRMAPI_NEVER_CHECKED) {
            crm_metrics_sample(&scrape->out, "", apr_pstrcat(
                scrape->pool, vhost_label(vhost_at(i), scrape->pool),
                ",database=\"", crm_metrics_label(pool->label, scrape->pool),
                "\"", NULL), verdict == CRMAPI_USABLE);
        }
    }
}

/* A counter of the store. */
static void put_store(scrape_t *scrape, const family_t *family)
{
    crm_metrics_count(&scrape->out, "", crm_metrics_peek(
        (const apr_uint64_t *)(const void *)(
            (const char *)crmapi_status_store() + family->offset)));
}

static void put_store_away(scrape_t *scrape, const family_t *family)
{
    (void)family;
    crm_metrics_sample(&scrape->out, "", "", __atomic_load_n(
        &crmapi_status_store()->away, __ATOMIC_RELAXED) != 0);
}

static void put_build(scrape_t *scrape, const family_t *family)
{
    (void)family;
    crm_metrics_sample(&scrape->out, "_info", apr_psprintf(
        scrape->pool, "version=\"%s\",schema=\"%d\"", CRM_VERSION,
        CRM_SCHEMA_VERSION), 1);
}

static const family_t families[] = {
    {"crmapi_build", "info", "Version of mod_crmapi and of the schema that it "
     "needs", put_build, 0},
    {"crmapi_requests", "counter", "Requests that were answered, by the class "
     "of their status", put_requests, 0},
    {"crmapi_request_duration_seconds", "histogram", "Time from the first line "
     "of a request to the end of its answer", put_mounts,
     IN_COUNTS(requests)},
    {"crmapi_database_duration_seconds", "histogram", "Time that a request "
     "spent on the database, waiting for a connection included", put_mounts,
     IN_COUNTS(database)},
    {"crmapi_route_duration_seconds", "histogram", "Time from the first line "
     "of a request to the end of its answer, over all virtual hosts",
     put_routes, 0},
    {"crmapi_connection_wait_seconds", "histogram", "Wait of requests for a "
     "database connection", put_waits, 0},
    {"crmapi_database_usable", "gauge", "1 if the database answers and has a "
     "schema that the module can use", put_usable, 0},
    {"crmapi_database_busy", "counter", "Requests that got no database "
     "connection in time", put_vhosts, IN_COUNTS(busy)},
    {"crmapi_limited", "counter", "Requests that were answered 429",
     put_vhosts, IN_COUNTS(limited)},
    {"crmapi_batches", "counter", "Statements that several requests shared",
     put_vhosts, IN_COUNTS(batches)},
    {"crmapi_batched_requests", "counter", "Requests that shared a statement",
     put_vhosts, IN_COUNTS(batched)},
    {"crmapi_batched_answers", "counter", "Requests that the thread of another "
     "request answered", put_vhosts, IN_COUNTS(answered)},
    {"crmapi_key_look_ups", "counter", "Look-ups of keys and tokens that were "
     "not in memory", put_look_ups, 0},
    {"crmapi_processes", "gauge", "Processes of httpd", put_processes,
     offsetof(crmapi_process_t, pid)},
    {"crmapi_connections_used", "gauge", "Database connections in use",
     put_processes, offsetof(crmapi_process_t, used)},
    {"crmapi_connections_waiting", "gauge", "Threads that wait for a database "
     "connection, or for a statement that they share", put_processes,
     offsetof(crmapi_process_t, waiting)},
    {"crmapi_connections_max", "gauge", "Database connections that the "
     "processes may open", put_connections_max, 0},
    {"crmapi_limit_admitted", "counter", "Requests and look-ups within a "
     "budget", put_classes, offsetof(crm_limit_stats_t, admitted)},
    {"crmapi_limit_refused", "counter", "Requests and look-ups beyond a budget",
     put_classes, offsetof(crm_limit_stats_t, refused)},
    {"crmapi_limit_entries", "gauge", "Keys and addresses that are counted",
     put_tables, offsetof(crm_limit_stats_t, slots)},
    {"crmapi_limit_entries_max", "gauge", "Keys and addresses that there is "
     "room for", put_tables, offsetof(crm_limit_stats_t, capacity)},
    {"crmapi_limit_full", "counter", "Keys refused because the table was full",
     put_keys, offsetof(crm_limit_stats_t, full)},
    {"crmapi_limit_locks_recovered", "counter", "Locks taken over from killed "
     "processes", put_keys, offsetof(crm_limit_stats_t, recovered)},
    {"crmapi_store_away", "gauge", "1 while this host counts without the rate "
     "limit store", put_store_away, 0},
    {"crmapi_store_requests", "counter", "Requests that the rate limit store "
     "counted", put_store, offsetof(crm_store_shared_t, counted)},
    {"crmapi_store_round_trips", "counter", "Round trips to the rate limit "
     "store", put_store, offsetof(crm_store_shared_t, trips)},
    {"crmapi_store_alone", "counter", "Requests that this host counted without "
     "the rate limit store", put_store, offsetof(crm_store_shared_t, alone)},
};

static void put_all(scrape_t *scrape)
{
    crmapi_status_limits(&scrape->keys, &scrape->addresses);
    crmapi_metrics_processes(&scrape->processes);
    for (size_t i = 0; i < CRM_NELTS(families); i++) {
        crm_metrics_family(&scrape->out, families[i].name, families[i].type,
                           families[i].help);
        families[i].put(scrape, &families[i]);
    }
    crm_metrics_end(&scrape->out);
}

/* ---- the handler --------------------------------------------------------- */

int crmapi_metrics_handler(request_rec *r)
{
    int status = crmapi_asked(r, HANDLER);
    scrape_t scrape;

    if (status != OK) {
        return status;
    }
    if (!crmapi_metrics_vhosts()) {
        return HTTP_NOT_FOUND;  /* no server has a mount */
    }
    memset(&scrape, 0, sizeof(scrape));
    scrape.server = r->server;
    scrape.pool = r->pool;
    crm_metrics_init(&scrape.out, apr_table_get(r->headers_in, "Accept"),
                     r->pool);
    put_all(&scrape);
    r->no_local_copy = 1;
    ap_set_content_type(r, crm_metrics_type(&scrape.out));
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_mergen(r->headers_out, "Vary", "Accept");
    ap_set_content_length(r, (apr_off_t)scrape.out.text.len);
    if (!r->header_only) {
        ap_rwrite(scrape.out.text.data, (int)scrape.out.text.len, r);
    }
    return OK;
}
