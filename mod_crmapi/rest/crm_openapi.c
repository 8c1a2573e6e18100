/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi.c: the OpenAPI document, built from the resources' tables */
#include "crm_openapi.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_openapi_merge.h"
#include "crm_openapi_words.h"
#include "crm_origin.h"
#include "crm_rest.h"

static crm_buf_t document;
static apr_size_t server_at;    /* where DOCUMENT has the server's address */

/* Add JSON to BUF with each ' replaced by ". */
static void add(crm_buf_t *buf, const char *json)
{
    for (; *json; json++) {
        crm_buf_putc(buf, *json == '\'' ? '"' : *json);
    }
}

/* ---- schemas ---- */

/* Add the schema of FIELD on SIDE and its description. */
static void add_field_schema(crm_buf_t *buf, const crm_field_t *field,
                             crm_side_t side)
{
    crm_buf_putc(buf, '{');
    crm_field_schema(buf, field, side);
    if (field->doc) {
        add(buf, ",'description':");
        crm_buf_json_text(buf, field->doc);
    }
    crm_buf_putc(buf, '}');
}

/* A flag that no field has. */
#define NONE_REQUIRED 0x80000000U

/* Add the members 'required' and 'properties' for those fields of RESOURCE that
 * have one of FLAGS (0: all fields of responses). Fields that have one of
 * REQUIRED are required (0: all if FLAGS is 0, otherwise none). */
static void add_properties(crm_buf_t *buf, const crm_resource_t *resource,
                           unsigned flags, unsigned required,
                           crm_side_t side)
{
    const crm_field_t *field;
    const char *separator = ",'required':[";
    int count = 0;

    for (field = resource->fields; field->name; field++) {
        if ((required ? field->flags & required : !flags)
            && !(field->flags & CRM_F_HIDDEN)) {
            add(buf, count++ ? "," : separator);
            crm_buf_json_text(buf, field->name);
        }
    }
    add(buf, count ? "],'properties':{" : ",'properties':{");
    count = 0;
    for (field = resource->fields; field->name; field++) {
        if ((!flags || (field->flags & flags))
            && (!(field->flags & CRM_F_HIDDEN)
                || field->flags & CRM_F_ON_REQUEST)) {
            crm_field_t shown = *field;

            if (flags & CRM_F_CREATE && !(field->flags & required)
                && (required != NONE_REQUIRED || field->ref
                    || !(field->flags & CRM_F_REQUIRED))) {
                /* null counts as absent (contract 6.5). In an item of an upsert
                 * it clears, so that not all may be null. */
                shown.flags &= ~(CRM_F_NO_CLEAR | CRM_F_REQUIRED);
            }
            add(buf, count++ ? "," : "");
            crm_buf_json_text(buf, field->name);
            add(buf, ":");
            add_field_schema(buf, &shown, side);
        }
    }
    add(buf, "}");
}

/* Add the fields of RESOURCE that a GET shows and a body with fields of FLAGS does
 * not take, so that what was read may be sent back (contract 6.2). */
static void add_shown(crm_buf_t *buf, const crm_resource_t *resource,
                      unsigned flags)
{
    const crm_field_t *field;

    for (field = resource->fields; field->name; field++) {
        if (!(field->flags & (flags | CRM_F_HIDDEN))) {
            add(buf, ",");
            crm_buf_json_text(buf, field->name);
            add(buf, ":{'$ref':'#/components/schemas/Shown'}");
        }
    }
}

/* Add the schema NAME of a body that may have RESOURCE's fields with FLAGS and
 * must have those with REQUIRED. MORE: further members of the schema, or
 * NULL. */
static void add_body_schema(crm_buf_t *buf, const char *name,
                            const crm_resource_t *resource, unsigned flags,
                            unsigned required, const char *more)
{
    add(buf, ",");
    crm_buf_json_text(buf, name);
    add(buf, ":{'type':'object','additionalProperties':false");
    add(buf, more ? "," : "");
    add(buf, more ? more : "");
    add_properties(buf, resource, flags, required, CRM_SIDE_INPUT);
    buf->len--;                 /* its brace */
    add_shown(buf, resource, flags);
    add(buf, "}}");
}

