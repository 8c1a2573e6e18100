/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.h: statements made of parts */
#ifndef CRM_SQL_H
#define CRM_SQL_H

#include <string.h>

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_db.h"

/* The text of a statement is made of parts, string constants that may contain
 * marks, and of values. A mark stands for a value, whose number is given when the
 * statement is printed (crm_sql_print.c), or begins text that only one form of the
 * statement has. It is the byte 1, followed by a letter or the number of a value
 * in three bytes of 7 bits, behind which the type of the value stands as text. */
#define CRM_SQL_MARK '\001'

/* The value 1, of a statement that crm_rest_sql() began: the workspace's id. */
#define CRM_SQL_WORKSPACE "\001\200\200\201::uuid"

/* Its value 2: the id of the key's terms. */
#define CRM_SQL_TERMS "\001\200\200\202::uuid"

/* Condition: the row ROW ("t") is one of the workspace. */
#define CRM_SQL_OWN(row) row ".workspace_id = " CRM_SQL_WORKSPACE

/* The same, hidden from the planner by IS TRUE, so that it uses no index by the
 * workspace. Citus needs the condition to find the server. */
#define CRM_SQL_OWN_HIDDEN(row) \
    CRM_SQL_EITHER("(", "") CRM_SQL_OWN(row) CRM_SQL_EITHER(") IS TRUE", "")

/* What follows is only for PostgreSQL itself, only for a database that is
 * distributed by Citus, or for both again. */
#define CRM_SQL_PLAIN "\001p"
#define CRM_SQL_CITUS "\001c"
#define CRM_SQL_BOTH "\001b"

/* The text PLAIN, or CITUS if the database is distributed. Both have the same
 * values, because PostgreSQL takes none that is not used. They must not contain
 * CRM_SQL_EITHER() again. */
#define CRM_SQL_EITHER(plain, citus) \
    CRM_SQL_PLAIN plain CRM_SQL_CITUS citus CRM_SQL_BOTH

/* The current time as the database stores it: in whole milliseconds. */
#define CRM_SQL_CLOCK "date_trunc('milliseconds', clock_timestamp())"

/* The same as a value of an UPDATE. Citus takes no volatile function there: it
 * gets infinity, in whose place a trigger puts the time
 * (schema/citus/0005-times.sql). */
#define CRM_SQL_NOW CRM_SQL_EITHER(CRM_SQL_CLOCK, "'infinity'::timestamptz")

/* The same for the updated_at of a row t, which always grows (contract 6.6). */
#define CRM_SQL_LATER \
    CRM_SQL_EITHER("greatest(" CRM_SQL_CLOCK \
                   ", t.updated_at + interval '1 millisecond')", \
                   "'infinity'::timestamptz")

/* The clauses of a statement, in their order. Only what is printed in another
 * place needs to be begun: see crm_sql_write(). */
typedef enum crm_clause_t {
    CRM_SQL_HEAD,               /* all before the next one */
    CRM_SQL_FROM,
    CRM_SQL_WHERE,
    CRM_SQL_RETURNING,
    CRM_SQL_CLAUSES
} crm_clause_t;

/* A statement under construction. Its text consists of string constants only;
 * values are binds. */
typedef struct crm_sql_t {
    crm_buf_t text;             /* its parts */
    apr_size_t clauses[CRM_SQL_CLAUSES]; /* where they begin in TEXT */
    apr_array_header_t *binds;  /* const char * */
    apr_array_header_t *casts;  /* const char *: the type of each bind */
    int distributed;            /* the database is: crm_schema_t */
    const char *before;         /* the parts of crm_sql_before(), or NULL */
    const char *printed;        /* the statement, once crm_sql_stmt() was asked
                                   for it */
    apr_uint64_t hash;          /* of the parts, when it was */
    /* Of a write: see crm_sql_write(). */
    int row;                    /* the bind that is its row's id; 0: a read */
    const char *table;          /* the table of an UPDATE, else NULL */
} crm_sql_t;

/* Initialise SQL, empty, in POOL. */
void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool);

/* Add the part TEXT. */
void crm_sql_add(crm_sql_t *sql, const char *text);

/* Add the parts up to a NULL. */
void crm_sql_adds(crm_sql_t *sql, ...) __attribute__((sentinel));

/* Begin CLAUSE. The clauses between it and the one before it are empty. */
void crm_sql_clause(crm_sql_t *sql, crm_clause_t clause);

/* Add VALUE (NULL: null; not copied) as a bind: "$3::uuid" for the CAST "uuid".
 * Return its number, 3. */
int crm_sql_bind(crm_sql_t *sql, const char *value, const char *cast);

/* Add VALUE as a bind of the type CAST without adding text. */
int crm_sql_value(crm_sql_t *sql, const char *value, const char *cast);

/* Add TEMPLATE, a part. Each '?' in it becomes the placeholder of one bind, VALUE
 * with CAST. */
void crm_sql_template(crm_sql_t *sql, const char *template, const char *value,
                      const char *cast);

/* Return the type of the elements of an array of values with CAST. PostgreSQL has
 * no arrays of arrays: values that are arrays are passed as text. */
static inline const char *crm_sql_element(const char *cast)
{
    return strstr(cast, "[]") ? "text" : cast;
}

/* Add a bind and its placeholder for the array of STRINGS (const char *; NULL:
 * null), whose elements have the SQL type CAST. If CAST is an array, it is a
 * text[] of arrays in text format. Such a statement cannot be shared. */
void crm_sql_bind_array(crm_sql_t *sql, const apr_array_header_t *strings,
                        const char *cast);

/* Return the text of SQL as a part, in its pool, for a statement around it: SQL is
 * empty again, but keeps its values. */
const char *crm_sql_cut(crm_sql_t *sql);

/* Declare that SQL, which is complete, writes at most one row: that of t with
 * bind 1 as workspace_id and bind ROW as id. Its clauses were begun. It has no
 * FROM but one for Citus, and RETURNING contains no bind but the workspace. TABLE
 * (static) is the table of an UPDATE, or NULL for an INSERT. */
void crm_sql_write(crm_sql_t *sql, int row, const char *table);

/* Return PostgreSQL's text format of a one-dimensional array of STRINGS (const
 * char *; NULL: null), in RESULT_POOL: a bind for text[], uuid[], interval[],
 * and so on. */
const char *crm_sql_array(const apr_array_header_t *strings,
                          apr_pool_t *result_pool);

/* The same of the COUNT WORDS. */
const char *crm_sql_words(const char *const *words, int count,
                          apr_pool_t *result_pool);

#endif /* CRM_SQL_H */
