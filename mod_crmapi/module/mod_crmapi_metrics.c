/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_metrics.c: counting in shared memory, without locks */
#include "mod_crmapi_metrics.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "ap_mpm.h"

#include "crm_time.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_mount.h"
#include "mod_crmapi_request.h"
#include "mod_crmapi_shm.h"

/* Blocks begin at a cache line, so that vhosts do not share one. */
#define ALIGNMENT 64

/* The data that survives a restart. It and the blocks belong to the process
 * pool. A block is never freed or moved: processes of the previous
 * configuration still count in it, and a vhost that is configured again
 * continues its counts. */
typedef struct retained_t {
    apr_hash_t *blocks;         /* crmapi_counts_t * by the vhost's name */
    crm_histogram_t *routes;
    crmapi_process_t *processes;
    int process_count;
} retained_t;

static retained_t *retained;
static apr_array_header_t *vhosts;      /* of crmapi_vhost_t */
static int route_count;

/* The gauges of this process if there was no free slot: they are not shown. */
static crmapi_process_t unshown;
static crmapi_process_t *own = &unshown;

/* ---- memory -------------------------------------------------------------- */

/* Return the key of the retained data. It depends on the routes: after an
 * upgrade with other routes all counts start at 0. */
static const char *retained_key(apr_pool_t *ptemp)
{
    apr_uint32_t hash = 2166136261U;
    int processes = 0;

    for (int i = 0; i < route_count; i++) {
        for (const char *c = crmapi_route_name(i); *c; c++) {
            hash = (hash ^ (unsigned char)*c) * 16777619U;
        }
    }
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &processes);
    return apr_psprintf(ptemp, "mod_crmapi_metrics %x %d %d %d", hash,
                        route_count, (int)sizeof(crmapi_counts_t), processes);
}

/* Set RETAINED to the data of the previous configuration, or to new data. */
static const char *retain(server_rec *main_server, apr_pool_t *ptemp)
{
    const char *key = retained_key(ptemp), *problem;
    apr_size_t routes = (apr_size_t)route_count * sizeof(crm_histogram_t);
    int count = 0;
    void *memory;

    retained = ap_retained_data_get(key);
    if (retained) {
        return NULL;
    }
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &count);
    problem = crmapi_shm_make(&memory, (apr_size_t)count
                              * sizeof(crmapi_process_t) + routes,
                              "the metrics", main_server->process->pool, ptemp);
    if (problem) {
        return problem;
    }
    retained = ap_retained_data_create(key, sizeof(*retained));
    retained->process_count = count;
    retained->processes = memory;
    retained->routes = (crm_histogram_t *)(void *)
                       (retained->processes + count);
    retained->blocks = apr_hash_make(main_server->process->pool);
    return NULL;
}

/* Return the name of S: its host name and the port of its first address. */
static const char *name_of(const server_rec *s, apr_pool_t *pool)
{
    int port = s->addrs && s->addrs->host_port ? s->addrs->host_port : s->port;

    return apr_psprintf(pool, "%s:%d", s->server_hostname
                        ? s->server_hostname : "", port);
}

/* Return the vhost NAME, NULL if there is none. */
static const crmapi_vhost_t *find_vhost(const char *name)
{
    for (int i = 0; i < vhosts->nelts; i++) {
        if (!strcmp(APR_ARRAY_IDX(vhosts, i, crmapi_vhost_t).name, name)) {
            return &APR_ARRAY_IDX(vhosts, i, crmapi_vhost_t);
        }
    }
    return NULL;
}

/* Add S to the vhosts unless one has its name. A new vhost has no block yet. */
static void add_vhost(server_rec *s, apr_pool_t *pconf)
{
    const char *name = name_of(s, pconf);
    crmapi_vhost_t *vhost;

    if (!find_vhost(name)) {
        vhost = apr_array_push(vhosts);
        vhost->name = name;
        vhost->config = crmapi_config(s);
        vhost->counts = apr_hash_get(retained->blocks, name,
                                     APR_HASH_KEY_STRING);
    }
    crmapi_config(s)->vhost = name;
}

/* Return the size of a vhost's block. */
static apr_size_t block_size(void)
{
    return APR_ALIGN(sizeof(crmapi_counts_t) + (apr_size_t)route_count
                     * sizeof(crmapi_route_counts_t), ALIGNMENT);
}