static void add_resource_schemas(crm_buf_t *buf,
                                 const crm_resource_t *resource)
{
    const crm_operation_t *operation = resource->operations;

    crm_buf_printf(buf, "\"%s\":", resource->title);
    add(buf, "{'type':'object','description':");
    crm_buf_json_text(buf, resource->doc);
    if (resource->schema) {
        add(buf, ",");
        resource->schema(buf);
    }
    else {
        add_properties(buf, resource, 0, 0, CRM_SIDE_OUTPUT);
    }
    add(buf, "}");
    for (; operation->id; operation++) {
        char name[64];

        apr_snprintf(name, sizeof(name), "%s%s", resource->title,
                     operation->kind == CRM_OP_CREATE ? "Create" : "Update");
        if (operation->kind == CRM_OP_CREATE) {
            add_body_schema(buf, name, resource, CRM_F_CREATE, CRM_F_REQUIRED,
                            resource->check_schema);
        }
        else if (operation->kind == CRM_OP_UPDATE) {
            add_body_schema(buf, name, resource, CRM_F_UPDATE, NONE_REQUIRED,
                            NULL);
        }
        if (operation->item_schema) {
            add_body_schema(buf, operation->item_schema, resource,
                            CRM_F_CREATE, NONE_REQUIRED, NULL);
        }
    }
}

/* ---- operations ---- */

/* The id of all examples, as in openapi.json and the tables. */
#define EXAMPLE_ID "01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64"

/* Add the example of a parameter that is FIELD: its own, or one of its type. */
static void add_parameter_example(crm_buf_t *buf, const crm_field_t *field)
{
    const char *example = field->example;

    if (field->type == &crm_type_boolean) {
        add(buf, ",'example':true");
        return;
    }
    if (!example) {
        example = field->values ? field->values[0]
                  : field->type == &crm_type_ref ? EXAMPLE_ID
                  : field->type == &crm_type_time ? "2026-01-01T00:00:00Z"
                  : NULL;
    }
    if (example) {
        add(buf, ",'example':");
        crm_buf_json_text(buf, example);
    }
}

static void add_parameter(crm_buf_t *buf, const crm_filter_t *filter)
{
    const crm_field_t *field = &filter->field;

    add(buf, "{'name':");
    crm_buf_json_text(buf, field->name);
    add(buf, field->flags & CRM_F_REQUIRED
        ? ",'in':'query','required':true,'schema':{"
        : ",'in':'query','schema':{");
    crm_field_schema(buf, field, CRM_SIDE_QUERY);
    add(buf, "}");
    add_parameter_example(buf, field);
    if (field->doc) {
        add(buf, ",'description':");
        crm_buf_json_text(buf, field->doc);
    }
    add(buf, "},");
}

static void add_sort_parameter(crm_buf_t *buf, const crm_sort_t *sort)
{
    add(buf, "{'name':'sort','in':'query','schema':{'type':'string',"
        "'default':");
    crm_buf_json_text(buf, sort->name);
    add(buf, ",'enum':[");
    for (int i = 0; sort[i].keys[0]; i++) {
        add(buf, i ? "," : "");
        crm_buf_json_text(buf, sort[i].name);
    }
    add(buf, "]},'description':'what the rows are ordered by','example':");
    crm_buf_json_text(buf, sort->name);
    add(buf, "},");
}

/* Add the parameter "order". Its default may depend on the sort order. */
static void add_order_parameter(crm_buf_t *buf, const crm_sort_t *sorts)
{
    int differ = 0;

    for (const crm_sort_t *sort = sorts; sort->keys[0]; sort++) {
        differ |= sort->ascending != sorts->ascending;
    }
    add(buf, "{'name':'order','in':'query','example':'asc','schema':"
        "{'type':'string','enum':['asc','desc']");
    if (!differ) {
        add(buf, sorts->ascending ? ",'default':'asc'}" : ",'default':'desc'}");
        add(buf, ",'description':'asc: the smallest or oldest first'},");
        return;
    }
    add(buf, "},'description':'by default");
    for (const crm_sort_t *sort = sorts; sort->keys[0]; sort++) {
        crm_buf_printf(buf, "%s %s for %s", sort == sorts ? "" : ",",
                       sort->ascending ? "asc" : "desc", sort->name);
    }
    add(buf, "'},");
}

