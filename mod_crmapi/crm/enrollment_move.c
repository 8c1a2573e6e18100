/* SPDX-License-Identifier: Apache-2.0 */
/* enrollment_move.c: POST /sequences/enrollments/{id}/approve and /stop
 * (contract 11.12) */
#include <string.h>

#include "crm_op.h"
#include "crm_params.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_sequence.h"

/* Apply MOVE to the enrollment that CALL's path names, in one statement. A
 * second one reads the enrollment for the response. */
static crm_error_t *serve(crm_call_t *call, const crm_move_t *move)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_rest_params(call);
    const char *had;
    PGresult *result;
    crm_sql_t sql;

    crm_check_path(checks, call, crm_rest(call)->endpoint->resource);
    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, checks);
    }
    crm_rest_sql(&sql, call);
    crm_sql_add(&sql, "SELECT ");
    crm_sql_template(&sql, move->call, crm_rest(call)->path_id, "uuid");
    crm_sql_add(&sql, " WHERE ");
    crm_rest_permit(&sql, call);
    CRM_ERR(crm_call_query(&result, call, &sql));
    had = PQntuples(result) ? crm_db_value(result, 0, 0) : NULL;
    if (!had) {
        error = crm_rest_refuse(call, NULL, checks);
        return error ? error
               : crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    if (!crm_move_allowed(move, had)) {
        return crm_error_createf(CRM_E_CONFLICT, call->pool, "An enrollment"
                                 " that is %s cannot be %s", had, move->done);
    }
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
