/* SPDX-License-Identifier: Apache-2.0 */
/* crm_store.h: budgets that several hosts share (contract 16.1) */
#ifndef CRM_STORE_H
#define CRM_STORE_H

#include <pthread.h>

#include "crm_limit.h"
#include "crm_log.h"

/* While a host counts by itself, one request tries the store again after this
 * many microseconds. */
#define CRM_STORE_RETRY_US APR_INT64_C(500000)

/* The minimum time between log lines about outages, in microseconds. */
#define CRM_STORE_LOG_AGAIN_US APR_INT64_C(60000000)

/* The maximum number of requests that are sent to a store together. */
#define CRM_STORE_TOGETHER 128

/* A request to be counted in the store. It must not move between
 * crm_store_post() and crm_store_collect(). */
typedef struct crm_store_check_t {
    /* Set by the caller: */
    const char *key_id;
    crm_limit_class_t class;
    apr_uint32_t limit;         /* in 60 s, at least 1 */
    /* Set by the store: */
    apr_int64_t posted_at;      /* time of crm_store_post(), on
                                   crm_limit_clock() */
    int answered;               /* 0: unknown whether it was counted; the rest
                                   is 0 */
    int admitted;
    apr_uint32_t remaining;     /* as in crm_limit_verdict_t */
    apr_int64_t reset_us;       /* as in crm_limit_verdict_t */
    apr_int64_t time_us;        /* when the store counted it, on its clock:
                                   microseconds since 1970 */
    /* For crm_store.c: */
    struct crm_store_check_t *next;
    int done;                   /* it was answered, or never will be: set last,
                                   and read without a lock */
    pthread_cond_t *waiter;     /* of the thread that waits for it, or NULL */
} crm_store_check_t;

/* A way to reach a store. One thread at a time calls its functions. */
typedef struct crm_store_backend_t {
    const char *name;           /* for the log, without secrets */
    void *baton;
    /* Send the COUNT CHECKS, at most CRM_STORE_TOGETHER, together within
     * TIMEOUT microseconds of real time. If COUNT is 0, only connect. Return
     * NULL. Otherwise close the connection and return the reason: a text for
     * the log without secrets, valid until the next call. */
    const char *(*send)(void *baton, crm_store_check_t *const *checks,
                        int count, apr_int64_t timeout);
    /* Wait up to TIMEOUT for the answers to all checks of the last send() and
     * set them. Return as send() does. */
    const char *(*receive)(void *baton, apr_int64_t timeout);
    /* Return whether receive() has something to read: bytes, or the end of the
     * connection. */
    int (*ready)(void *baton);
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

/* A store of one process: its connection, and the requests to be sent. Requests
 * that are posted while others are under way travel together. */
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

/* Queue CHECK to be counted in STORE. It is sent by the next crm_store_send(),
 * or by crm_store_collect(). */
void crm_store_post(crm_store_t *store, crm_store_check_t *check);

/* Send what is queued in STORE, unless other checks are under way. This does not
 * wait for an answer. A thread calls it before it asks the database for itself
 * and others. */
void crm_store_send(crm_store_t *store);

/* Take the answers that have arrived in STORE. This does not wait for them. A
 * thread calls it before it wakes the others, so that they need not wait
 * again. */
void crm_store_take(crm_store_t *store);

/* Return whether STORE admits CHECK, which was posted, or the host must count by
 * itself: then crm_store_collect() does not wait. A thread that answers several
 * requests asks this. It waits for STORE's answer, which is on its way, rather than
 * wake each of their threads to do so. While STORE is away, it does not wait. */
int crm_store_admits(crm_store_t *store, crm_store_check_t *check);

/* Wait for the answer to CHECK, which was posted. Return CHECK->answered. If it
 * is 0, the host must count by itself. */
int crm_store_collect(crm_store_t *store, crm_store_check_t *check);

/* Post the CHECK of a request of CLASS by KEY, to be charged to the budget of all
 * hosts, after crm_limit_admit() has admitted it with VERDICT. The caller must call
 * crm_store_settle(), even if it no longer needs the decision. CHECK refers to
 * KEY. */
void crm_store_charge(crm_store_t *store, crm_store_check_t *check,
                      const crm_limit_verdict_t *verdict,
                      const crm_limit_key_t *key, crm_limit_class_t class);

/* Wait for the store's decision on CHECK, a request by KEY of
 * crm_store_charge(), and set VERDICT to it. BLOCK is that of
 * crm_limit_admit(). If the store is away, VERDICT is not changed. */
void crm_store_settle(crm_store_t *store, crm_store_check_t *check,
                      crm_limit_verdict_t *verdict, crm_limit_t *block,
                      const crm_limit_key_t *key);

/* Return the time on the store's clock in microseconds since 1970, so that all
 * hosts send the same times to clients. Without a store (NULL) or while it is
 * away, return the host's time. */
apr_int64_t crm_store_time(const crm_store_t *store);

#endif /* CRM_STORE_H */
