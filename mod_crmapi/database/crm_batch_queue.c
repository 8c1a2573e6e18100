/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_queue.c: requests of a process that wait for a statement */
#include "crm_batch_private.h"

#include <stdlib.h>
#include <string.h>

#include "apr_hash.h"
#include "apr_time.h"

#include "crm_time.h"

/* The maximum number of queues. The idle one that was not used for longest is
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

/* Interval at which a waiting request checks whether the database hangs. */
#define CROWD_CHECK apr_time_from_msec(500)

/* --- seats ---------------------------------------------------------------- */

void crm_seats_add(crm_seats_t *list, crm_seat_t *seat)
{
    seat->list = list;
    seat->next = NULL;
    seat->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = seat;
    list->last = seat;
}

void crm_seats_remove(crm_seat_t *seat)
{
    crm_seats_t *list = seat->list;

    *(seat->previous ? &seat->previous->next : &list->first) = seat->next;
    *(seat->next ? &seat->next->previous : &list->last) = seat->previous;
    seat->list = NULL;
}

/* Return an unused seat, NULL if there is no memory. */
static crm_seat_t *seat_find(crm_batcher_t *batcher)
{
    crm_seat_t *seat = batcher->unused.first;

    if (seat) {
        crm_seats_remove(seat);
        return seat;
    }
    seat = calloc(1, sizeof(*seat));
    if (seat) {
        pthread_cond_init(&seat->changed, &batcher->clock);
    }
    return seat;
}

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

/* Remove the idle queue that was not used for longest, if there is one. */
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

/* Return a new queue for VISIT's text, NULL if there is no memory. */
static crm_queue_t *queue_create(const crm_visit_t *visit, unsigned hash)
{
    crm_queue_t *queue = calloc(1, sizeof(*queue));

    if (queue) {
        queue->hash = hash;
        queue->text = strdup(visit->stmt.sql);
        queue->batch_text = strdup(crm_sql_batch(visit->sql, visit->pool));
        queue->binds = visit->stmt.count;
        queue->writes = visit->sql->row > 0;
        queue->rule = queue->writes ? &writes : &reads;
        queue->limit = CRM_BATCH_MAX;
        if (queue->text && queue->batch_text) {
            return queue;
        }
        crm_queue_free(queue);
    }
    return NULL;
}

/* Add a queue for VISIT's text to its batcher. Return NULL if there are too
 * many. */
static crm_queue_t *queue_add(const crm_visit_t *visit, unsigned hash)
{
    crm_batcher_t *batcher = visit->batcher;
    crm_queue_t *queue;

    if (batcher->queues >= QUEUES_MAX) {
        remove_oldest(batcher);
    }
    if (batcher->queues >= QUEUES_MAX) {
        return NULL;
    }
    queue = queue_create(visit, hash);
    if (queue) {
        queue->next = batcher->buckets[hash % CRM_BATCH_BUCKETS];
        batcher->buckets[hash % CRM_BATCH_BUCKETS] = queue;
        batcher->queues++;
    }
    return queue;
}

/* Return the queue of VISIT's text, which has the hash HASH. NULL: there is
 * none and none can be added. */
static crm_queue_t *queue_find(const crm_visit_t *visit, unsigned hash)
{
    crm_queue_t *queue = visit->batcher->buckets[hash % CRM_BATCH_BUCKETS];

    while (queue && (queue->hash != hash
                     || strcmp(queue->text, visit->stmt.sql))) {
        queue = queue->next;
    }
    if (!queue) {
        return queue_add(visit, hash);
    }
    return queue->binds == visit->stmt.count ? queue : NULL;
}

void crm_queue_wake(crm_queue_t *queue)
{
    if (queue->waiting.first && !queue->gathering) {
        pthread_cond_signal(&queue->waiting.first->changed);
    }
}

void crm_seat_decide(crm_seat_t *seat, crm_verdict_t verdict)
{
    crm_seats_remove(seat);
    seat->verdict = verdict;
}

/* --- waiting -------------------------------------------------------------- */

static int crowd(const crm_visit_t *visit, int change)
{
    const crm_lender_t *lender = visit->lender;

    return lender->crowd ? lender->crowd(change, lender->baton) : 0;
}

