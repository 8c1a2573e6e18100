/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_run.c: one statement for several requests */
#include "crm_batch_private.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_db_private.h"
#include "crm_time.h"

/* A longer time counts as this, so that the average soon recovers after a wait
 * for a lock. */
#define COST_MAX apr_time_from_msec(40)

/* Return the value of SQL's bind NUMBER, from 1. */
static const char *value_of(const crm_sql_t *sql, int number)
{
    return APR_ARRAY_IDX(sql->binds, number - 1, const char *);
}

/* Return the maximum number of requests in a batch of QUEUE. */
static int most(const crm_queue_t *queue)
{
    const crm_batch_rule_t *rule = queue->rule;
    apr_interval_time_t n = rule->time / (queue->cost ? queue->cost : 1);

    if (rule->slow && queue->cost >= rule->slow) {
        return 1;
    }
    if (n < rule->min) {
        n = rule->min;
    }
    return n < queue->limit ? (int)n : queue->limit;
}

/* Return whether BATCH already has a write of the row of SQL. */
static int has_row(const crm_batch_t *batch, const crm_sql_t *sql)
{
    for (int i = 0; sql->row && i < batch->count; i++) {
        if (!strcmp(value_of(batch->sqls[i], sql->row), value_of(sql, sql->row))
            && !strcmp(value_of(batch->sqls[i], 1), value_of(sql, 1))) {
            return 1;
        }
    }
    return 0;
}

/* Move WAITER from its queue to BATCH. */
static void take(crm_batch_t *batch, crm_batch_waiter_t *waiter)
{
    crm_waiters_remove(waiter);
    crm_waiters_add(&batch->waiters, waiter);
    batch->sqls[batch->count++] = waiter->sql;
    waiter->number = batch->count;
    waiter->batch = batch;
    waiter->taken = batch->began;
}

void crm_batch_take(crm_batch_t *batch, const crm_batch_call_t *call)
{
    crm_queue_t *queue = batch->queue = call->queue;
    crm_batch_waiter_t *waiter, *next;
    crm_wake_t wake;

    pthread_mutex_lock(&call->batcher->lock);
    batch->began = queue->sent = crm_time_monotonic();
    batch->sqls[batch->count++] = call->sql;
    for (waiter = queue->waiting.first; waiter && batch->count < most(queue);
         waiter = next) {
        next = waiter->next;
        if (!has_row(batch, waiter->sql)) {
            take(batch, waiter);
        }
    }
    batch->built = batch->count == 1;
    batch->number = ++queue->last;
    queue->busy = 1;
    queue->running++;
    queue->gathering = 0;
    wake = crm_queue_next(queue);
    pthread_mutex_unlock(&call->batcher->lock);
    crm_waiter_wake(&wake);
}

/* Keep, in POOL, by what the rows of BATCH, writes, are told apart. */
static void keep_ids(crm_batch_t *batch, apr_pool_t *pool)
{
    for (int i = 0; batch->queue->writes && i < batch->count; i++) {
        const crm_sql_t *sql = batch->sqls[i];

        batch->workspaces[i] = apr_pstrdup(pool, value_of(sql, 1));
        batch->ids[i] = apr_pstrdup(pool, value_of(sql, sql->row));
    }
}

