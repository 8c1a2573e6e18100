/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db.c: running statements: prepared once, in one round trip, retried */
#include "crm_db.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_db_prepared.h"
#include "crm_db_private.h"

/* Retries of statements that a deadlock or serialization failure (40P01, 40001)
 * rolled back. */
#define MAX_CONFLICTS 3

/* Bytes of COPY data given to libpq at once. */
#define COPY_PART 65536

/* An attempt to run statements, and its results. */
typedef struct attempt_t {
    crm_conn_t *conn;
    const crm_stmt_t *stmts;
    int count;
    PGresult **results;         /* COUNT results; NULL: not received */
    int *steps;                 /* COUNT sets of CRM_STEP_*; 0: not sent */
    crm_prepared_t **prepared;  /* COUNT; NULL: sent without a name */
    PGresult *failure;          /* the first error the server reported */
    int failed;                 /* index of the statement that failed */
    int answered;               /* a statement before it succeeded */
    int committed;              /* a COMMIT before it succeeded */
    int down;                   /* the connection failed */
} attempt_t;

/* --- sending -------------------------------------------------------------- */

/* Send statement I of ATTEMPT by the name in PREPARED. If the server does not
 * have it, send its preparation before. Return 0 on failure. */
static int send_prepared(attempt_t *attempt, int i, crm_prepared_t *prepared)
{
    const crm_stmt_t *stmt = &attempt->stmts[i];
    crm_conn_t *conn = attempt->conn;
    crm_prepared_name_t name;

    attempt->prepared[i] = prepared;
    if (prepared->prepared && prepared->outdated) {
        char text[sizeof(crm_prepared_name_t) + 16];

        apr_snprintf(text, sizeof(text), "DEALLOCATE %s",
                     crm_prepared_name(name, conn, prepared));
        if (!PQsendQueryParams(conn->pg, text, 0, NULL, NULL, NULL, NULL, 0)) {
            return 0;
        }
        attempt->steps[i] |= CRM_STEP_DEALLOCATE;
        prepared->old_number = prepared->number;
    }
    if (!prepared->prepared || prepared->outdated) {
        prepared->prepared = 1;     /* assumed until the answer arrives */
        prepared->outdated = 0;
        prepared->number = ++conn->last_number;
        if (!PQsendPrepare(conn->pg, crm_prepared_name(name, conn, prepared),
                           stmt->sql, 0, NULL)) {
            return 0;
        }
        attempt->steps[i] |= CRM_STEP_PREPARE;
    }
    attempt->steps[i] |= CRM_STEP_EXECUTE;
    return PQsendQueryPrepared(conn->pg,
                               crm_prepared_name(name, conn, prepared),
                               stmt->count, stmt->values, NULL, NULL, 0);
}

/* Send all statements of ATTEMPT and the sync. Return 0 if that fails. */
static int send_all(attempt_t *attempt)
{
    crm_conn_t *conn = attempt->conn;
    apr_uint64_t before = conn->clock;

    if (!PQenterPipelineMode(conn->pg)) {
        return 0;
    }
    for (int i = 0; i < attempt->count; i++) {
        const crm_stmt_t *stmt = &attempt->stmts[i];
        crm_prepared_t *prepared = conn->options.named_statements
                                   ? crm_prepared_find(conn, stmt->sql, before)
                                   : NULL;

        if (prepared) {
            if (!send_prepared(attempt, i, prepared)) {
                return 0;
            }
            continue;
        }
        attempt->steps[i] = CRM_STEP_EXECUTE;
        if (!PQsendQueryParams(conn->pg, stmt->sql, stmt->count, NULL,
                               stmt->values, NULL, NULL, 0)) {
            return 0;
        }
    }
    return PQpipelineSync(conn->pg);
}

/* --- receiving ------------------------------------------------------------ */

/* Return whether RESULT is the answer to the COMMIT in SQL, and it rolled back.
 * PostgreSQL reports that as a success. */
static int rolled_back(PGresult *result, const char *sql)
{
    return !strcmp(PQcmdStatus(result), "ROLLBACK")
           && !strncmp(sql, "COMMIT", 6);
}

/* Return whether RESULT is a success. */
static int succeeded(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
           || status == PGRES_EMPTY_QUERY;
}

/* Handle RESULT, the answer to STEP of statement I. */
static void take(attempt_t *attempt, int i, int step, PGresult *result)
{
    int ok = succeeded(result);

    if (attempt->prepared[i]) {
        crm_prepared_note(attempt->prepared[i], step, ok);
    }
    if (ok && step == CRM_STEP_EXECUTE) {
        attempt->answered = 1;
        attempt->committed |= !strcmp(PQcmdStatus(result), "COMMIT");
        attempt->results[i] = result;
    }
    else if (!ok && !attempt->failure
             && PQresultStatus(result) != PGRES_PIPELINE_ABORTED) {
        attempt->failure = result;
        attempt->failed = i;
    }
    else {
        PQclear(result);
    }
}

