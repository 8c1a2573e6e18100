/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_list.h: the operation "list" */
#ifndef CRM_OP_LIST_H
#define CRM_OP_LIST_H

#include "crm_call.h"

/* A crm_handler_t: serve a list. */
crm_error_t *crm_op_list(crm_call_t *call);

#endif /* CRM_OP_LIST_H */