/* Make the statement of BATCH, in POOL. */
static void build(crm_stmt_t *stmt, crm_batch_t *batch,
                  const crm_batch_call_t *call)
{
    int binds = call->stmt.count;
    const char **values = apr_palloc(call->pool, (apr_size_t)binds
                                     * sizeof(*values));
    apr_array_header_t *column = apr_array_make(call->pool, batch->count,
                                                sizeof(const char *));

    for (int i = 0; i < binds; i++) {
        apr_array_clear(column);
        for (int n = 0; n < batch->count; n++) {
            APR_ARRAY_PUSH(column, const char *)
                = value_of(batch->sqls[n], i + 1);
        }
        values[i] = crm_sql_array(column, call->pool);
    }
    stmt->sql = batch->queue->batch_text;
    stmt->count = binds;
    stmt->values = values;
    keep_ids(batch, call->pool);
    pthread_mutex_lock(&call->batcher->lock);
    batch->built = 1;
    pthread_mutex_unlock(&call->batcher->lock);
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

/* Return the index of the request of BATCH whose write returned ROW of RESULT,
 * or -1. RESULT's last columns are workspace_id and id. */
static int find_writer(const crm_batch_t *batch, const PGresult *result,
                       int row)
{
    int column = PQnfields(result) - 1;

    for (int i = 0; i < batch->count; i++) {
        if (!strcmp(PQgetvalue(result, row, column), batch->ids[i])
            && !strcmp(PQgetvalue(result, row, column - 1),
                       batch->workspaces[i])) {
            return i;
        }
    }
    return -1;
}

/* Find the row of each request of BATCH, writes, in RESULT. Return 0 if a row
 * belongs to none. */
static int divide_writes(crm_batch_t *batch, const PGresult *result)
{
    memset(batch->rows, 0, sizeof(batch->rows));
    for (int row = 0; row < PQntuples(result); row++) {
        int i = find_writer(batch, result, row);

        if (i < 0) {
            return 0;
        }
        batch->first[i] = row;
        batch->rows[i] = 1;
    }
    return 1;
}

/* Keep RESULT as that of BATCH, if it is usable. */
static void keep(crm_batch_t *batch, PGresult *result)
{
    int usable = batch->queue->writes ? divide_writes(batch, result)
                 : divide(batch, result);
    crm_shared_t *shared = usable ? malloc(sizeof(*shared)) : NULL;

    if (!shared) {
        PQclear(result);
        return;
    }
    shared->result = result;
    shared->users = 1;
    batch->shared = shared;
}

/* Return whether the server has rolled back the statement that failed with
 * ERROR on CONN. A read-only server did nothing, and CONN is given up only to find
 * another one. */
static int is_undone(const crm_error_t *error, const crm_conn_t *conn)
{
    return error && error->sqlstate
           && (!conn->broken || conn->read_only);
}

crm_error_t *crm_batch_send(crm_batch_t *batch, const crm_batch_call_t *call,
                            crm_conn_t *conn)
{
    PGresult *result;
    crm_error_t *error;
    crm_stmt_t stmt;

    build(&stmt, batch, call);
    error = crm_db_query_uncleared(&result, conn, &stmt, call->pool);
    if (!error) {
        keep(batch, result);
    }
    else if (conn->silent || conn->cancelled) {
        batch->timeout = conn->options.timeout;
    }
    batch->lost = batch->queue->writes && !batch->shared
                  && !is_undone(error, conn);
    call->source->release(call->source->baton);
    return batch->timeout || batch->lost
           ? error ? error : crm_db_lost(call->pool) : NULL;
}

/* Give WAITER the rows that BATCH has for it. */
static void give_rows(crm_batch_waiter_t *waiter, const crm_batch_t *batch)
{
    __atomic_add_fetch(&batch->shared->users, 1, __ATOMIC_RELAXED);
    waiter->shared = batch->shared;
    waiter->first = batch->first[waiter->number - 1];
    waiter->count = batch->rows[waiter->number - 1];
}

/* Set the verdict of WAITER, of BATCH, which has ended, and return how to wake
 * its thread. */
static crm_wake_t answer(crm_batch_waiter_t *waiter, const crm_batch_t *batch)
{
    if (batch->shared) {
        give_rows(waiter, batch);
    }
    waiter->timeout = batch->timeout;
    return crm_waiter_decide(waiter, batch->shared ? CRM_VERDICT_ANSWERED
                                     : batch->timeout ? CRM_VERDICT_LATE
                                     : batch->lost ? CRM_VERDICT_LOST
                                     : CRM_VERDICT_ALONE);
}

/* Answer the request of WAITER, of BATCH, in this thread, or let its own thread
 * do that. */
static void answer_here(crm_batch_waiter_t *waiter, const crm_batch_t *batch)
{
    int i = waiter->number - 1;
    crm_rows_t rows = {batch->shared->result, batch->first[i], batch->rows[i],
                       batch->shared, NULL};
    crm_answered_t done = waiter->source->answer(&rows, waiter->source->baton);
    crm_wake_t wake;

    if (done == CRM_ANSWERED_NOT) {
        give_rows(waiter, batch);
    }
    waiter->sent = crm_time_monotonic();
    wake = crm_waiter_set(waiter, done == CRM_ANSWERED_NOT
                                  ? CRM_VERDICT_ANSWERED : CRM_VERDICT_SENT);
    if (done == CRM_ANSWERED) {
        wake.bell = -1;         /* its client wakes it */
    }
    crm_waiter_wake(&wake);
}

/* Update the queue's cost by the time that BATCH took. */
static void note_cost(const crm_batch_t *batch)
{
    apr_interval_time_t cost = (crm_time_monotonic() - batch->began)
                               / batch->count;
    crm_queue_t *queue = batch->queue;

    if (cost > COST_MAX) {
        cost = COST_MAX;
    }
    queue->cost = queue->cost ? (7 * queue->cost + cost) / 8 : cost;
}

/* Set the maximum number of requests in the next statement: half of BATCH's if
 * BATCH failed, because its requests then run twice; otherwise one more than
 * before. */
static void note_success(const crm_batch_t *batch)
{
    crm_queue_t *queue = batch->queue;

    if (batch->count > 1 && !batch->shared) {
        queue->limit = (batch->count + 1) / 2;
    }
    else if (queue->limit < CRM_BATCH_MAX) {
        queue->limit++;
    }
}

/* Requests are woken after the lock was released, because the first of them takes
 * it at once. That one is not made the leader here: its thread may run late, and a
 * request that arrives earlier can lead. */
void crm_batch_finish(crm_batch_t *batch, crm_batcher_t *batcher)
{
    crm_queue_t *queue = batch->queue;
    crm_batch_waiter_t *mine[CRM_BATCH_MAX], *waiter;
    crm_wake_t wake[CRM_BATCH_MAX + 1];
    int woken = 0, answered = 0;

    pthread_mutex_lock(&batcher->lock);
    queue->running--;
    queue->busy &= queue->last != batch->number;
    note_cost(batch);
    note_success(batch);
    wake[woken++] = crm_queue_next(queue);
    while ((waiter = batch->waiters.first)) {
        if (batch->shared && crm_waiter_occupy(waiter)) {
            crm_waiters_remove(waiter);
            mine[answered++] = waiter;
        }
        else {
            wake[woken++] = answer(waiter, batch);
        }
    }
    pthread_mutex_unlock(&batcher->lock);
    for (int i = 0; i < woken; i++) {
        crm_waiter_wake(&wake[i]);
    }
    for (int i = 0; i < answered; i++) {
        answer_here(mine[i], batch);
    }
}
