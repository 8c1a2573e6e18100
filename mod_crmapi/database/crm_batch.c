/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch.c: concurrent requests of a process share a statement */
#include "crm_batch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apr_hash.h"
#include "apr_time.h"

#include "crm_db_private.h"
#include "crm_time.h"

/* The maximum number of queues. The idle one that was not used for longest is
 * replaced. */
#define QUEUES_MAX 256
#define BUCKETS 512

/* After this time a statement no longer holds up requests that come later. */
#define HOLDS_UP apr_time_from_msec(1)

/* A batch takes as many requests as were lately answered in BATCH_TIME, and at
 * least BATCH_MIN: a busy machine makes single statements slow, and that must
 * not end sharing. Where a request takes SLOW or longer, a statement of its
 * own costs nothing in comparison, and no request waits for another. A request
 * counts as COST_MAX at most, so that a lock or a pause is soon forgotten. */
#define BATCH_TIME apr_time_from_msec(5)
#define BATCH_MIN 4
#define SLOW apr_time_from_msec(10)
#define COST_MAX apr_time_from_msec(40)

/* How often a waiting request looks whether the database hangs. */
#define CROWD_CHECK apr_time_from_msec(500)

/* A result that several requests share. */
typedef struct crm_shared_t {
    PGresult *result;
    int users;                  /* atomic */
} crm_shared_t;

/* What a waiting request is to do. */
typedef enum verdict_t {
    WAIT,
    LEAD,                       /* be the leader of its queue */
    ANSWERED,                   /* take the rows */
    LATE,                       /* the statement was not answered in time */
    ALONE                       /* run its statement by itself */
} verdict_t;

typedef struct seat_t seat_t;

/* Seats in their order. */
typedef struct list_t {
    seat_t *first;
    seat_t *last;
} list_t;

/* A request that waits. Seats are reused and freed with the batcher only, so
 * that CHANGED can be signalled after the lock was released. */
struct seat_t {
    seat_t *next, *previous;
    list_t *list;               /* that of a queue or a batch, or NULL */
    pthread_cond_t changed;
    verdict_t verdict;
    const crm_sql_t *sql;
    const struct batch_t *batch; /* the one that has taken it, or NULL */
    apr_interval_time_t taken;  /* when it was taken */
    int number;                 /* in the batch, from 1 */
    /* for ANSWERED */
    crm_shared_t *shared;
    int first, count;
    apr_interval_time_t timeout; /* for LATE */
};

/* The requests with one text. */
typedef struct queue_t {
    struct queue_t *next;       /* in the same bucket */
    unsigned hash;
    char *text;                 /* from malloc(), as the next */
    char *batch_text;           /* crm_sql_batch() */
    int binds;
    list_t waiting;
    int gathering;              /* there is a leader that has not yet taken
                                   them */
    int running;                /* statements sent and not answered */
    apr_interval_time_t sent;   /* when the last was sent */
    apr_interval_time_t cost;   /* time for a request, a moving average */
    apr_interval_time_t used;   /* when a request came last */
} queue_t;

struct crm_batcher_t {
    pthread_mutex_t lock;       /* of all that follows */
    pthread_condattr_t clock;
    queue_t *buckets[BUCKETS];
    int queues;
    list_t unused;              /* seats */
};

/* A statement for several requests; a leader's. */
typedef struct batch_t {
    queue_t *queue;
    list_t seats;               /* requests that still wait for it, without the
                                   leader */
    int count;                  /* requests, with the leader */
    const crm_sql_t *sqls[CRM_BATCH_MAX];
    int built;                  /* SQLS are no longer needed */
    apr_interval_time_t began;
    /* Its result: rows of each request. NULL: it failed. */
    crm_shared_t *shared;
    int first[CRM_BATCH_MAX], rows[CRM_BATCH_MAX];
    apr_interval_time_t timeout; /* it had no answer within this time; 0: it
                                   had */
} batch_t;

