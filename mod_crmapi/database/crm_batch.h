/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch.h: concurrent requests of a process share a statement */
#ifndef CRM_BATCH_H
#define CRM_BATCH_H

#include "crm_db_conn.h"
#include "crm_sql_print.h"

/* The maximum number of requests that share a statement. */
#define CRM_BATCH_MAX 64

/* The queues of a process for one database. Threads may use it at the same
 * time. */
typedef struct crm_batcher_t crm_batcher_t;

/* The rows of a statement. Do not change them: they may be a part of a result
 * that several requests share. */
typedef struct crm_rows_t {
    PGresult *result;           /* NULL: there is none */
    int first;                  /* number of the first row */
    int count;                  /* number of rows */
    struct crm_shared_t *shared; /* NULL: RESULT belongs to POOL */
    apr_pool_t *pool;           /* the request's */
} crm_rows_t;

/* What crm_conn_source_t.answer() did. */
typedef enum crm_answered_t {
    CRM_ANSWERED_NOT,           /* nothing */
    CRM_ANSWERED,               /* it sent the answer */
    CRM_ANSWERED_LAST           /* it did, and the client sends no more */
} crm_answered_t;

/* Where a request's connection comes from. BATON is the request's. */
typedef struct crm_conn_source_t {
    /* Set *CONN_P to a connection for this thread. The time limit of the wait
     * for it counts from SINCE. Errors: CRM_E_UNAVAILABLE. */
    crm_error_t *(*acquire)(crm_conn_t **conn_p, apr_time_t since,
                            void *baton);
    void (*release)(void *baton);
    /* Add CHANGE (1, 0 or -1) to the number of threads that wait for the
     * database without a connection of their own. Return 1 if the database hangs and
     * too many wait, so that this thread must not wait, unless its write was sent; 2 if
     * it must not wait even then, because there are other databases. */
    int (*add_waiting)(int change, void *baton);
    apr_interval_time_t wait;   /* time limit of the wait for a connection */
    void *baton;
    /* How another thread can answer the request, while this thread already waits
     * for the next one. */
    int client;                 /* the client's connection, a descriptor that is
                                   readable when the next request is there; -1:
                                   only this thread can answer */
    int clients_max;            /* how many threads of the process may wait so */
    /* Answer the request with ROWS, which has no row perhaps. It must not
     * block. */
    crm_answered_t (*answer)(const crm_rows_t *rows, void *baton);
} crm_conn_source_t;

/* A request's part in crm_batch_run(). */
typedef struct crm_batch_part_t {
    int sent;                   /* number of requests in the statement that this
                                   request sent; 0: it sent none */
    apr_interval_time_t waited; /* for a connection, or for another request to
                                   get one */
    int answered;               /* another thread has answered the request with
                                   the rows: it has none */
    apr_interval_time_t idle;   /* time since then */
} crm_batch_part_t;

/* Return in POOL a new batcher, which ends with POOL. All its statements must
 * go to the same database. Return NULL if there is no memory. */
crm_batcher_t *crm_batcher_create(apr_pool_t *pool);

/* Run SQL, a SELECT that reads only or a write (crm_sql_write()) outside a
 * transaction, together with other requests that are waiting with the same
 * text, and set *ROWS to the rows for SQL's values, as if it had run alone.
 *
 * The first request of a text becomes its leader: it takes a connection, then
 * takes the requests that wait, and sends one statement for all
 * (crm_sql_batch()). So a statement is always sent after the last of its
 * requests has arrived. A request that arrives while a statement is running
 * waits for the end of that statement, but at most one millisecond from when
 * the statement was sent (for writes: 20 milliseconds). Then it, or the request
 * that has waited for longest, becomes a leader, too. A leader without others
 * sends SQL itself. Two writes of the same row are never in one statement.
 *
 * If ROWS->result is NULL and there is no error, the caller must run SQL by
 * itself: there was no connection in time, BATCHER has too many texts, or a
 * statement of several requests has failed and changed nothing. So a request
 * never gets the error of another, and no write is done twice. The caller must
 * also run a write by itself that shared a statement and returned no row: its
 * row may only have been locked (crm_sql_batch()). If it is not known whether a
 * statement of several writes was executed, all get CRM_E_UNAVAILABLE
 * (CRM2006). The leader answers others by SOURCE->answer(), if they have a
 * SOURCE->client: one thread wakes for many requests, instead of each for its
 * own. The thread of such a request sleeps until its client has sent the next
 * one, but about as long as it has waited for the answer (at least 20
 * milliseconds). crm_conn_watch() has no effect on a statement of several requests.
 * The rows live until crm_rows_drop() or the end of POOL, the
 * request's. Errors: those of crm_db_query(). */
crm_error_t *crm_batch_run(crm_rows_t *rows, crm_batch_part_t *part,
                           crm_batcher_t *batcher, crm_sql_t *sql,
                           const crm_conn_source_t *source, apr_pool_t *pool);

/* Drop ROWS. Call this as soon as their JSON is complete, before it is sent to
 * a client that may be slow: ROWS may keep those of other requests in
 * memory. */
void crm_rows_drop(crm_rows_t *rows);

#endif /* CRM_BATCH_H */
