/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_operation.c: operations with parameters, bodies and responses */
#include "crm_openapi_operation.h"

#include <string.h>

#include "crm_array.h"
#include "crm_rest.h"

/* The id of all examples, as in openapi.json and the tables. */
#define EXAMPLE_ID "01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64"

/* Add the example of a parameter that is FIELD: its own, or one of its type. */
static void add_parameter_example(crm_buf_t *buf, const crm_field_t *field)
{
    const char *example = field->example;

    if (field->type == &crm_type_boolean) {
        crm_buf_json(buf, ",'example':true");
        return;
    }
    if (!example) {
        example = field->values ? field->values[0]
                  : field->type == &crm_type_ref ? EXAMPLE_ID
                  : field->type == &crm_type_time ? "2026-01-01T00:00:00Z"
                  : NULL;
    }
    if (example) {
        crm_buf_json(buf, ",'example':");
        crm_buf_json_text(buf, example);
    }
}

static void add_parameter(crm_buf_t *buf, const crm_filter_t *filter)
{
    const crm_field_t *field = &filter->field;

    crm_buf_json(buf, "{'name':");
    crm_buf_json_text(buf, field->name);
    crm_buf_json(buf, field->flags & CRM_F_REQUIRED
                 ? ",'in':'query','required':true,'schema':{"
                 : ",'in':'query','schema':{");
    crm_field_schema(buf, field, CRM_SIDE_QUERY);
    crm_buf_json(buf, "}");
    add_parameter_example(buf, field);
    if (field->doc) {
        crm_buf_json(buf, ",'description':");
        crm_buf_json_text(buf, field->doc);
    }
    crm_buf_json(buf, "},");
}

static void add_sort_parameter(crm_buf_t *buf, const crm_sort_t *sort)
{
    crm_buf_json(buf, "{'name':'sort','in':'query','schema':{'type':'string',"
                 "'default':");
    crm_buf_json_text(buf, sort->name);
    crm_buf_json(buf, ",'enum':[");
    for (int i = 0; sort[i].keys[0]; i++) {
        crm_buf_json(buf, i ? "," : "");
        crm_buf_json_text(buf, sort[i].name);
    }
    crm_buf_json(buf, "]},'description':'what the rows are ordered by',"
                 "'example':");
    crm_buf_json_text(buf, sort->name);
    crm_buf_json(buf, "},");
}

/* Add the parameter "order". Its default may depend on the sort order. */
static void add_order_parameter(crm_buf_t *buf, const crm_sort_t *sorts)
{
    int differ = 0;

    for (const crm_sort_t *sort = sorts; sort->keys[0]; sort++) {
        differ |= sort->ascending != sorts->ascending;
    }
    crm_buf_json(buf, "{'name':'order','in':'query','example':'asc','schema':"
                 "{'type':'string','enum':['asc','desc']");
    if (!differ) {
        crm_buf_json(buf, sorts->ascending ? ",'default':'asc'"
                     : ",'default':'desc'");
        crm_buf_json(buf, "},'description':'asc: the smallest or oldest first'"
                     "},");
        return;
    }
    crm_buf_printf(buf, "},\"description\":\"by default %s",
                   sorts->ascending ? "asc" : "desc");
    for (const crm_sort_t *sort = sorts + 1; sort->keys[0]; sort++) {
        if (sort->ascending != sorts->ascending) {
            crm_buf_printf(buf, ", %s for %s", sort->ascending ? "asc" : "desc",
                           sort->name);
        }
    }
    crm_buf_json(buf, "'},");
}

