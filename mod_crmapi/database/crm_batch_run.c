/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_run.c: one statement for several requests */
#include "crm_batch_private.h"

#include <stdlib.h>
#include <string.h>

#include "apr_time.h"

#include "crm_db_private.h"

/* A batch takes as many requests as were lately answered in BATCH_TIME, and at
 * least BATCH_MIN: a busy machine makes single statements slow, and that must
 * not end sharing. Where a request takes SLOW or longer, a statement of its
 * own costs nothing in comparison, and no request waits for another. A request
 * counts as COST_MAX at most, so that a lock or a pause is soon forgotten. */
#define BATCH_TIME apr_time_from_msec(5)
#define BATCH_MIN 4
#define SLOW apr_time_from_msec(10)
#define COST_MAX apr_time_from_msec(40)

/* Return the number of requests that a batch of QUEUE may have. */
static int most(const crm_queue_t *queue)
{
    apr_interval_time_t n = BATCH_TIME / (queue->cost ? queue->cost : 1);

    if (queue->cost >= SLOW) {
        return 1;
    }
    return n < BATCH_MIN ? BATCH_MIN
           : n > CRM_BATCH_MAX ? CRM_BATCH_MAX : (int)n;
}

void crm_batch_take(crm_batch_t *batch, const crm_visit_t *visit)
{
    crm_queue_t *queue = batch->queue = visit->queue;
    crm_seat_t *seat;

    pthread_mutex_lock(&visit->batcher->lock);
    batch->began = queue->sent = crm_batch_clock();
    batch->sqls[batch->count++] = visit->sql;
    while (batch->count < most(queue) && (seat = queue->waiting.first)) {
        crm_seats_remove(seat);
        crm_seats_add(&batch->seats, seat);
        batch->sqls[batch->count++] = seat->sql;
        seat->number = batch->count;
        seat->batch = batch;
        seat->taken = batch->began;
    }
    batch->built = batch->count == 1;
    queue->running++;
    queue->gathering = 0;
    crm_queue_wake(queue);
    pthread_mutex_unlock(&visit->batcher->lock);
}

/* Make the statement of BATCH, in POOL. */
static void build(crm_stmt_t *stmt, crm_batch_t *batch,
                  const crm_visit_t *visit)
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
static int divide(crm_batch_t *batch, const PGresult *result)
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
static void keep(crm_batch_t *batch, PGresult *result)
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

crm_error_t *crm_batch_run(crm_batch_t *batch, const crm_visit_t *visit,
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
        batch->timeout = conn->timeout;
    }
    visit->lender->release(visit->lender->baton);
    return batch->timeout ? error : NULL;
}

/* Set the verdict of SEAT, of BATCH, which has ended. */
static void answer(crm_seat_t *seat, crm_batch_t *batch)
{
    int i = seat->number - 1;

    if (batch->shared) {
        __atomic_add_fetch(&batch->shared->users, 1, __ATOMIC_RELAXED);
        seat->shared = batch->shared;
        seat->first = batch->first[i];
        seat->count = batch->rows[i];
    }
    seat->timeout = batch->timeout;
    crm_seat_decide(seat, batch->shared ? CRM_SEAT_ANSWERED
                          : batch->timeout ? CRM_SEAT_LATE : CRM_SEAT_ALONE);
}

/* Note how long BATCH took. */
static void note_cost(const crm_batch_t *batch)
{
    apr_interval_time_t cost = (crm_batch_clock() - batch->began)
                               / batch->count;
    crm_queue_t *queue = batch->queue;

    if (cost > COST_MAX) {
        cost = COST_MAX;
    }
    queue->cost = queue->cost ? (7 * queue->cost + cost) / 8 : cost;
}

/* Requests are woken without the lock, which each of them takes first. The first
 * that waits is not made the leader here: it may be long until it runs, and a
 * request that comes before leads for it. */
void crm_batch_finish(crm_batch_t *batch, crm_batcher_t *batcher)
{
    crm_queue_t *queue = batch->queue;
    crm_seat_t *wake[CRM_BATCH_MAX + 1];
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
