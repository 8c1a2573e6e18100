/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi.c: the OpenAPI document, built from the resources' tables */
#include "crm_openapi.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_openapi_merge.h"
#include "crm_openapi_operation.h"
#include "crm_openapi_schema.h"
#include "crm_openapi_words.h"
#include "crm_origin.h"
#include "crm_rest.h"

static crm_buf_t document;
static apr_size_t server_at;    /* where DOCUMENT has the server's address */

/* ---- webhooks ---- */

/* Add the request by which a webhook sends EVENT. */
static void add_webhook(crm_buf_t *buf, const crm_event_type_t *event)
{
    crm_buf_json_text(buf, event->type);
    crm_buf_json(buf, ":{'post':{'operationId':'on");
    crm_buf_printf(buf, "%s\",\"summary\":", event->title);
    crm_buf_json_text(buf, event->doc);
    crm_buf_json(buf, ",'description':'Sent to the endpoints that want this"
                 " event. It is sent again until one answers with 2xx, and may"
                 " come twice.'"
                 ",'tags':['Webhooks'],'security':[],'parameters':["
                 "{'$ref':'#/components/parameters/webhook-id'},"
                 "{'$ref':'#/components/parameters/webhook-timestamp'},"
                 "{'$ref':'#/components/parameters/webhook-signature'}],"
                 "'requestBody':{'required':true,'content':{'application/json':"
                 "{'schema':{'$ref':'#/components/schemas/");
    crm_buf_printf(buf, "%sEvent", event->title);
    crm_buf_json(buf, "'}}}},'responses':{"
                 "'2XX':{'description':'The event was received'},"
                 "'410':{'description':'Nothing more is sent to this endpoint'"
                 "},'default':{'description':'The event is sent again later'"
                 "}}}}");
}

/* Add the schema of EVENT's body. */
static void add_event_schema(crm_buf_t *buf, const crm_event_type_t *event)
{
    crm_buf_printf(buf, "\"%sEvent\":", event->title);
    crm_buf_json(buf, "{'type':'object','required':['type','timestamp','data'],"
                 "'properties':{'type':{'type':'string','const':");
    crm_buf_json_text(buf, event->type);
    crm_buf_json(buf, "},'timestamp':{'type':'string','format':'date-time'},"
                 "'data':{'$ref':'#/components/schemas/");
    crm_buf_printf(buf, "%s\"}}}", event->deleted ? "Deleted"
                   : event->resource->title);
}

/* ---- the document -------------------------------------------------------- */

/* Add the operations of PATH. */
static crm_error_t *add_path(json_object *into, const crm_path_t *path,
                             apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 8192, pool);
    crm_buf_printf(&buf, "{\"paths\":{\"%s%s\":{", CRM_API_BASE,
                   path->template);
    for (int i = 0; path->routes[i]; i++) {
        crm_buf_json(&buf, i ? "," : "");
        crm_openapi_operation(&buf, path->routes[i]->data);
        crm_openapi_head(&buf, path->routes[i]->data);
    }
    crm_buf_json(&buf, "}}}");
    return crm_openapi_merge(into, buf.data, buf.len, pool);
}

/* Add the schemas of RESOURCE. */
static crm_error_t *add_resource(json_object *into,
                                 const crm_resource_t *resource,
                                 apr_pool_t *pool)
{
    crm_buf_t buf;

    if (resource->operations->file) {
        return NULL;            /* it has no JSON */
    }
    crm_buf_init(&buf, 8192, pool);
    crm_buf_json(&buf, "{'components':{'schemas':{");
    crm_openapi_schemas(&buf, resource);
    crm_buf_json(&buf, "}}}");
    return crm_openapi_merge(into, buf.data, buf.len, pool);
}

/* Add EVENTS: the webhooks and their schemas. */
static crm_error_t *add_events(json_object *into,
                               const crm_event_type_t *events,
                               apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 8192, pool);
    crm_buf_json(&buf, "{'webhooks':{");
    for (int i = 0; events[i].type; i++) {
        crm_buf_json(&buf, i ? "," : "");
        add_webhook(&buf, &events[i]);
    }
    crm_buf_json(&buf, "},'components':{'schemas':{");
    for (int i = 0; events[i].type; i++) {
        crm_buf_json(&buf, i ? "," : "");
        add_event_schema(&buf, &events[i]);
    }
    crm_buf_json(&buf, "}}}");
    return crm_openapi_merge(into, buf.data, buf.len, pool);
}