/* A call of crm_batch_read(). */
typedef struct visit_t {
    crm_batcher_t *batcher;
    queue_t *queue;
    crm_stmt_t stmt;
    const crm_sql_t *sql;
    const crm_lender_t *lender;
    crm_rows_t *rows;
    crm_batch_part_t *part;
    apr_interval_time_t came;
    apr_pool_t *pool;
} visit_t;

/* --- seats ---------------------------------------------------------------- */

static void list_add(list_t *list, seat_t *seat)
{
    seat->list = list;
    seat->next = NULL;
    seat->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = seat;
    list->last = seat;
}

/* Take SEAT out of its list. */
static void list_remove(seat_t *seat)
{
    list_t *list = seat->list;

    *(seat->previous ? &seat->previous->next : &list->first) = seat->next;
    *(seat->next ? &seat->next->previous : &list->last) = seat->previous;
    seat->list = NULL;
}

/* Return an unused seat, NULL if there is no memory. */
static seat_t *seat_find(crm_batcher_t *batcher)
{
    seat_t *seat = batcher->unused.first;

    if (seat) {
        list_remove(seat);
        return seat;
    }
    seat = calloc(1, sizeof(*seat));
    if (seat) {
        pthread_cond_init(&seat->changed, &batcher->clock);
    }
    return seat;
}

/* --- queues --------------------------------------------------------------- */

static int is_idle(const queue_t *queue)
{
    return !queue->gathering && !queue->running && !queue->waiting.first;
}

static void queue_free(queue_t *queue)
{
    free(queue->text);
    free(queue->batch_text);
    free(queue);
}

/* Remove the idle queue that was not used for longest, if there is one. */
static void remove_oldest(crm_batcher_t *batcher)
{
    queue_t **oldest = NULL, *queue;

    for (int i = 0; i < BUCKETS; i++) {
        for (queue_t **at = &batcher->buckets[i]; *at; at = &(*at)->next) {
            if (is_idle(*at) && (!oldest || (*at)->used < (*oldest)->used)) {
                oldest = at;
            }
        }
    }
    if (oldest) {
        queue = *oldest;
        *oldest = queue->next;
        queue_free(queue);
        batcher->queues--;
    }
}

/* Return a new queue for VISIT's text, NULL if there is no memory. */
static queue_t *queue_create(const visit_t *visit, unsigned hash)
{
    queue_t *queue = calloc(1, sizeof(*queue));

    if (queue) {
        queue->hash = hash;
        queue->text = strdup(visit->stmt.sql);
        queue->batch_text = strdup(crm_sql_batch(visit->sql, visit->pool));
        queue->binds = visit->stmt.count;
        if (queue->text && queue->batch_text) {
            return queue;
        }
        queue_free(queue);
    }
    return NULL;
}

/* Add a queue for VISIT's text to its batcher. Return NULL if there are too
 * many. */
static queue_t *queue_add(const visit_t *visit, unsigned hash)
{
    crm_batcher_t *batcher = visit->batcher;
    queue_t *queue;

    if (batcher->queues >= QUEUES_MAX) {
        remove_oldest(batcher);
    }
    if (batcher->queues >= QUEUES_MAX) {
        return NULL;
    }
    queue = queue_create(visit, hash);
    if (queue) {
        queue->next = batcher->buckets[hash % BUCKETS];
        batcher->buckets[hash % BUCKETS] = queue;
        batcher->queues++;
    }
    return queue;
}

/* Return the queue of VISIT's text, which has the hash HASH. NULL: there is
 * none and none can be added. */
static queue_t *queue_find(const visit_t *visit, unsigned hash)
{
    queue_t *queue = visit->batcher->buckets[hash % BUCKETS];

    while (queue && (queue->hash != hash
                     || strcmp(queue->text, visit->stmt.sql))) {
        queue = queue->next;
    }
    if (!queue) {
        return queue_add(visit, hash);
    }
    return queue->binds == visit->stmt.count ? queue : NULL;
}