/* Make blocks for the vhosts that have none, in one piece of shared memory. */
static const char *add_blocks(server_rec *main_server, apr_pool_t *ptemp)
{
    apr_pool_t *pool = main_server->process->pool;
    const char *problem = NULL;
    apr_size_t missing = 0;
    void *memory = NULL;

    for (int i = 0; i < vhosts->nelts; i++) {
        missing += !APR_ARRAY_IDX(vhosts, i, crmapi_vhost_t).counts;
    }
    if (missing) {
        problem = crmapi_shm_make(&memory, missing * block_size(),
                                  "the metrics", pool, ptemp);
    }
    for (int i = 0; memory && i < vhosts->nelts; i++) {
        crmapi_vhost_t *vhost = &APR_ARRAY_IDX(vhosts, i, crmapi_vhost_t);

        if (!vhost->counts) {
            vhost->counts = memory;
            apr_hash_set(retained->blocks, apr_pstrdup(pool, vhost->name),
                         APR_HASH_KEY_STRING, vhost->counts);
            memory = (char *)memory + block_size();
        }
    }
    return problem;
}

const char *crmapi_metrics_create(server_rec *main_server, apr_pool_t *pconf,
                                  apr_pool_t *ptemp)
{
    const char *problem;

    route_count = crmapi_mount_first(CRMAPI_MOUNTS);
    problem = retain(main_server, ptemp);
    if (problem) {
        return problem;
    }
    vhosts = apr_array_make(pconf, 8, sizeof(crmapi_vhost_t));
    for (server_rec *s = main_server; s; s = s->next) {
        if (crmapi_serves(crmapi_config(s))) {
            add_vhost(s, pconf);
        }
    }
    problem = add_blocks(main_server, ptemp);
    for (server_rec *s = main_server; s && !problem; s = s->next) {
        crmapi_config_t *config = crmapi_config(s);

        if (crmapi_serves(config)) {
            config->counts = apr_hash_get(retained->blocks, config->vhost,
                                          APR_HASH_KEY_STRING);
        }
    }
    return problem;
}

/* ---- processes ----------------------------------------------------------- */

/* Return whether the process PID runs. */
static int runs(apr_uint32_t pid)
{
    return pid && (!kill((pid_t)pid, 0) || errno != ESRCH);
}

/* Take the slot PROCESS for this process if it is free or its process was
 * killed. Return whether it was taken. */
static int claim(crmapi_process_t *process)
{
    apr_uint32_t self = (apr_uint32_t)getpid();
    apr_uint32_t before = __atomic_load_n(&process->pid, __ATOMIC_ACQUIRE);

    if (before != self
        && (runs(before)
            || !__atomic_compare_exchange_n(&process->pid, &before, self, 0,
                                            __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))) {
        return 0;
    }
    __atomic_store_n(&process->used, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&process->waiting, 0, __ATOMIC_RELAXED);
    return 1;
}

/* A cleanup: free this process's slot. */
static apr_status_t close_process(void *data)
{
    crmapi_process_t *process = data;

    own = &unshown;
    __atomic_store_n(&process->pid, 0, __ATOMIC_RELEASE);
    return APR_SUCCESS;
}

void crmapi_metrics_open(apr_pool_t *pchild)
{
    for (int i = 0; i < retained->process_count; i++) {
        if (claim(&retained->processes[i])) {
            own = &retained->processes[i];
            apr_pool_cleanup_register(pchild, own, close_process,
                                      apr_pool_cleanup_null);
            return;
        }
    }
}

void crmapi_metrics_used(int change)
{
    __atomic_fetch_add(&own->used, change, __ATOMIC_RELAXED);
}

void crmapi_metrics_waiting(int change)
{
    __atomic_fetch_add(&own->waiting, change, __ATOMIC_RELAXED);
}

void crmapi_metrics_processes(crmapi_process_t *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (int i = 0; i < retained->process_count; i++) {
        crmapi_process_t *one = &retained->processes[i];

        if (runs(__atomic_load_n(&one->pid, __ATOMIC_ACQUIRE))) {
            sum->pid++;
            sum->used += __atomic_load_n(&one->used, __ATOMIC_RELAXED);
            sum->waiting += __atomic_load_n(&one->waiting, __ATOMIC_RELAXED);
        }
    }
}

/* ---- counting ------------------------------------------------------------ */

