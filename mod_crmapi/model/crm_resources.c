/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resources.c: the list of all resources */
#include "crm_resources.h"

const crm_resource_t *const crm_resources[] = {
    &crm_resource_workspace,
    &crm_resource_agent,
    &crm_resource_pipeline,
    &crm_resource_pipeline_stage,
    &crm_resource_company,
    &crm_resource_contact,
    &crm_resource_contact_merged,
    &crm_resource_pipeline_card,
    &crm_resource_activity,
    &crm_resource_conversation,
    &crm_resource_message,
    &crm_resource_attachment,
    &crm_resource_form,
    &crm_resource_submission,
    &crm_resource_sequence_template,
    &crm_resource_suppression,
    &crm_resource_enrollment,
    &crm_resource_event,
    NULL
};
