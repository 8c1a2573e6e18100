/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_stage.c: stages of pipelines (specification: Pipeline stage) */
#include "crm_resources.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "agent",
     .doc = "owning agent"},
    {.name = "pipeline_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "pipeline"},
    {.name = "name", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN},
    {.name = "color", .type = &crm_type_text, .initial = "#888888",
     .doc = "hex color"},
    {.name = "order_index", .type = &crm_type_integer, .initial = "0",
     .doc = "0-indexed position in the pipeline"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

static const crm_sort_t by_order_index[] = {
    {.name = NULL, .keys = {"t.order_index", "t.created_at"},
     .integers = {1}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listPipelineStages", .method = "GET",
     .path = "/pipelines/{id}/stages",
     .kind = CRM_OP_LIST,
     .sorts = by_order_index,
     .whole = 1,
     .parent = "pipeline",
     .doc = "All of them in one list.",
     .summary = "List a pipeline's stages in order, without pagination"},
    {.id = NULL}
};

const crm_resource_t crm_resource_pipeline_stage = {
    .name = "pipeline_stage", .title = "PipelineStage", .tag = "Pipelines",
    .doc = "A stage of a pipeline.",
    .fields = fields,
    .operations = operations,
};
