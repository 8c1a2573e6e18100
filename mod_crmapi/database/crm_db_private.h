/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_private.h: what the sources crm_db*.c share */
#ifndef CRM_DB_PRIVATE_H
#define CRM_DB_PRIVATE_H

#include "apr_hash.h"

#include "crm_db.h"
#include "crm_db_conn.h"
#include "crm_db_prepared.h"

/* Interval at which a connection asks whether it, or a result, is still wanted. */
#define CRM_DB_WATCH_TIME apr_time_from_msec(50)

/* A connection. */
struct crm_conn_t {
    PGconn *pg;
    const char *conninfo;       /* of crm_conn_open(); NULL: PG is another's */
    crm_conn_t *next;           /* next connection of the same pool */
    crm_conn_options_t options;
    int ready;                  /* checked and not used since */
    apr_time_t until;           /* deadline of the current call; 0: none */
    int cancelled;              /* the deadline has passed, or the result is
                                   unwanted, and a cancel request was sent. The
                                   server may apply it to the next statement, so
                                   the connection is not reused */
    int (*unwanted)(void *baton); /* crm_conn_watch(); NULL: not watched */
    void *unwanted_baton;
    int unneeded;               /* the cancel request was sent because the
                                   result was unwanted, or the connection was
                                   given up for that: no PG */
    int silent;                 /* the cancellation was not confirmed */
    int nameless;               /* the name service is silent */
    int unconfirmed;            /* the server has committed, but gave up waiting
                                   for its synchronous standby */
    int read_only;              /* the server refused a write (25006): the
                                   connection must be reset when no transaction
                                   is open */
    int kept;                   /* crm_conn_keep() */
    int pid;                    /* the backend's pid; 0: not known */
    unsigned session;           /* number of its session, from 1 */
    int broken;                 /* must be reset before its next use */
    int in_transaction;         /* the COPY in progress is part of one */
    int lost;                   /* broken in a transaction: statements fail
                                   until a rollback */
    apr_uint32_t epoch;         /* makes statement names unique */
    apr_uint32_t last_number;   /* of a prepared statement */
    apr_uint64_t clock;         /* counts uses of prepared statements */
    int shared_names;           /* number of statements that got one */
    apr_hash_t *by_sql;         /* text → crm_prepared_t */
    crm_prepared_t prepared[CRM_DB_PREPARED_MAX];
};

/* Make CONN ready for statements: reset it if it is dead, forget the prepared
 * statements of an earlier backend, apply session settings. No transaction may
 * be open. Errors: CRM_E_UNAVAILABLE. */
crm_error_t *crm_conn_ready(crm_conn_t *conn, apr_pool_t *result_pool);

/* Make CONN ready for statements and start its timeout. Set *OPEN_P to whether
 * a transaction is open. If none is, reset a dead connection. Errors:
 * CRM_E_UNAVAILABLE, in POOL. */
crm_error_t *crm_db_begin(int *open_p, crm_conn_t *conn, apr_pool_t *pool);

/* After a statement: mark CONN as broken if it can no longer be used. OPEN:
 * whether a transaction was open before. */
void crm_db_end(crm_conn_t *conn, int open);

/* Start CONN's timeout. */
void crm_db_deadline(crm_conn_t *conn);

/* Start CONN's timeout again while a statement is running, for its next row or
 * part. If a cancel request was sent, keep the deadline: the server may apply
 * the request late, so the connection must not be reused. */
void crm_db_prolong(crm_conn_t *conn);

/* Wait until PQgetResult() does not block on CONN, or its connection is dead.
 * At the deadline, or when the result is unwanted (crm_conn_watch()), send a
 * cancel request and wait a short time for the server to confirm it. If it does
 * not, set SILENT and return 0. The connection must not be used again then. */
int crm_db_await(crm_conn_t *conn);

/* Wait for data of a COPY TO on CONN and read it. At the deadline cancel as
 * crm_db_await() does. Return 0 if the connection must not be used again. */
int crm_db_await_input(crm_conn_t *conn);

/* Flush CONN's output. Return 0 on an error or timeout. */
int crm_db_flush(crm_conn_t *conn);

/* Return whether RESULT, which may be NULL, says that the server has ended the
 * session. Nothing follows it, though what is between may keep the socket
 * open. */
int crm_db_ends_session(const PGresult *result);

/* Receive all results on CONN. Return the last one, or one that begins a COPY.
 * If there is none before the deadline, mark CONN as broken and return NULL. */
PGresult *crm_db_results(crm_conn_t *conn);

/* Send SQL, without parameters, and return crm_db_results(). */
PGresult *crm_db_command(crm_conn_t *conn, const char *sql);

/* Connect CONN, of crm_conn_open(), instead of as it was. Return whether it is
 * connected. Scratch memory is in POOL. */
int crm_conn_connect(crm_conn_t *conn, apr_pool_t *pool);

/* Reset CONN's connection. Return 0 on an error or timeout. Scratch memory is in
 * POOL. */
int crm_db_reset(crm_conn_t *conn, apr_pool_t *pool);

/* Run STMT as crm_db_query() does. The caller clears *RESULT_P. Errors are in
 * SCRATCH_POOL. */
crm_error_t *crm_db_query_uncleared(PGresult **result_p, crm_conn_t *conn,
                                    const crm_stmt_t *stmt,
                                    apr_pool_t *scratch_pool);

/* Return the error of a connection whose host's name the name service is silent
 * about. */
crm_error_t *crm_db_nameless(apr_pool_t *result_pool);

/* Return, in RESULT_POOL, the error of a statement that was not answered within
 * TIMEOUT. CANCELLED: the server has confirmed that it was cancelled. */
crm_error_t *crm_db_late(apr_interval_time_t timeout, int cancelled,
                         apr_pool_t *result_pool);

/* Return, in RESULT_POOL, the error of a write that shared a statement whose
 * connection was lost before the answer. */
crm_error_t *crm_db_lost(apr_pool_t *result_pool);

/* Return, in RESULT_POOL, the error of a statement that was committed, but may
 * be lost if another server takes over, because its synchronous standby has not
 * confirmed it. */
crm_error_t *crm_db_unconfirmed(apr_pool_t *result_pool);

/* Return the error of RESULT (NULL: of CONN): crm_db_error(), that of
 * crm_db_late(), or of a statement that was cancelled because its client has gone. Set
 * CONN's read_only. */
crm_error_t *crm_db_failure(crm_conn_t *conn, const PGresult *result,
                            apr_pool_t *result_pool);

#endif /* CRM_DB_PRIVATE_H */
