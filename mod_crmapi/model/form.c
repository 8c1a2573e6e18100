/* SPDX-License-Identifier: Apache-2.0 */
/* form.c: forms (specification: Form) */
#include "crm_array.h"
#include "crm_deep.h"
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_type_list.h"
#include "crm_webform_check.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "agent",
     .doc = "owning agent"},
    {.name = "name", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN},
    {.name = "description", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536},
    {.name = "standard_fields", .type = &crm_type_object,
     .doc = "built-in field configuration"},
    {.name = "custom_fields", .type = &crm_type_object,
     .doc = "custom field configuration"},
    {.name = "survey_questions", .type = &crm_type_object,
     .doc = "survey configuration"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    CRM_FILTER_AGENT(0),
    {.field = {.name = NULL}}
};

static const crm_sort_t by_created_at[] = {
    {.name = NULL, .keys = {"t.created_at"}},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listForms", .method = "GET", .path = "/forms",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = by_created_at,
     .doc = "Forms are made by the operator.",
     .summary = "List forms"},
    {.id = "getForm", .method = "GET", .path = "/forms/{id}",
     .kind = CRM_OP_GET,
     .doc = "With its standard and custom fields and survey questions.",
     .summary = "Get a form with its configuration"},
    {.id = NULL}
};

/* Check the configuration, as intake reads it. */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    static const char *const parts[] = {
        [CRM_WEBFORM_STANDARD] = "standard_fields",
        [CRM_WEBFORM_CUSTOM] = "custom_fields",
        [CRM_WEBFORM_SURVEY] = "survey_questions",
    };
    const crm_deep_t deep = {input, resource, binds};

    (void)sent;
    for (size_t i = 0; i < CRM_NELTS(parts); i++) {
        json_object *config = crm_deep_json(&deep, parts[i]);
        const char *where;
        const char *rule = crm_webform_config_rule(&where, config,
                                                   (crm_webform_part_t)i,
                                                   input->pool);

        crm_deep_error(&deep, parts[i], where, rule);
    }
}

const crm_resource_t crm_resource_form = {
    .name = "form", .title = "Form", .tag = "Forms",
    .doc = "A form that visitors fill in.",
    .fields = fields,
    .operations = operations,
    .check = check,
};
