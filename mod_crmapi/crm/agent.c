/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c: agents (specification: Agent) */
#include "crm_filter.h"
#include "crm_op.h"
#include "crm_op_list.h"
#include "crm_resources.h"
#include "crm_type_list.h"

static const char *const agent_types[] = {
    "internal", "external", "both", NULL
};

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "slug", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "URL-safe handle used in dashboard links"},
    {.name = "summary", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536},
    {.name = "is_agent", .type = &crm_type_boolean, .initial = "t",
     .doc = "true for next-generation agents"},
    {.name = "enabled", .type = &crm_type_boolean, .initial = "t",
     .doc = "false if an admin disabled it"},
    {.name = "public", .type = &crm_type_boolean, .initial = "f",
     .doc = "chat embed allowed on public sites"},
    {.name = "agent_role", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "agent_type", .type = &crm_type_enum, .flags = CRM_F_NULLABLE,
     .values = agent_types},
    {.name = "agent_status", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "agent_color", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "brand color"},
    {.name = "agent_email", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "auto-provisioned inbound address"},
    {.name = "agent_phone", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "voice/SMS number when attached"},
    {.name = "chat_greeting", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536},
    {.name = "chat_avatar_intro", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .max = 65536},
    {.name = "chat_avatar_image_url", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .max = 2048},
    {.name = "phone_greeting", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .max = 65536},
    {.name = "phone_voice_id", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE,
     .doc = "text-to-speech voice id"},
    {.name = "text_greeting", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536,
     .doc = "first-SMS auto reply"},
    {.name = "email_inbound", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE,
     .doc = "inbound email processed"},
    {.name = "email_outbound_autoreply", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE},
    {.name = "email_outbound_email", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE,
     .doc = "From address"},
    {.name = "email_outbound_name", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE,
     .doc = "From name"},
    {.name = "booking_provider", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE,
     .doc = "booking integration in use; null if booking is off"},
    {.name = "enabled_event_type_ids", .type = &crm_type_strings,
     .flags = CRM_F_NULLABLE},
    {.name = "allow_human_takeover", .type = &crm_type_boolean,
     .initial = "f"},
    {.name = "escalation_detection_enabled", .type = &crm_type_boolean,
     .initial = "f"},
    {.name = "sentiment_analysis_enabled", .type = &crm_type_boolean,
     .initial = "f"},
    {.name = "knowledge_count", .type = &crm_type_number, .initial = "0",
     .doc = "approximate count of knowledge entries"},
    {.name = "number_of_conversations", .type = &crm_type_number,
     .initial = "0",
     .doc = "lifetime count"},
    {.name = "popular_topics", .type = &crm_type_strings,
     .flags = CRM_F_NULLABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "chat_origins", .type = &crm_type_tags, .flags = CRM_F_HIDDEN,
     .doc = "origins of the pages that its chat may be on"},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    {.field = {.name = "search", .type = &crm_type_text, .max = 200,
               .doc = "substring of name, slug or summary"},
     .add = crm_filter_search,
     .sql = "t.search"},
    {.field = {.name = "slug", .type = &crm_type_text},
     .add = crm_filter_bind,
     .sql = "t.slug = ?"},
    {.field = {.name = "is_agent", .type = &crm_type_boolean},
     .add = crm_filter_boolean,
     .sql = "t.is_agent",
     .sql_false = "NOT t.is_agent"},
    {.field = {.name = "enabled", .type = &crm_type_boolean},
     .add = crm_filter_boolean,
     .sql = "t.enabled",
     .sql_false = "NOT t.enabled"},
    {.field = {.name = "agent_type", .type = &crm_type_enum,
     .values = agent_types,
               .doc = "exact: internal does not list both"},
     .add = crm_filter_bind,
     .sql = "t.agent_type = ?"},
    {.field = {.name = NULL}}
};

static const crm_sort_t by_created_at[] = {
    {.name = NULL, .keys = {"t.created_at"}},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listAgents", .method = "GET", .path = "/agents",
     .kind = &crm_op_list,
     .filters = list_filters,
     .sorts = by_created_at,
     .summary = "List agents"},
    {.id = "getAgent", .method = "GET", .path = "/agents/{id}",
     .kind = &crm_op_get,
     .summary = "Get an agent"},
    {.id = NULL}
};

const crm_resource_t crm_resource_agent = {
    .name = "agent", .title = "Agent", .tag = "Agents",
    .doc = "An agent of the workspace; its id is passed as bot_id elsewhere.",
    .fields = fields,
    .operations = operations,
};
