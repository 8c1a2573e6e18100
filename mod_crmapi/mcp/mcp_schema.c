/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_schema.c: the schemas of a tool, from those of its operation in the OpenAPI
 * document */
#include "mcp_schema.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_openapi_words.h"

/* References in the document are nested, but none leads to itself. */
#define DEPTH_MAX 16

/* ---- the document -------------------------------------------------------- */

/* Return the node that REFERENCE, "#/components/schemas/X", names. */
static json_object *find_node(json_object *document, const char *reference)
{
    json_object *node = document;
    char name[128];

    for (reference++; node && *reference == '/'; ) {
        size_t len = strcspn(++reference, "/");

        apr_cpystrn(name, reference, len < sizeof(name) ? len + 1
                    : sizeof(name));
        node = json_object_object_get(node, name);
        reference += len;
    }
    return node;
}

/* Return NODE, or the one that it refers to. */
static json_object *resolve(json_object *document, json_object *node)
{
    json_object *reference;

    for (int i = 0; i < DEPTH_MAX && json_object_object_get_ex(
             node, "$ref", &reference); i++) {
        node = find_node(document, json_object_get_string(reference));
    }
    return node;
}

/* Return the node below NODE that NAMES (ended by NULL) lead to, or NULL. */
static json_object *below(json_object *node, const char *const *names)
{
    for (; node && *names; names++) {
        if (!json_object_object_get_ex(node, *names, &node)) {
            return NULL;
        }
    }
    return node;
}

/* Return the schema of OPERATION's body, or NULL. */
static json_object *body_of(json_object *document, json_object *operation)
{
    static const char *const names[] = {
        "requestBody", "content", "application/json", "schema", NULL
    };
    json_object *schema = below(operation, names);

    return schema ? resolve(document, schema) : NULL;
}

json_object *mcp_schema_operation(json_object *document,
                                  const mcp_tool_t *tool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    char path[128], method[8];
    const char *const names[] = {"paths", path, method, NULL};
    size_t i;

    apr_snprintf(path, sizeof(path), "%s%s", CRM_API_BASE,
                 endpoint->operation->path);
    apr_cpystrn(method, endpoint->operation->method, sizeof(method));
    for (i = 0; method[i]; i++) {
        method[i] = (char)apr_tolower(method[i]);
    }
    return below(document, names);
}

/* ---- copies for models --------------------------------------------------- */

/* A shorter description does not help to choose: "exact". */
#define DOC_MIN 10

/* Return whether DESCRIPTION says what is plain without it, from the name or the
 * type. */
static int is_plain(const char *description)
{
    static const char *const plain[] = {"default false", "free-form JSON"};

    return strlen(description) < DOC_MIN || CRM_IS_ONE_OF(description, plain)
           || crm_openapi_is_usual(description);
}

/* Return whether a model does without the keyword NAME with VALUE: the server
 * checks what it says, or it says nothing. */
static int is_left_out(const char *name, json_object *value)
{
    static const char *const names[] = {
        "example", "examples", "pattern", "maxLength", "minLength", "maxItems",
        "minItems", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "default", "not", "contentMediaType",
        "contentEncoding"
    };

    if (CRM_IS_ONE_OF(name, names)) {
        return 1;
    }
    return !strcmp(name, "format")
           ? !strcmp(json_object_get_string(value), "uuid")
           : !strcmp(name, "description")
             && is_plain(json_object_get_string(value));
}

/* How a schema is copied. */
typedef struct copy_t {
    json_object *document;
    int no_null;                /* null is as good as nothing, so that a model
                                   need not know that it may be sent */
    int depth;
} copy_t;

static json_object *copy_schema(copy_t *copy, json_object *node);

/* Return whether TYPE is one of those that have an empty value. */
static int can_be_empty(const char *type)
{
    return !strcmp(type, "array") || !strcmp(type, "object");
}

