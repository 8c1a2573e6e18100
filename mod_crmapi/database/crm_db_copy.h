/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_copy.h: COPY, in text format */
#ifndef CRM_DB_COPY_H
#define CRM_DB_COPY_H

#include "crm_db.h"

/* Begin SQL, a COPY ... FROM STDIN in text format, on CONN. The caller then calls
 * crm_db_copy_put() any number of times, and crm_db_copy_end() or
 * crm_db_copy_abort(). If one of them returns an error, the COPY has ended. Never
 * retried. */
crm_error_t *crm_db_copy_begin(crm_conn_t *conn, const char *sql,
                               apr_pool_t *scratch_pool);

/* Send the LEN bytes at DATA. The timeout applies to each call. */
crm_error_t *crm_db_copy_put(crm_conn_t *conn, const char *data,
                             apr_size_t len, apr_pool_t *scratch_pool);

/* End the COPY. Set *ROW_P to the number of rows that were copied. If the
 * server refuses a row, return its error and set *ROW_P to the number of that
 * row, from 1, or to 0 if the server does not report it. */
crm_error_t *crm_db_copy_end(apr_int64_t *row_p, crm_conn_t *conn,
                             apr_pool_t *scratch_pool);

/* End the COPY as a failure, so that its transaction is rolled back. */
void crm_db_copy_abort(crm_conn_t *conn);

/* The callback of crm_db_copy_out() for a row: the LEN bytes at LINE, of which
 * the last is a line feed. After an error no further row is passed. */
typedef crm_error_t *(*crm_db_line_t)(void *baton, const char *line,
                                      apr_size_t len);

/* Run SQL, a COPY ... TO STDOUT in text format, on CONN and call EACH with
 * BATON for every row as it arrives. The timeout applies to each row. Never
 * retried. */
crm_error_t *crm_db_copy_out(crm_conn_t *conn, const char *sql,
                             crm_db_line_t each, void *baton,
                             apr_pool_t *scratch_pool);

#endif /* CRM_DB_COPY_H */
