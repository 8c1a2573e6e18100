/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.h: making the text of a statement together with its binds */
#ifndef CRM_SQL_H
#define CRM_SQL_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_db.h"

/* A statement in the making. Its text consists of compile-time texts only;
 * values go in as binds. */
typedef struct crm_sql_t {
    crm_buf_t text;
    apr_array_header_t *binds;  /* of const char * */
} crm_sql_t;

/* Make SQL empty, in POOL. */
void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool);

/* Add TEXT as it is. */
void crm_sql_add(crm_sql_t *sql, const char *text);

/* Add TEXTs up to a NULL. */
void crm_sql_adds(crm_sql_t *sql, ...) __attribute__((sentinel));

/* Add VALUE (NULL: null; kept) as a bind: "$3::uuid" for the CAST "uuid". */
void crm_sql_bind(crm_sql_t *sql, const char *value, const char *cast);

/* Add TEMPLATE, in which each '?' is VALUE as a bind with CAST. */
void crm_sql_template(crm_sql_t *sql, const char *template, const char *value,
                      const char *cast);

/* Set *STMT to SQL's text (as long as SQL's pool) and binds. */
void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql);

/* Return PostgreSQL's text of a one-dimensional array of STRINGS (const char *;
 * NULL: null), in RESULT_POOL: a bind for a text[], uuid[], interval[], ... */
const char *crm_sql_array(const apr_array_header_t *strings,
                          apr_pool_t *result_pool);

#endif /* CRM_SQL_H */
