/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resources.h: the resources, one file each, and further operations */
#ifndef CRM_RESOURCES_H
#define CRM_RESOURCES_H

#include "crm_openapi.h"
#include "crm_resource.h"

/* crm/openapi.json: info, and schemas that no table describes. */
extern const crm_json_part_t crm_openapi_domain;

/* All resources, ended by NULL, in an order in which they can be imported: each
 * follows those that it refers to. */
extern const crm_resource_t *const crm_resources[];

/* All types of events that webhooks send, ended by one without a type. */
extern const crm_event_type_t crm_event_types[];

extern const crm_resource_t crm_resource_workspace;
extern const crm_resource_t crm_resource_agent;
extern const crm_resource_t crm_resource_attachment;
extern const crm_resource_t crm_resource_company;
extern const crm_resource_t crm_resource_pipeline;
extern const crm_resource_t crm_resource_pipeline_stage;
extern const crm_resource_t crm_resource_contact;
extern const crm_resource_t crm_resource_contact_merged;
extern const crm_resource_t crm_resource_pipeline_card;
extern const crm_resource_t crm_resource_activity;
extern const crm_resource_t crm_resource_conversation;
extern const crm_resource_t crm_resource_message;
extern const crm_resource_t crm_resource_form;
extern const crm_resource_t crm_resource_submission;
extern const crm_resource_t crm_resource_sequence_template;
extern const crm_resource_t crm_resource_suppression;
extern const crm_resource_t crm_resource_enrollment;
extern const crm_resource_t crm_resource_event;

extern const crm_kind_t crm_contact_upsert;     /* contract 10 */
extern const crm_kind_t crm_contact_erase;      /* contract 14.4 */
extern const crm_kind_t crm_contact_merge;      /* contract 20.5 */
extern const crm_kind_t crm_company_upsert;     /* contract 20.3 */
extern const crm_kind_t crm_sequence_start;     /* contract 11.1 to 11.6 */
extern const crm_kind_t crm_enrollment_approve; /* contract 11.12 */
extern const crm_kind_t crm_enrollment_stop;
extern const crm_kind_t crm_suppression_add;    /* contract 20.1 */

/* POST /conversations/{id}/messages (answer.c). */
extern const crm_kind_t crm_message_answer;

#endif /* CRM_RESOURCES_H */
