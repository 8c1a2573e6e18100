/* SPDX-License-Identifier: Apache-2.0 */
/* crm_operations.h: operations that only the domain has, one file each */
#ifndef CRM_OPERATIONS_H
#define CRM_OPERATIONS_H

#include "crm_call.h"

/* Each is a crm_handler_t of the kind of that name. */
crm_error_t *crm_workspace_get(crm_call_t *call);
crm_error_t *crm_contact_upsert(crm_call_t *call);
crm_error_t *crm_contact_erase(crm_call_t *call);
crm_error_t *crm_contact_merge(crm_call_t *call);
crm_error_t *crm_company_upsert(crm_call_t *call);
crm_error_t *crm_sequence_start(crm_call_t *call);
crm_error_t *crm_enrollment_approve(crm_call_t *call);
crm_error_t *crm_enrollment_stop(crm_call_t *call);
crm_error_t *crm_suppression_add(crm_call_t *call);
crm_error_t *crm_message_answer(crm_call_t *call);

#endif /* CRM_OPERATIONS_H */