/* Return the number of requests that a batch of QUEUE may have. */
static int most(const queue_t *queue)
{
    apr_interval_time_t n = BATCH_TIME / (queue->cost ? queue->cost : 1);

    if (queue->cost >= SLOW) {
        return 1;
    }
    return n < BATCH_MIN ? BATCH_MIN
           : n > CRM_BATCH_MAX ? CRM_BATCH_MAX : (int)n;
}

/* Wake the first request that waits in QUEUE if there is no leader: it leads at
 * the right time unless another comes before. */
static void wake_first(queue_t *queue)
{
    if (queue->waiting.first && !queue->gathering) {
        pthread_cond_signal(&queue->waiting.first->changed);
    }
}

/* Give SEAT, which waits in a list, VERDICT. The caller wakes it. */
static void decide(seat_t *seat, verdict_t verdict)
{
    list_remove(seat);
    seat->verdict = verdict;
}

/* --- waiting -------------------------------------------------------------- */

static int crowd(const visit_t *visit, int change)
{
    const crm_lender_t *lender = visit->lender;

    return lender->crowd ? lender->crowd(change, lender->baton) : 0;
}

/* Return when VISIT, which waits on SEAT, must look again. */
static apr_interval_time_t wake_time(const visit_t *visit, const seat_t *seat,
                                     apr_interval_time_t now)
{
    const queue_t *queue = visit->queue;
    apr_interval_time_t end = visit->came + visit->lender->wait;
    apr_interval_time_t at = now + CROWD_CHECK;

    if (seat->batch) {
        return at;
    }
    if (seat == queue->waiting.first && !queue->gathering
        && queue->sent + HOLDS_UP < end) {
        end = queue->sent + HOLDS_UP;
    }
    return end < at ? end : at;
}

static void sleep_until(crm_batcher_t *batcher, seat_t *seat,
                        apr_interval_time_t at)
{
    struct timespec end;

    end.tv_sec = (time_t)(at / APR_USEC_PER_SEC);
    end.tv_nsec = (long)(at % APR_USEC_PER_SEC) * 1000;
    pthread_cond_timedwait(&seat->changed, &batcher->lock, &end);
}

/* Return whether a request of QUEUE may become its leader at the time NOW. */
static int is_turn(const queue_t *queue, apr_interval_time_t now)
{
    return !queue->gathering
           && (!queue->running || now >= queue->sent + HOLDS_UP);
}

/* Decide what VISIT does at the time NOW if nobody has decided: it goes if it
 * waited long enough or there is a CROWD, and leads if it can. While its batch
 * is being built it can do neither. */
static void look(const visit_t *visit, seat_t *seat, apr_interval_time_t now,
                 int crowded)
{
    queue_t *queue = visit->queue;
    int late = !seat->batch && now >= visit->came + visit->lender->wait;

    if ((crowded || late) && (!seat->batch || seat->batch->built)) {
        decide(seat, ALONE);
        wake_first(queue);
    }
    else if (!seat->batch && is_turn(queue, now)) {
        decide(seat, LEAD);
        queue->gathering = 1;
    }
}

/* Wait on SEAT until it has a verdict. The lock is held. */
static void wait_on(const visit_t *visit, seat_t *seat)
{
    int crowded = crowd(visit, 1);

    for (;;) {
        apr_interval_time_t now = crm_time_monotonic();

        look(visit, seat, now, crowded);
        if (seat->verdict != WAIT) {
            break;
        }
        sleep_until(visit->batcher, seat, wake_time(visit, seat, now));
        if (seat->verdict != WAIT) {
            break;
        }
        crowded = crowd(visit, 0);
    }
    crowd(visit, -1);
}

/* Join VISIT's queue, or become its leader. Return what to do, and copy the
 * seat to *SEAT_P. */