static void add_parameters(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;
    const crm_filter_t *filter = operation->filters;

    add(buf, ",'parameters':[");
    if (strchr(operation->path, '{')) {
        add(buf, "{'$ref':'#/components/parameters/id'},");
    }
    if (strstr(operation->path, "{message_id}")) {
        add(buf, "{'$ref':'#/components/parameters/message_id'},");
    }
    for (; filter && filter->field.name; filter++) {
        add_parameter(buf, filter);
    }
    if (operation->sorts && operation->sorts->name) {
        add_sort_parameter(buf, operation->sorts);
    }
    if (operation->ordered) {
        add_order_parameter(buf, operation->sorts);
    }
    if (operation->kind == CRM_OP_LIST && !operation->whole) {
        add(buf, "{'$ref':'#/components/parameters/page'},"
            "{'$ref':'#/components/parameters/page_size'},"
            "{'$ref':'#/components/parameters/cursor'},");
    }
    if (operation->kind == CRM_OP_LOG) {
        add(buf, "{'$ref':'#/components/parameters/page_size'},"
            "{'$ref':'#/components/parameters/log_cursor'},");
    }
    add(buf, operation->waits
        ? "{'$ref':'#/components/parameters/wait'}," : "");
    add(buf, crm_kind_of(operation)->conditional
        ? "{'$ref':'#/components/parameters/If-Match'},"
        "{'$ref':'#/components/parameters/If-None-Match'}," : "");
    add(buf, endpoint->write
        ? "{'$ref':'#/components/parameters/Idempotency-Key'}," : "");
    add(buf, "{'$ref':'#/components/parameters/Prefer'},"
        "{'$ref':'#/components/parameters/X-Request-Id'}]");
}

/* Add the body of ENDPOINT as it is sent with the media type TYPE. */
static void add_content(crm_buf_t *buf, const crm_endpoint_t *endpoint,
                        const char *type)
{
    const crm_operation_t *operation = endpoint->operation;

    crm_buf_json_text(buf, type);
    add(buf, ":{'schema':{'$ref':'#/components/schemas/");
    if (operation->body_schema) {
        crm_buf_puts(buf, operation->body_schema);
    }
    else {
        crm_buf_puts(buf, endpoint->resource->title);
        crm_buf_puts(buf, operation->kind == CRM_OP_CREATE ? "Create"
                     : "Update");
    }
    add(buf, "'}");
    if (operation->example) {
        add(buf, ",'example':");
        add(buf, operation->example);
    }
    add(buf, "}");
}

/* Add the body of ENDPOINT, if it has one. */
static void add_body(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    if (!crm_kind_of(endpoint->operation)->has_body) {
        return;
    }
    add(buf, ",'requestBody':{'required':true,'content':{");
    add_content(buf, endpoint, "application/json");
    if (endpoint->operation->kind == CRM_OP_UPDATE) {
        add(buf, ",");
        add_content(buf, endpoint, "application/merge-patch+json");
    }
    add(buf, "}}");
}

/* The headers of every successful response. */
static const char *const headers[] = {
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
    "X-Request-Id"
};

/* Add the schema of a successful response. */
static void add_answer_schema(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;
    int log = operation->kind == CRM_OP_LOG;
    int list = log || operation->kind == CRM_OP_LIST;

    add(buf, log
        ? "{'type':'object','required':['data','pagination'],'properties':"
          "{'pagination':{'$ref':'#/components/schemas/CursorPagination'},"
          "'data':"
        : list && !operation->whole
        ? "{'type':'object','required':['data','pagination'],"
          "'properties':{'pagination':"
          "{'oneOf':[{'$ref':'#/components/schemas/Pagination'},"
          "{'$ref':'#/components/schemas/CursorPagination'}]},'data':"
        : "{'type':'object','required':['data'],'properties':{'data':");
    add(buf, list ? "{'type':'array','items':" : "");
    crm_buf_printf(buf, "{\"$ref\":\"#/components/schemas/%s\"}",
                   operation->answer_schema ? operation->answer_schema
                   : endpoint->resource->title);
    add(buf, list ? "}}}" : "}}");
}

/* The headers of a deprecated operation (RFC 9745, RFC 8594). */
static const char deprecated_headers[] =
    "'Deprecation':{'description':'When it was deprecated: @ and Unix time',"
    "'schema':{'type':'string'}},"
    "'Sunset':{'description':'When it will be removed',"
    "'schema':{'type':'string'}},";

/* The headers of a file. */
static const char file_headers[] =
    "'Content-Disposition':{'description':'attachment, with its name'"
    ",'schema':{'type':'string'}},"
    "'Content-Security-Policy':{'description':'sandbox',"
    "'schema':{'type':'string'}},"
    "'Accept-Ranges':{'description':'bytes','schema':{'type':'string'}},"
    "'Content-Range':{'description':'of 206: the part, and the size of the"
    " file','schema':{'type':'string'}},";

