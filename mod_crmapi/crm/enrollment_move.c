/* SPDX-License-Identifier: Apache-2.0 */
/* enrollment_move.c: POST /sequences/enrollments/{id}/approve and /stop
 * (contract 11.12) */
#include <string.h>

#include "crm_op.h"
#include "crm_params.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_sequence.h"

/* Make the statement that applies MOVE to the enrollment that CALL's path
 * names. In a distributed database it says nothing about the key, because Citus
 * runs a statement over tables on another server, where functions cannot read
 * them: make_permit() is run before. */
static void make_move(crm_sql_t *sql, crm_call_t *call, const crm_move_t *move)
{
    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT ");
    crm_sql_template(sql, move->call, crm_rest(call)->path_id, "uuid");
    if (call->distributed) {
        crm_sql_add(sql, " WHERE $2::uuid IS NOT NULL");
        return;
    }
    crm_sql_add(sql, " WHERE ");
    crm_rest_permit(sql, call);
}

/* Make the statement that has a row if CALL's key permits the move. */
static void make_permit(crm_sql_t *sql, crm_call_t *call)
{
    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT");
    crm_rest_permit_from(sql, call, " FROM");
}

/* Return the error of RESULT, that of make_move(), or NULL if MOVE was done. If
 * there is no row, CHECKS find the cause. */
static crm_error_t *check_move(crm_call_t *call, const crm_move_t *move,
                               const PGresult *result,
                               const apr_array_header_t *checks)
{
    const char *had = PQntuples(result) ? crm_db_value(result, 0, 0) : NULL;

    if (!had) {
        CRM_ERR(crm_rest_refuse(call, NULL, checks));
        return crm_rest_no_row(call, crm_rest(call)->endpoint->resource, "id");
    }
    return crm_move_allowed(move, had) ? NULL
           : crm_error_createf(CRM_E_CONFLICT, call->pool, "An enrollment"
                               " that is %s cannot be %s", had, move->done);
}

/* Make the statement that reads the enrollment after the move and stores the
 * answer. */
static void make_read(crm_sql_t *sql, crm_call_t *call)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;

    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", endpoint->shape->row_columns, " FROM crmapi.",
                 endpoint->resource->name, " t WHERE t.workspace_id ="
                 " $1::uuid", NULL);
    crm_sql_template(sql, " AND t.id = ? AND ", crm_rest(call)->path_id,
                     "uuid");
    crm_rest_permit(sql, call);
    crm_idempotency_keep_row(sql, call, endpoint->operation->kind->status,
                             NULL, endpoint->shape);
}

/* Claim CALL's key, apply MOVE and read the enrollment, in a transaction that
 * stays open. Set *MOVED_P to the result of make_move(), *READ_P to that of
 * make_read(). */
static crm_error_t *move_once(PGresult **moved_p, PGresult **read_p,
                              crm_call_t *call, const crm_move_t *move)
{
    enum { BEGIN, CLAIM, MOVE, READ, COUNT };
    crm_sql_t sqls[COUNT];
    crm_sql_t *all[COUNT] = {&sqls[BEGIN], &sqls[CLAIM], &sqls[MOVE],
                             &sqls[READ]};
    /* With Citus the move cannot ask for the outcome of the claim. */
    int first = call->distributed ? MOVE : COUNT;
    PGresult *results[COUNT] = {NULL, NULL, NULL, NULL};

    crm_sql_init(&sqls[BEGIN], call->pool);
    crm_sql_add(&sqls[BEGIN], "BEGIN");
    crm_idempotency_claim(&sqls[CLAIM], call);
    make_move(&sqls[MOVE], call, move);
    make_read(&sqls[READ], call);
    CRM_ERR(crm_call_pipeline(results, call, all, first));
    CRM_ERR(crm_idempotency_outcome(call, results[CLAIM]));
    if (first < COUNT && PQntuples(results[CLAIM])) {
        CRM_ERR(crm_call_pipeline(results + first, call, all + first,
                                  COUNT - first));
    }
    *moved_p = results[MOVE] ? results[MOVE] : results[CLAIM];
    *read_p = results[READ];
    return NULL;
}

/* Apply MOVE and store the answer in one transaction, which is committed if the
 * enrollment's status allows MOVE. */
static crm_error_t *serve_once(crm_call_t *call, const crm_move_t *move,
                               const apr_array_header_t *checks)
{
    PGresult *moved, *read, *committed;
    crm_error_t *error;

    error = crm_idempotency_raced(call, move_once(&moved, &read, call, move));
    error = error ? error : check_move(call, move, moved, checks);
    if (error) {
        if (call->conn) {
            crm_db_rollback(call->conn);
        }
        return error;
    }
    CRM_ERR(crm_call_run(&committed, call, "COMMIT", 0, NULL));
    crm_rest_answer(call, crm_rest(call)->endpoint->operation->kind->status,
                    read, 0);
    return NULL;
}

/* Apply MOVE as serve() does. */
static crm_error_t *serve_move(crm_call_t *call, const crm_move_t *move,
                               const apr_array_header_t *checks)
{
    PGresult *result = NULL;
    crm_sql_t sql;

    if (call->distributed) {
        make_permit(&sql, call);
        CRM_ERR(crm_call_query(&result, call, &sql));
    }
    if (!result || PQntuples(result)) {
        make_move(&sql, call, move);
        CRM_ERR(crm_call_query(&result, call, &sql));
    }
    CRM_ERR(check_move(call, move, result, checks));
    return crm_op_get.serve(call);
}

/* Apply MOVE to the enrollment that CALL's path names, in one statement. A
 * second one reads the enrollment for the response. */
static crm_error_t *serve(crm_call_t *call, const crm_move_t *move)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_rest_params(call);

    crm_check_path(checks, call, crm_rest(call)->endpoint->resource);
    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, checks);
    }
    if (crm_rest(call)->idempotency) {
        return serve_once(call, move, checks);
    }
    return serve_move(call, move, checks);
}

static crm_error_t *serve_approve(crm_call_t *call)
{
    return serve(call, &crm_move_approve);
}

static crm_error_t *serve_stop(crm_call_t *call)
{
    return serve(call, &crm_move_stop);
}

const crm_kind_t crm_enrollment_approve = {
    .name = "approve", .status = 200, .serve = serve_approve,
};
const crm_kind_t crm_enrollment_stop = {
    .name = "stop", .status = 200, .serve = serve_stop,
};
