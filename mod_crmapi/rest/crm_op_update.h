/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_update.h: changing a row: PATCH */
#ifndef CRM_OP_UPDATE_H
#define CRM_OP_UPDATE_H

#include "crm_call.h"

/* A crm_handler_t: set the fields that the body has. */
crm_error_t *crm_op_update(crm_call_t *call);

#endif /* CRM_OP_UPDATE_H */