/* Add the tags of the resources, without duplicates, before existing tags. */
static void add_tags(json_object *into)
{
    json_object *tags = json_object_new_array();
    json_object *last = json_object_object_get(into, "tags");
    json_object *seen = json_object_new_object();

    for (int i = 0; crm_registry()[i]; i++) {
        const crm_resource_t *resource = crm_registry()[i];
        json_object *tag;

        if (!resource->operations
            || json_object_object_get_ex(seen, resource->tag, NULL)) {
            continue;
        }
        json_object_object_add(seen, resource->tag, NULL);
        tag = json_object_new_object();
        json_object_object_add(tag, "name",
                               json_object_new_string(resource->tag));
        json_object_object_add(tag, "description",
                               json_object_new_string(resource->doc));
        json_object_array_add(tags, tag);
    }
    for (size_t i = 0; i < json_object_array_length(last); i++) {
        json_object_array_add(tags, json_object_get(
                                  json_object_array_get_idx(last, i)));
    }
    json_object_object_add(into, "tags", tags);
    json_object_put(seen);
}

static crm_error_t *make(json_object *into, const crm_router_t *router,
                         const crm_json_part_t *part,
                         const crm_event_type_t *events, apr_pool_t *pool)
{
    CRM_ERR(crm_openapi_merge(into, (const char *)crm_openapi_frame.text,
                              crm_openapi_frame.len, pool));
    CRM_ERR(crm_openapi_merge(into, (const char *)part->text, part->len,
                              pool));
    for (int i = 0; i < router->nelts; i++) {
        const crm_path_t *path = &APR_ARRAY_IDX(router, i, crm_path_t);

        if (path->routes[0]->data) {
            CRM_ERR(add_path(into, path, pool));
        }
    }
    for (int i = 0; crm_registry()[i]; i++) {
        if (crm_registry()[i]->operations) {
            CRM_ERR(add_resource(into, crm_registry()[i], pool));
        }
    }
    CRM_ERR(add_events(into, events, pool));
    add_tags(into);
    crm_openapi_words(json_object_object_get(json_object_object_get(
        into, "components"), "schemas"));
    return NULL;
}

/* Set the document to TEXT. Errors: CRM_E_INTERNAL if it has no server. */
static crm_error_t *keep(const char *text, apr_pool_t *pool)
{
    static const char before[] = "\"servers\":[{\"url\":";
    const char *at = strstr(text, "\"servers\":[{\"url\":\"/\"");

    if (!at) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "CRM1004: a part of the "
                              "OpenAPI document has no servers");
    }
    server_at = (apr_size_t)(at - text) + sizeof(before) - 1;
    crm_buf_init(&document, 131072, pool);
    crm_buf_puts(&document, text);
    return NULL;
}

crm_error_t *crm_openapi_init(const crm_router_t *router,
                              const crm_json_part_t *part,
                              const crm_event_type_t *events, apr_pool_t *pool)
{
    json_object *into = json_object_new_object();
    apr_pool_t *parts;
    crm_error_t *error;

    apr_pool_create(&parts, pool);
    error = make(into, router, part, events, parts);
    if (!error) {
        error = keep(json_object_to_json_string_ext(
                         into, JSON_C_TO_STRING_PLAIN
                         | JSON_C_TO_STRING_NOSLASHESCAPE), pool);
        apr_pool_destroy(parts);    /* an error of make() would live there */
    }
    json_object_put(into);
    return error;
}

const char *crm_openapi_document(apr_size_t *len_p)
{
    *len_p = document.len;
    return document.data;
}

/* Return, in its pool, the scheme and host that REQUEST was sent to; NULL if its
 * Host is none. */
static const char *origin_of(const crm_request_t *request)
{
    const char *host = crm_request_header(request, "Host");
    const char *origin = host ? apr_pstrcat(request->pool, request->scheme,
                                            "://", host, NULL) : NULL;

    return origin && crm_origin_is_one(origin) ? origin : NULL;
}

void crm_openapi_write(crm_buf_t *buf, const crm_request_t *request)
{
    const char *origin = origin_of(request);
    apr_size_t rest = server_at + sizeof("\"/\"") - 1;

    if (!origin) {
        crm_buf_add(buf, document.data, document.len);
        return;
    }
    crm_buf_add(buf, document.data, server_at);
    crm_buf_json_text(buf, origin);
    crm_buf_add(buf, document.data + rest, document.len - rest);
}

crm_error_t *crm_openapi_serve(crm_call_t *call)
{
    crm_openapi_write(&call->response->body, call->request);
    return NULL;
}
