/* SPDX-License-Identifier: Apache-2.0 */
/* crm_store.c: budgets that several hosts share: queueing requests for the
 * store, and counting without it */
#include "crm_store.h"

#include <pthread.h>

#include "apr_strings.h"
#include "apr_time.h"

#define LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define STORE(place, value) \
    __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define ADD(place, n) __atomic_fetch_add(&(place), (n), __ATOMIC_RELAXED)

/* A thread that waits for the answer to its check. */
typedef struct waiter_t {
    struct waiter_t *next;
    crm_store_check_t *check;
    pthread_cond_t woken;
    int done;                   /* the check was answered, or failed */
    int leads;                  /* the thread must send the checks of all that
                                   wait */
} waiter_t;

struct crm_store_t {
    crm_store_backend_t backend;
    apr_int64_t timeout;
    crm_store_shared_t *shared;
    crm_log_t log;
    pthread_mutex_t mutex;      /* protects what follows */
    waiter_t *first, **end;     /* the queue */
    int busy;                   /* a thread uses the back end */
};

crm_store_t *crm_store_create(const crm_store_backend_t *backend,
                              apr_int64_t timeout, crm_store_shared_t *shared,
                              const crm_log_t *log, apr_pool_t *result_pool)
{
    crm_store_t *store = apr_pcalloc(result_pool, sizeof(*store));

    store->backend = *backend;
    store->timeout = timeout;
    store->shared = shared;
    store->log = *log;
    store->end = &store->first;
    pthread_mutex_init(&store->mutex, NULL);
    return store;
}

/* ---- availability -------------------------------------------------------- */

/* Return whether to ask the store: it is available, or this thread is the only
 * one of the host that retries. BUSY: another thread of the process uses the
 * connection, perhaps to retry. */
