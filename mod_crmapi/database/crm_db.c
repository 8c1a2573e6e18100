/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db.c: running statements: prepared once, in one round trip, retried */
#include "crm_db.h"

#include <string.h>

#include "crm_db_attempt.h"
#include "crm_db_private.h"

/* Retries of statements that a deadlock or serialization failure (40P01, 40001)
 * rolled back. */
#define MAX_CONFLICTS 3

/* Retries because the server's prepared statement differs from what was
 * assumed. The second one is for CRM_NAMES_SHARED only. */
#define MAX_STALE 2

/* Return whether SQL is a COMMIT and RESULT says that it has rolled back.
 * PostgreSQL reports that as a success. */
static int rolled_back(PGresult *result, const char *sql)
{
    return !strcmp(PQcmdStatus(result), "ROLLBACK")
           && !strncmp(sql, "COMMIT", 6);
}

/* Return, in POOL, the error of a COMMIT that rolled back. */
static crm_error_t *rollback_error(apr_pool_t *pool)
{
    return crm_error_logf(CRM_E_INTERNAL, pool, "CRM2003: database: COMMIT of"
                          " a transaction that had failed");
}

static const char *failure_state(const crm_attempt_t *attempt)
{
    const char *state = attempt->failure
                        ? PQresultErrorField(attempt->failure,
                                             PG_DIAG_SQLSTATE) : NULL;

    return state ? state : "";
}

/* Return whether STATE, the SQLSTATE of ATTEMPT's failure, is about a shared
 * name: the session lacks it, has an outdated statement, or has it already. The
 * next attempt then prepares the statement. That fails if the pooler switches
 * to another session again, so the last attempt uses no names. */
static int note_shared(crm_attempt_t *attempt, const char *state)
{
    int absent = !strcmp(state, "26000");
    int outdated = !strcmp(state, "0A000");

    if (attempt->unnamed || (!absent && !outdated && strcmp(state, "42P05"))) {
        return 0;
    }
    attempt->unnamed = attempt->missing >= 0;
    attempt->missing = attempt->failed;
    attempt->outdated = outdated;
    return 1;
}

/* Forget the prepared statements that STATE, the SQLSTATE of ATTEMPT's failure,
 * shows to be no longer valid. Return whether a retry may succeed. */
static int forget_stale(crm_attempt_t *attempt, const char *state)
{
    crm_prepared_t *prepared = attempt->prepared[attempt->failed];
    int known = prepared
                && !(attempt->steps[attempt->failed] & CRM_STEP_PREPARE);

    if (attempt->conn->options.named_statements == CRM_NAMES_SHARED) {
        return note_shared(attempt, state);
    }
    if (!strcmp(state, "26000")) {
        /* A pooler switched to another session, or a DEALLOCATE failed. */
        crm_prepared_forget(attempt->conn);
        return 1;
    }
    if (!strcmp(state, "0A000") && known) {
        /* "cached plan must not change result type": a table was altered */
        prepared->outdated = 1;
        return 1;
    }
    return 0;
}

/* Return whether ATTEMPT, which failed, may be retried. No transaction was open
 * before it. *CONFLICTS counts retries after 40P01 and 40001, *RESENDS all
 * others. After 25006 the connection must be reset: another host of the
 * connection string may be the primary now.
 *
 * If the connection is lost, it is not known whether a statement was committed,
 * so nothing is sent again. There is one exception: the server sent FATAL 57P,
 * the end of the session, and no answer before it. A server answers a statement
 * before it ends the transaction, so nothing was committed. After any other
 * error, everything since the last COMMIT was rolled back. crm_conn_ready()
 * handles connections that were dead before anything was sent. */
static int may_resend(crm_attempt_t *attempt, int *conflicts, int *resends)
{
    const char *state = failure_state(attempt);
    int stale = forget_stale(attempt, state);

    if (attempt->committed || attempt->conn->cancelled) {
        return 0;
    }
    if (attempt->conn->read_only) {
        attempt->conn->broken = 1;
        return (*resends)++ < 1;
    }
    if (attempt->down) {
        return !attempt->answered && !strncmp(state, "57P", 3)
               && (*resends)++ < 1;
    }
    if (!strcmp(state, "40P01") || !strcmp(state, "40001")) {
        return (*conflicts)++ < MAX_CONFLICTS;
    }
    return stale && (*resends)++ < MAX_STALE;
}

