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

struct crm_store_t {
    crm_store_backend_t backend;
    apr_int64_t timeout;
    crm_store_shared_t *shared;
    crm_log_t log;
    pthread_mutex_t mutex;      /* protects what follows */
    crm_store_check_t *queue, **end; /* posted, not sent yet */
    crm_store_check_t *sent;    /* under way together, not answered yet */
    apr_int64_t sent_at;        /* on crm_limit_clock() */
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
    store->end = &store->queue;
    pthread_mutex_init(&store->mutex, NULL);
    return store;
}

/* ---- availability -------------------------------------------------------- */

/* Return whether to ask the store: it is available, or this thread is the only
 * one of the host that retries. BUSY: the process uses the connection, perhaps
 * to retry. */
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

/* ---- the queue ----------------------------------------------------------- */

/* Mark the checks of LIST as done and wake the threads that wait for them. The
 * mutex is held. */
static void finish(crm_store_check_t *list)
{
    while (list) {
        crm_store_check_t *check = list;
        pthread_cond_t *waiter = check->waiter;

        list = check->next;
        STORE(check->done, 1);  /* now it may go */
        if (waiter) {
            pthread_cond_signal(waiter);
        }
    }
}

/* Finish what is under way, and if REASON is not NULL also the queue: the store
 * cannot be used. STORE's mutex is held, and its thread is no longer busy. */
static void finish_all(crm_store_t *store, const char *reason)
{
    finish(store->sent);
    store->sent = NULL;
    if (reason) {
        finish(store->queue);
        store->queue = NULL;
        store->end = &store->queue;
    }
}

/* Move up to CRM_STORE_TOGETHER checks from STORE's queue to those under way,
 * and set CHECKS to them. Return their number. The mutex is held. */
static int take_queue(crm_store_t *store, crm_store_check_t **checks)
{
    crm_store_check_t **link = &store->queue;
    int count = 0;

    while (*link && count < CRM_STORE_TOGETHER) {
        checks[count++] = *link;
        link = &(*link)->next;
    }
    store->sent = store->queue;
    store->queue = *link;
    *link = NULL;
    if (!store->queue) {
        store->end = &store->queue;
    }
    return count;
}

/* Send the queue. STORE's mutex is held, except while the back end works. No
 * thread is busy and nothing is under way. */
static void send_queue(crm_store_t *store)
{
    crm_store_check_t *checks[CRM_STORE_TOGETHER];
    int count = take_queue(store, checks);
    const char *reason;

    store->busy = 1;
    store->sent_at = crm_limit_clock();
    pthread_mutex_unlock(&store->mutex);
    reason = store->backend.send(store->backend.baton, checks, count,
                                 store->timeout);
    ADD(store->shared->trips, 1);
    if (reason) {
        leave(store, reason);
    }
    pthread_mutex_lock(&store->mutex);
    store->busy = 0;
    if (reason) {
        finish_all(store, reason);
    }
}

/* Note the answers to the checks of LIST, which travelled together. */
static void note_answers(const crm_store_t *store,
                         const crm_store_check_t *list)
{
    apr_uint64_t count = 0;

    STORE(store->shared->ahead_us, list->time_us - store->sent_at);
    for (; list; list = list->next) {
        count++;
    }
    ADD(store->shared->counted, count);
    come_back(store);
}

/* Receive the answers to what is under way. STORE's mutex is held, except while
 * the back end works. No thread is busy. */
static void receive_answers(crm_store_t *store)
{
    const char *reason;

    store->busy = 1;
    pthread_mutex_unlock(&store->mutex);
    reason = store->backend.receive(store->backend.baton, store->timeout);
    if (reason) {
        leave(store, reason);
    }
    else {
        note_answers(store, store->sent);
    }
    pthread_mutex_lock(&store->mutex);
    store->busy = 0;
    finish_all(store, reason);
}

/* Use the back end until CHECK is done, or another thread uses it. STORE's mutex
 * is held. */
static void work(crm_store_t *store, const crm_store_check_t *check)
{
    while (!store->busy && !check->done) {
        if (store->sent) {
            receive_answers(store);
        }
        if (!store->busy && !store->sent && store->queue) {
            send_queue(store);
        }
    }
}

/* Return the first check of LIST that a thread waits for, or NULL. */
static crm_store_check_t *first_awaited(crm_store_check_t *list)
{
    while (list && !list->waiter) {
        list = list->next;
    }
    return list;
}

/* If no thread uses STORE's back end, but one waits for it, wake one that does.
 * The mutex is held. */