static int may_ask(crm_store_shared_t *shared, int busy)
{
    apr_int64_t retry_at = LOAD(shared->retry_at), now;

    if (!LOAD(shared->away)) {
        return 1;
    }
    now = crm_limit_clock();
    return !busy && now >= retry_at
           && __atomic_compare_exchange_n(&shared->retry_at, &retry_at,
                                          now + CRM_STORE_RETRY_US, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Note that the store is away because of REASON: the host counts by itself. */
static void leave(const crm_store_t *store, const char *reason)
{
    crm_store_shared_t *shared = store->shared;
    apr_int64_t now = crm_limit_clock(), last = LOAD(shared->logged_at);
    char line[512];

    STORE(shared->retry_at, now + CRM_STORE_RETRY_US);
    STORE(shared->away, 1);
    if ((!last || now - last >= CRM_STORE_LOG_AGAIN_US)
        && !__atomic_exchange_n(&shared->logged, 1, __ATOMIC_ACQ_REL)) {
        STORE(shared->logged_at, now);
        apr_snprintf(line, sizeof(line), "CRM4002: the rate limit store %s "
                     "cannot be used; this host counts requests by itself: %s",
                     store->backend.name, reason);
        store->log.write(store->log.baton, CRM_LOG_WARNING, line);
    }
}

/* Note that the store has answered. */
static void come_back(const crm_store_t *store)
{
    crm_store_shared_t *shared = store->shared;
    char line[512];

    if (!LOAD(shared->away)) {
        return;
    }
    STORE(shared->away, 0);
    if (__atomic_exchange_n(&shared->logged, 0, __ATOMIC_ACQ_REL)) {
        apr_snprintf(line, sizeof(line), "CRM4003: the rate limit store %s "
                     "counts requests again", store->backend.name);
        store->log.write(store->log.baton, CRM_LOG_NOTICE, line);
    }
}

/* Send the COUNT CHECKS to the back end and note whether it is available. */
static void ask(const crm_store_t *store, crm_store_check_t *const *checks,
                int count)
{
    crm_store_shared_t *shared = store->shared;
    const char *reason = store->backend.ask(store->backend.baton, checks,
                                            count, store->timeout);
    apr_uint64_t answered = 0;

    for (int i = 0; i < count; i++) {
        if (checks[i]->answered) {
            answered++;
            STORE(shared->ahead_us, checks[i]->time_us - crm_limit_clock());
        }
    }
    ADD(shared->counted, answered);
    ADD(shared->trips, count > 0);
    if (reason) {
        leave(store, reason);
    }
    else {
        come_back(store);
    }
}

/* ---- the queue ----------------------------------------------------------- */

/* Take up to CRM_STORE_TOGETHER waiters from STORE's queue, whose mutex is held.
 * Set CHECKS to their checks and *COUNT_P to their number. Return the first
 * waiter of the list, which ends with NULL. */
static waiter_t *take_queue(crm_store_t *store, crm_store_check_t **checks,
                            int *count_p)
{
    waiter_t *batch = store->first, *waiter, **link = &store->first;
    int count = 0;

    while ((waiter = *link) && count < CRM_STORE_TOGETHER) {
        checks[count++] = waiter->check;
        link = &waiter->next;
    }
    store->first = *link;
    *link = NULL;
    if (!store->first) {
        store->end = &store->first;
    }
    *count_p = count;
    return batch;
}

/* Wake the waiters of BATCH, which were answered, except OWN. The mutex is
 * held. */
static void wake_all(waiter_t *batch, const waiter_t *own)
{
    while (batch) {
        waiter_t *waiter = batch;

        batch = batch->next;    /* a woken thread's waiter is gone */
        waiter->done = 1;
        if (waiter != own) {
            pthread_cond_signal(&waiter->woken);
        }
    }
}

/* Send the checks of all that wait, including OWN, then make the next thread
 * the leader. STORE's mutex is held, except while the back end works. */
static void lead(crm_store_t *store, const waiter_t *own)
{
    crm_store_check_t *checks[CRM_STORE_TOGETHER];
    int count;
    waiter_t *batch = take_queue(store, checks, &count);

    pthread_mutex_unlock(&store->mutex);
    ask(store, checks, count);
    pthread_mutex_lock(&store->mutex);
    wake_all(batch, own);
    if (LOAD(store->shared->away)) {
        /* Requests that have arrived meanwhile need not wait. */
        while (store->first) {
            wake_all(take_queue(store, checks, &count), NULL);
        }
    }
    store->busy = store->first != NULL;
    if (store->first) {
        store->first->leads = 1;
        pthread_cond_signal(&store->first->woken);
    }
}

/* Put CHECK in STORE's queue and wait for its answer. The mutex is held. */
static void wait_answer(crm_store_t *store, crm_store_check_t *check)
{
    waiter_t own = {NULL, check, PTHREAD_COND_INITIALIZER, 0, 0};

    *store->end = &own;
    store->end = &own.next;
    own.leads = !store->busy;
    store->busy = 1;
    while (!own.done) {
        if (own.leads) {
            own.leads = 0;
            lead(store, &own);
        }
        else {
            pthread_cond_wait(&own.woken, &store->mutex);
        }
    }
    pthread_cond_destroy(&own.woken);
}

int crm_store_ask(crm_store_t *store, crm_store_check_t *check)
{
    check->answered = check->admitted = 0;
    check->remaining = 0;
    check->reset_us = check->time_us = 0;
    pthread_mutex_lock(&store->mutex);
    if (may_ask(store->shared, store->busy)) {
        wait_answer(store, check);
    }
    pthread_mutex_unlock(&store->mutex);
    ADD(store->shared->alone, !check->answered);
    return check->answered;
}

static apr_status_t close_store(void *store)
{
    crm_store_backend_t *backend = &((crm_store_t *)store)->backend;

    backend->close(backend->baton);
    return APR_SUCCESS;
}

void crm_store_open(crm_store_t *store, apr_pool_t *pool)
{
    apr_pool_cleanup_register(pool, store, close_store,
                              apr_pool_cleanup_null);
    if (may_ask(store->shared, 0)) {
        ask(store, NULL, 0);
    }
}

/* ---- admission ----------------------------------------------------------- */

/* The host's own window has counted the request before. It never holds more
 * requests than the store's window, and its times are not later, so it refuses
 * nothing that the store would admit. It limits what is admitted after the
 * store has lost its data, and it is not empty when the store goes away. */
void crm_store_admit(crm_store_t *store, crm_limit_verdict_t *verdict,
                     crm_limit_t *block, const crm_limit_key_t *key,
                     crm_limit_class_t class)
{
    crm_store_check_t check = {key->key_id, class, verdict->limit,
                               0, 0, 0, 0, 0};
    apr_int64_t began = crm_limit_clock();

    if (!crm_store_ask(store, &check)) {
        return;
    }
    if (!check.admitted) {
        /* From the time before the store was asked, so that the host does not
         * refuse longer than the store. */
        crm_limit_close(verdict, block, key, class, began + check.reset_us);
        verdict->reset_us = check.reset_us;
    }
    else if (check.remaining < verdict->remaining) {
        verdict->remaining = check.remaining;
        verdict->reset_us = check.reset_us;
    }
}

apr_int64_t crm_store_time(const crm_store_t *store)
{
    apr_int64_t ahead = store && !LOAD(store->shared->away)
                        ? LOAD(store->shared->ahead_us) : 0;

    return ahead ? crm_limit_clock() + ahead : apr_time_now();
}
