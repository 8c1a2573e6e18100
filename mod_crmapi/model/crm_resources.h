/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resources.h: the resources, one file each */
#ifndef CRM_RESOURCES_H
#define CRM_RESOURCES_H

#include "crm_resource.h"

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

#endif /* CRM_RESOURCES_H */
