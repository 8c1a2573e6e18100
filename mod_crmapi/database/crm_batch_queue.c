/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_queue.c: requests of a process that wait for a statement */
#include "crm_batch_private.h"

#include <stdlib.h>
#include <string.h>

#include "apr_time.h"

#include "crm_bell.h"
#include "crm_time.h"

/* The maximum number of queues. The least recently used idle one is
 * replaced. */
#define QUEUES_MAX 256

/* Reads: a request waits only a short time for others. */
static const crm_batch_rule_t reads = {
    apr_time_from_msec(1), apr_time_from_msec(5), 4, apr_time_from_msec(10)
};

/* Writes: most of their time is the commit, which takes as long for many as for
 * one. crm_sql_batch() limits the time in which they hold locks. */
static const crm_batch_rule_t writes = {
    apr_time_from_msec(20), apr_time_from_msec(20), 32, 0
};

/* How long a thread sleeps in poll() at first, before it looks whether its request
 * was answered meanwhile. Then twice as long, and so on. */
#define PATIENCE apr_time_from_msec(20)

/* Interval at which a waiting request checks whether the database hangs. */
#define OVERLOAD_CHECK apr_time_from_msec(500)

/* --- queues --------------------------------------------------------------- */

static int is_idle(const crm_queue_t *queue)
{
    return !queue->gathering && !queue->running && !queue->waiting.first;
}

void crm_queue_free(crm_queue_t *queue)
{
    free(queue->text);
    free(queue->batch_text);
    free(queue);
}

/* Remove the least recently used idle queue, if there is one. */
static void remove_oldest(crm_batcher_t *batcher)
{
    crm_queue_t **oldest = NULL, *queue;

    for (int i = 0; i < CRM_BATCH_BUCKETS; i++) {
        for (crm_queue_t **at = &batcher->buckets[i]; *at; at = &(*at)->next) {
            if (is_idle(*at) && (!oldest || (*at)->used < (*oldest)->used)) {
                oldest = at;
            }
        }
    }
    if (oldest) {
        queue = *oldest;
        *oldest = queue->next;
        crm_queue_free(queue);
        batcher->queues--;
    }
}

/* Return a new queue for CALL's text, NULL if there is no memory. */
static crm_queue_t *queue_create(const crm_batch_call_t *call, apr_uint64_t hash)
{
    crm_queue_t *queue = calloc(1, sizeof(*queue));

    if (queue) {
        queue->hash = hash;
        queue->text = strdup(call->stmt.sql);
        queue->batch_text = strdup(crm_sql_batch(call->sql, call->pool));
        queue->binds = call->stmt.count;
        queue->writes = call->sql->row > 0;
        queue->rule = queue->writes ? &writes : &reads;
        queue->limit = CRM_BATCH_MAX;
        if (queue->text && queue->batch_text) {
            return queue;
        }
        crm_queue_free(queue);
    }
    return NULL;
}

/* Add a queue for CALL's text to its batcher. Return NULL if there are too
 * many. */
static crm_queue_t *queue_add(const crm_batch_call_t *call, apr_uint64_t hash)
{
    crm_batcher_t *batcher = call->batcher;
    crm_queue_t *queue;

    if (batcher->queues >= QUEUES_MAX) {
        remove_oldest(batcher);
    }
    if (batcher->queues >= QUEUES_MAX) {
        return NULL;
    }
    queue = queue_create(call, hash);
    if (queue) {
        queue->next = batcher->buckets[hash % CRM_BATCH_BUCKETS];
        batcher->buckets[hash % CRM_BATCH_BUCKETS] = queue;
        batcher->queues++;
    }
    return queue;
}

/* Return the queue of CALL's text, which has the hash HASH. NULL: there is
 * none and none can be added. */
static crm_queue_t *queue_find(const crm_batch_call_t *call, apr_uint64_t hash)
{
    crm_queue_t *queue = call->batcher->buckets[hash % CRM_BATCH_BUCKETS];

    while (queue && (queue->hash != hash
                     || strcmp(queue->text, call->stmt.sql))) {
        queue = queue->next;
    }
    if (!queue) {
        return queue_add(call, hash);
    }
    return queue->binds == call->stmt.count ? queue : NULL;
}

crm_wake_t crm_queue_next(crm_queue_t *queue)
{
    static const crm_wake_t nobody = {NULL, -1};

    return queue->waiting.first && !queue->gathering
           ? crm_waiter_set(queue->waiting.first, CRM_VERDICT_CHECK) : nobody;
}

/* Wake the first request that waits in QUEUE, if QUEUE has no leader. It becomes
 * the leader unless another request is faster. The lock is held. */
static void wake_next(crm_queue_t *queue)
{
    crm_wake_t wake = crm_queue_next(queue);

    crm_waiter_wake(&wake);
}

/* --- waiting -------------------------------------------------------------- */

static int add_waiting(const crm_batch_call_t *call, int change)
{
    const crm_conn_source_t *source = call->source;

    return source->add_waiting ? source->add_waiting(change, source->baton) : 0;
}

/* Return the time at which CALL, which waits on WAITER, must check again. */
static apr_interval_time_t wake_time(const crm_batch_call_t *call,
                                     const crm_batch_waiter_t *waiter,
                                     apr_interval_time_t now)
{
    const crm_queue_t *queue = call->queue;
    apr_interval_time_t end = call->came + call->source->wait;
    apr_interval_time_t at = now + OVERLOAD_CHECK;

    if (waiter->batch) {
        return at;
    }
    if (waiter == queue->waiting.first && !queue->gathering
        && queue->sent + queue->rule->holds_up < end) {
        end = queue->sent + queue->rule->holds_up;
    }
    return end < at ? end : at;
}

