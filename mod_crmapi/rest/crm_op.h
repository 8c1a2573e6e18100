/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.h: operations on one row that tables describe completely */
#ifndef CRM_OP_H
#define CRM_OP_H

#include "crm_resource.h"

extern const crm_kind_t crm_op_get;     /* one row, by path or by parameters */
extern const crm_kind_t crm_op_create;  /* one row, inserted from a body */
extern const crm_kind_t crm_op_update;  /* PATCH */
extern const crm_kind_t crm_op_delete;  /* DELETE, or an update (soft_delete) */

/* Return ERROR. If it is a conflict reported by the database, which the caller
 * could not attribute to a field of the request, make it CRM_E_INTERNAL. */
crm_error_t *crm_op_unexplained(crm_error_t *error);

#endif /* CRM_OP_H */