static void pass_on(const crm_store_t *store)
{
    crm_store_check_t *check = first_awaited(store->sent);

    if (!check) {
        check = first_awaited(store->queue);
    }
    if (check && !store->busy) {
        pthread_cond_signal(check->waiter);
    }
}

void crm_store_post(crm_store_t *store, crm_store_check_t *check)
{
    check->posted_at = crm_limit_clock();
    check->answered = check->admitted = check->done = 0;
    check->remaining = 0;
    check->reset_us = check->time_us = 0;
    check->next = NULL;
    check->waiter = NULL;
    pthread_mutex_lock(&store->mutex);
    if (may_ask(store->shared, store->busy || store->sent)) {
        *store->end = check;
        store->end = &check->next;
    }
    else {
        check->done = 1;
    }
    pthread_mutex_unlock(&store->mutex);
}

/* Receive answers if they have arrived. STORE's mutex is held, except while the
 * back end works. */
static void take_ready(crm_store_t *store)
{
    if (!store->busy && store->sent
        && store->backend.ready(store->backend.baton)) {
        receive_answers(store);
    }
}

void crm_store_send(crm_store_t *store)
{
    pthread_mutex_lock(&store->mutex);
    take_ready(store);
    if (!store->busy && !store->sent && store->queue) {
        send_queue(store);
    }
    pass_on(store);
    pthread_mutex_unlock(&store->mutex);
}

void crm_store_take(crm_store_t *store)
{
    pthread_mutex_lock(&store->mutex);
    take_ready(store);
    pass_on(store);
    pthread_mutex_unlock(&store->mutex);
}

/* Wait until CHECK is done. */
static void wait_for(crm_store_t *store, crm_store_check_t *check)
{
    pthread_cond_t woken = PTHREAD_COND_INITIALIZER;

    pthread_mutex_lock(&store->mutex);
    check->waiter = &woken;
    for (;;) {
        work(store, check);
        if (check->done) {
            break;
        }
        pthread_cond_wait(&woken, &store->mutex);
    }
    check->waiter = NULL;
    pass_on(store);
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_destroy(&woken);
}

int crm_store_admits(crm_store_t *store, crm_store_check_t *check)
{
    if (!LOAD(check->done) && !LOAD(store->shared->away)) {
        wait_for(store, check);
    }
    return LOAD(check->done) && (!check->answered || check->admitted);
}

int crm_store_collect(crm_store_t *store, crm_store_check_t *check)
{
    if (!LOAD(check->done)) {
        wait_for(store, check);
    }
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
    const char *reason;

    apr_pool_cleanup_register(pool, store, close_store,
                              apr_pool_cleanup_null);
    if (!may_ask(store->shared, 0)) {
        return;
    }
    reason = store->backend.send(store->backend.baton, NULL, 0,
                                 store->timeout);
    if (reason) {
        leave(store, reason);
    }
    else {
        come_back(store);
    }
}

/* ---- admission ----------------------------------------------------------- */

/* The host's own window has counted the request before. It never holds more
 * requests than the store's window, and its times are not later, so it refuses
 * nothing that the store would admit. It limits what is admitted after the
 * store has lost its data, and it is not empty when the store goes away. */
void crm_store_charge(crm_store_t *store, crm_store_check_t *check,
                      const crm_limit_verdict_t *verdict,
                      const crm_limit_key_t *key, crm_limit_class_t class)
{
    check->key_id = key->key_id;
    check->class = class;
    check->limit = verdict->limit;
    crm_store_post(store, check);
}

void crm_store_settle(crm_store_t *store, crm_store_check_t *check,
                      crm_limit_verdict_t *verdict, crm_limit_t *block,
                      const crm_limit_key_t *key)
{
    if (!crm_store_collect(store, check)) {
        return;
    }
    if (!check->admitted) {
        /* From the time before the store was asked, so that the host does not
         * refuse longer than the store. */
        crm_limit_close(verdict, block, key, check->class,
                        check->posted_at + check->reset_us);
        verdict->reset_us = check->reset_us;
    }
    else if (check->remaining < verdict->remaining) {
        verdict->remaining = check->remaining;
        verdict->reset_us = check->reset_us;
    }
}

apr_int64_t crm_store_time(const crm_store_t *store)
{
    apr_int64_t ahead = store && !LOAD(store->shared->away)
                        ? LOAD(store->shared->ahead_us) : 0;

    return ahead ? crm_limit_clock() + ahead : apr_time_now();
}