/* Add the successful response with STATUS; that to HEAD has no body. */
static void add_success(crm_buf_t *buf, const crm_endpoint_t *endpoint,
                        int status, int head)
{
    const crm_operation_t *operation = endpoint->operation;

    crm_buf_printf(buf, "\"%d\":{\"description\":\"", status);
    add(buf, status == 201 ? "Created" : status == 202 ? "Accepted"
        : status == 204 ? "Deleted" : status == 206 ? "A part of it" : "OK");
    add(buf, "','headers':{");
    add(buf, operation->location && status == 201
        ? "'Location':{'$ref':'#/components/headers/Location'}," : "");
    add(buf, (operation->kind == CRM_OP_LIST && !operation->whole)
             || operation->kind == CRM_OP_LOG
        ? "'Link':{'$ref':'#/components/headers/Link'}," : "");
    add(buf, "'X-Ignored-Parameters':{'$ref':"
        "'#/components/headers/X-Ignored-Parameters'},");
    add(buf, endpoint->tagged
        ? "'ETag':{'$ref':'#/components/headers/ETag'}," : "");
    add(buf, endpoint->deprecation ? deprecated_headers : "");
    add(buf, operation->file ? file_headers : "");
    add(buf, endpoint->write ? "'Idempotent-Replayed':{'$ref':"
        "'#/components/headers/Idempotent-Replayed'}," : "");
    for (size_t i = 0; i < CRM_NELTS(headers); i++) {
        crm_buf_printf(buf, "%s\"%s\":{\"$ref\":\"#/components/headers/%s\"}",
                       i ? "," : "", headers[i], headers[i]);
    }
    add(buf, "}");
    if (head || status == 204) {
        add(buf, "}");
        return;
    }
    if (operation->file) {
        crm_buf_printf(buf, ",\"content\":{\"%s\":{}}",
                       operation->file->media_type);
    }
    else {
        add(buf, ",'content':{'application/json':{'schema':");
        add_answer_schema(buf, endpoint);
        add(buf, "}}");
    }
    add(buf, "}");
}

/* Return whether OPERATION's table has STATUS as a further one. */
static int is_listed(const crm_operation_t *operation, int status)
{
    for (int i = 0; operation->statuses[i]; i++) {
        if (operation->statuses[i] == status) {
            return 1;
        }
    }
    return 0;
}

/* Return whether the row that ENDPOINT's path names may have been merged into
 * another one. */
static int may_be_merged(const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;
    const crm_resource_t *named = operation->parent
        ? crm_resource_find(operation->parent) : endpoint->resource;

    return strchr(operation->path, '{') && named->merged;
}

/* Return whether ENDPOINT can respond with STATUS. */
static int answers(const crm_endpoint_t *endpoint, int status)
{
    const crm_operation_t *operation = endpoint->operation;

    if (is_listed(operation, status)) {
        return 1;
    }
    switch (status) {
    case 304:
        return crm_kind_of(operation)->conditional && !endpoint->write;
    case 412:
        return crm_kind_of(operation)->conditional;
    case 400:
    case 413:
    case 415:
        return !strcmp(operation->method, "POST")
               || crm_kind_of(operation)->has_body;
    case 409:
        return endpoint->write || operation->kind == CRM_OP_LOG;
    case 410:
        return operation->kind == CRM_OP_LOG || may_be_merged(endpoint);
    case 416:
        return operation->file != NULL;
    case 404:
        return strchr(operation->path, '{') || operation->kind == CRM_OP_GET;
    default:
        return 1;
    }
}

static void add_responses(crm_buf_t *buf, const crm_endpoint_t *endpoint,
                          int head)
{
    static const int statuses[] = {304, 400, 401, 403, 404, 409, 410, 412,
                                   413, 415, 416, 422, 429, 500, 503};

    add(buf, ",'responses':{");
    add_success(buf, endpoint, crm_kind_of(endpoint->operation)->status, head);
    if (endpoint->operation->file) {
        add(buf, ",");
        add_success(buf, endpoint, 206, head);
    }
    if (is_listed(endpoint->operation, 200)) {
        add(buf, ",");
        add_success(buf, endpoint, 200, head);
    }
    for (size_t i = 0; i < CRM_NELTS(statuses); i++) {
        if (answers(endpoint, statuses[i])) {
            crm_buf_printf(buf, ",\"%d\":{\"$ref\":"
                           "\"#/components/responses/%d\"}", statuses[i],
                           statuses[i]);
        }
    }
    add(buf, ",'default':{'$ref':'#/components/responses/default'}}");
}

