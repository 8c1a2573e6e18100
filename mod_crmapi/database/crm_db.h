/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db.h: statements on a PostgreSQL connection */
#ifndef CRM_DB_H
#define CRM_DB_H

#include <libpq-fe.h>

#include "apr_pools.h"

#include "crm_db_conn.h"
#include "crm_error.h"

/* A statement: its text, and the values of $1 to $N in PostgreSQL's text
 * format, NULL for a null. Casts in the text give the types. */
typedef struct crm_stmt_t {
    const char *sql;
    int count;                  /* number of VALUES */
    const char *const *values;
} crm_stmt_t;

/* Run STMT on CONN in one round trip and set *RESULT_P to its result, cleared
 * with RESULT_POOL. Outside a transaction, a statement that was certainly not
 * committed is retried: once on a new connection if the server ended the
 * session before any answer, up to three times after a deadlock or
 * serialization failure (40P01, 40001). A statement without an answer is never
 * retried: CRM_E_UNAVAILABLE. If the connection dies in a transaction, all
 * statements fail until crm_db_rollback() or crm_conn_adopt().
 * Errors: see crm_db_error(). */
crm_error_t *crm_db_query(PGresult **result_p, crm_conn_t *conn,
                          const crm_stmt_t *stmt, apr_pool_t *result_pool);

/* Clear RESULT, which crm_db_query() or crm_db_pipeline() returned, before
 * RESULT_POOL would. */
void crm_db_clear(PGresult *result, apr_pool_t *result_pool);

/* Run the COUNT statements at STMTS on CONN in order, in one round trip
 * (libpq's pipeline mode), and set RESULTS[0..COUNT-1] to their results,
 * cleared with RESULT_POOL. After the first error the other statements are not
 * executed, and the transaction is rolled back if one is open, also one that was
 * open before. Retried as in crm_db_query(), unless a COMMIT among the
 * statements succeeded. */
crm_error_t *crm_db_pipeline(PGresult **results, crm_conn_t *conn,
                             const crm_stmt_t *stmts, int count,
                             apr_pool_t *result_pool);

/* Run SQL, one or more commands without parameters (BEGIN, COMMIT). Never
 * retried. A COMMIT that rolls back is an error, here and in the functions
 * above. */
crm_error_t *crm_db_exec(crm_conn_t *conn, const char *sql,
                         apr_pool_t *scratch_pool);

/* The callback of crm_db_each() for a row. It is the only row of RESULT, which
 * is cleared afterwards. After an error no further row is passed, and
 * crm_db_each() returns the error. */
typedef crm_error_t *(*crm_db_row_t)(void *baton, const PGresult *result);

/* Run STMT on CONN and call EACH with BATON for every row as it arrives. The
 * timeout applies to each row. Never retried. */
crm_error_t *crm_db_each(crm_conn_t *conn, const crm_stmt_t *stmt,
                         crm_db_row_t each, void *baton,
                         apr_pool_t *result_pool);

/* Roll back CONN's transaction, if one is open. If this fails, the connection
 * is reset before its next use. */
void crm_db_rollback(crm_conn_t *conn);

/* Return the value at ROW, COLUMN of RESULT, or NULL for a null. */
static inline const char *crm_db_value(const PGresult *result, int row,
                                       int column)
{
    return PQgetisnull(result, row, column)
           ? NULL : PQgetvalue(result, row, column);
}

#endif /* CRM_DB_H */