/* Return a copy of TYPE, the value of "type". Two things are left out that a model need
 * not know: that a boolean of a query may be a text, and that null clears a list or an
 * object, as [] and {} do. Programs that call Gemini fail with all tools if one of
 * them has a list or an object that may be null. */
static json_object *copy_type(const copy_t *copy, json_object *type)
{
    const char *first, *second;

    if (!json_object_is_type(type, json_type_array)
        || json_object_array_length(type) != 2) {
        return json_object_get(type);
    }
    first = json_object_get_string(json_object_array_get_idx(type, 0));
    second = json_object_get_string(json_object_array_get_idx(type, 1));
    return json_object_get((!strcmp(second, "null")
                            && (copy->no_null || can_be_empty(first)))
                           || !strcmp(first, "boolean")
                           ? json_object_array_get_idx(type, 0) : type);
}

/* Items with more members than this are those that another tool makes. */
#define ITEM_MAX 12

/* Return a copy of NODE, the schema of the items of an array. */
static json_object *copy_item(copy_t *copy, json_object *node)
{
    json_object *members = json_object_object_get(
        resolve(copy->document, node), "properties");

    return json_object_is_type(members, json_type_object)
           && json_object_object_length(members) > ITEM_MAX
           ? json_tokener_parse("{\"type\":\"object\",\"description\":\"with"
                                " the arguments of the tool that creates"
                                " one\"}")
           : copy_schema(copy, node);
}

/* Return a copy of WORDS, the value of "enum", without null. */
static json_object *copy_words(json_object *words)
{
    json_object *made = json_object_new_array();

    for (size_t i = 0; i < json_object_array_length(words); i++) {
        json_object *word = json_object_array_get_idx(words, i);

        if (word) {
            json_object_array_add(made, json_object_get(word));
        }
    }
    return made;
}

/* Return a copy of NODE, a value of the keyword NAME. */
static json_object *copy_value(copy_t *copy, const char *name,
                               json_object *node)
{
    json_object *made;

    if (!strcmp(name, "type")) {
        return copy_type(copy, node);
    }
    if (!strcmp(name, "enum") && copy->no_null) {
        return copy_words(node);
    }
    if (!strcmp(name, "properties")) {
        made = json_object_new_object();
        json_object_object_foreach(node, member, value) {
            json_object_object_add(made, member, copy_schema(copy, value));
        }
        return made;
    }
    if (!strcmp(name, "items") && json_object_is_type(node, json_type_object)) {
        return copy_item(copy, node);
    }
    if (!strcmp(name, "anyOf") || !strcmp(name, "oneOf")) {
        made = json_object_new_array();
        for (size_t i = 0; i < json_object_array_length(node); i++) {
            json_object_array_add(made, copy_schema(
                                      copy, json_object_array_get_idx(node,
                                                                      i)));
        }
        return made;
    }
    return json_object_get(node);
}

/* Return a copy of the schema NODE, which the caller owns. */
static json_object *copy_schema(copy_t *copy, json_object *node)
{
    json_object *made = json_object_new_object();
    json_object *from = resolve(copy->document, node);

    if (copy->depth == DEPTH_MAX) {
        return made;
    }
    copy->depth++;
    json_object_object_foreach(from, name, value) {
        if (!is_left_out(name, value)
            && (strcmp(name, "additionalProperties")
                || !json_object_get_boolean(value))) {
            json_object_object_add(made, name, copy_value(copy, name, value));
        }
    }
    copy->depth--;
    return made;
}

/* ---- arguments ----------------------------------------------------------- */

/* An argument that every tool of a kind has. */
static void add_argument(json_object *properties, const char *name,
                         const char *schema)
{
    json_object_object_add(properties, name, json_tokener_parse(schema));
}

static void require(json_object *required, const char *name)
{
    json_object_array_add(required, json_object_new_string(name));
}

/* Return whether NAME, of a parameter of the query, says what DOC does: the values
 * of "sort" do, and each filter finds only rows with its value. Only a bot_id does
 * not say that it is an agent's. */
