/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.c: the workspace of a key, and the key (contract 20.6) */
#include "crm_resources.h"
#include "crm_sql.h"

/* ---- types of its members ------------------------------------------------ */

static const crm_type_t type_limits = {
    .name = "limits", .cast = "jsonb", .write = crm_buf_json_compact,
    .fixed_schema =
        "\"type\":\"object\",\"required\":[\"read\",\"write\"],\"properties\":{"
        "\"read\":{\"type\":[\"integer\",\"null\"],\"description\":"
        "\"GET and HEAD requests a minute; null: unlimited\"},"
        "\"write\":{\"type\":[\"integer\",\"null\"],\"description\":"
        "\"other requests a minute; null: unlimited\"}}",
};
static const crm_type_t type_key = {
    .name = "key", .cast = "jsonb", .write = crm_buf_json_compact,
    .fixed_schema =
        "\"type\":\"object\",\"required\":[\"id\",\"name\",\"scopes\","
        "\"expires_at\"],\"properties\":{"
        "\"id\":{\"type\":\"string\",\"format\":\"uuid\"},"
        "\"name\":{\"type\":\"string\"},\"scopes\":{\"type\":\"array\","
        "\"items\":{\"type\":\"string\",\"enum\":[\"read\",\"write\"]}},"
        "\"expires_at\":{\"type\":[\"string\",\"null\"],"
        "\"format\":\"date-time\"}}",
};

/* ---- the resource -------------------------------------------------------- */

/* t is the workspace, k the key, l the limits: workspace_get.c. */
static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "name", .type = &crm_type_text},
    {.name = "slug", .type = &crm_type_text,
     .doc = "short name, unique among the workspaces of the site"},
    {.name = "plan", .type = &crm_type_text},
    {.name = "time_zone", .type = &crm_type_text,
     .doc = "name in the IANA time zone database"},
    {.name = "currency", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "ISO 4217 code of amounts; null: not set"},
    {.name = "events", .type = &crm_type_boolean, .flags = CRM_F_DERIVED,
     .sql = "EXISTS (SELECT FROM crmapi.event_feed f WHERE "
            CRM_SQL_OWN("f") " AND f.log)",
     .doc = "whether GET /events has what changes"},
    {.name = "limits", .type = &type_limits, .flags = CRM_F_DERIVED,
     .sql = "l.limits",
     .doc = "those of the key, as X-RateLimit-Limit shows them"},
    {.name = "key", .type = &type_key, .flags = CRM_F_DERIVED,
     .sql = "jsonb_build_object('id', k.key_id, 'name', k.name, 'scopes',"
            " CASE WHEN k.write THEN '[\"read\", \"write\"]'::jsonb"
            " ELSE '[\"read\"]'::jsonb END, 'expires_at',"
            " to_char(k.expires_at AT TIME ZONE 'UTC',"
            " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))",
     .doc = "the key of the request"},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "getWorkspace", .method = "GET", .path = "/workspace",
     .kind = CRM_OP_WORKSPACE,
     .doc = "Ask this first: what the key may do, whether events are on, and "
            "which limits there are.",
     .summary = "Get the key's workspace, and what the key may do"},
    {.id = NULL}
};

const crm_resource_t crm_resource_workspace = {
    .name = "workspace", .title = "Workspace", .tag = "Workspace",
    .doc = "The workspace that the API key belongs to.",
    .fields = fields,
    .operations = operations,
    .no_import = 1,
};
