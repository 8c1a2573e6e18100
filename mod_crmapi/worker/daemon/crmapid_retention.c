/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_retention.c: deleting what workspaces keep for some days only (contract
 * 14.5) */
#include "crmapid_retention.h"

#include <stdlib.h>

#include "apr_strings.h"

#include "crm_db.h"

/* Rows of a statement, so that it takes less than a tenth of a second. */
#define BATCH 100
#define BATCH_TEXT "100"

/* Before the first conversation. */
#define FIRST "-infinity"
#define FIRST_ID "00000000-0000-0000-0000-000000000000"

/* The workspace whose rows are deleted. */
typedef struct retention_t {
    crm_conn_t *conn;
    const char *values[2];      /* workspace, moment */
    apr_int64_t *count_p;
    apr_pool_t *batch_pool;     /* cleared after each statement */
} retention_t;

/* Run SQL, which returns how many rows it has deleted, until it deletes less than a
 * batch. */
static crm_error_t *run_sql(retention_t *retention, const char *sql)
{
    crm_stmt_t stmt = {sql, 2, retention->values};
    int n;

    do {
        PGresult *result;

        apr_pool_clear(retention->batch_pool);
        CRM_ERR(crm_db_query(&result, retention->conn, &stmt,
                             retention->batch_pool));
        n = atoi(PQgetvalue(result, 0, 0));
        *retention->count_p += n;
    } while (n == BATCH && !crm_conn_unwanted(retention->conn));
    return NULL;
}

/* Delete conversations, from the first one on. */
static crm_error_t *run_conversations(retention_t *retention)
{
    const char *values[4] = {retention->values[0], retention->values[1], FIRST,
                             FIRST_ID};
    crm_stmt_t stmt = {"SELECT * FROM crmapi.retention_conversations($1::uuid,"
                       " $2::timestamptz, $3::timestamptz, $4::uuid, "
                       BATCH_TEXT ")", 4, values};
    char next[64], next_id[64];

    while (values[2] && !crm_conn_unwanted(retention->conn)) {
        PGresult *result;
        const char *at;

        apr_pool_clear(retention->batch_pool);
        CRM_ERR(crm_db_query(&result, retention->conn, &stmt,
                             retention->batch_pool));
        *retention->count_p += atoi(PQgetvalue(result, 0, 0));
        at = crm_db_value(result, 0, 1);
        apr_cpystrn(next, at ? at : "", sizeof(next));
        values[2] = at ? next : NULL;
        apr_cpystrn(next_id, PQgetvalue(result, 0, 2), sizeof(next_id));
        values[3] = next_id;
    }
    return NULL;
}

static crm_error_t *run_workspace(retention_t *retention)
{
    CRM_ERR(run_conversations(retention));
    CRM_ERR(run_sql(retention, "SELECT crmapi.retention_submissions($1::uuid,"
                    " $2::timestamptz, " BATCH_TEXT ")"));
    return run_sql(retention, "SELECT crmapi.retention_events($1::uuid,"
                   " $2::timestamptz, " BATCH_TEXT ")");
}

crm_error_t *crmd_retention_run(apr_int64_t *count_p, crm_conn_t *conn,
                                const char *moment, apr_pool_t *scratch_pool)
{
    retention_t retention = {conn, {NULL, moment}, count_p, NULL};
    crm_stmt_t stmt = {"SELECT w.id FROM crmapi.workspace w WHERE"
                       " w.retention_conversations IS NOT NULL OR"
                       " w.retention_submissions IS NOT NULL OR"
                       " w.retention_events IS NOT NULL ORDER BY w.id", 0,
                       NULL};
    crm_error_t *error = NULL;
    PGresult *result;

    *count_p = 0;
    CRM_ERR(crm_db_query(&result, conn, &stmt, scratch_pool));
    apr_pool_create(&retention.batch_pool, scratch_pool);
    for (int i = 0; !error && i < PQntuples(result)
         && !crm_conn_unwanted(conn); i++) {
        retention.values[0] = PQgetvalue(result, i, 0);
        error = run_workspace(&retention);
    }
    return error;
}
