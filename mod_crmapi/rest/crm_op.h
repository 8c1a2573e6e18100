/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.h: operations on one row that tables describe completely */
#ifndef CRM_OP_H
#define CRM_OP_H

#include "apr_tables.h"

#include "crm_call.h"
#include "crm_endpoint.h"

/* Each a crm_handler_t: serve an operation of this kind. */
crm_error_t *crm_op_get(crm_call_t *call);
crm_error_t *crm_op_create(crm_call_t *call);
crm_error_t *crm_op_delete(crm_call_t *call);

/* Return a new array of crm_check_t in CALL's pool. */
apr_array_header_t *crm_op_checks(crm_call_t *call);

/* Make the statement SQL that reads CALL's row if the key permits the operation, as
 * PERMIT says. */
void crm_op_select(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit);

/* Add " WHERE" and its conditions to SQL: the row is the one that CALL's path and
 * filters name, and the key permits the operation, as PERMIT says. Return the
 * number of the bind that has the path's id; 0: the path has none. */
int crm_op_where(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit);

/* Add to SQL and CHECKS the conditions of CALL's If-Match and If-None-Match
 * (contract 13.2; RFC 9110, 13.1). Return 0 if there is none. */
int crm_op_match(crm_sql_t *sql, apr_array_header_t *checks, crm_call_t *call);

/* Run SQL, which returns a row if and only if the operation was done, and make
 * CALL's response of the row. If there is none, return the error of those of CHECKS
 * that fail. */
crm_error_t *crm_op_run(crm_call_t *call, crm_sql_t *sql,
                        const apr_array_header_t *checks);

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