static verdict_t join(const visit_t *visit, seat_t *seat_p)
{
    queue_t *queue = visit->queue;
    seat_t *seat;

    if (is_turn(queue, visit->came)) {
        queue->gathering = 1;
        return LEAD;
    }
    seat = seat_find(visit->batcher);
    if (!seat) {
        return ALONE;
    }
    seat->verdict = WAIT;
    seat->sql = visit->sql;
    seat->batch = NULL;
    list_add(&queue->waiting, seat);
    wait_on(visit, seat);
    *seat_p = *seat;
    list_add(&visit->batcher->unused, seat);
    return seat_p->verdict;
}

/* Find VISIT's queue and join it. */
static verdict_t enter(visit_t *visit, seat_t *seat_p)
{
    apr_ssize_t len = APR_HASH_KEY_STRING;
    unsigned hash = apr_hashfunc_default(visit->stmt.sql, &len);
    verdict_t verdict = ALONE;

    pthread_mutex_lock(&visit->batcher->lock);
    visit->queue = queue_find(visit, hash);
    if (visit->queue) {
        visit->queue->used = visit->came;
        verdict = join(visit, seat_p);
    }
    pthread_mutex_unlock(&visit->batcher->lock);
    return verdict;
}

/* --- leading -------------------------------------------------------------- */

/* Take requests that wait in VISIT's queue into BATCH. */
static void take(batch_t *batch, const visit_t *visit)
{
    queue_t *queue = batch->queue = visit->queue;
    seat_t *seat;

    pthread_mutex_lock(&visit->batcher->lock);
    batch->began = queue->sent = crm_time_monotonic();
    batch->sqls[batch->count++] = visit->sql;
    while (batch->count < most(queue) && (seat = queue->waiting.first)) {
        list_remove(seat);
        list_add(&batch->seats, seat);
        batch->sqls[batch->count++] = seat->sql;
        seat->number = batch->count;
        seat->batch = batch;
        seat->taken = batch->began;
    }
    batch->built = batch->count == 1;
    queue->running++;
    queue->gathering = 0;
    wake_first(queue);
    pthread_mutex_unlock(&visit->batcher->lock);
}

/* Make the statement of BATCH, in POOL. */
static void build(crm_stmt_t *stmt, batch_t *batch, const visit_t *visit)
{
    int binds = visit->stmt.count;
    const char **values = apr_palloc(visit->pool, (apr_size_t)binds
                                     * sizeof(*values));
    apr_array_header_t *column = apr_array_make(visit->pool, batch->count,
                                                sizeof(const char *));

    for (int i = 0; i < binds; i++) {
        apr_array_clear(column);
        for (int n = 0; n < batch->count; n++) {
            APR_ARRAY_PUSH(column, const char *)
                = APR_ARRAY_IDX(batch->sqls[n]->binds, i, const char *);
        }
        values[i] = crm_sql_array(column, visit->pool);
    }
    stmt->sql = batch->queue->batch_text;
    stmt->count = binds;
    stmt->values = values;
    pthread_mutex_lock(&visit->batcher->lock);
    batch->built = 1;
    pthread_mutex_unlock(&visit->batcher->lock);
}

/* Find the rows of each request of BATCH in RESULT, whose last column is the
 * number of the request. Return 0 if they are not in order. */
static int divide(batch_t *batch, const PGresult *result)
{
    int column = PQnfields(result) - 1;
    int rows = PQntuples(result), before = 0;

    memset(batch->rows, 0, sizeof(batch->rows));
    for (int row = 0; row < rows; row++) {
        int number = atoi(PQgetvalue(result, row, column));

        if (number < 1 || number < before || number > batch->count) {
            return 0;
        }
        if (number != before) {
            batch->first[number - 1] = row;
            before = number;
        }
        batch->rows[number - 1]++;
    }
    return 1;
}

/* Keep RESULT as that of BATCH, if it is usable. */
static void keep(batch_t *batch, PGresult *result)
{
    crm_shared_t *shared = divide(batch, result)
                           ? malloc(sizeof(*shared)) : NULL;

    if (!shared) {
        PQclear(result);
        return;
    }
    shared->result = result;
    shared->users = 1;
    batch->shared = shared;
}

/* Run the statement of BATCH, which has several requests, on CONN. Its errors
 * are nobody's, because each request then runs its own statement, but for one:
 * there was no answer in time. */
