/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c: agents (specification: Agent) */
#include <ctype.h>
#include <string.h>

#include "crm_array.h"
#include "crm_deep.h"
#include "crm_email_wire.h"
#include "crm_origin.h"
#include "crm_phone.h"
#include "crm_resources.h"
#include "crm_type_list.h"
#include "crm_webform.h"

static const char *const agent_types[] = {
    "internal", "external", "both", NULL
};

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "slug", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_UNIQUE,
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
    {.name = "chat_mail_fallback", .type = &crm_type_integer, .max = 10080,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN,
     .doc = "minutes until a visitor who has not seen an answer gets a mail"},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    {.field = {.name = "search", .example = "ada",
               .type = &crm_type_text, .max = 200,
               .doc = "substring of name, slug or summary"},
     .by = CRM_BY_SCAN,
     .sql = "t.search"},
    {.field = {.name = "slug", .example = "sales",
               .type = &crm_type_text,
               .doc = "exact"},
     .by = CRM_BY_VALUE,
     .sql = "t.slug = ?"},
    {.field = {.name = "is_agent", .type = &crm_type_boolean,
               .doc = "whether it is a next-generation agent"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.is_agent",
     .sql_false = "NOT t.is_agent"},
    {.field = {.name = "enabled", .type = &crm_type_boolean,
               .doc = "false: an admin disabled it"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.enabled",
     .sql_false = "NOT t.enabled"},
    {.field = {.name = "agent_type", .type = &crm_type_enum,
     .values = agent_types,
               .doc = "exact: internal does not list both"},
     .by = CRM_BY_VALUE,
     .sql = "t.agent_type = ?"},
    {.field = {.name = NULL}}
};

static const crm_sort_t by_created_at[] = {
    {.name = NULL, .keys = {"t.created_at"}},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listAgents", .method = "GET", .path = "/agents",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = by_created_at,
     .doc = "Their ids are what bot_id means elsewhere.",
     .summary = "List agents"},
    {.id = "getAgent", .method = "GET", .path = "/agents/{id}",
     .kind = CRM_OP_GET,
     .doc = "Secrets and prompts are not shown.",
     .summary = "Get an agent"},
    {.id = NULL}
};

/* ---- what an import checks ------------------------------------------------ */

static const char *slug_rule(const char *slug, apr_pool_t *pool)
{
    size_t len = strlen(slug);

    (void)pool;
    return len && isalnum((unsigned char)*slug)
           && strspn(slug, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                     "yz0123456789-._~") == len
           ? NULL : "must have only a-z, A-Z, 0-9, -, ., _ and ~, and begin"
                    " with a letter or a digit";
}

static const char *phone_rule(const char *phone, apr_pool_t *pool)
{
    return crm_phone_e164(phone, pool) ? NULL
           : "must be a number with an E.164 form, such as +4930901820";
}

static const char *url_rule(const char *url, apr_pool_t *pool)
{
    (void)pool;
    return crm_webform_url_ok(url) ? NULL
           : "must be an absolute http or https URL";
}

static const char *origin_rule(const char *origin)
{
    return strcmp(origin, "*") ? crm_origin_rule(origin) : NULL;
}

/* Fields, and their rules. */
static const struct {
    const char *field;
    const char *(*rule)(const char *text, apr_pool_t *pool);
} rules[] = {
    {"slug", slug_rule},
    {"agent_email", crm_email_wire_from},
    {"agent_phone", phone_rule},
    {"chat_avatar_image_url", url_rule},
    {"email_outbound_email", crm_email_wire_from},
};

/* Check what channels use an agent for (contract 14.2). */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    const crm_deep_t deep = {input, resource, binds};

    (void)sent;
    for (size_t i = 0; i < CRM_NELTS(rules); i++) {
        const char *text = crm_deep_text(&deep, rules[i].field);

        if (text) {
            crm_deep_error(&deep, rules[i].field, "",
                           rules[i].rule(text, input->pool));
        }
    }
    crm_deep_strings(&deep, "chat_origins", origin_rule);
}

const crm_resource_t crm_resource_agent = {
    .name = "agent", .title = "Agent", .tag = "Agents",
    .doc = "An agent of the workspace; its id is passed as bot_id elsewhere.",
    .fields = fields,
    .operations = operations,
    .check = check,
};