/* Return the error of ATTEMPT, or NULL if all statements succeeded. */
static crm_error_t *attempt_error(const crm_attempt_t *attempt,
                                  apr_pool_t *pool)
{
    if (attempt->failure || attempt->down) {
        crm_error_t *error = crm_db_failure(attempt->conn, attempt->failure,
                                            pool);

        if (attempt->down) {
            error->code = CRM_E_UNAVAILABLE;
            error->message = crm_code_info(error->code)->message;
            error->retry_after = 1;
        }
        return error;
    }
    if (attempt->conn->unconfirmed) {
        return crm_db_unconfirmed(pool);
    }
    for (int i = 0; i < attempt->count; i++) {
        if (rolled_back(attempt->results[i], attempt->stmts[i].sql)) {
            return rollback_error(pool);
        }
    }
    return NULL;
}

/* Pool cleanup: clear the PGresult at DATA. */
static apr_status_t clear_cleanup(void *data)
{
    PQclear(data);
    return APR_SUCCESS;
}

crm_error_t *crm_db_begin(int *open_p, crm_conn_t *conn, apr_pool_t *pool)
{
    int ready = conn->ready;

    conn->ready = 0;
    crm_db_deadline(conn);
    if (conn->lost) {
        return crm_error_logf(CRM_E_UNAVAILABLE, pool,
                              "CRM2004: database: the connection was lost in"
                              " the middle of a transaction");
    }
    *open_p = !conn->broken
              && (PQtransactionStatus(conn->pg) == PQTRANS_INTRANS
                  || PQtransactionStatus(conn->pg) == PQTRANS_INERROR);
    return *open_p || ready ? NULL : crm_conn_ready(conn, pool);
}

/* Run ATTEMPT until it succeeds or may not be retried. */
static crm_error_t *run(crm_attempt_t *attempt, apr_pool_t *pool)
{
    crm_conn_t *conn = attempt->conn;
    int conflicts = 0, resends = 0;
    crm_error_t *error;
    int open;

    CRM_ERR(crm_db_begin(&open, conn, pool));
    attempt->unnamed = open;
    attempt->missing = -1;
    for (;;) {
        crm_attempt_run(attempt);
        error = attempt_error(attempt, pool);
        conn->lost = open && conn->broken;
        if (!error) {
            return NULL;
        }
        if (open) {
            forget_stale(attempt, failure_state(attempt));
            break;
        }
        if (!may_resend(attempt, &conflicts, &resends)) {
            break;
        }
        crm_attempt_clear(attempt);
        crm_db_rollback(conn);
        if (crm_conn_ready(conn, pool)) {
            break;
        }
    }
    crm_attempt_clear(attempt);
    return error;
}

crm_error_t *crm_db_query_uncleared(PGresult **result_p, crm_conn_t *conn,
                                    const crm_stmt_t *stmt,
                                    apr_pool_t *scratch_pool)
{
    crm_prepared_t *prepared;
    crm_attempt_t attempt;
    int steps;

    memset(&attempt, 0, sizeof(attempt));
    attempt.conn = conn;
    attempt.stmts = stmt;
    attempt.count = 1;
    attempt.results = result_p;
    attempt.steps = &steps;
    attempt.prepared = &prepared;
    return run(&attempt, scratch_pool);
}

crm_error_t *crm_db_query(PGresult **result_p, crm_conn_t *conn,
                          const crm_stmt_t *stmt, apr_pool_t *result_pool)
{
    CRM_ERR(crm_db_query_uncleared(result_p, conn, stmt, result_pool));
    apr_pool_cleanup_register(result_pool, *result_p, clear_cleanup,
                              apr_pool_cleanup_null);
    return NULL;
}

void crm_db_clear(PGresult *result, apr_pool_t *result_pool)
{
    apr_pool_cleanup_run(result_pool, result, clear_cleanup);
}