static crm_error_t *run_all(batch_t *batch, const visit_t *visit,
                            crm_conn_t *conn)
{
    PGresult *result;
    crm_error_t *error;
    crm_stmt_t stmt;

    build(&stmt, batch, visit);
    error = crm_db_query_uncleared(&result, conn, &stmt, visit->pool);
    if (!error) {
        keep(batch, result);
    }
    else if (conn->silent || conn->cancelled) {
        batch->timeout = conn->options.timeout;
    }
    visit->lender->release(visit->lender->baton);
    return batch->timeout ? error : NULL;
}

/* Set the verdict of SEAT, of BATCH, which has ended. */
static void answer(seat_t *seat, batch_t *batch)
{
    int i = seat->number - 1;

    if (batch->shared) {
        __atomic_add_fetch(&batch->shared->users, 1, __ATOMIC_RELAXED);
        seat->shared = batch->shared;
        seat->first = batch->first[i];
        seat->count = batch->rows[i];
    }
    seat->timeout = batch->timeout;
    decide(seat, batch->shared ? ANSWERED : batch->timeout ? LATE : ALONE);
}

/* Note how long BATCH took. */
static void note_cost(const batch_t *batch)
{
    apr_interval_time_t cost = (crm_time_monotonic() - batch->began) / batch->count;
    queue_t *queue = batch->queue;

    if (cost > COST_MAX) {
        cost = COST_MAX;
    }
    queue->cost = queue->cost ? (7 * queue->cost + cost) / 8 : cost;
}

/* BATCH of BATCHER has ended: wake the first request that waits, and those of
 * BATCH. They are woken without the lock, which each of them takes first. The
 * first that waits is not made the leader here: it may be long until it runs,
 * and a request that comes before leads for it. */
static void finish(batch_t *batch, crm_batcher_t *batcher)
{
    queue_t *queue = batch->queue;
    seat_t *wake[CRM_BATCH_MAX + 1];
    int count = 0;

    pthread_mutex_lock(&batcher->lock);
    queue->running--;
    note_cost(batch);
    if (queue->waiting.first && !queue->gathering) {
        wake[count++] = queue->waiting.first;
    }
    while (batch->seats.first) {
        wake[count++] = batch->seats.first;
        answer(batch->seats.first, batch);
    }
    pthread_mutex_unlock(&batcher->lock);
    for (int i = 0; i < count; i++) {
        pthread_cond_signal(&wake[i]->changed);
    }
}

/* The leader of QUEUE has no connection: those that wait try by themselves. */
static void disband(queue_t *queue, crm_batcher_t *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    queue->gathering = 0;
    while (queue->waiting.first) {
        seat_t *seat = queue->waiting.first;

        decide(seat, ALONE);
        pthread_cond_signal(&seat->changed);
    }
    pthread_mutex_unlock(&batcher->lock);
}

/* --- rows ----------------------------------------------------------------- */

/* Pool cleanup: one user of the crm_shared_t at DATA goes. */
static apr_status_t leave_shared(void *data)
{
    crm_shared_t *shared = data;

    if (!__atomic_sub_fetch(&shared->users, 1, __ATOMIC_ACQ_REL)) {
        PQclear(shared->result);
        free(shared);
    }
    return APR_SUCCESS;
}

/* Set VISIT's rows to COUNT rows of SHARED from FIRST on. */
static void set_rows(const visit_t *visit, crm_shared_t *shared, int first,
                     int count)
{
    visit->rows->result = shared->result;
    visit->rows->first = first;
    visit->rows->count = count;
    visit->rows->shared = shared;
    apr_pool_cleanup_register(visit->pool, shared, leave_shared,
                              apr_pool_cleanup_null);
}

void crm_rows_drop(crm_rows_t *rows)
{
    if (rows->shared) {
        apr_pool_cleanup_run(rows->pool, rows->shared, leave_shared);
    }
    else if (rows->result) {
        crm_db_clear(rows->result, rows->pool);
    }
    rows->result = NULL;
    rows->shared = NULL;
}

