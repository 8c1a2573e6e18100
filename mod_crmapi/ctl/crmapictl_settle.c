/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_settle.c: a table after many rows were inserted at once */
#include "crmapictl_settle.h"

#include "apr_strings.h"

#include "crm_sql_print.h"

void ctl_settle(crm_conn_t *conn, const char *table, apr_pool_t *scratch_pool)
{
    crm_sql_t sql;
    crm_stmt_t stmt;
    PGresult *result;
    const char *columns;

    crm_sql_init(&sql, scratch_pool);
    crm_sql_template(&sql, "SELECT string_agg(DISTINCT quote_ident(a.attname),"
                     " ', ') FILTER (WHERE m.amname = 'btree'),"
                     " count(gin_clean_pending_list(CASE WHEN m.amname = 'gin'"
                     " THEN i.indexrelid END))"
                     " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
                     " JOIN pg_am m ON m.oid = c.relam JOIN pg_attribute a"
                     " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
                     " WHERE i.indrelid = ?", apr_pstrcat(scratch_pool,
                                                          "crmapi.", table,
                                                          NULL), "regclass");
    crm_sql_stmt(&stmt, &sql);
    if (crm_db_query(&result, conn, &stmt, scratch_pool)) {
        return;
    }
    columns = crm_db_value(result, 0, 0);
    crm_db_exec(conn, apr_pstrcat(scratch_pool, "ANALYZE crmapi.", table, " (",
                                  columns, ")", NULL), scratch_pool);
}
