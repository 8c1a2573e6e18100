/* SPDX-License-Identifier: Apache-2.0 */
/* enrollment_move.c: POST /sequences/enrollments/{id}/approve and /stop
 * (contract 11.12) */
#include "crm_op_apply.h"
#include "crm_operations.h"
#include "crm_rest.h"
#include "crm_sequence.h"

static void add_call(crm_sql_t *sql, const crm_call_t *call, const void *move)
{
    crm_sql_template(sql, ((const crm_move_t *)move)->call,
                     crm_rest(call)->path_id, "uuid");
}

/* Return the error if MOVE is not allowed from the status HAD, or NULL. */
static crm_error_t *check_move(crm_call_t *call, const char *had,
                               const void *move)
{
    return crm_move_allowed(move, had) ? NULL
           : crm_error_createf(CRM_E_CONFLICT, call->pool, "An enrollment"
                               " that is %s cannot be %s", had,
                               ((const crm_move_t *)move)->done);
}

static const crm_apply_t apply = {add_call, check_move, NULL};

crm_error_t *crm_enrollment_approve(crm_call_t *call)
{
    return crm_op_apply(call, &apply, &crm_move_approve,
                        crm_rest_no_body(call));
}

crm_error_t *crm_enrollment_stop(crm_call_t *call)
{
    return crm_op_apply(call, &apply, &crm_move_stop, crm_rest_no_body(call));
}
