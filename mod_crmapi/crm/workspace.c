/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.c: GET /workspace: the key's workspace and the key (contract
 * 20.6) */
#include "apr_strings.h"

#include "crm_operations.h"
#include "crm_params.h"
#include "crm_resources.h"
#include "crm_rest.h"

/* ---- types of its members ------------------------------------------------ */

static void limits_schema(crm_buf_t *buf, const crm_field_t *field,
                          crm_side_t side)
{
    crm_type_schema(buf, "object", field, side);
    crm_buf_puts(buf, ",\"required\":[\"read\",\"write\"],\"properties\":{"
                 "\"read\":{\"type\":[\"integer\",\"null\"],\"description\":"
                 "\"GET and HEAD requests a minute; null: unlimited\"},"
                 "\"write\":{\"type\":[\"integer\",\"null\"],\"description\":"
                 "\"other requests a minute; null: unlimited\"}}");
}

static void key_schema(crm_buf_t *buf, const crm_field_t *field,
                       crm_side_t side)
{
    crm_type_schema(buf, "object", field, side);
    crm_buf_puts(buf, ",\"required\":[\"id\",\"name\",\"scopes\","
                 "\"expires_at\"],\"properties\":{"
                 "\"id\":{\"type\":\"string\",\"format\":\"uuid\"},"
                 "\"name\":{\"type\":\"string\"},\"scopes\":{\"type\":"
                 "\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"read\","
                 "\"write\"]}},\"expires_at\":{\"type\":[\"string\",\"null\"],"
                 "\"format\":\"date-time\"}}");
}

static const crm_type_t type_limits = {
    .name = "limits", .cast = "jsonb", .write = crm_buf_json_compact,
    .schema = limits_schema,
};
static const crm_type_t type_key = {
    .name = "key", .cast = "jsonb", .write = crm_buf_json_compact,
    .schema = key_schema,
};

/* ---- the resource -------------------------------------------------------- */

/* t is the workspace, k the key, l the limits: make_get(). */
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
     .sql = "EXISTS (SELECT FROM crmapi.event_feed f WHERE f.workspace_id ="
            " $1::uuid AND f.log)",
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

/* Return the limit of CALL's key for requests of CLASS as a bind; NULL:
 * unlimited. */
static const char *limit_of(const crm_call_t *call, crm_limit_class_t class)
{
    const crm_service_t *service = call->service;
    crm_limit_verdict_t verdict;

    crm_limit_look(&verdict, service->limit, call->key.hash, call->key.realm,
                   class, service->settings.limits[class],
                   service->settings.limit_ceiling);
    return verdict.limit ? apr_psprintf(call->pool, "%u", verdict.limit)
           : NULL;
}

/* Make the statement that reads the workspace and the key, if the key permits
 * it. */
static void make_get(crm_sql_t *sql, crm_call_t *call)
{
    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", crm_rest(call)->endpoint->shape->columns,
                 " FROM crmapi.workspace t JOIN crmapi.live_key k ON"
                 " k.workspace_id = t.id CROSS JOIN (SELECT"
                 " jsonb_build_object('read', ", NULL);
    crm_sql_bind(sql, limit_of(call, CRM_LIMIT_READ), "integer");
    crm_sql_add(sql, ", 'write', ");
    crm_sql_bind(sql, limit_of(call, CRM_LIMIT_WRITE), "integer");
    crm_sql_add(sql, ") AS limits) l WHERE t.id = $1::uuid AND k.workspace_id"
                " = $1::uuid AND k.terms = $2::uuid AND k.read AND"
                " k.plan_api");
}

crm_error_t *crm_workspace_get(crm_call_t *call)
{
    crm_error_t *error = crm_rest_params(call);
    PGresult *result;
    crm_sql_t sql;

    if (error) {
        return crm_rest_refuse(call, error, NULL);
    }
    make_get(&sql, call);
    CRM_ERR(crm_call_query(&result, call, &sql));
    if (!PQntuples(result)) {
        error = crm_rest_refuse(call, NULL, NULL);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    crm_rest_answer(call, 200, result, 0);
    return NULL;
}

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