/* Add what ENDPOINT's operation is called and what it does. */
static void add_names(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;

    crm_buf_printf(buf, "\"operationId\":\"%s\",\"tags\":[\"%s\"],"
                   "\"summary\":", operation->id, endpoint->resource->tag);
    crm_buf_json_text(buf, operation->summary);
    if (endpoint->deprecation) {
        add(buf, ",'deprecated':true,'description':'It will be removed, not"
            " before the date of Sunset.'");
    }
    else if (operation->doc) {
        add(buf, ",'description':");
        crm_buf_json_text(buf, operation->doc);
    }
}

static void add_operation(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const char *name = endpoint->operation->method;

    add(buf, "'");
    for (; *name; name++) {
        crm_buf_putc(buf, (char)(*name | 0x20));
    }
    add(buf, "':{");
    add_names(buf, endpoint);
    add_parameters(buf, endpoint);
    add_body(buf, endpoint);
    add_responses(buf, endpoint, 0);
    add(buf, "}");
}

/* Add HEAD, which works wherever GET does (contract 5.1), for ENDPOINT's
 * operation if that is a GET. Its id is that of the GET after "head". */
static void add_head(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;

    if (strcmp(operation->method, "GET")) {
        return;
    }
    crm_buf_printf(buf, ",\"head\":{\"operationId\":\"head%c%s\","
                   "\"tags\":[\"%s\"],", operation->id[0] & ~0x20,
                   operation->id + 1, endpoint->resource->tag);
    add(buf, "'summary':'The same without the body','description':"
        "'Status and headers of the GET.'");
    add(buf, endpoint->deprecation ? ",'deprecated':true" : "");
    add_parameters(buf, endpoint);
    add_responses(buf, endpoint, 1);
    add(buf, "}");
}

/* ---- webhooks ---- */

/* Add the request by which a webhook sends EVENT. */
static void add_webhook(crm_buf_t *buf, const crm_event_type_t *event)
{
    crm_buf_json_text(buf, event->type);
    add(buf, ":{'post':{'operationId':'on");
    crm_buf_printf(buf, "%s\",\"summary\":", event->title);
    crm_buf_json_text(buf, event->doc);
    add(buf, ",'description':'Sent to the endpoints that want this event. It is "
        "sent again until one answers with 2xx, and may come twice.'"
        ",'tags':['Webhooks'],'security':[],'parameters':["
        "{'$ref':'#/components/parameters/webhook-id'},"
        "{'$ref':'#/components/parameters/webhook-timestamp'},"
        "{'$ref':'#/components/parameters/webhook-signature'}],"
        "'requestBody':{'required':true,'content':{'application/json':"
        "{'schema':{'$ref':'#/components/schemas/");
    crm_buf_printf(buf, "%sEvent", event->title);
    add(buf, "'}}}},'responses':{"
        "'2XX':{'description':'The event was received'},"
        "'410':{'description':'Nothing more is sent to this endpoint'},"
        "'default':{'description':'The event is sent again later'}}}}");
}

/* Add the schema of EVENT's body. */
static void add_event_schema(crm_buf_t *buf, const crm_event_type_t *event)
{
    crm_buf_printf(buf, "\"%sEvent\":", event->title);
    add(buf, "{'type':'object','required':['type','timestamp','data'],"
        "'properties':{'type':{'type':'string','const':");
    crm_buf_json_text(buf, event->type);
    add(buf, "},'timestamp':{'type':'string','format':'date-time'},"
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
        add(&buf, i ? "," : "");
        add_operation(&buf, path->routes[i]->data);
        add_head(&buf, path->routes[i]->data);
    }
    add(&buf, "}}}");
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
    add(&buf, "{'components':{'schemas':{");
    add_resource_schemas(&buf, resource);
    add(&buf, "}}}");
    return crm_openapi_merge(into, buf.data, buf.len, pool);
}

/* Add EVENTS: the webhooks and their schemas. */
static crm_error_t *add_events(json_object *into,
                               const crm_event_type_t *events,
                               apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 8192, pool);
    add(&buf, "{'webhooks':{");
    for (int i = 0; events[i].type; i++) {
        add(&buf, i ? "," : "");
        add_webhook(&buf, &events[i]);
    }
    add(&buf, "},'components':{'schemas':{");
    for (int i = 0; events[i].type; i++) {
        add(&buf, i ? "," : "");
        add_event_schema(&buf, &events[i]);
    }
    add(&buf, "}}}");
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
