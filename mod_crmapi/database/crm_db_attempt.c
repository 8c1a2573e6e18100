/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_attempt.c: sending statements in one round trip, by name if the server
 * has prepared them, and receiving the answers */
#include "crm_db_attempt.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_private.h"

/* --- sending -------------------------------------------------------------- */

/* Send "DEALLOCATE NAME" on CONN. Return 0 on failure. */
static int send_deallocate(crm_conn_t *conn, const char *name)
{
    char text[sizeof(crm_prepared_name_t) + 16];

    apr_snprintf(text, sizeof(text), "DEALLOCATE %s", name);
    return PQsendQueryParams(conn->pg, text, 0, NULL, NULL, NULL, NULL, 0);
}

/* Send statement I of ATTEMPT by the name in PREPARED. If the server has not
 * prepared it yet, prepare it first. Return 0 on failure. */
static int send_prepared(crm_attempt_t *attempt, int i,
                         crm_prepared_t *prepared)
{
    const crm_stmt_t *stmt = &attempt->stmts[i];
    crm_conn_t *conn = attempt->conn;
    crm_prepared_name_t name;

    attempt->prepared[i] = prepared;
    if (prepared->prepared && prepared->outdated) {
        if (!send_deallocate(conn, crm_prepared_name(name, conn, prepared))) {
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

/* Send statement I of ATTEMPT by the shared name in PREPARED. Prepare it first
 * only if the server has reported that its session lacks the name. Return 0 on
 * failure. */
static int send_shared(crm_attempt_t *attempt, int i, crm_prepared_t *prepared)
{
    const crm_stmt_t *stmt = &attempt->stmts[i];
    crm_conn_t *conn = attempt->conn;
    crm_prepared_name_t name;

    crm_prepared_name(name, conn, prepared);
    attempt->steps[i] = CRM_STEP_EXECUTE;
    if (i == attempt->missing) {
        if (attempt->outdated) {
            attempt->steps[i] |= CRM_STEP_DEALLOCATE;
            if (!send_deallocate(conn, name)) {
                return 0;
            }
        }
        attempt->steps[i] |= CRM_STEP_PREPARE;
        if (!PQsendPrepare(conn->pg, name, stmt->sql, 0, NULL)) {
            return 0;
        }
    }
    return PQsendQueryPrepared(conn->pg, name, stmt->count, stmt->values, NULL,
                               NULL, 0);
}

/* Send statement I of ATTEMPT without a name. Return 0 on failure. */
static int send_unnamed(crm_attempt_t *attempt, int i)
{
    const crm_stmt_t *stmt = &attempt->stmts[i];

    attempt->steps[i] = CRM_STEP_EXECUTE;
    return PQsendQueryParams(attempt->conn->pg, stmt->sql, stmt->count, NULL,
                             stmt->values, NULL, NULL, 0);
}

/* Return whether statement I of ATTEMPT may use a shared name. After a COMMIT
 * it may not: if the name turns out to be missing, nothing can be retried. */
static int may_share(const crm_attempt_t *attempt, int i)
{
    for (int before = 0; before < i; before++) {
        if (!strncmp(attempt->stmts[before].sql, "COMMIT", 6)) {
            return 0;
        }
    }
    return !attempt->unnamed;
}

/* Send statement I of ATTEMPT. Prepared statements used after BEFORE, on the
 * connection's clock, belong to the attempt. Return 0 on failure. */
static int send_one(crm_attempt_t *attempt, int i, apr_uint64_t before)
{
    const char *sql = attempt->stmts[i].sql;
    crm_names_t names = attempt->conn->options.named_statements;
    crm_prepared_t *prepared;

    if (names == CRM_NAMES_OWN
        && (prepared = crm_prepared_find(attempt->conn, sql, before))) {
        return send_prepared(attempt, i, prepared);
    }
    if (names == CRM_NAMES_SHARED && may_share(attempt, i)
        && (prepared = crm_prepared_shared(attempt->conn, sql, before))) {
        return send_shared(attempt, i, prepared);
    }
    return send_unnamed(attempt, i);
}

/* Send all statements of ATTEMPT and the sync. Return 0 if that fails. */
static int send_all(crm_attempt_t *attempt)
{
    crm_conn_t *conn = attempt->conn;
    apr_uint64_t before = conn->clock;

    if (!PQenterPipelineMode(conn->pg)) {
        return 0;
    }
    for (int i = 0; i < attempt->count; i++) {
        if (!send_one(attempt, i, before)) {
            return 0;
        }
    }
    return PQpipelineSync(conn->pg);
}

/* --- receiving ------------------------------------------------------------ */

int crm_db_succeeded(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
           || status == PGRES_EMPTY_QUERY;
}

/* Handle RESULT, the answer to STEP of statement I. */
static void take(crm_attempt_t *attempt, int i, int step, PGresult *result)
{
    int ok = crm_db_succeeded(result);

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
static int receive_step(crm_attempt_t *attempt, int i, int step)
{
    PGconn *pg = attempt->conn->pg;
    PGresult *result;
    int taken = 0, ended;

    while (crm_db_await(attempt->conn) && (result = PQgetResult(pg))) {
        ended = crm_db_ends_session(result);
        if (taken) {
            PQclear(result);
        }
        else {
            take(attempt, i, step, result);
            taken = 1;
        }
        if (ended || PQstatus(pg) != CONNECTION_OK) {
            return 0;
        }
    }
    return taken && !attempt->conn->silent;
}

/* Receive the answer to the sync. At the sync the server commits what runs
 * outside of a transaction block. If that fails (deferred constraints,
 * serialization failures, timeouts), its error comes first. Return 0 if the
 * connection failed. */
static int receive_sync(crm_attempt_t *attempt)
{
    crm_conn_t *conn = attempt->conn;
    int failed = 0;

    while (crm_db_await(conn) && PQstatus(conn->pg) == CONNECTION_OK) {
        PGresult *result = PQgetResult(conn->pg);
        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_FATAL_ERROR && !attempt->failure) {
            attempt->failure = result;
            attempt->failed = attempt->count - 1;
            if (crm_db_ends_session(result)) {
                return 0;
            }
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
static int receive_all(crm_attempt_t *attempt)
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

/* --- an attempt ----------------------------------------------------------- */

void crm_attempt_run(crm_attempt_t *attempt)
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

void crm_attempt_clear(crm_attempt_t *attempt)
{
    for (int i = 0; i < attempt->count; i++) {
        PQclear(attempt->results[i]);
        attempt->results[i] = NULL;
    }
    PQclear(attempt->failure);
    attempt->failure = NULL;
}