/* Return whether a request of QUEUE may become its leader at the time NOW. */
static int is_turn(const crm_queue_t *queue, apr_interval_time_t now)
{
    return !queue->gathering
           && (!queue->busy || now >= queue->sent + queue->rule->holds_up);
}

/* Set the verdict of CALL, which has none, at the time NOW.
 * 1. Give up when late or OVERLOADED (add_waiting()), but not while its batch is being
 *    built. A write that was sent must not be sent again.
 * 2. Lead if no one does. */
static void decide(const crm_batch_call_t *call, crm_batch_waiter_t *waiter,
                   apr_interval_time_t now, int overloaded)
{
    crm_queue_t *queue = call->queue;
    int late = !waiter->batch && now >= call->came + call->source->wait;
    int gives_up = late || overloaded > (waiter->batch && queue->writes);

    if (gives_up && (!waiter->batch || waiter->batch->built)) {
        crm_waiter_decide(waiter, waiter->batch && queue->writes
                                  ? CRM_VERDICT_LOST : CRM_VERDICT_ALONE);
        wake_next(queue);
    }
    else if (!waiter->batch && is_turn(queue, now)) {
        crm_waiter_decide(waiter, CRM_VERDICT_LEADS);
        queue->gathering = 1;
    }
}

/* Set the verdict of WAITER, which is in CALL's queue, if it is time. Return
 * when to look again, or 0 if the verdict is final. The lock is held, and
 * released. */
static apr_interval_time_t look(const crm_batch_call_t *call,
                                crm_batch_waiter_t *waiter, int overloaded)
{
    apr_interval_time_t now = crm_time_monotonic(), next = 0;

    if (crm_waiter_verdict(waiter) < CRM_VERDICT_BUSY) {
        crm_waiter_set(waiter, CRM_VERDICT_WAIT);
        decide(call, waiter, now, overloaded);
    }
    if (crm_waiter_verdict(waiter) < CRM_VERDICT_LEADS) {
        next = wake_time(call, waiter, now);
    }
    pthread_mutex_unlock(&call->batcher->lock);
    return next;
}

/* Wait on WAITER, which is in CALL's queue, until its verdict is final. Return
 * it. The lock is held, and released. */
static crm_verdict_t wait_on(const crm_batch_call_t *call,
                             crm_batch_waiter_t *waiter)
{
    int overloaded = add_waiting(call, 1);
    apr_interval_time_t next;

    while ((next = look(call, waiter, overloaded))) {
        crm_waiter_sleep(waiter, next);
        if (crm_waiter_verdict(waiter) >= CRM_VERDICT_LEADS) {
            break;
        }
        overloaded = add_waiting(call, 0);
        pthread_mutex_lock(&call->batcher->lock);
    }
    add_waiting(call, -1);
    return crm_waiter_verdict(waiter);
}

/* Let WAITER's thread sleep in poll(), if CALL's client can be waited for and
 * not too many threads do. The lock is held. */
static void poll_client(crm_batch_waiter_t *waiter,
                        const crm_batch_call_t *call)
{
    const crm_conn_source_t *source = call->source;

    waiter->bell = -1;
    if (source->answer && source->client >= 0
        && __atomic_load_n(&call->batcher->polling, __ATOMIC_RELAXED)
           < source->clients_max) {
        waiter->bell = crm_bell();
    }
    if (waiter->bell >= 0) {
        __atomic_add_fetch(&call->batcher->polling, 1, __ATOMIC_RELAXED);
    }
}

/* Wait in CALL's queue as WAITER for a verdict, and return it. The lock is held,
 * and released. */
static crm_verdict_t join(const crm_batch_call_t *call,
                          crm_batch_waiter_t *waiter)
{
    crm_verdict_t verdict;

    waiter->sql = call->sql;
    waiter->source = call->source;
    waiter->patience = PATIENCE;
    poll_client(waiter, call);
    crm_waiters_add(&call->queue->waiting, waiter);
    verdict = wait_on(call, waiter);
    if (waiter->bell >= 0) {
        __atomic_sub_fetch(&call->batcher->polling, 1, __ATOMIC_RELAXED);
    }
    return verdict;
}

crm_verdict_t crm_batch_enter(crm_batch_call_t *call,
                              crm_batch_waiter_t *waiter)
{
    apr_uint64_t hash = call->sql->hash;
    crm_verdict_t verdict = CRM_VERDICT_ALONE;
    crm_queue_t *queue;

    pthread_mutex_lock(&call->batcher->lock);
    queue = call->queue = queue_find(call, hash);
    if (queue) {
        queue->used = call->came;
        if (!is_turn(queue, call->came)) {
            return join(call, waiter);
        }
        queue->gathering = 1;
        verdict = CRM_VERDICT_LEADS;
    }
    pthread_mutex_unlock(&call->batcher->lock);
    return verdict;
}

void crm_queue_disband(crm_queue_t *queue, crm_batcher_t *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    queue->gathering = 0;
    while (queue->waiting.first) {
        crm_wake_t wake = crm_waiter_decide(queue->waiting.first,
                                            CRM_VERDICT_ALONE);

        crm_waiter_wake(&wake);
    }
    pthread_mutex_unlock(&batcher->lock);
}
