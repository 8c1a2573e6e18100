/* SPDX-License-Identifier: Apache-2.0 */
/* crm_store.h: budgets that several hosts share (contract 16.1) */
#ifndef CRM_STORE_H
#define CRM_STORE_H

#include "crm_limit.h"
#include "crm_log.h"

/* While a host counts by itself, one request tries the store again after this
 * many microseconds. */
#define CRM_STORE_RETRY_US APR_INT64_C(500000)

/* The minimum time between log lines about outages, in microseconds. */
#define CRM_STORE_LOG_AGAIN_US APR_INT64_C(60000000)

/* The maximum number of requests that are sent to a store together. */
#define CRM_STORE_TOGETHER 128

/* A request to be counted in the store. */
typedef struct crm_store_check_t {
    /* Set by the caller: */
    const char *key_id;
    crm_limit_class_t class;
    apr_uint32_t limit;         /* in 60 s, at least 1 */
    /* Set by the store: */
    int answered;               /* 0: unknown whether it was counted; the rest
                                   is 0 */
    int admitted;
    apr_uint32_t remaining;     /* as in crm_limit_verdict_t */
    apr_int64_t reset_us;       /* as in crm_limit_verdict_t */
    apr_int64_t time_us;        /* when the store counted it, on its clock:
                                   microseconds since 1970 */
} crm_store_check_t;

/* A way to reach a store. One thread at a time calls its functions. */
typedef struct crm_store_backend_t {
    const char *name;           /* for the log, without secrets */
    void *baton;
    /* Send the COUNT CHECKS, at most CRM_STORE_TOGETHER, together and set their
     * answers, within TIMEOUT microseconds of real time. If COUNT is 0, only
     * connect. Return NULL if all were answered. Otherwise close the connection
     * and return the reason: a text for the log without secrets, valid until
     * the next call. */
    const char *(*ask)(void *baton, crm_store_check_t *const *checks,
                       int count, apr_int64_t timeout);
    /* Close the connection. This is the last call in the process. */
    void (*close)(void *baton);
} crm_store_backend_t;

/* What the processes of a host know of the store: in shared memory, initially
 * zero. */
typedef struct crm_store_shared_t {
    apr_uint32_t away;          /* the host counts by itself */
    apr_uint32_t logged;        /* that it is away was logged */
    apr_int64_t retry_at;       /* time of the next retry, on
                                   crm_limit_clock() */
    apr_int64_t logged_at;
    apr_int64_t ahead_us;       /* the store's clock minus crm_limit_clock() */
    apr_uint64_t counted;       /* requests that the store counted */
    apr_uint64_t trips;         /* round trips for them */
    apr_uint64_t alone;         /* requests that the host counted by itself */
} crm_store_shared_t;

/* A store of one process: its connection, and the requests that wait for it.
 * Requests that wait at the same time travel together. */
typedef struct crm_store_t crm_store_t;

/* Return a store in RESULT_POOL. It uses BACKEND, waits at most TIMEOUT
 * microseconds for an answer, and shares SHARED with the host's other
 * processes. LOG gets a line when the host begins to count by itself, and when
 * the store counts again. */
crm_store_t *crm_store_create(const crm_store_backend_t *backend,
                              apr_int64_t timeout, crm_store_shared_t *shared,
                              const crm_log_t *log, apr_pool_t *result_pool);

/* Connect STORE, so that the first request does not wait for the connection.
 * Call this once in each process, before its threads start. The connection is
 * closed with POOL. */
void crm_store_open(crm_store_t *store, apr_pool_t *pool);

/* Count CHECK in STORE and set its answer. Return CHECK->answered. If it is 0,
 * the host must count by itself. */
int crm_store_ask(crm_store_t *store, crm_store_check_t *check);

/* Charge a request of CLASS by KEY to the budget of all hosts, after
 * crm_limit_admit() has admitted it to BLOCK with VERDICT. Set VERDICT to the
 * store's decision. If the store is away, VERDICT is not changed. */
void crm_store_admit(crm_store_t *store, crm_limit_verdict_t *verdict,
                     crm_limit_t *block, const crm_limit_key_t *key,
                     crm_limit_class_t class);

/* Return the time on the store's clock in microseconds since 1970, so that all
 * hosts send the same times to clients. Without a store (NULL) or while it is
 * away, return the host's time. */
apr_int64_t crm_store_time(const crm_store_t *store);

#endif /* CRM_STORE_H */