static int is_named(const char *name, const char *doc)
{
    return is_plain(doc) || !strcmp(name, "sort")
           || (!strncmp(doc, "only ", 5) && strcmp(name, "bot_id") != 0);
}

/* Add PARAMETER of the query to PROPERTIES, and to REQUIRED if it is. The
 * parameter "custom_fields.NAME" is an object. */
static void add_parameter(copy_t *copy, json_object *properties,
                          json_object *required, json_object *parameter)
{
    const char *name = json_object_get_string(
        json_object_object_get(parameter, "name"));
    const char *dot = strstr(name, ".NAME");
    json_object *doc, *schema;
    char prefix[64];

    if (dot) {
        apr_cpystrn(prefix, name, (apr_size_t)(dot - name) + 1);
        add_argument(properties, prefix, "{\"type\":\"object\",\"description\":"
                     "\"only rows that have these members\"}");
        return;
    }
    schema = copy_schema(copy, json_object_object_get(parameter, "schema"));
    if (json_object_object_get_ex(parameter, "description", &doc)
        && !is_named(name, json_object_get_string(doc))) {
        json_object_object_add(schema, "description", json_object_get(doc));
    }
    json_object_object_add(properties, name, schema);
    if (json_object_get_boolean(json_object_object_get(parameter,
                                                       "required"))) {
        require(required, name);
    }
}

/* Return whether PARAMETER is one of the query that the operation alone has. */
static int is_own(json_object *parameter)
{
    const char *name = json_object_get_string(
        json_object_object_get(parameter, "name"));
    const char *in = json_object_get_string(
        json_object_object_get(parameter, "in"));

    return !strcmp(in, "query") && strcmp(name, "page")
           && strcmp(name, "page_size") && strcmp(name, "cursor");
}

static void add_query(copy_t *copy, json_object *properties,
                      json_object *required, json_object *operation)
{
    json_object *list = json_object_object_get(operation, "parameters");

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = resolve(copy->document,
                                   json_object_array_get_idx(list, i));

        if (is_own(one)) {
            add_parameter(copy, properties, required, one);
        }
    }
}

/* Return whether PROPERTY is one that a PATCH only takes back. */
static int is_shown(json_object *property)
{
    json_object *reference;

    return json_object_object_get_ex(property, "$ref", &reference)
           && !strcmp(json_object_get_string(reference),
                      "#/components/schemas/Shown");
}

static void add_body(copy_t *copy, json_object *properties,
                     json_object *required, json_object *operation)
{
    json_object *body = body_of(copy->document, operation), *list;

    if (!body) {
        return;
    }
    json_object_object_foreach(json_object_object_get(body, "properties"),
                               name, value) {
        if (!is_shown(value)) {
            json_object_object_add(properties, name, copy_schema(copy, value));
        }
    }
    if (json_object_object_get_ex(body, "required", &list)) {
        for (size_t i = 0; i < json_object_array_length(list); i++) {
            json_object_array_add(required, json_object_get(
                                      json_object_array_get_idx(list, i)));
        }
    }
}

/* Add the arguments that do not depend on the operation's tables. */
static void add_common(json_object *properties, const mcp_tool_t *tool)
{
    if (tool->pages || tool->log) {
        add_argument(properties, "page_size", "{\"type\":\"integer\","
                     "\"default\":10}");
        add_argument(properties, "cursor", "{\"type\":\"string\","
                     "\"description\":\"next_cursor of the page before\"}");
    }
    if (tool->pages) {
        add_argument(properties, "page", "{\"type\":\"integer\","
                     "\"description\":\"or a number, with a total\"}");
    }
    if (tool->fields) {
        add_argument(properties, "fields", "{\"type\":\"array\",\"items\":{"
                     "\"type\":\"string\"},\"description\":\"only these"
                     " fields\"}");
    }
    if (tool->key) {
        add_argument(properties, "idempotency_key", "{\"type\":\"string\"}");
    }
}

