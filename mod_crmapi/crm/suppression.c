/* SPDX-License-Identifier: Apache-2.0 */
/* suppression.c: suppressed addresses (import and export only) */
#include <string.h>

#include "crm_resources.h"
#include "crm_text.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "email", .type = &crm_type_email, .flags = CRM_F_NULLABLE},
    {.name = "phone_number", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "E.164"},
    {.name = "reason", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = NULL}
};

/* Require an e-mail address or a phone number (contract 11.6). */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    long email = crm_resource_field(resource, "email") - resource->fields;
    long phone = crm_resource_field(resource, "phone_number")
                 - resource->fields;
    const char *rule = NULL;

    (void)sent;
    if (!binds[email] == !binds[phone]) {
        crm_input_error(input, "email",
                        "or phone_number is required, and not both");
    }
    if (binds[phone]) {
        rule = crm_text_phone(binds[phone], strlen(binds[phone]));
    }
    if (rule) {
        crm_input_error(input, "phone_number", rule);
    }
}

const crm_resource_t crm_resource_suppression = {
    .name = "suppression", .title = "Suppression", .tag = "Sequences",
    .doc = "An address that is never written to.",
    .fields = fields,
    .check = check,
};
