/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_arguments.c: arguments of a tool as the parts of a request to the API */
#include "mcp_arguments.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json_check.h"
#include "crm_number.h"
#include "crm_type_list.h"

/* The largest query, as httpd limits it for the API (LimitRequestLine). */
#define QUERY_MAX 8190

/* The number of names in "fields", and the size of their array. */
#define FIELDS_MAX 8190

/* More arguments than any tool has: so many texts may be JSON. */
#define TEXTS_MAX 64

/* A reader of a tool's arguments. */
typedef struct reader_t {
    mcp_operation_t *operation;
    const mcp_tool_t *tool;
    crm_error_t *error;
    apr_pool_t *pool;
    int texts;                  /* that may be the JSON of a list or object */
} reader_t;

static void refuse(reader_t *reader, const char *name, const char *rule)
{
    crm_error_detail(&reader->error, name, rule, reader->pool);
}

/* ---- the query ----------------------------------------------------------- */

/* Add the LEN bytes at TEXT to QUERY, percent-encoded. */
static void add_encoded(crm_buf_t *query, const char *text, apr_size_t len)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = crm_buf_reserve(query, 3 * len);

    for (apr_size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || (c && strchr("-._~*,:", c))) {
            *out++ = (char)c;
            continue;
        }
        *out++ = '%';
        *out++ = digits[c >> 4];
        *out++ = digits[c & 15];
    }
    query->len = (apr_size_t)(out - query->data);
}

/* Add the parameter NAME with the LEN bytes at VALUE to OPERATION's query. */
static void add_param(mcp_operation_t *operation, const char *name,
                      const char *value, apr_size_t len)
{
    crm_buf_t *query = &operation->query;

    if (!query->data) {
        crm_buf_init(query, 256, query->pool);
    }
    if (query->len) {
        crm_buf_putc(query, '&');
    }
    add_encoded(query, name, strlen(name));
    crm_buf_putc(query, '=');
    add_encoded(query, value, len);
    *crm_buf_reserve(query, 1) = '\0';
}

/* Return whether VALUE is a string, a number or a boolean. */
static int is_scalar(crm_slice_t value)
{
    char type = crm_slice_type(value);

    return type != '{' && type != '[' && type != 'n';
}

/* Set *TEXT_P and *LEN_P to VALUE, a scalar, as a query has it: 10.0 is the
 * integer 10 (JSON Schema, 6.1.1). */
static void scalar_text(const char **text_p, apr_size_t *len_p,
                        crm_slice_t value, apr_pool_t *pool)
{
    char type = crm_slice_type(value);

    *text_p = apr_pstrmemdup(pool, value.text, value.len);
    *len_p = value.len;
    if (type == '"') {
        *text_p = crm_slice_text(value, len_p, pool);
    }
    else if (strchr("-0123456789", type)
             && !crm_number_parse(text_p, *text_p, pool)) {
        *len_p = strlen(*text_p);
    }
}

/* Add the LEN bytes at TEXT, an item of a list, to BUF, in quotes if it has a
 * character that means something there (contract 7.4). */
static void add_item(crm_buf_t *buf, const char *text, apr_size_t len)
{
    int quoted = memchr(text, ',', len) || memchr(text, '"', len);

    crm_buf_puts(buf, quoted ? "\"" : "");
    for (apr_size_t i = 0; i < len; i++) {
        crm_buf_puts(buf, text[i] == '"' ? "\"" : "");
        crm_buf_putc(buf, text[i]);
    }
    crm_buf_puts(buf, quoted ? "\"" : "");
}

/* Return, in POOL, the items of the array VALUE with commas between them; *LEN_P
 * is its length. NULL: an item is no scalar. */
