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

/* Set VISIT's rows to COUNT rows of SHARED from FIRST on. */
static void set_rows(const crm_visit_t *visit, crm_shared_t *shared, int first,
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

/* --- a request ------------------------------------------------------------ */

/* Run VISIT's statement by itself on CONN. */
static crm_error_t *run_one(const crm_visit_t *visit, crm_conn_t *conn)
{
    crm_rows_t *rows = visit->rows;

    CRM_ERR(crm_db_query(&rows->result, conn, &visit->stmt, visit->pool));
    rows->count = PQntuples(rows->result);
    return NULL;
}

/* Lead VISIT's queue. */
static crm_error_t *lead(const crm_visit_t *visit)
{
    const crm_lender_t *lender = visit->lender;
    crm_error_t *error;
    crm_conn_t *conn;
    crm_batch_t batch;

    visit->part->waited = crm_time_monotonic() - visit->came;
    error = lender->acquire(&conn, apr_time_now() - visit->part->waited,
                            lender->baton);
    if (error) {
        crm_queue_disband(visit->queue, visit->batcher);
        return error;
    }
    memset(&batch, 0, sizeof(batch));
    crm_batch_take(&batch, visit);
    visit->part->waited = batch.began - visit->came;
    visit->part->sent = batch.count;
    error = batch.count == 1 ? run_one(visit, conn)
                             : crm_batch_send(&batch, visit, conn);
    crm_batch_finish(&batch, visit->batcher);
    if (batch.shared) {
        set_rows(visit, batch.shared, batch.first[0], batch.rows[0]);
    }
    return error;
}

/* Do what the verdict in SEAT says, which VISIT has waited on. */
static crm_error_t *follow(const crm_visit_t *visit, const crm_seat_t *seat)
{
    visit->part->waited = (seat->batch ? seat->taken : crm_time_monotonic())
                          - visit->came;
    if (seat->verdict == CRM_SEAT_ANSWERED) {
        set_rows(visit, seat->shared, seat->first, seat->count);
    }
    return seat->verdict == CRM_SEAT_LATE
           ? crm_db_late(seat->timeout, 0, visit->pool)
           : seat->verdict == CRM_SEAT_LOST ? crm_db_lost(visit->pool) : NULL;
}

crm_error_t *crm_batch_run(crm_rows_t *rows, crm_batch_part_t *part,
                           crm_batcher_t *batcher, crm_sql_t *sql,
                           const crm_lender_t *lender, apr_pool_t *pool)
{
    crm_visit_t visit = {batcher, NULL, {NULL, 0, NULL}, sql, lender, rows,
                         part, crm_time_monotonic(), pool};
    crm_verdict_t verdict;
    crm_seat_t seat;

    memset(rows, 0, sizeof(*rows));
    memset(part, 0, sizeof(*part));
    memset(&seat, 0, sizeof(seat));
    rows->pool = pool;
    crm_sql_stmt(&visit.stmt, sql);
    verdict = crm_batch_enter(&visit, &seat);
    return verdict == CRM_SEAT_LEADS ? lead(&visit)
           : visit.queue ? follow(&visit, &seat) : NULL;
}

/* --- the batcher ---------------------------------------------------------- */

/* Pool cleanup: free the batcher at DATA, which is no longer in use. */
static apr_status_t free_batcher(void *data)
{
    crm_batcher_t *batcher = data;
    crm_seat_t *seat;

    for (int i = 0; i < CRM_BATCH_BUCKETS; i++) {
        while (batcher->buckets[i]) {
            crm_queue_t *queue = batcher->buckets[i];

            batcher->buckets[i] = queue->next;
            crm_queue_free(queue);
        }
    }
    while ((seat = batcher->unused.first)) {
        crm_seats_remove(seat);
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
