/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_metrics.h: the counters of all processes, in shared memory */
#ifndef MOD_CRMAPI_METRICS_H
#define MOD_CRMAPI_METRICS_H

#include "crm_metrics.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_mount.h"
#include "mod_crmapi_request.h"

/* Classes of a status, from 1xx to 5xx. */
#define CRMAPI_CLASSES 5

/* All members of the following structures are atomic. They start at 0 and never
 * decrease. */

/* Requests of one route on one vhost. */
typedef struct crmapi_route_counts_t {
    apr_uint64_t classes[CRMAPI_CLASSES];
} crmapi_route_counts_t;

/* The counters of a vhost, known by the vhost's host name and port. */
typedef struct crmapi_counts_t {
    crm_histogram_t requests[CRMAPI_MOUNTS]; /* durations of requests */
    crm_histogram_t database[CRMAPI_MOUNTS]; /* their times on the database,
                                                   if they used it */
    crm_histogram_t waits;      /* for a connection */
    apr_uint64_t limited;       /* responses 429 */
    apr_uint64_t busy;          /* requests that got no connection in time */
    apr_uint64_t batches;       /* statements that several requests shared */
    apr_uint64_t batched;       /* requests that shared a statement */
    apr_uint64_t answered;      /* those that the thread of another answered */
    apr_uint64_t look_ups[CRM_LOOK_UPS]; /* by result, of keys that were not in
                                            memory; the first is not used */
    crmapi_route_counts_t routes[]; /* by crmapi_mount_t.first and
                                       crm_response_t.route_number */
} crmapi_counts_t;

/* A process, in a cache line of its own. */
typedef struct crmapi_process_t {
    apr_uint32_t pid;           /* 0: not in use */
    apr_int32_t used;           /* database connections in use */
    apr_int32_t waiting;        /* threads that wait for a connection, or for a
                                   statement that they share */
    char unused[52];
} crmapi_process_t;

/* A vhost whose counters are shown. */
typedef struct crmapi_vhost_t {
    const char *name;           /* "www.example.com:443" */
    const crmapi_config_t *config; /* of the first server with this name */
    crmapi_counts_t *counts;
} crmapi_vhost_t;

/* Requests by mount and class of their status. */
typedef struct crmapi_sums_t {
    apr_uint64_t n[CRMAPI_MOUNTS][CRMAPI_CLASSES];
} crmapi_sums_t;

/* Sums over all vhosts since the parent process started, including vhosts that
 * are no longer configured. */
typedef struct crmapi_totals_t {
    crmapi_sums_t requests;
    apr_uint64_t db_requests;
    apr_uint64_t db_us;
    apr_uint64_t busy;
    apr_uint64_t batches;
    apr_uint64_t batched;
    apr_uint64_t refused;       /* look-ups of keys, by their addresses */
} crmapi_totals_t;

/* Create the counters of the servers from MAIN_SERVER on that serve a mount, or
 * reuse those from before a restart. Call crmapi_mounts_create() before. Return
 * NULL or an error, in PTEMP. */
const char *crmapi_metrics_create(server_rec *main_server, apr_pool_t *pconf,
                                  apr_pool_t *ptemp);

/* Take gauges for this process until PCHILD is destroyed. */
void crmapi_metrics_open(apr_pool_t *pchild);

/* Count REQUEST, which was answered with STATUS. */
void crmapi_metrics_count(const crmapi_request_t *request, int status);

/* Count a request to CONFIG's server that waited WAITED microseconds for a
 * connection. GOT: whether it got one. */
void crmapi_metrics_wait(const crmapi_config_t *config,
                         apr_interval_time_t waited, int got);

/* Add CHANGE to the connections that this process uses, or to its threads that
 * wait for one. */
void crmapi_metrics_used(int change);
void crmapi_metrics_waiting(int change);

/* Add the requests of COUNTS to SUMS. */
void crmapi_metrics_sum(crmapi_sums_t *sums, const crmapi_counts_t *counts);

/* Return the number of requests in SUMS of MOUNT and CLASS; -1: of all. */
apr_uint64_t crmapi_metrics_of(const crmapi_sums_t *sums, int mount,
                               int class);

/* Set *TOTALS to the sums over all vhosts. */
void crmapi_metrics_totals(crmapi_totals_t *totals);

/* Return the vhosts, of crmapi_vhost_t, in the order of the configuration; NULL
 * if there are no counters. */
const apr_array_header_t *crmapi_metrics_vhosts(void);

/* Return the histograms of requests by route, over all vhosts. The index is
 * that of crmapi_counts_t.routes. */
const crm_histogram_t *crmapi_metrics_routes(void);

/* Set *SUM to the sums of the gauges of all running processes, and its pid to
 * their number. */
void crmapi_metrics_processes(crmapi_process_t *sum);

#endif /* MOD_CRMAPI_METRICS_H */