static const char *join(apr_size_t *len_p, crm_slice_t value, apr_pool_t *pool)
{
    crm_json_walk_t walk;
    crm_slice_t item;
    crm_buf_t buf;

    crm_buf_init(&buf, 256, pool);
    crm_json_walk(&walk, value, '[');
    while (crm_json_item(&item, &walk)) {
        const char *text;
        apr_size_t len;

        if (!is_scalar(item)) {
            return NULL;
        }
        scalar_text(&text, &len, item, pool);
        crm_buf_puts(&buf, buf.len ? "," : "");
        add_item(&buf, text, len);
    }
    *len_p = buf.len;
    return buf.len ? buf.data : "";
}

static void read_param(reader_t *reader, const char *name, crm_slice_t value);

/* Add the members of the object VALUE: "custom_fields" with "size" is
 * custom_fields.size. */
static void read_members(reader_t *reader, const char *name, crm_slice_t value)
{
    crm_json_walk_t walk;
    crm_slice_t member, found;

    crm_json_walk(&walk, value, '{');
    while (crm_json_member(&member, &found, &walk)) {
        const char *text = crm_slice_text(member, NULL, reader->pool);
        const char *full = apr_pstrcat(reader->pool, name, ".", text, NULL);

        if (crm_slice_type(found) == 'n') {
            add_param(reader->operation, full, "null", 4);
        }
        else if (!is_scalar(found)) {
            refuse(reader, full, "must be a text, a number, a boolean or"
                   " null");
        }
        else {
            read_param(reader, full, found);
        }
        if (reader->operation->query.len > QUERY_MAX) {
            return;
        }
    }
}

/* Return the filter of READER's tool that is NAME, or whose parameters begin with
 * NAME and a dot; NULL if there is none. */
static const crm_filter_t *filter_of(const reader_t *reader, const char *name)
{
    const crm_endpoint_t *endpoint = reader->tool->route->data;
    const crm_filter_t *filter = endpoint->operation->filters;
    apr_size_t len = strlen(name);

    for (; filter && filter->field.name; filter++) {
        if (filter->members ? !strncmp(filter->members, name, len)
                              && !strcmp(filter->members + len, ".")
            : !strcmp(filter->field.name, name)) {
            return filter;
        }
    }
    return NULL;
}

/* Return whether FILTER takes several values. */
static int is_list(const crm_filter_t *filter)
{
    return filter->field.type == &crm_type_names
           || strstr(filter->field.type->cast, "[]");
}

/* Set *TEXT_P and *LEN_P to VALUE, for FILTER (NULL: none has it, and the API
 * refuses what is no scalar). Return NULL or the rule that VALUE breaks. */
static const char *param_text(const char **text_p, apr_size_t *len_p,
                              const crm_filter_t *filter, crm_slice_t value,
                              apr_pool_t *pool)
{
    if (filter && filter->members) {
        return "must be an object";
    }
    if (filter && crm_slice_type(value) == '[' && is_list(filter)) {
        *text_p = join(len_p, value, pool);
        return *text_p ? NULL : "must be an array of texts";
    }
    if (filter && !is_scalar(value)) {
        return "must be a text, a number or a boolean";
    }
    scalar_text(text_p, len_p, value, pool);
    return NULL;
}

/* Add VALUE, the argument NAME, to the query. Null is as good as nothing. */
static void read_param(reader_t *reader, const char *name, crm_slice_t value)
{
    const crm_filter_t *filter = filter_of(reader, name);
    const char *text, *rule;
    apr_size_t len;

    if (crm_slice_type(value) == 'n') {
        return;
    }
    if (filter && filter->members && crm_slice_type(value) == '{') {
        read_members(reader, name, value);
        return;
    }
    rule = value.len > QUERY_MAX ? "is too long"
           : param_text(&text, &len, filter, value, reader->pool);
    if (rule) {
        refuse(reader, name, rule);
        return;
    }
    add_param(reader->operation, name, text, len);
}

/* ---- the other parts ----------------------------------------------------- */