static void add_parameters(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;
    const crm_filter_t *filter = operation->filters;

    crm_buf_json(buf, ",'parameters':[");
    if (strchr(operation->path, '{')) {
        crm_buf_json(buf, "{'$ref':'#/components/parameters/id'},");
    }
    if (strstr(operation->path, "{message_id}")) {
        crm_buf_json(buf, "{'$ref':'#/components/parameters/message_id'},");
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
        crm_buf_json(buf, "{'$ref':'#/components/parameters/page'},"
                     "{'$ref':'#/components/parameters/page_size'},"
                     "{'$ref':'#/components/parameters/cursor'},");
    }
    if (operation->kind == CRM_OP_LOG) {
        crm_buf_json(buf, "{'$ref':'#/components/parameters/page_size'},"
                     "{'$ref':'#/components/parameters/log_cursor'},");
    }
    crm_buf_json(buf, operation->waits
                 ? "{'$ref':'#/components/parameters/wait'}," : "");
    crm_buf_json(buf, crm_kind_of(operation)->conditional
                 ? "{'$ref':'#/components/parameters/If-Match'},"
                 "{'$ref':'#/components/parameters/If-None-Match'}," : "");
    crm_buf_json(buf, endpoint->write
                 ? "{'$ref':'#/components/parameters/Idempotency-Key'}," : "");
    crm_buf_json(buf, "{'$ref':'#/components/parameters/Prefer'},"
                 "{'$ref':'#/components/parameters/X-Request-Id'}]");
}

/* Add the body of ENDPOINT as it is sent with the media type TYPE. */
static void add_content(crm_buf_t *buf, const crm_endpoint_t *endpoint,
                        const char *type)
{
    const crm_operation_t *operation = endpoint->operation;

    crm_buf_json_text(buf, type);
    crm_buf_json(buf, ":{'schema':{'$ref':'#/components/schemas/");
    if (operation->body_schema) {
        crm_buf_puts(buf, operation->body_schema);
    }
    else {
        crm_buf_puts(buf, endpoint->resource->title);
        crm_buf_puts(buf, operation->kind == CRM_OP_CREATE ? "Create"
                     : "Update");
    }
    crm_buf_json(buf, "'}");
    if (operation->example) {
        crm_buf_json(buf, ",'example':");
        crm_buf_json(buf, operation->example);
    }
    crm_buf_json(buf, "}");
}

