/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_card.c: cards of pipelines (specification; contract 9.8) */
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_type_list.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "pipeline_stage_id", .type = &crm_type_ref,
     .flags = CRM_F_REQUIRED | CRM_F_WRITABLE,
     .ref = "pipeline_stage",
     .doc = "current stage"},
    {.name = "contact_id", .type = &crm_type_ref,
     .flags = CRM_F_OPTIONAL, .ref = "contact"},
    {.name = "title", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN | CRM_F_WRITABLE},
    {.name = "description", .type = &crm_type_text,
     .flags = CRM_F_OPTIONAL, .max = 65536},
    {.name = "tags", .type = &crm_type_tags, .flags = CRM_F_WRITABLE},
    {.name = "order_index", .type = &crm_type_integer,
     .flags = CRM_F_WRITABLE | CRM_F_NO_CLEAR,
     .follow = "pipeline_stage_id",
     .follow_sql = "CASE WHEN t.pipeline_stage_id IS DISTINCT FROM ? THEN "
                   "NULL ELSE t.order_index END",
     .doc = "position in the stage, the lowest first; without it a card that "
            "is new or moved goes to the end"},
    {.name = "archived_at", .type = &crm_type_time,
     .flags = CRM_F_NULLABLE | CRM_F_UPDATE,
     .doc = "null means active"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    {.field = {.name = "pipeline_id", .type = &crm_type_ref,
               .doc = "only cards in this pipeline"},
     .by = CRM_BY_VALUE,
     .sql = "s.pipeline_id = ?"},
    {.field = {.name = "pipeline_stage_id", .type = &crm_type_ref,
               .doc = "only cards in this stage"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.pipeline_stage_id")},
    {.field = {.name = "bot_id", .type = &crm_type_ref,
               .doc = "of the stage's agent"},
     .by = CRM_BY_VALUE,
     .sql = "s.bot_id = ?"},
    {.field = {.name = "contact_id", .type = &crm_type_ref,
               .doc = "only cards of this contact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_id"), .by_key = 1},
    {.field = {.name = "include_archived", .type = &crm_type_boolean,
               .doc = "default false"},
     .by = CRM_BY_BOOLEAN,
     .sql = "",
     .sql_false = "t.archived_at IS NULL",
     .absent = "f"},
    CRM_FILTER_UPDATED,
    {.field = {.name = NULL}}
};

/* By position: pipeline, stage, place in the stage (contract 7.10). */
static const crm_sort_t orders[] = {
    {.name = "position",
     .keys = {"p.created_at", "s.order_index", "t.order_index",
              "t.created_at"},
     .integers = {0, 1, 1}, .ascending = 1},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listPipelineCards", .method = "GET", .path = "/pipeline-cards",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .from = "JOIN crmapi.pipeline_stage s ON s.workspace_id = t.workspace_id "
             "AND s.id = t.pipeline_stage_id JOIN crmapi.pipeline p ON "
             "p.workspace_id = s.workspace_id AND p.id = s.pipeline_id",
     .counter = "pipeline_card",
     .doc = "By pipeline, stage and position. Archived ones only with "
            "include_archived.",
     .summary = "List cards"},
    {.id = "createPipelineCard", .method = "POST", .path = "/pipeline-cards",
     .kind = CRM_OP_CREATE,
     .location = 1,
     .example = "{'pipeline_stage_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64',"
                "'contact_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64','title':"
                "'Twelve chairs'}",
     .doc = "At the end of the stage, unless order_index is sent.",
     .summary = "Create a card"},
    {.id = "getPipelineCard", .method = "GET", .path = "/pipeline-cards/{id}",
     .kind = CRM_OP_GET,
     .doc = "Shows an archived one, too.",
     .summary = "Get a card"},
    {.id = "updatePipelineCard", .method = "PATCH",
     .path = "/pipeline-cards/{id}",
     .kind = CRM_OP_UPDATE,
     .example = "{'title':'Twelve chairs and a table','archived_at':null}",
     .doc = "Another pipeline_stage_id moves it to the end of that stage. "
            "archived_at archives it, null brings it back.",
     .summary = "Change, move or archive a card"},
    {.id = "deletePipelineCard", .method = "DELETE",
     .path = "/pipeline-cards/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "There is no way back. To keep it, set archived_at instead.",
     .summary = "Delete a card permanently"},
    {.id = NULL}
};

const crm_resource_t crm_resource_pipeline_card = {
    .name = "pipeline_card", .title = "PipelineCard", .tag = "Pipelines",
    .doc = "A card in a stage of a pipeline.",
    .fields = fields,
    .operations = operations,
};