/* Take VALUE if NAME is an id of the path. Return whether it is. */
static int read_id(reader_t *reader, crm_slice_t name, crm_slice_t value)
{
    const mcp_tool_t *tool = reader->tool;
    crm_arg_t *arg;

    for (int i = 0; i < CRM_ROUTE_ARGS && tool->ids[i]; i++) {
        if (!crm_slice_is(name, tool->ids[i])) {
            continue;
        }
        arg = &reader->operation->args[i];
        if (crm_slice_type(value) == '"') {
            arg->text = crm_slice_text(value, &arg->len, reader->pool);
        }
        else {
            refuse(reader, tool->ids[i], "must be a string");
            arg->text = "";
        }
        return 1;
    }
    return 0;
}

/* Return VALUE, the argument "fields"; if it is a text of names with commas between
 * them, as the API has lists in a query: their array, null if it has none. */
static crm_slice_t names_of(crm_slice_t value, apr_pool_t *pool)
{
    char *text, *state, *name;
    crm_buf_t names;

    if (crm_slice_type(value) != '"' || value.len > FIELDS_MAX) {
        return value;
    }
    text = apr_pstrdup(pool, crm_slice_text(value, NULL, pool));
    crm_buf_init(&names, value.len + 16, pool);
    for (name = apr_strtok(text, ", ", &state); name;
         name = apr_strtok(NULL, ", ", &state)) {
        crm_buf_putc(&names, names.len ? ',' : '[');
        crm_buf_json_text(&names, name);
    }
    crm_buf_puts(&names, names.len ? "]" : "null");
    return crm_json_slice(names.data, names.len);
}

/* Take VALUE if NAME is an argument that is no part of the API's request. Return
 * whether it is. */
static int read_common(reader_t *reader, crm_slice_t name, crm_slice_t value)
{
    mcp_operation_t *operation = reader->operation;
    apr_size_t len;

    if (reader->tool->fields && crm_slice_is(name, "fields")) {
        value = names_of(value, reader->pool);
        if (crm_slice_type(value) != '[' && crm_slice_type(value) != 'n') {
            refuse(reader, "fields", "must be an array of names");
        }
        else if (value.len > FIELDS_MAX) {
            refuse(reader, "fields", "is too long");
        }
        operation->fields = value;
        return 1;
    }
    if (reader->tool->key && crm_slice_is(name, "idempotency_key")) {
        if (crm_slice_type(value) == '"') {
            operation->key = crm_slice_text(value, &len, reader->pool);
            if (strlen(operation->key) != len) {
                refuse(reader, "idempotency_key", "must not contain U+0000");
            }
        }
        else if (crm_slice_type(value) != 'n') {
            refuse(reader, "idempotency_key", "must be a string");
        }
        return 1;
    }
    return 0;
}

/* Add the member NAME with VALUE to the body, as they were sent. */
static void add_member(crm_buf_t *body, crm_slice_t name, crm_slice_t value)
{
    crm_buf_putc(body, body->len ? ',' : '{');
    crm_buf_add(body, name.text, name.len);
    crm_buf_putc(body, ':');
    crm_buf_add(body, value.text, value.len);
}

/* Return the type of TOOL's argument NAME, as its schema has it. Its text is NULL if
 * TOOL has no such argument. */
static crm_slice_t type_of(const mcp_tool_t *tool, const char *name)
{
    crm_slice_t schema = crm_json_slice(tool->entry, tool->entry_len);

    schema = crm_json_find(crm_json_find(schema, "inputSchema"), "properties");
    return crm_json_find(crm_json_find(schema, name), "type");
}

/* Return VALUE, the argument NAME; if it is the JSON of a list or object, as a text,
 * where READER's tool has one: that one. Some programs write all arguments of models as
 * texts. */