/* Receive the answer to STEP of statement I. Return 0 if the connection
 * failed. */
static int receive_step(attempt_t *attempt, int i, int step)
{
    PGconn *pg = attempt->conn->pg;
    PGresult *result;
    int taken = 0;

    while (crm_db_await(attempt->conn) && (result = PQgetResult(pg))) {
        if (taken) {
            PQclear(result);
        }
        else {
            take(attempt, i, step, result);
            taken = 1;
        }
        if (PQstatus(pg) != CONNECTION_OK) {
            return 0;
        }
    }
    return taken && !attempt->conn->silent;
}

/* Receive the answer to the sync. At the sync the server commits what runs
 * outside of a transaction block. If that fails (deferred constraints,
 * serialization failures, timeouts), its error comes first. Return 0 if the
 * connection failed. */
static int receive_sync(attempt_t *attempt)
{
    crm_conn_t *conn = attempt->conn;
    int failed = 0;

    while (crm_db_await(conn) && PQstatus(conn->pg) == CONNECTION_OK) {
        PGresult *result = PQgetResult(conn->pg);
        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_FATAL_ERROR && !attempt->failure) {
            attempt->failure = result;
            attempt->failed = attempt->count - 1;
            failed = 1;
            continue;
        }
        PQclear(result);
        if (result || !failed) {
            return status == PGRES_PIPELINE_SYNC
                   && PQexitPipelineMode(conn->pg);
        }
        failed = 0;             /* libpq returns a NULL after an error */
    }
    return 0;
}

/* Receive all answers. Return 0 if the connection failed. */
static int receive_all(attempt_t *attempt)
{
    for (int i = 0; i < attempt->count; i++) {
        for (int step = CRM_STEP_DEALLOCATE; step <= CRM_STEP_EXECUTE;
             step *= 2) {
            if ((attempt->steps[i] & step)
                && !receive_step(attempt, i, step)) {
                return 0;
            }
        }
    }
    return receive_sync(attempt);
}

/* --- a run ---------------------------------------------------------------- */

/* Send all statements and receive the answers. */
static void attempt_run(attempt_t *attempt)
{
    crm_conn_t *conn = attempt->conn;

    attempt->failure = NULL;
    attempt->failed = 0;
    attempt->answered = 0;
    attempt->committed = 0;
    for (int i = 0; i < attempt->count; i++) {
        attempt->results[i] = NULL;
        attempt->prepared[i] = NULL;
        attempt->steps[i] = 0;
    }
    attempt->down = !send_all(attempt) || !receive_all(attempt);
    conn->broken |= attempt->down || conn->cancelled;
}

/* Free the results of ATTEMPT. */
static void attempt_clear(attempt_t *attempt)
{
    for (int i = 0; i < attempt->count; i++) {
        PQclear(attempt->results[i]);
        attempt->results[i] = NULL;
    }
    PQclear(attempt->failure);
    attempt->failure = NULL;
}

static const char *failure_state(const attempt_t *attempt)
{
    const char *state = attempt->failure
                        ? PQresultErrorField(attempt->failure,
                                             PG_DIAG_SQLSTATE) : NULL;

    return state ? state : "";
}

/* If STATE, the SQLSTATE of ATTEMPT's failure, says so, forget prepared
 * statements that are no longer valid. Return whether a retry may succeed. */
static int forget_stale(attempt_t *attempt, const char *state)
{
    crm_prepared_t *prepared = attempt->prepared[attempt->failed];
    int known = prepared
                && !(attempt->steps[attempt->failed] & CRM_STEP_PREPARE);

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
 * others. After 25006 the connection is broken: another host of the connection
 * string may be the primary now.
 *
 * After the connection is lost, it is not known whether a statement was
 * committed, so nothing is sent again. There is one exception: the server sent
 * FATAL 57P, the end of the session, and no answer before it. A server answers
 * a statement before its transaction ends, so nothing was committed. Any other
 * error has rolled back everything since the last COMMIT. crm_conn_ready()
 * handles connections that are dead before anything was sent. */
static int may_resend(attempt_t *attempt, int *conflicts, int *resends)
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
    return stale && (*resends)++ < 1;
}

