/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql_print.h: the forms of a statement: plain, for Citus, for several
 * requests */
#ifndef CRM_SQL_PRINT_H
#define CRM_SQL_PRINT_H

#include "crm_sql.h"

/* Add the part PLAIN to SQL, or CITUS if the database is distributed: as
 * CRM_SQL_EITHER(), for parts that are not constants. */
void crm_sql_either(crm_sql_t *sql, const char *plain, const char *citus);

/* Return the text PARTS, without values, in the form of a database that is DISTRIBUTED
 * or not. It is empty if that form has nothing. The result is PARTS, or in
 * RESULT_POOL. */
const char *crm_sql_form(const char *parts, int distributed,
                         apr_pool_t *result_pool);

/* Set *STMT to the text and binds of SQL, which is complete, in the form that the
 * database takes. They live as long as SQL's pool. */
void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql);

/* Set *STMT to the statement that must return a row before SQL may be run, and
 * return 1; or return 0 if there is none. Citus runs a statement that calls a
 * function for a workspace on another server than the tables that say whether a
 * key permits it. STMT lives as long as SQL's pool. */
int crm_sql_before(crm_stmt_t *stmt, const crm_sql_t *sql);

/* Return whether SQL sees the settings that other statements of its transaction
 * have made: with Citus these are on another server. */
int crm_sql_sees_settings(const crm_sql_t *sql);

/* Return whether crm_sql_batch() can make a statement of SQL, a SELECT or a write
 * (crm_sql_write()). */
int crm_sql_is_shared(const crm_sql_t *sql);

/* Return, in RESULT_POOL, a statement that runs SQL, a SELECT with binds or a
 * write (crm_sql_write()), for several sets of values in one round trip. Its
 * bind I is the array of all values of SQL's bind I (crm_sql_array()).
 *
 * For a SELECT, its rows are those of SQL for the first set of values, then
 * those for the second, and so on, each in SQL's order. An additional last
 * column is the number of the set, from 1.
 *
 * For a write, no two sets may name the same row. The statement writes all the
 * rows that SQL would write for the sets, or fails. Its rows have no order. Two
 * additional last columns are workspace_id and id. An UPDATE skips rows that
 * another transaction has locked, as if they did not exist. For any other lock
 * the statement waits at most 20 ms, then it fails (55P03). */
const char *crm_sql_batch(const crm_sql_t *sql, apr_pool_t *result_pool);

#endif /* CRM_SQL_PRINT_H */