/* Add the body of ENDPOINT, if it has one. */
static void add_body(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    if (!crm_kind_of(endpoint->operation)->has_body) {
        return;
    }
    crm_buf_json(buf, ",'requestBody':{'required':true,'content':{");
    add_content(buf, endpoint, "application/json");
    if (endpoint->operation->kind == CRM_OP_UPDATE) {
        crm_buf_json(buf, ",");
        add_content(buf, endpoint, "application/merge-patch+json");
    }
    crm_buf_json(buf, "}}");
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

    crm_buf_json(buf, log
                 ? "{'type':'object','required':['data','pagination'],"
                   "'properties':{'pagination':"
                   "{'$ref':'#/components/schemas/CursorPagination'},'data':"
                 : list && !operation->whole
                 ? "{'type':'object','required':['data','pagination'],"
                   "'properties':{'pagination':"
                   "{'oneOf':[{'$ref':'#/components/schemas/Pagination'},"
                   "{'$ref':'#/components/schemas/CursorPagination'}]},'data':"
                 : "{'type':'object','required':['data'],'properties':"
                   "{'data':");
    crm_buf_json(buf, list ? "{'type':'array','items':" : "");
    crm_buf_printf(buf, "{\"$ref\":\"#/components/schemas/%s\"}",
                   operation->answer_schema ? operation->answer_schema
                   : endpoint->resource->title);
    crm_buf_json(buf, list ? "}}}" : "}}");
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
    crm_buf_json(buf, status == 201 ? "Created" : status == 202 ? "Accepted"
                 : status == 204 ? "Deleted" : status == 206 ? "A part of it"
                 : "OK");
    crm_buf_json(buf, "','headers':{");
    crm_buf_json(buf, operation->location && status == 201
                 ? "'Location':{'$ref':'#/components/headers/Location'}," : "");
    crm_buf_json(buf, (operation->kind == CRM_OP_LIST && !operation->whole)
                      || operation->kind == CRM_OP_LOG
                 ? "'Link':{'$ref':'#/components/headers/Link'}," : "");
    crm_buf_json(buf, "'X-Ignored-Parameters':{'$ref':"
                 "'#/components/headers/X-Ignored-Parameters'},");
    crm_buf_json(buf, endpoint->tagged
                 ? "'ETag':{'$ref':'#/components/headers/ETag'}," : "");
    crm_buf_json(buf, endpoint->deprecation ? deprecated_headers : "");
    crm_buf_json(buf, operation->file ? file_headers : "");
    crm_buf_json(buf, endpoint->write ? "'Idempotent-Replayed':{'$ref':"
                 "'#/components/headers/Idempotent-Replayed'}," : "");
    for (size_t i = 0; i < CRM_NELTS(headers); i++) {
        crm_buf_printf(buf, "%s\"%s\":{\"$ref\":\"#/components/headers/%s\"}",
                       i ? "," : "", headers[i], headers[i]);
    }
    crm_buf_json(buf, "}");
    if (head || status == 204) {
        crm_buf_json(buf, "}");
        return;
    }
    if (operation->file) {
        crm_buf_printf(buf, ",\"content\":{\"%s\":{}}",
                       operation->file->media_type);
    }
    else {
        crm_buf_json(buf, ",'content':{'application/json':{'schema':");
        add_answer_schema(buf, endpoint);
        crm_buf_json(buf, "}}");
    }
    crm_buf_json(buf, "}");
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

    crm_buf_json(buf, ",'responses':{");
    add_success(buf, endpoint, crm_kind_of(endpoint->operation)->status, head);
    if (endpoint->operation->file) {
        crm_buf_json(buf, ",");
        add_success(buf, endpoint, 206, head);
    }
    if (is_listed(endpoint->operation, 200)) {
        crm_buf_json(buf, ",");
        add_success(buf, endpoint, 200, head);
    }
    for (size_t i = 0; i < CRM_NELTS(statuses); i++) {
        if (answers(endpoint, statuses[i])) {
            crm_buf_printf(buf, ",\"%d\":{\"$ref\":"
                           "\"#/components/responses/%d\"}", statuses[i],
                           statuses[i]);
        }
    }
    crm_buf_json(buf, ",'default':{'$ref':'#/components/responses/default'}}");
}

/* Add what ENDPOINT's operation is called and what it does. */
static void add_names(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;

    crm_buf_printf(buf, "\"operationId\":\"%s\",\"tags\":[\"%s\"],"
                   "\"summary\":", operation->id, endpoint->resource->tag);
    crm_buf_json_text(buf, operation->summary);
    if (endpoint->deprecation) {
        crm_buf_json(buf, ",'deprecated':true,'description':'It will be"
                     " removed, not before the date of Sunset.'");
    }
    else if (operation->doc) {
        crm_buf_json(buf, ",'description':");
        crm_buf_json_text(buf, operation->doc);
    }
}

void crm_openapi_operation(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const char *name = endpoint->operation->method;

    crm_buf_json(buf, "'");
    for (; *name; name++) {
        crm_buf_putc(buf, (char)(*name | 0x20));
    }
    crm_buf_json(buf, "':{");
    add_names(buf, endpoint);
    add_parameters(buf, endpoint);
    add_body(buf, endpoint);
    add_responses(buf, endpoint, 0);
    crm_buf_json(buf, "}");
}

void crm_openapi_head(crm_buf_t *buf, const crm_endpoint_t *endpoint)
{
    const crm_operation_t *operation = endpoint->operation;

    if (strcmp(operation->method, "GET")) {
        return;
    }
    crm_buf_printf(buf, ",\"head\":{\"operationId\":\"head%c%s\","
                   "\"tags\":[\"%s\"],", operation->id[0] & ~0x20,
                   operation->id + 1, endpoint->resource->tag);
    crm_buf_json(buf, "'summary':'The same without the body','description':"
                 "'Status and headers of the GET.'");
    crm_buf_json(buf, endpoint->deprecation ? ",'deprecated':true" : "");
    add_parameters(buf, endpoint);
    add_responses(buf, endpoint, 1);
    crm_buf_json(buf, "}");
}
