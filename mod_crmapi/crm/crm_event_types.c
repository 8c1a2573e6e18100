/* SPDX-License-Identifier: Apache-2.0 */
/* crm_event_types.c: the types of events (contract 12.1, 13.4) */
#include "crm_resources.h"

const crm_event_type_t crm_event_types[] = {
    {"contact.created", "ContactCreated", &crm_resource_contact,
     "A contact was created: by the API, an import or a channel", 0},
    {"contact.updated", "ContactUpdated", &crm_resource_contact,
     "A contact was changed", 0},
    {"contact.deleted", "ContactDeleted", &crm_resource_contact,
     "A contact was deleted", 1},
    {"company.created", "CompanyCreated", &crm_resource_company,
     "A company was created", 0},
    {"company.updated", "CompanyUpdated", &crm_resource_company,
     "A company was changed", 0},
    {"company.deleted", "CompanyDeleted", &crm_resource_company,
     "A company was deleted", 1},
    {"pipeline_card.created", "PipelineCardCreated",
     &crm_resource_pipeline_card, "A card was created", 0},
    {"pipeline_card.updated", "PipelineCardUpdated",
     &crm_resource_pipeline_card, "A card was changed", 0},
    {"pipeline_card.deleted", "PipelineCardDeleted",
     &crm_resource_pipeline_card, "A card was deleted", 1},
    {"activity.created", "ActivityCreated", &crm_resource_activity,
     "An activity was created", 0},
    {"conversation.created", "ConversationCreated", &crm_resource_conversation,
     "A conversation was created", 0},
    {"conversation.updated", "ConversationUpdated", &crm_resource_conversation,
     "A conversation was changed", 0},
    {"conversation.deleted", "ConversationDeleted", &crm_resource_conversation,
     "A conversation was deleted", 1},
    {"message.created", "MessageCreated", &crm_resource_message,
     "A message was created", 0},
    {"form.submitted", "FormSubmitted", &crm_resource_submission,
     "A form was submitted", 0},
    {"enrollment.updated", "EnrollmentUpdated", &crm_resource_enrollment,
     "An enrollment has a new status", 0},
    {NULL, NULL, NULL, NULL, 0}
};
