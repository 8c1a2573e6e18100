/* SPDX-License-Identifier: Apache-2.0 */
/* crm_event_types.c: the types of events that webhooks send (contract 12.1) */
#include "crm_resources.h"

const crm_event_type_t crm_event_types[] = {
    {"contact.created", "ContactCreated", &crm_resource_contact,
     "A contact was created: by the API, an import or a channel"},
    {"form.submitted", "FormSubmitted", &crm_resource_submission,
     "A form was submitted"},
    {NULL, NULL, NULL, NULL}
};
