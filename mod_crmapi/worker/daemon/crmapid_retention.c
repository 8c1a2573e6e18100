/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_retention.c: deleting what workspaces keep for some days only (contract
 * 14.5) */
#include "crmapid_retention.h"

#include <stdlib.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_db.h"
#include "crm_time.h"

/* Rows of a statement: few at first, one more after each that was quick, and half
 * after one that took longer than LONG, so that none takes a tenth of a second. */
#define BATCH 100
#define START 20
#define LEAST 5
#define LONG apr_time_from_msec(40)

/* After a statement, requests have the database for as long as it took, at most this
 * long. */
#define PAUSE apr_time_from_msec(500)

/* Before the first conversation. */
#define FIRST "-infinity"
#define FIRST_ID "00000000-0000-0000-0000-000000000000"

/* The workspace whose rows are deleted. */
typedef struct retention_t {
    crm_conn_t *conn;
    const char *values[2];      /* workspace, moment */
    int batch;                  /* rows of the next statement */
    apr_int64_t *count_p;
    apr_pool_t *batch_pool;     /* cleared after each statement */
} retention_t;

/* Run STMT, of which the first column is how many rows were deleted, and set
 * *RESULT_P and *N_P to that. Set the size of the next batch by how long it took, and
 * pause if something was deleted. */
static crm_error_t *run_batch(PGresult **result_p, int *n_p,
                              retention_t *retention, const crm_stmt_t *stmt)
{
    apr_time_t began = crm_time_monotonic(), took;

    CRM_ERR(crm_db_query(result_p, retention->conn, stmt,
                         retention->batch_pool));
    took = crm_time_monotonic() - began;
    *n_p = atoi(PQgetvalue(*result_p, 0, 0));
    *retention->count_p += *n_p;
    if (took > LONG) {
        retention->batch = retention->batch / 2 > LEAST ? retention->batch / 2
                           : LEAST;
    }
    else if (took < LONG / 2 && retention->batch < BATCH) {
        retention->batch++;
    }
    if (*n_p) {
        apr_sleep(took < PAUSE ? took : PAUSE);
    }
    return NULL;
}

/* Run SQL, which returns how many rows it has deleted, until it deletes less than a
 * batch. */
static crm_error_t *run_sql(retention_t *retention, const char *sql)
{
    const char *values[3] = {retention->values[0], retention->values[1]};
    crm_stmt_t stmt = {sql, 3, values};
    int n, wanted;

    do {
        PGresult *result;

        apr_pool_clear(retention->batch_pool);
        wanted = retention->batch;
        values[2] = apr_itoa(retention->batch_pool, wanted);
        CRM_ERR(run_batch(&result, &n, retention, &stmt));
    } while (n == wanted && !crm_conn_unwanted(retention->conn));
    return NULL;
}

/* Delete conversations, from the first one on. */
static crm_error_t *run_conversations(retention_t *retention)
{
    const char *values[5] = {retention->values[0], retention->values[1], FIRST,
                             FIRST_ID};
    crm_stmt_t stmt = {"SELECT * FROM crmapi.retention_conversations($1::uuid,"
                       " $2::timestamptz, $3::timestamptz, $4::uuid,"
                       " $5::integer)", 5, values};
    char next[64], next_id[64];

    while (values[2] && !crm_conn_unwanted(retention->conn)) {
        PGresult *result;
        const char *at;
        int n;

        apr_pool_clear(retention->batch_pool);
        values[4] = apr_itoa(retention->batch_pool, retention->batch);
        CRM_ERR(run_batch(&result, &n, retention, &stmt));
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
                    " $2::timestamptz, $3::integer)"));
    return run_sql(retention, "SELECT crmapi.retention_events($1::uuid,"
                   " $2::timestamptz, $3::integer)");
}

crm_error_t *crmd_retention_run(apr_int64_t *count_p, crm_conn_t *conn,
                                const char *moment, apr_pool_t *scratch_pool)
{
    retention_t retention = {conn, {NULL, moment}, START, count_p, NULL};
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
