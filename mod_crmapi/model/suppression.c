/* SPDX-License-Identifier: Apache-2.0 */
/* suppression.c: suppressed addresses (contract 20.1) */
#include <string.h>

#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_text.h"
#include "crm_type_address.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "email", .type = &crm_type_email,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE},
    {.name = "phone_number", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE, .doc = "E.164"},
    {.name = "reason", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE,
     .doc = "only unsubscribed still allows answers by mail"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
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

    if (sent[email] == sent[phone]) {
        crm_input_error(input, "",
                        "must have email or phone_number, and not both");
    }
    if (binds[phone]) {
        rule = crm_text_phone(binds[phone], strlen(binds[phone]));
    }
    if (rule) {
        crm_input_error(input, "phone_number", rule);
    }
}

static const crm_filter_t list_filters[] = {
    {.field = {.name = "email", .example = "mallory@example.org",
               .type = &crm_type_email_asked,
               .doc = "whether this address is suppressed, without case"},
     .by = CRM_BY_VALUE,
     .sql = "(t.kind, t.address) = ('email', ?)", .by_key = 1},
    {.field = {.name = "phone_number", .example = "+4930901820",
               .type = &crm_type_phone_asked, .max = 100,
               .doc = "whether this number is, in any spelling that has the"
                      " same E.164 form"},
     .by = CRM_BY_VALUE,
     .sql = "(t.kind, t.address) = ('phone', crmapi.phone_key(?))", .by_key = 1},
    CRM_FILTER_CREATED("t.created_at"),
    CRM_FILTER_UPDATED,
    {.field = {.name = NULL}}
};

static const crm_sort_t orders[] = {
    {.name = "created_at", .keys = {"t.created_at"}},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listSuppressions", .method = "GET", .path = "/suppressions",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .doc = "Addresses that are never written to: who unsubscribed, what "
            "bounced, and what was added here.",
     .summary = "List suppressed addresses, latest first"},
    {.id = "addSuppression", .method = "POST", .path = "/suppressions",
     .kind = CRM_OP_SUPPRESSION_ADD,
     .location = 1,
     .body_schema = "SuppressionInput",
     .statuses = {200},
     .example = "{'email':'mallory@example.org','reason':'asked by phone'}",
     .doc = "Of an e-mail address or a phone number, in any spelling. "
            "Sequences to it stop. 200 if it was there already.",
     .summary = "Suppress an address and stop its sequences"},
    {.id = "getSuppression", .method = "GET", .path = "/suppressions/{id}",
     .kind = CRM_OP_GET,
     .doc = "Shows since when, and why.",
     .summary = "Get a suppression"},
    {.id = "deleteSuppression", .method = "DELETE",
     .path = "/suppressions/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "What was stopped does not go on by itself.",
     .summary = "Allow an address to be written to again"},
    {.id = NULL}
};

const crm_resource_t crm_resource_suppression = {
    .name = "suppression", .title = "Suppression", .tag = "Sequences",
    .doc = "An address that is never written to.",
    .fields = fields,
    .operations = operations,
    .check = check,
};