/* --- a read --------------------------------------------------------------- */

/* Run VISIT's statement by itself on CONN. */
static crm_error_t *run_one(const visit_t *visit, crm_conn_t *conn)
{
    crm_rows_t *rows = visit->rows;

    CRM_ERR(crm_db_query(&rows->result, conn, &visit->stmt, visit->pool));
    rows->count = PQntuples(rows->result);
    return NULL;
}

/* Lead VISIT's queue. */
static crm_error_t *lead(const visit_t *visit)
{
    const crm_lender_t *lender = visit->lender;
    crm_error_t *error;
    crm_conn_t *conn;
    batch_t batch;

    visit->part->waited = crm_time_monotonic() - visit->came;
    error = lender->acquire(&conn, apr_time_now() - visit->part->waited,
                            lender->baton);
    if (error) {
        disband(visit->queue, visit->batcher);
        return error;
    }
    memset(&batch, 0, sizeof(batch));
    take(&batch, visit);
    visit->part->waited = batch.began - visit->came;
    visit->part->sent = batch.count;
    error = batch.count == 1 ? run_one(visit, conn)
                             : run_all(&batch, visit, conn);
    finish(&batch, visit->batcher);
    if (batch.shared) {
        set_rows(visit, batch.shared, batch.first[0], batch.rows[0]);
    }
    return error;
}

/* Do what the verdict in SEAT says, which VISIT has waited on. */
static crm_error_t *follow(const visit_t *visit, const seat_t *seat)
{
    visit->part->waited = (seat->batch ? seat->taken : crm_time_monotonic())
                          - visit->came;
    if (seat->verdict == ANSWERED) {
        set_rows(visit, seat->shared, seat->first, seat->count);
    }
    return seat->verdict == LATE ? crm_db_late(seat->timeout, 0, visit->pool)
                                 : NULL;
}

crm_error_t *crm_batch_read(crm_rows_t *rows, crm_batch_part_t *part,
                            crm_batcher_t *batcher, crm_sql_t *sql,
                            const crm_lender_t *lender, apr_pool_t *pool)
{
    visit_t visit = {batcher, NULL, {NULL, 0, NULL}, sql, lender, rows, part,
                     crm_time_monotonic(), pool};
    verdict_t verdict;
    seat_t seat;

    memset(rows, 0, sizeof(*rows));
    memset(part, 0, sizeof(*part));
    memset(&seat, 0, sizeof(seat));
    rows->pool = pool;
    crm_sql_stmt(&visit.stmt, sql);
    verdict = enter(&visit, &seat);
    return verdict == LEAD ? lead(&visit)
           : visit.queue ? follow(&visit, &seat) : NULL;
}

/* Pool cleanup: free the batcher at DATA, which nobody uses any more. */
static apr_status_t free_batcher(void *data)
{
    crm_batcher_t *batcher = data;
    seat_t *seat;

    for (int i = 0; i < BUCKETS; i++) {
        while (batcher->buckets[i]) {
            queue_t *queue = batcher->buckets[i];

            batcher->buckets[i] = queue->next;
            queue_free(queue);
        }
    }
    while ((seat = batcher->unused.first)) {
        list_remove(seat);
        pthread_cond_destroy(&seat->changed);
        free(seat);
    }
    pthread_mutex_destroy(&batcher->lock);
    free(batcher);
    return APR_SUCCESS;
}

crm_batcher_t *crm_batcher_create(apr_pool_t *pool)
{
    crm_batcher_t *batcher = calloc(1, sizeof(*batcher));

    if (batcher) {
        pthread_mutex_init(&batcher->lock, NULL);
        pthread_condattr_init(&batcher->clock);
        pthread_condattr_setclock(&batcher->clock, CLOCK_MONOTONIC);
        apr_pool_cleanup_register(pool, batcher, free_batcher,
                                  apr_pool_cleanup_null);
    }
    return batcher;
}
