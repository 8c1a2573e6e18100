/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_list.h: the operation "list" */
#ifndef CRM_OP_LIST_H
#define CRM_OP_LIST_H

#include "crm_resource.h"

/* Rows, filtered, ordered and paged. */
extern const crm_kind_t crm_op_list;

/* By created_at, latest first, or for those who copy by updated_at (contract
 * 13.3). */
extern const crm_sort_t crm_list_by_time[];

#endif /* CRM_OP_LIST_H */
