/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.h: operations on one row that tables describe completely */
#ifndef CRM_OP_H
#define CRM_OP_H

#include "apr_tables.h"

#include "crm_call.h"
#include "crm_resource.h"

/* Each a crm_handler_t: serve an operation of this kind. */
crm_error_t *crm_op_get(crm_call_t *call);
crm_error_t *crm_op_create(crm_call_t *call);
crm_error_t *crm_op_update(crm_call_t *call);
crm_error_t *crm_op_delete(crm_call_t *call);

/* Add to SQL the condition that the row t is the one that CALL's path names, by
 * its id, or by those of its parent and its own. Return the number of the bind
 * that has its id. */
int crm_op_path(crm_sql_t *sql, const crm_call_t *call);

/* Add to CHECKS (of crm_check_t) that this row exists, if the path has an id. */
void crm_op_check(apr_array_header_t *checks, const crm_call_t *call);

/* Return ERROR. If it is a conflict reported by the database, which the caller
 * could not attribute to a field of the request, make it CRM_E_INTERNAL. */
crm_error_t *crm_op_unexplained(crm_error_t *error);

#endif /* CRM_OP_H */