static crm_slice_t restored(reader_t *reader, crm_slice_t name,
                            crm_slice_t value)
{
    const char *text, *type;
    apr_size_t len, offset;

    if (crm_slice_type(value) != '"' || !strchr("[{", value.text[1])
        || name.len > 258 || reader->texts++ >= TEXTS_MAX) {
        return value;
    }
    type = value.text[1] == '[' ? "array" : "object";
    text = crm_slice_text(value, &len, reader->pool);
    if (!crm_slice_is(type_of(reader->tool, crm_slice_text(
                                  name, NULL, reader->pool)), type)
        || crm_json_check(&offset, text, len, reader->pool)) {
        return value;
    }
    return crm_json_slice(text, len);
}

static void read_argument(reader_t *reader, int has_body, crm_slice_t name,
                          crm_slice_t value)
{
    value = restored(reader, name, value);
    if (read_id(reader, name, value) || read_common(reader, name, value)) {
        return;
    }
    if (has_body) {
        add_member(&reader->operation->body, name, value);
    }
    else {
        read_param(reader, name.len > 258 ? "?"
                   : crm_slice_text(name, NULL, reader->pool), value);
    }
}

/* Lists have 10 rows and cursors unless they are asked for something else
 * (contract 21.3). */
static void add_defaults(mcp_operation_t *operation, const mcp_tool_t *tool,
                         crm_slice_t arguments)
{
    enum {SIZE, PAGE, CURSOR, ALL};
    static const char *const names[ALL + 1] = {
        "page_size", "page", "cursor", NULL
    };
    crm_slice_t found[ALL];

    if (!tool->pages && !tool->log) {
        return;
    }
    crm_json_find_all(found, arguments, names);
    if (!crm_slice_is_given(found[SIZE])) {
        add_param(operation, "page_size", MCP_ROWS, sizeof(MCP_ROWS) - 1);
    }
    if (tool->pages && !crm_slice_is_given(found[PAGE])
        && !crm_slice_is_given(found[CURSOR])) {
        add_param(operation, "cursor", "*", 1);
    }
}

/* Set OPERATION's path from its ids, which must all be there. */
static void set_path(reader_t *reader, const crm_operation_t *operation)
{
    const char *template = operation->path;
    const crm_arg_t *args = reader->operation->args;
    apr_size_t size = strlen(template) + 1;
    char *at;
    int count = 0;

    for (; count < CRM_ROUTE_ARGS && reader->tool->ids[count]; count++) {
        if (!args[count].text) {
            refuse(reader, reader->tool->ids[count], "is required");
        }
        size += args[count].len;
    }
    if (reader->error) {
        return;                 /* an id may be missing; nothing is asked */
    }
    reader->operation->path = at = apr_palloc(reader->pool, size);
    for (int i = 0; i < count; i++) {
        apr_size_t len = strcspn(template, "{");

        memcpy(at, template, len);
        memcpy(at + len, args[i].text, args[i].len);
        at += len + args[i].len;
        template = strchr(template, '}') + 1;
    }
    memcpy(at, template, strlen(template) + 1);
}

crm_error_t *mcp_arguments_read(mcp_operation_t *operation,
                                const mcp_tool_t *tool, crm_slice_t arguments,
                                apr_pool_t *pool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    int has_body = crm_kind_of(endpoint->operation)->has_body;
    reader_t reader = {.operation = operation, .tool = tool, .pool = pool};
    crm_slice_t name, value;
    crm_json_walk_t walk;

    memset(operation, 0, sizeof(*operation));
    operation->route = tool->route;
    operation->query.pool = pool;
    if (has_body) {
        crm_buf_init(&operation->body, arguments.len + 2, pool);
    }
    crm_json_walk(&walk, arguments, '{');
    while (crm_json_member(&name, &value, &walk)
           && operation->query.len <= QUERY_MAX) {
        read_argument(&reader, has_body, name, value);
    }
    add_defaults(operation, tool, arguments);
    set_path(&reader, endpoint->operation);
    if (has_body) {
        crm_buf_puts(&operation->body, operation->body.len ? "}" : "{}");
    }
    if (operation->query.len > QUERY_MAX) {
        refuse(&reader, "", "has too many arguments, or too long ones");
    }
    return reader.error;
}