crm_error_t *crm_db_pipeline(PGresult **results, crm_conn_t *conn,
                             const crm_stmt_t *stmts, int count,
                             apr_pool_t *result_pool)
{
    apr_size_t n = (apr_size_t)count;
    crm_attempt_t attempt;
    crm_error_t *error;

    memset(&attempt, 0, sizeof(attempt));
    attempt.conn = conn;
    attempt.stmts = stmts;
    attempt.count = count;
    attempt.results = results;
    attempt.steps = apr_palloc(result_pool, n * sizeof(*attempt.steps));
    attempt.prepared = apr_palloc(result_pool, n * sizeof(*attempt.prepared));
    error = run(&attempt, result_pool);
    if (error) {
        crm_db_rollback(conn);
        return error;
    }
    for (int i = 0; i < count; i++) {
        apr_pool_cleanup_register(result_pool, results[i], clear_cleanup,
                                  apr_pool_cleanup_null);
    }
    return NULL;
}

void crm_db_end(crm_conn_t *conn, int open)
{
    if (conn->broken || conn->cancelled
        || PQstatus(conn->pg) != CONNECTION_OK) {
        conn->broken = 1;
        conn->lost = open;
    }
}

crm_error_t *crm_db_exec(crm_conn_t *conn, const char *sql,
                         apr_pool_t *scratch_pool)
{
    crm_error_t *error = NULL;
    PGresult *result;
    int open;

    CRM_ERR(crm_db_begin(&open, conn, scratch_pool));
    result = crm_db_command(conn, sql);
    if (!crm_db_succeeded(result)) {
        error = crm_db_failure(conn, result, scratch_pool);
    }
    else if (rolled_back(result, sql)) {
        error = rollback_error(scratch_pool);
    }
    else if (conn->unconfirmed) {
        error = crm_db_unconfirmed(scratch_pool);
    }
    PQclear(result);
    crm_db_end(conn, open);
    return error;
}

crm_error_t *crm_db_each(crm_conn_t *conn, const crm_stmt_t *stmt,
                         crm_db_row_t each, void *baton,
                         apr_pool_t *result_pool)
{
    crm_error_t *error = NULL;
    PGresult *result = NULL;
    int open, usable;

    CRM_ERR(crm_db_begin(&open, conn, result_pool));
    if (!PQsendQueryParams(conn->pg, stmt->sql, stmt->count, NULL,
                           stmt->values, NULL, NULL, 0)
        || !PQsetSingleRowMode(conn->pg)) {
        error = crm_db_failure(conn, NULL, result_pool);
        crm_db_end(conn, open);
        return error;
    }
    while ((usable = crm_db_await(conn))
           && (result = PQgetResult(conn->pg))) {
        if (!error) {
            error = PQresultStatus(result) == PGRES_SINGLE_TUPLE
                    ? each(baton, result)
                    : crm_db_succeeded(result)
                    ? NULL : crm_db_failure(conn, result, result_pool);
        }
        usable = !crm_db_ends_session(result);
        PQclear(result);
        if (!usable) {
            break;
        }
        crm_db_prolong(conn);
    }
    if (!usable && !error) {
        error = crm_db_failure(conn, NULL, result_pool);
    }
    conn->broken |= !usable;
    crm_db_end(conn, open);
    return error;
}

void crm_db_rollback(crm_conn_t *conn)
{
    PGTransactionStatusType state = PQtransactionStatus(conn->pg);
    int broken;

    conn->broken |= conn->read_only;
    broken = conn->broken;
    conn->lost = 0;
    if (state == PQTRANS_IDLE || state == PQTRANS_UNKNOWN) {
        return;
    }
    if (state == PQTRANS_ACTIVE
        || PQpipelineStatus(conn->pg) != PQ_PIPELINE_OFF) {
        conn->broken = 1;
        return;
    }
    crm_db_deadline(conn);
    PQclear(crm_db_command(conn, "ROLLBACK"));
    conn->broken = broken || PQtransactionStatus(conn->pg) != PQTRANS_IDLE;
}
