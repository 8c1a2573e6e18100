/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c: pipelines (specification: Pipeline) */
#include "crm_filters.h"
#include "crm_resources.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "agent",
     .doc = "owning agent"},
    {.name = "name", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN},
    {.name = "is_default", .type = &crm_type_boolean, .initial = "f"},
    {.name = "is_private", .type = &crm_type_boolean, .initial = "f"},
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
    {.id = "listPipelines", .method = "GET", .path = "/pipelines",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = by_created_at,
     .doc = "Pipelines are made by the operator.",
     .summary = "List pipelines"},
    {.id = NULL}
};

const crm_resource_t crm_resource_pipeline = {
    .name = "pipeline", .title = "Pipeline", .tag = "Pipelines",
    .doc = "A sales pipeline of an agent.",
    .fields = fields,
    .operations = operations,
};
