/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch.c: concurrent requests of a process share a statement */
#include "crm_batch_private.h"

#include <stdlib.h>
#include <string.h>

#include "crm_db_private.h"
#include "crm_time.h"

/* --- rows ----------------------------------------------------------------- */

/* Pool cleanup: release the crm_shared_t at DATA. */
static apr_status_t leave_shared(void *data)
{
    crm_shared_t *shared = data;

    if (!__atomic_sub_fetch(&shared->users, 1, __ATOMIC_ACQ_REL)) {
        PQclear(shared->result);
        free(shared);
    }
    return APR_SUCCESS;
}

/* Set CALL's rows to COUNT rows of SHARED from FIRST on. */
static void set_rows(const crm_batch_call_t *call, crm_shared_t *shared,
                     int first, int count)
{
    call->rows->result = shared->result;
    call->rows->first = first;
    call->rows->count = count;
    call->rows->shared = shared;
    apr_pool_cleanup_register(call->pool, shared, leave_shared,
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

/* --- a request ------------------------------------------------------------ */

/* Run CALL's statement by itself on CONN. */
static crm_error_t *run_one(const crm_batch_call_t *call, crm_conn_t *conn)
{
    crm_rows_t *rows = call->rows;

    CRM_ERR(crm_db_query(&rows->result, conn, &call->stmt, call->pool));
    rows->count = PQntuples(rows->result);
    return NULL;
}

/* Lead CALL's queue. */
static crm_error_t *lead(const crm_batch_call_t *call)
{
    const crm_conn_source_t *source = call->source;
    crm_error_t *error;
    crm_conn_t *conn;
    crm_batch_t batch;

    call->part->waited = crm_time_monotonic() - call->came;
    error = source->acquire(&conn, crm_time_monotonic() - call->part->waited,
                            source->baton);
    if (error) {
        crm_queue_disband(call->queue, call->batcher);
        return error;
    }
    memset(&batch, 0, sizeof(batch));
    crm_batch_take(&batch, call);
    call->part->waited = batch.began - call->came;
    call->part->sent = batch.count;
    if (batch.count > 1) {
        /* others want the result, whatever the leader's client does */
        crm_conn_watch(conn, NULL, NULL);
    }
    error = batch.count == 1 ? run_one(call, conn)
                             : crm_batch_send(&batch, call, conn);
    crm_batch_finish(&batch, call->batcher);
    if (batch.shared) {
        set_rows(call, batch.shared, batch.first[0], batch.rows[0]);
    }
    return error;
}

/* Take over the result for CALL, which waited on WAITER and has a verdict. */
static crm_error_t *outcome(const crm_batch_call_t *call,
                            const crm_batch_waiter_t *waiter)
{
    call->part->waited = (waiter->batch ? waiter->taken : crm_time_monotonic())
                          - call->came;
    if (waiter->verdict == CRM_VERDICT_ANSWERED) {
        set_rows(call, waiter->shared, waiter->first, waiter->count);
    }
    switch (waiter->verdict) {
    case CRM_VERDICT_SENT:
        call->part->answered = 1;
        call->part->idle = crm_time_monotonic() - waiter->sent;
        return NULL;
    case CRM_VERDICT_LATE:
        return crm_db_late(waiter->timeout, 0, call->pool);
    case CRM_VERDICT_LOST:
        return crm_db_lost(call->pool);
    default:
        return NULL;
    }
}

crm_error_t *crm_batch_run(crm_rows_t *rows, crm_batch_part_t *part,
                           crm_batcher_t *batcher, crm_sql_t *sql,
                           const crm_conn_source_t *source, apr_pool_t *pool)
{
    crm_batch_call_t call = {batcher, NULL, {NULL, 0, NULL}, sql, source, rows,
                         part, crm_time_monotonic(), pool};
    crm_verdict_t verdict;
    crm_batch_waiter_t waiter;

    memset(rows, 0, sizeof(*rows));
    memset(part, 0, sizeof(*part));
    memset(&waiter, 0, sizeof(waiter));
    rows->pool = pool;
    crm_sql_stmt(&call.stmt, sql);
    verdict = crm_batch_enter(&call, &waiter);
    return verdict == CRM_VERDICT_LEADS ? lead(&call)
           : call.queue ? outcome(&call, &waiter) : NULL;
}

/* --- the batcher ---------------------------------------------------------- */

/* Pool cleanup: free the batcher at DATA, which is no longer in use. */
static apr_status_t free_batcher(void *data)
{
    crm_batcher_t *batcher = data;

    for (int i = 0; i < CRM_BATCH_BUCKETS; i++) {
        while (batcher->buckets[i]) {
            crm_queue_t *queue = batcher->buckets[i];

            batcher->buckets[i] = queue->next;
            crm_queue_free(queue);
        }
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
        apr_pool_cleanup_register(pool, batcher, free_batcher,
                                  apr_pool_cleanup_null);
    }
    return batcher;
}