json_object *mcp_schema_input(json_object *document, json_object *operation,
                              const mcp_tool_t *tool)
{
    json_object *schema = json_object_new_object();
    json_object *properties = json_object_new_object();
    json_object *required = json_object_new_array();
    const crm_endpoint_t *endpoint = tool->route->data;
    copy_t copy = {document, endpoint->operation->kind != CRM_OP_UPDATE, 0};

    for (int i = 0; i < CRM_ROUTE_ARGS && tool->ids[i]; i++) {
        add_argument(properties, tool->ids[i],
                     "{\"type\":\"string\"}");
        require(required, tool->ids[i]);
    }
    add_query(&copy, properties, required, operation);
    add_body(&copy, properties, required, operation);
    add_common(properties, tool);
    json_object_object_add(schema, "type", json_object_new_string("object"));
    json_object_object_add(schema, "properties", properties);
    if (json_object_array_length(required)) {
        json_object_object_add(schema, "required", required);
    }
    else {
        json_object_put(required);
    }
    json_object_object_add(schema, "additionalProperties",
                           json_object_new_boolean(0));
    return schema;
}

int mcp_schema_has(json_object *document, json_object *operation,
                   const char *name)
{
    json_object *body = body_of(document, operation);

    return body && json_object_object_get_ex(
        json_object_object_get(body, "properties"), name, NULL);
}

/* ---- results ------------------------------------------------------------- */

/* Return a schema of an object with the fields of ROW (NULL: any). */
static json_object *row_schema(json_object *row)
{
    json_object *schema = json_object_new_object(), *fields, *names;

    json_object_object_add(schema, "type", json_object_new_string("object"));
    if (row && json_object_object_get_ex(row, "properties", &fields)) {
        names = json_object_new_object();
        json_object_object_foreach(fields, name, value) {
            (void)value;
            json_object_object_add(names, name, json_object_new_boolean(1));
        }
        json_object_object_add(schema, "properties", names);
    }
    return schema;
}

/* Return the schema of the member "data" of OPERATION's answer, or NULL. */
static json_object *data_of(json_object *document, json_object *operation,
                            int status)
{
    char text[4];
    const char *const names[] = {
        "responses", text, "content", "application/json", "schema",
        "properties", "data", NULL
    };
    json_object *data;

    apr_snprintf(text, sizeof(text), "%d", status);
    data = below(operation, names);
    return data ? resolve(document, data) : NULL;
}

/* Return whether TOOL's results have the fields of its resource listed. One tool
 * of a resource is enough: that which lists all of its rows. */
static int names_fields(const mcp_tool_t *tool)
{
    const crm_operation_t *operation =
        ((const crm_endpoint_t *)tool->route->data)->operation;

    return tool->fields && operation->kind != CRM_OP_GET
           && !operation->parent;
}

json_object *mcp_schema_output(json_object *document, json_object *operation,
                               const mcp_tool_t *tool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    json_object *schema = json_tokener_parse(
        "{\"type\":\"object\",\"properties\":{},\"required\":[\"data\"]}");
    json_object *properties = json_object_object_get(schema, "properties");
    json_object *data = data_of(document, operation,
                                crm_kind_of(endpoint->operation)->status);
    json_object *items, *list;
    int named = names_fields(tool);

    if (data && json_object_object_get_ex(data, "items", &items)) {
        list = json_object_new_object();
        json_object_object_add(list, "type", json_object_new_string("array"));
        json_object_object_add(list, "items", row_schema(
                                   named ? resolve(document, items) : NULL));
        json_object_object_add(properties, "data", list);
    }
    else {
        json_object_object_add(properties, "data",
                               row_schema(named ? data : NULL));
    }
    if (tool->pages || tool->log) {
        add_argument(properties, "pagination", "{\"type\":\"object\"}");
    }
    return schema;
}
