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
 * names. */
static void make_move(crm_sql_t *sql, crm_call_t *call, const crm_move_t *move)
{
    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT ");
    crm_sql_template(sql, move->call, crm_rest(call)->path_id, "uuid");
    crm_sql_add(sql, " WHERE ");
    crm_rest_permit(sql, call);
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
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
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

/* Apply MOVE and store the answer in one transaction, which is committed if the
 * enrollment's status allows MOVE. */
static crm_error_t *serve_once(crm_call_t *call, const crm_move_t *move,
                               const apr_array_header_t *checks)
{
    enum { BEGIN, CLAIM, MOVE, READ, COUNT };
    crm_sql_t sqls[COUNT];
    crm_sql_t *all[COUNT] = {&sqls[BEGIN], &sqls[CLAIM], &sqls[MOVE],
                             &sqls[READ]};
    PGresult *results[COUNT], *committed;
    crm_error_t *error;

    crm_sql_init(&sqls[BEGIN], call->pool);
    crm_sql_add(&sqls[BEGIN], "BEGIN");
    crm_idempotency_claim(&sqls[CLAIM], call);
    make_move(&sqls[MOVE], call, move);
    make_read(&sqls[READ], call);
    CRM_ERR(crm_idempotency_raced(call, crm_call_pipeline(results, call, all,
                                                          COUNT)));
    error = crm_idempotency_outcome(call, results[CLAIM]);
    error = error ? error : check_move(call, move, results[MOVE], checks);
    if (error) {
        crm_db_rollback(call->conn);
        return error;
    }
    CRM_ERR(crm_call_run(&committed, call, "COMMIT", 0, NULL));
    crm_rest_answer(call, crm_rest(call)->endpoint->operation->kind->status,
                    results[READ], 0);
    return NULL;
}

/* Apply MOVE to the enrollment that CALL's path names, in one statement. A
 * second one reads the enrollment for the response. */
static crm_error_t *serve(crm_call_t *call, const crm_move_t *move)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_rest_params(call);
    PGresult *result;
    crm_sql_t sql;

    crm_check_path(checks, call, crm_rest(call)->endpoint->resource);
    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, checks);
    }
    if (crm_rest(call)->idempotency) {
        return serve_once(call, move, checks);
    }
    make_move(&sql, call, move);
    CRM_ERR(crm_call_query(&result, call, &sql));
    CRM_ERR(check_move(call, move, result, checks));
    return crm_op_get.serve(call);
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
