/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.h: building a statement's text and binds */
#ifndef CRM_SQL_H
#define CRM_SQL_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_db.h"

/* The current time as the database stores it: in whole milliseconds. Citus takes
 * no volatile function in an UPDATE: in a statement of a distributed database
 * that has one, crm_sql_stmt() replaces these two by infinity, in whose place a
 * trigger puts the time (schema/citus/0005-times.sql). */
#define CRM_SQL_NOW "date_trunc('milliseconds', clock_timestamp())"

/* The same for the updated_at of a row t, which always grows (contract 6.6). */
#define CRM_SQL_LATER \
    "greatest(" CRM_SQL_NOW ", t.updated_at + interval '1 millisecond')"

/* A statement under construction. The text consists of string constants only;
 * values are binds. */
typedef struct crm_sql_t {
    crm_buf_t text;
    apr_array_header_t *binds;  /* const char * */
    apr_array_header_t *casts;  /* const char *: the type of each bind */
    int distributed;            /* the database is: crm_schema_t */
    /* For crm_sql_batch(), of a write: see crm_sql_write(). */
    int row;                    /* the bind that is its row's id; 0: a read */
    apr_size_t from;            /* offset in TEXT at which a FROM clause may be
                                   inserted */
    const char *table;          /* the table of an UPDATE, else NULL */
} crm_sql_t;

/* Initialise SQL, empty, in POOL. */
void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool);

/* Add TEXT. */
void crm_sql_add(crm_sql_t *sql, const char *text);

/* Add the texts up to a NULL. */
void crm_sql_adds(crm_sql_t *sql, ...) __attribute__((sentinel));

/* Add VALUE (NULL: null; not copied) as a bind: "$3::uuid" for the CAST
 * "uuid". */
void crm_sql_bind(crm_sql_t *sql, const char *value, const char *cast);

/* Add VALUE as a bind of the type CAST without adding text. Return its number,
 * 3 for "$3". The caller writes "$3::" and CAST into the text. */
int crm_sql_value(crm_sql_t *sql, const char *value, const char *cast);

/* Add TEMPLATE. Each '?' in it becomes the placeholder of one bind, VALUE with
 * CAST. */
void crm_sql_template(crm_sql_t *sql, const char *template, const char *value,
                      const char *cast);

/* Add a bind and its placeholder for the array of STRINGS (const char *; NULL:
 * null), whose elements have the SQL type CAST. If CAST is an array, it is a
 * text[] of arrays in text format. Such a statement cannot be shared. */
void crm_sql_bind_array(crm_sql_t *sql, const apr_array_header_t *strings,
                        const char *cast);

/* Set *STMT to the text and binds of SQL, which live as long as SQL's pool, in the
 * form that the database takes. */
void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql);

/* Declare that SQL, which is complete, writes at most one row: that of t with
 * bind 1 as workspace_id and bind ROW as id. SQL ends with RETURNING, which
 * contains no bind but $1. It has no FROM clause; FROM is the offset in its
 * text at which one may be inserted. TABLE (static) is the table of an UPDATE,
 * or NULL for an INSERT. */
void crm_sql_write(crm_sql_t *sql, apr_size_t from, int row,
                   const char *table);

/* Return, in RESULT_POOL, a statement that runs SQL, a SELECT with binds or a
 * write (crm_sql_write()), for several sets of values in one round trip. Its
 * bind I is the array of all values of SQL's bind I (crm_sql_array()). Call
 * crm_sql_stmt() before.
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

/* Return PostgreSQL's text format of a one-dimensional array of STRINGS (const
 * char *; NULL: null), in RESULT_POOL: a bind for text[], uuid[], interval[],
 * and so on. */
const char *crm_sql_array(const apr_array_header_t *strings,
                          apr_pool_t *result_pool);

#endif /* CRM_SQL_H */
