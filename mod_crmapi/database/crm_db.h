/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db.h: statements on a PostgreSQL connection; alone in calling libpq */
#ifndef CRM_DB_H
#define CRM_DB_H

#include <libpq-fe.h>

#include "apr_pools.h"

#include "crm_error.h"

/* A connection with what is remembered of it: its prepared statements, its
 * session settings, the pid of its backend. Used by one thread at a time. */
typedef struct crm_conn_t crm_conn_t;

/* How statements are run on a connection. */
typedef struct crm_conn_options_t {
    int named_statements;       /* prepare each text once, by name; 0 for
                                   poolers that cannot carry them */
    apr_interval_time_t timeout; /* as in crm_conn_open() */
} crm_conn_options_t;

/* A statement: its text, and the values of $1 to $N in PostgreSQL's text
 * format, NULL for a null. Types are given by casts in the text. */
typedef struct crm_stmt_t {
    const char *sql;
    int count;                  /* number of VALUES */
    const char *const *values;
} crm_stmt_t;

/* Set *CONN_P to what is remembered of PG, a connection that somebody else
 * (mod_dbd, a tool) opened and closes. The memory comes from OWNER_POOL, which
 * must be that of the connection: it is found there again at the next call
 * with the same PG.
 * A connection that is broken, or whose socket shows an end of file, is
 * opened again here; if that fails: CRM_E_UNAVAILABLE. A transaction that was
 * left open is rolled back. After any (re)connect
 * prepared statements are forgotten and the session speaks UTF-8, UTC, ISO
 * dates (set only where the server reports something else), without JIT; it
 * plans each statement once, for whatever is bound, and reads no table from one
 * end to the other where an index leads to a workspace's rows. */
crm_error_t *crm_conn_adopt(crm_conn_t **conn_p, PGconn *pg,
                            const crm_conn_options_t *options,
                            apr_pool_t *owner_pool, apr_pool_t *scratch_pool);

/* Open a connection of our own to CONNINFO (libpq's syntax), closed with
 * RESULT_POOL. Each call below takes at most TIMEOUT (microseconds; 0: no
 * limit), from its first attempt to its last answer. Then the server is asked
 * to cancel the statement and has two seconds to say that it did; the error
 * is CRM_E_UNAVAILABLE (CRM2005), and the connection is opened anew before its
 * next use.
 * Errors: CRM_E_UNAVAILABLE, whose LOG holds libpq's reason without any
 * password. */
crm_error_t *crm_conn_open(crm_conn_t **conn_p, const char *conninfo,
                           apr_interval_time_t timeout,
                           apr_pool_t *result_pool, apr_pool_t *scratch_pool);

/* Return the libpq connection of CONN, for notifications (LISTEN). */
PGconn *crm_conn_pg(crm_conn_t *conn);

/* Run STMT on CONN in one round trip and set *RESULT_P to its rows, cleared
 * with RESULT_POOL. Unless a transaction is open, a statement that cannot have
 * been committed is sent again: once over a new connection when the server
 * said that it ends the session and answered nothing else, up to three times
 * when it was rolled back by a deadlock or a serialization failure (40P01,
 * 40001). One that was sent and not answered is never sent again, whatever it
 * is: CRM_E_UNAVAILABLE. When the connection dies in a transaction, all
 * further statements fail until crm_db_rollback() or crm_conn_adopt().
 * Errors by SQLSTATE in one table: see crm_db_error(). */
crm_error_t *crm_db_query(PGresult **result_p, crm_conn_t *conn,
                          const crm_stmt_t *stmt, apr_pool_t *result_pool);

/* Run the COUNT statements at STMTS on CONN in order, in one round trip
 * (libpq's pipeline mode), and set RESULTS[0..COUNT-1] to their rows, cleared
 * with RESULT_POOL. The first that fails ends the run: the others are not
 * executed, and its error is returned, with the transaction that the
 * statements may have opened rolled back. Sent again as crm_db_query() says,
 * unless a COMMIT among the statements has succeeded. */
crm_error_t *crm_db_pipeline(PGresult **results, crm_conn_t *conn,
                             const crm_stmt_t *stmts, int count,
                             apr_pool_t *result_pool);

/* Run the parameterless command SQL (BEGIN, COMMIT, several in one string).
 * Never sent again. A COMMIT that rolls back is an error here and above. */
crm_error_t *crm_db_exec(crm_conn_t *conn, const char *sql,
                         apr_pool_t *scratch_pool);

/* Run SQL, a COPY ... FROM STDIN in the text format, on CONN with the LEN
 * bytes at DATA. Never sent again. */
crm_error_t *crm_db_copy_in(crm_conn_t *conn, const char *sql,
                            const char *data, apr_size_t len,
                            apr_pool_t *scratch_pool);

/* Called with BATON for a row, the only one of RESULT, which is gone
 * afterwards. An error ends the calls and is returned by crm_db_each(). */
typedef crm_error_t *(*crm_db_row_t)(void *baton, const PGresult *result);

/* Run STMT on CONN and call EACH with BATON for each row as it arrives. The
 * connection's timeout applies to the wait for each row. Never sent again. */
crm_error_t *crm_db_each(crm_conn_t *conn, const crm_stmt_t *stmt,
                         crm_db_row_t each, void *baton,
                         apr_pool_t *result_pool);

/* Roll back a transaction that CONN may have open; never fails: a connection
 * on which that does not work is reset at its next use. */
void crm_db_rollback(crm_conn_t *conn);

/* Return the error for RESULT (NULL: the connection itself failed), with its
 * SQLSTATE: 08, 53, 57, 25006, 40P01, 40001, 55P03 → CRM_E_UNAVAILABLE; 23505,
 * 23503, 23514, 22 → CRM_E_CONFLICT for the caller to explain; 42, 3F →
 * CRM_E_UNAVAILABLE (the schema is not what we expect); others
 * CRM_E_INTERNAL. LOG holds the server's primary message, never its DETAIL
 * (which quotes values). */
crm_error_t *crm_db_error(const PGresult *result, PGconn *pg,
                          apr_pool_t *result_pool);

/* Return the value at ROW, COLUMN of RESULT, NULL for a null. */
static inline const char *crm_db_value(const PGresult *result, int row,
                                       int column)
{
    return PQgetisnull(result, row, column)
           ? NULL : PQgetvalue(result, row, column);
}

#endif /* CRM_DB_H */