/* Return the error of ATTEMPT, or NULL if all statements succeeded. */
static crm_error_t *attempt_error(const attempt_t *attempt, apr_pool_t *pool)
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
            return crm_error_logf(CRM_E_INTERNAL, pool,
                                  "CRM2003: database: COMMIT of a"
                                  " transaction that had failed");
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

/* Make CONN ready for statements. Set *OPEN_P to whether a transaction is open.
 * If none is, reset a dead connection. */
static crm_error_t *begin(int *open_p, crm_conn_t *conn, apr_pool_t *pool)
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
static crm_error_t *run(attempt_t *attempt, apr_pool_t *pool)
{
    crm_conn_t *conn = attempt->conn;
    int conflicts = 0, resends = 0;
    crm_error_t *error;
    int open;

    CRM_ERR(begin(&open, conn, pool));
    for (;;) {
        attempt_run(attempt);
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
        attempt_clear(attempt);
        crm_db_rollback(conn);
        if (crm_conn_ready(conn, pool)) {
            break;
        }
    }
    attempt_clear(attempt);
    return error;
}

crm_error_t *crm_db_query_uncleared(PGresult **result_p, crm_conn_t *conn,
                                    const crm_stmt_t *stmt,
                                    apr_pool_t *scratch_pool)
{
    crm_prepared_t *prepared;
    attempt_t attempt;
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
    attempt_t attempt;
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

/* Mark CONN as broken if it can no longer be used. OPEN: whether a transaction
 * was open. */
static void note_end(crm_conn_t *conn, int open)
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

    CRM_ERR(begin(&open, conn, scratch_pool));
    result = crm_db_command(conn, sql);
    if (!succeeded(result)) {
        error = crm_db_failure(conn, result, scratch_pool);
    }
    else if (rolled_back(result, sql)) {
        error = crm_error_logf(CRM_E_INTERNAL, scratch_pool, "database:"
                               " COMMIT of a transaction that had failed");
    }
    else if (conn->unconfirmed) {
        error = crm_db_unconfirmed(scratch_pool);
    }
    PQclear(result);
    note_end(conn, open);
    return error;
}

/* Send the LEN bytes at DATA to CONN, which is in COPY ... FROM STDIN, and end
 * the COPY. Return the server's answer, or NULL if the connection failed. */
static PGresult *copy_all(crm_conn_t *conn, const char *data, apr_size_t len)
{
    int sent;

    while (len) {
        apr_size_t part = len < COPY_PART ? len : COPY_PART;

        sent = PQputCopyData(conn->pg, data, (int)part);
        if (sent < 0 || !crm_db_flush(conn)) {
            conn->broken = 1;
            return NULL;
        }
        data += sent ? part : 0;
        len -= sent ? part : 0;
    }
    while ((sent = PQputCopyEnd(conn->pg, NULL)) == 0) {
        if (!crm_db_flush(conn)) {
            break;
        }
    }
    conn->broken = sent <= 0;
    return conn->broken ? NULL : crm_db_results(conn);
}

crm_error_t *crm_db_copy_in(crm_conn_t *conn, const char *sql,
                            const char *data, apr_size_t len,
                            apr_pool_t *scratch_pool)
{
    crm_error_t *error = NULL;
    PGresult *result;
    int open;

    CRM_ERR(begin(&open, conn, scratch_pool));
    result = crm_db_command(conn, sql);
    if (PQresultStatus(result) == PGRES_COPY_IN) {
        PQclear(result);
        result = copy_all(conn, data, len);
    }
    if (!succeeded(result)) {
        error = crm_db_failure(conn, result, scratch_pool);
    }
    PQclear(result);
    note_end(conn, open);
    return error;
}

crm_error_t *crm_db_each(crm_conn_t *conn, const crm_stmt_t *stmt,
                         crm_db_row_t each, void *baton,
                         apr_pool_t *result_pool)
{
    crm_error_t *error = NULL;
    PGresult *result = NULL;
    int open;

    CRM_ERR(begin(&open, conn, result_pool));
    if (!PQsendQueryParams(conn->pg, stmt->sql, stmt->count, NULL,
                           stmt->values, NULL, NULL, 0)
        || !PQsetSingleRowMode(conn->pg)) {
        return crm_db_failure(conn, NULL, result_pool);
    }
    while (crm_db_await(conn) && (result = PQgetResult(conn->pg))) {
        if (!error) {
            error = PQresultStatus(result) == PGRES_SINGLE_TUPLE
                    ? each(baton, result)
                    : succeeded(result)
                    ? NULL : crm_db_failure(conn, result, result_pool);
        }
        PQclear(result);
        crm_db_deadline(conn);
    }
    if (conn->silent && !error) {
        error = crm_db_failure(conn, NULL, result_pool);
    }
    note_end(conn, open);
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
