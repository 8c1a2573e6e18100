/* SPDX-License-Identifier: Apache-2.0 */
/* crm_domain.c: what the engine is given */
#include "crm_domain.h"

#include "crm_operations.h"
#include "crm_resources.h"

static const crm_handler_t handlers[CRM_OPS] = {
    [CRM_OP_WORKSPACE] = crm_workspace_get,
    [CRM_OP_CONTACT_UPSERT] = crm_contact_upsert,
    [CRM_OP_CONTACT_ERASE] = crm_contact_erase,
    [CRM_OP_CONTACT_MERGE] = crm_contact_merge,
    [CRM_OP_COMPANY_UPSERT] = crm_company_upsert,
    [CRM_OP_SEQUENCE_START] = crm_sequence_start,
    [CRM_OP_ENROLLMENT_APPROVE] = crm_enrollment_approve,
    [CRM_OP_ENROLLMENT_STOP] = crm_enrollment_stop,
    [CRM_OP_SUPPRESSION_ADD] = crm_suppression_add,
    [CRM_OP_MESSAGE_ANSWER] = crm_message_answer,
};

const crm_domain_t crm_domain = {
    crm_resources, handlers, crm_event_types, &crm_openapi_domain
};