/* Count the properties that only some responses have. */
static void count_rare(crmapi_counts_t *counts, const crm_response_t *response,
                       int status)
{
    if (status == HTTP_TOO_MANY_REQUESTS) {
        crm_metrics_add(&counts->limited, 1);
    }
    if (response->batched) {
        crm_metrics_add(&counts->batches, 1);
        crm_metrics_add(&counts->batched, (apr_uint64_t)response->batched);
    }
    if (response->sent) {
        crm_metrics_add(&counts->answered, 1);
    }
    if (response->look_up) {
        crm_metrics_add(&counts->look_ups[response->look_up], 1);
    }
}

void crmapi_metrics_count(const crmapi_request_t *request, int status)
{
    const crm_response_t *response = &request->response;
    crmapi_counts_t *counts = request->config->counts;
    int mount = crmapi_mount_number(request->mount);
    int route = crmapi_mount_first(mount) + response->route_number;
    apr_int64_t us = crm_time_monotonic() - request->begun;

    if (!counts || status < 100 || status >= 600) {
        return;
    }
    crm_metrics_add(&counts->routes[route].classes[status / 100 - 1], 1);
    crm_metrics_observe(&counts->requests[mount], us);
    crm_metrics_observe(&retained->routes[route], us);
    if (response->db_us > 0) {
        crm_metrics_observe(&counts->database[mount], response->db_us);
    }
    count_rare(counts, response, status);
}

void crmapi_metrics_wait(const crmapi_config_t *config,
                         apr_interval_time_t waited, int got)
{
    if (config->counts) {
        crm_metrics_observe(&config->counts->waits, waited);
        if (!got) {
            crm_metrics_add(&config->counts->busy, 1);
        }
    }
}

/* ---- reading ------------------------------------------------------------- */

const apr_array_header_t *crmapi_metrics_vhosts(void)
{
    return vhosts;
}

const crm_histogram_t *crmapi_metrics_routes(void)
{
    return retained->routes;
}

void crmapi_metrics_sum(crmapi_sums_t *sums, const crmapi_counts_t *counts)
{
    for (int mount = 0; mount < CRMAPI_MOUNTS; mount++) {
        int end = crmapi_mount_first(mount + 1);

        for (int i = crmapi_mount_first(mount); i < end; i++) {
            for (int class = 0; class < CRMAPI_CLASSES; class++) {
                sums->n[mount][class]
                    += crm_metrics_peek(&counts->routes[i].classes[class]);
            }
        }
    }
}

apr_uint64_t crmapi_metrics_of(const crmapi_sums_t *sums, int mount,
                               int class)
{
    apr_uint64_t all = 0;

    for (int i = 0; i < CRMAPI_MOUNTS; i++) {
        for (int j = 0; j < CRMAPI_CLASSES; j++) {
            if ((mount < 0 || i == mount) && (class < 0 || j == class)) {
                all += sums->n[i][j];
            }
        }
    }
    return all;
}

/* Add the requests that used the database, and their times, to TOTALS. */
static void add_database(crmapi_totals_t *totals,
                         const crmapi_counts_t *counts)
{
    for (int i = 0; i < CRMAPI_MOUNTS; i++) {
        const crm_histogram_t *histogram = &counts->database[i];

        for (int bucket = 0; bucket <= CRM_METRICS_BOUNDS; bucket++) {
            totals->db_requests
                += crm_metrics_peek(&histogram->buckets[bucket]);
        }
        totals->db_us += crm_metrics_peek(&histogram->sum_us);
    }
}

/* A callback of apr_hash_do(): add the crmapi_counts_t at BLOCK to the
 * crmapi_totals_t at BATON. */
static int add_block(void *baton, const void *key, apr_ssize_t len,
                     const void *block)
{
    crmapi_totals_t *totals = baton;
    const crmapi_counts_t *counts = block;

    (void)key;
    (void)len;
    crmapi_metrics_sum(&totals->requests, counts);
    add_database(totals, counts);
    totals->busy += crm_metrics_peek(&counts->busy);
    totals->batches += crm_metrics_peek(&counts->batches);
    totals->batched += crm_metrics_peek(&counts->batched);
    totals->refused += crm_metrics_peek(&counts->look_ups[CRM_LOOK_UP_REFUSED]);
    return 1;
}

void crmapi_metrics_totals(crmapi_totals_t *totals)
{
    memset(totals, 0, sizeof(*totals));
    apr_hash_do(add_block, totals, retained->blocks);
}