/* Return the time at which VISIT, which waits on SEAT, must check again. */
static apr_interval_time_t wake_time(const crm_visit_t *visit,
                                     const crm_seat_t *seat,
                                     apr_interval_time_t now)
{
    const crm_queue_t *queue = visit->queue;
    apr_interval_time_t end = visit->came + visit->lender->wait;
    apr_interval_time_t at = now + CROWD_CHECK;

    if (seat->batch) {
        return at;
    }
    if (seat == queue->waiting.first && !queue->gathering
        && queue->sent + queue->rule->holds_up < end) {
        end = queue->sent + queue->rule->holds_up;
    }
    return end < at ? end : at;
}

static void sleep_until(crm_batcher_t *batcher, crm_seat_t *seat,
                        apr_interval_time_t at)
{
    struct timespec end;

    end.tv_sec = (time_t)(at / APR_USEC_PER_SEC);
    end.tv_nsec = (long)(at % APR_USEC_PER_SEC) * 1000;
    pthread_cond_timedwait(&seat->changed, &batcher->lock, &end);
}

/* Return whether a request of QUEUE may become its leader at the time NOW. */
static int is_turn(const crm_queue_t *queue, apr_interval_time_t now)
{
    return !queue->gathering
           && (!queue->busy || now >= queue->sent + queue->rule->holds_up);
}

/* Decide at the time NOW what VISIT does, if no verdict was set. It stops
 * waiting if its time limit has passed or if it is CROWDED, and it leads if it
 * can. It can do neither while its batch is being built. If its write was sent
 * before it stops waiting, it must not run it again. */
static void look(const crm_visit_t *visit, crm_seat_t *seat,
                 apr_interval_time_t now, int crowded)
{
    crm_queue_t *queue = visit->queue;
    int late = !seat->batch && now >= visit->came + visit->lender->wait;

    if ((crowded || late) && (!seat->batch || seat->batch->built)) {
        crm_seat_decide(seat, seat->batch && queue->writes ? CRM_SEAT_LOST
                              : CRM_SEAT_ALONE);
        crm_queue_wake(queue);
    }
    else if (!seat->batch && is_turn(queue, now)) {
        crm_seat_decide(seat, CRM_SEAT_LEADS);
        queue->gathering = 1;
    }
}

/* Wait on SEAT until it has a verdict. The lock is held. */
static void wait_on(const crm_visit_t *visit, crm_seat_t *seat)
{
    int crowded = crowd(visit, 1);

    for (;;) {
        apr_interval_time_t now = crm_time_monotonic();

        look(visit, seat, now, crowded);
        if (seat->verdict != CRM_SEAT_WAIT) {
            break;
        }
        sleep_until(visit->batcher, seat, wake_time(visit, seat, now));
        if (seat->verdict != CRM_SEAT_WAIT) {
            break;
        }
        crowded = crowd(visit, 0);
    }
    crowd(visit, -1);
}

/* Join VISIT's queue, or become its leader. Return what to do, and copy the
 * seat to *SEAT_P. */
static crm_verdict_t join(const crm_visit_t *visit, crm_seat_t *seat_p)
{
    crm_queue_t *queue = visit->queue;
    crm_seat_t *seat;

    if (is_turn(queue, visit->came)) {
        queue->gathering = 1;
        return CRM_SEAT_LEADS;
    }
    seat = seat_find(visit->batcher);
    if (!seat) {
        return CRM_SEAT_ALONE;
    }
    seat->verdict = CRM_SEAT_WAIT;
    seat->sql = visit->sql;
    seat->batch = NULL;
    crm_seats_add(&queue->waiting, seat);
    wait_on(visit, seat);
    *seat_p = *seat;
    crm_seats_add(&visit->batcher->unused, seat);
    return seat_p->verdict;
}

crm_verdict_t crm_batch_enter(crm_visit_t *visit, crm_seat_t *seat_p)
{
    apr_ssize_t len = APR_HASH_KEY_STRING;
    unsigned hash = apr_hashfunc_default(visit->stmt.sql, &len);
    crm_verdict_t verdict = CRM_SEAT_ALONE;

    pthread_mutex_lock(&visit->batcher->lock);
    visit->queue = queue_find(visit, hash);
    if (visit->queue) {
        visit->queue->used = visit->came;
        verdict = join(visit, seat_p);
    }
    pthread_mutex_unlock(&visit->batcher->lock);
    return verdict;
}

void crm_queue_disband(crm_queue_t *queue, crm_batcher_t *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    queue->gathering = 0;
    while (queue->waiting.first) {
        crm_seat_t *seat = queue->waiting.first;

        crm_seat_decide(seat, CRM_SEAT_ALONE);
        pthread_cond_signal(&seat->changed);
    }
    pthread_mutex_unlock(&batcher->lock);
}
