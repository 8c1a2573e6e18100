/* SPDX-License-Identifier: Apache-2.0 */
/* crm_event_types.c: the types of events that webhooks send (contract 12.1,
 * 13.4). Those of a deletion have only an id: crm/openapi.json has them */
#include "crm_resources.h"

const crm_event_type_t crm_event_types[] = {
    {"contact.created", "ContactCreated", &crm_resource_contact,
     "A contact was created: by the API, an import or a channel"},
    {"form.submitted", "FormSubmitted", &crm_resource_submission,
     "A form was submitted"},
    {"contact.updated", "ContactUpdated",
     &crm_resource_contact, "A contact was changed"},
    {"company.created", "CompanyCreated",
     &crm_resource_company, "A company was created"},
    {"company.updated", "CompanyUpdated",
     &crm_resource_company, "A company was changed"},
    {"pipeline_card.created", "PipelineCardCreated",
     &crm_resource_pipeline_card, "A card was created"},
    {"pipeline_card.updated", "PipelineCardUpdated",
     &crm_resource_pipeline_card, "A card was changed"},
    {"activity.created", "ActivityCreated",
     &crm_resource_activity, "An activity was created"},
    {"conversation.created", "ConversationCreated",
     &crm_resource_conversation, "A conversation was created"},
    {"conversation.updated", "ConversationUpdated",
     &crm_resource_conversation, "A conversation was changed"},
    {"message.created", "MessageCreated",
     &crm_resource_message, "A message was created"},
    {"enrollment.updated", "EnrollmentUpdated", &crm_resource_enrollment,
     "An enrollment has a new status"},
    {NULL, NULL, NULL, NULL}
};
