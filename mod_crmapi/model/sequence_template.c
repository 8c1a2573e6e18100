/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_template.c: templates of sequences, which the operator imports
 * (contract 20.1) */

#include "crm_channel.h"
#include "crm_deep.h"
#include "crm_filters.h"
#include "crm_pacing.h"
#include "crm_resources.h"
#include "crm_steps.h"
#include "crm_type_list.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "agent",
     .doc = "the sender, unless a start names another"},
    {.name = "name", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN},
    {.name = "allowed_channels", .type = &crm_type_strings,
     .doc = "of email, voice, sms"},
    {.name = "stop_on_reply", .type = &crm_type_boolean, .initial = "t"},
    {.name = "goal_prompt", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536},
    {.name = "pacing", .type = &crm_type_object,
     .doc = "when steps are sent"},
    {.name = "steps", .type = &crm_type_array,
     .doc = "what steps are generated from"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    CRM_FILTER_AGENT(0),
    CRM_FILTER_CREATED("t.created_at"),
    CRM_FILTER_UPDATED,
    {.field = {.name = NULL}}
};

static const crm_operation_t operations[] = {
    {.id = "listSequenceTemplates", .method = "GET",
     .path = "/sequences/templates", .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = crm_list_by_time,
     .ordered = 1,
     .sequences = 1,
     .doc = "Their ids are the template_id of a start.",
     .summary = "List templates, latest first"},
    {.id = "getSequenceTemplate", .method = "GET",
     .path = "/sequences/templates/{id}", .kind = CRM_OP_GET,
     .sequences = 1,
     .doc = "Shows what a sequence of it will send.",
     .summary = "Get a template with its steps"},
    {.id = NULL}
};

static const char *channel_rule(const char *name)
{
    return crm_channel_way(name) ? NULL : crm_channel_way_rule;
}

/* Check the channels, the pacing and the steps, as the worker reads them. */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    const crm_deep_t deep = {input, resource, binds};
    const char *rule, *where, *pacing;
    apr_int64_t between;

    (void)sent;
    crm_deep_strings(&deep, "allowed_channels", channel_rule);
    rule = crm_pacing_parse(&pacing, &between, &where,
                            crm_deep_json(&deep, "pacing"), "UTC",
                            input->pool);
    crm_deep_error(&deep, "pacing", where, rule);
    rule = crm_steps_check(&where, crm_deep_json(&deep, "steps"),
                           input->pool);
    crm_deep_error(&deep, "steps", where, rule);
}

const crm_resource_t crm_resource_sequence_template = {
    .name = "sequence_template", .title = "SequenceTemplate",
    .tag = "Sequences",
    .doc = "A template that outbound sequences are generated from.",
    .fields = fields,
    .operations = operations,
    .check = check,
};
