/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_combined.c: tools that combine what an agent needs at once (contract
 * 21.3) */
#include "mcp_combined.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_near.h"
#include "crm_number.h"
#include "crm_type.h"

#include "mcp_arguments.h"
#include "mcp_fields.h"
#include "mcp_rights.h"
#include "mcp_run.h"

/* ---- the tables ---------------------------------------------------------- */

/* A part of a result: what an operation on the same id responds with. */
typedef struct part_t {
    const char *member;         /* its name in the result */
    const char *operation;      /* the operation's id */
    const char *query;          /* JSON: arguments of a list, or NULL */
    const char *fields;         /* JSON: the fields that are shown; NULL: all */
    int reversed;               /* rows in the reverse order of the list */
    const char *id;             /* the argument that is the id; NULL: id */
} part_t;

/* A tool. OPERATION has its rows; NULL: it has PARTS. */
typedef struct combined_t {
    const char *name;
    const char *description;
    const char *input;          /* the schema of its arguments */
    const char *output;         /* the properties of a result's "data" */
    const char *operation;
    const part_t *parts;        /* ended by one without a member */
    const char *fields;         /* as PART_T's, unless they are chosen */
} combined_t;

#define ID_SCHEMA(name) \
    "\"" name "\":{\"type\":\"string\"}"
#define TEXT_SCHEMA(name, doc) \
    "\"" name "\":{\"type\":\"string\",\"description\":\"" doc "\"}"
#define COUNT_SCHEMA(name, doc) \
    "\"" name "\":{\"type\":\"integer\",\"description\":\"" doc "\"}"
#define OBJECT(members, required) \
    "{\"type\":\"object\",\"properties\":{" members "}," required \
    "\"additionalProperties\":false}"

static const part_t conversation_parts[] = {
    {.member = "conversation", .operation = "getConversation"},
    {.member = "messages", .operation = "listMessages",
     .query = "\"order\":\"desc\",\"include\":\"metadata\"",
     .fields = "[\"role\",\"content\",\"status\",\"created_at\",\"metadata\"]",
     .reversed = 1},
    {.member = NULL}
};

static const part_t timeline_parts[] = {
    {.member = "contact", .operation = "getContact"},
    {.member = "conversations", .operation = "listContactConversations",
     .query = "\"sort\":\"last_message_at\",\"order\":\"desc\","
              "\"include\":\"subject,unanswered\"",
     .fields = "[\"type\",\"active\",\"human_takeover\",\"subject\","
               "\"unanswered\",\"last_message\",\"last_message_at\","
               "\"created_at\"]"},
    {.member = "cards", .operation = "listPipelineCards",
     .query = "\"sort\":\"updated_at\",\"order\":\"desc\"",
     .fields = "[\"title\",\"description\",\"pipeline_stage_id\",\"tags\","
               "\"updated_at\"]",
     .id = "contact_id"},
    {.member = "activities", .operation = "listContactActivities",
     .query = "\"order\":\"desc\"",
     .fields = "[\"activity_type\",\"title\",\"description\",\"due_date\","
               "\"completed_at\",\"created_at\"]"},
    {.member = NULL}
};

static const combined_t combined[] = {
    {.name = "contacts_find",
     .description = "Find a person by any of: a text in name, address, number"
                    " or company; an exact e-mail, phone number or"
                    " external_id",
     .input = OBJECT(TEXT_SCHEMA("search", "part of a name, an address, a"
                                 " number or a company") ","
                     TEXT_SCHEMA("email", "whole address") ","
                     TEXT_SCHEMA("phone", "whole number, in any spelling") ","
                     "\"external_id\":{\"type\":\"string\"},"
                     "\"page_size\":{\"type\":\"integer\"},"
                     "\"cursor\":{\"type\":\"string\"},"
                     "\"fields\":{\"type\":\"array\",\"items\":{\"type\":"
                     "\"string\"}}", ""),
     .output = "\"data\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
               "\"pagination\":{\"type\":\"object\"}",
     .operation = "listContacts",
     .fields = "[\"first_name\",\"last_name\",\"emails\",\"phone_numbers\","
               "\"company\",\"company_id\",\"job_title\",\"tags\","
               "\"contact_type\",\"external_id\",\"bot_id\","
               "\"last_contacted_at\"]"},
    {.name = "conversations_read",
     .description = "Read a conversation with its last messages, the oldest of"
                    " them first",
     .input = OBJECT(ID_SCHEMA("id") "," COUNT_SCHEMA("messages", "how many, 1"
                     " to 100; by default 10"), "\"required\":[\"id\"],"),
     .output = "\"data\":{\"type\":\"object\",\"properties\":{"
               "\"conversation\":{\"type\":\"object\"},\"messages\":"
               "{\"type\":\"array\"}}}",
     .parts = conversation_parts},
    {.name = "contacts_timeline",
     .description = "Read a contact with its last conversations, cards (deals)"
                    " and activities, latest first",
     .input = OBJECT(ID_SCHEMA("id") "," COUNT_SCHEMA("rows", "how many of"
                     " each, 1 to 100; by default 10"),
                     "\"required\":[\"id\"],"),
     .output = "\"data\":{\"type\":\"object\",\"properties\":{\"contact\":"
               "{\"type\":\"object\"},\"conversations\":{\"type\":\"array\"},"
               "\"cards\":{\"type\":\"array\"},\"activities\":{\"type\":\"array\"}}}",
     .parts = timeline_parts},
};

/* ---- the parts ----------------------------------------------------------- */

static crm_slice_t slice_of(const char *text)
{
    return crm_json_slice(text, strlen(text));
}

/* Return the tool of the operation ID. */
static const mcp_tool_t *tool_of(const apr_array_header_t *tools,
                                 const char *id)
{
    for (int i = 0; i < tools->nelts; i++) {
        const mcp_tool_t *tool = &APR_ARRAY_IDX(tools, i, mcp_tool_t);
        const crm_endpoint_t *endpoint = tool->route->data;

        if (!strcmp(endpoint->operation->id, id)) {
            return tool;
        }
    }
    return NULL;
}

/* Add the items of the array VALUE to OUT in reverse order. */
static void add_reversed(crm_buf_t *out, crm_slice_t value, apr_pool_t *pool)
{
    apr_array_header_t *items = apr_array_make(pool, 16, sizeof(crm_slice_t));
    crm_json_walk_t walk;
    crm_slice_t item;

    crm_json_walk(&walk, value, '[');
    while (crm_json_item(&item, &walk)) {
        APR_ARRAY_PUSH(items, crm_slice_t) = item;
    }
    crm_buf_putc(out, '[');
    for (int i = items->nelts; i-- > 0; ) {
        item = APR_ARRAY_IDX(items, i, crm_slice_t);
        crm_buf_add(out, item.text, item.len);
        crm_buf_puts(out, i ? "," : "");
    }
    crm_buf_putc(out, ']');
}

/* Add to OUT the data of the response to PART in BODY. */
static void add_data(crm_buf_t *out, const part_t *part, const crm_buf_t *body)
{
    crm_buf_t trimmed = *body;
    crm_slice_t data;

    if (part->fields) {
        crm_buf_init(&trimmed, body->len, out->pool);
        mcp_fields_trim(&trimmed, body->data, body->len,
                        slice_of(part->fields));
    }
    data = crm_json_find(crm_json_slice(trimmed.data, trimmed.len), "data");
    if (part->reversed) {
        add_reversed(out, data, out->pool);
    }
    else {
        crm_buf_add(out, data.text, data.len);
    }
}

/* Run PART about ID, and add its member to OUT. */
static crm_error_t *add_part(crm_buf_t *out, crm_call_t *call,
                             const part_t *part, crm_slice_t id,
                             const char *count)
{
    const mcp_tool_t *tool = tool_of(mcp_tools(), part->operation);
    crm_slice_t arguments = slice_of(apr_pstrcat(
        call->pool, "{\"", part->id ? part->id : "id", "\":",
        apr_pstrmemdup(call->pool, id.text, id.len),
        part->query ? ",\"page\":1,\"page_size\":" : "",
        part->query ? count : "", part->query ? "," : "",
        part->query ? part->query : "", "}", NULL));
    mcp_operation_t operation;

    CRM_ERR(mcp_arguments_read(&operation, tool, arguments, call->pool));
    call->response->body.len = 0;
    CRM_ERR(mcp_run(call, &operation));
    crm_buf_printf(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",",
                   part->member);
    add_data(out, part, &call->response->body);
    return NULL;
}

crm_error_t *mcp_combined_write(crm_buf_t *out, crm_call_t *call,
                                const mcp_tool_t *tool, crm_slice_t id,
                                const char *count)
{
    const part_t *part = ((const combined_t *)tool->data)->parts;

    crm_buf_putc(out, '{');
    for (; part->member; part++) {
        CRM_ERR(add_part(out, call, part, id, count));
    }
    crm_buf_putc(out, '}');
    return NULL;
}

/* Add to *ERROR_P, in POOL, the first of ARGUMENTS that is none of NAMES, which
 * NULL ends. */
static void check_names(crm_error_t **error_p, crm_slice_t arguments,
                        const char *const *names, apr_pool_t *pool)
{
    crm_slice_t name, value;
    crm_json_walk_t walk;

    crm_json_walk(&walk, arguments, '{');
    while (crm_json_member(&name, &value, &walk)) {
        const char *const *one = names;

        while (*one && !crm_slice_is(name, *one)) {
            one++;
        }
        if (!*one) {
            const char *text = name.len > 258 ? "?"
                               : crm_slice_text(name, NULL, pool);

            crm_error_detail(error_p, text, crm_near_ask(
                                 "unknown argument",
                                 crm_field_near(text, NULL, names), pool), pool);
            return;
        }
    }
}

/* Add to *ERROR_P, in POOL, what is wrong with ARGUMENTS: they may be "id", which
 * must be there, and the number COUNT. */
static void check_parts(crm_error_t **error_p, crm_slice_t arguments,
                        const char *count, apr_pool_t *pool)
{
    const char *const names[] = {"id", count, NULL};
    crm_slice_t id = crm_json_find(arguments, "id");

    if (crm_slice_type(id) != '"') {
        crm_error_detail(error_p, "id", id.text ? "must be a string"
                         : "is required", pool);
    }
    check_names(error_p, arguments, names, pool);
}

/* Return COUNT, how many rows are wanted (3.0 is 3), in POOL; the usual number if it
 * is not given; NULL if it is no integer from 1 to 100. */
static const char *read_count(crm_slice_t count, apr_pool_t *pool)
{
    apr_int64_t number;

    if (!count.text || *count.text == 'n') {
        return MCP_ROWS;
    }
    return strchr("-0123456789", *count.text)
           && !crm_number_parse_integer(&number, apr_pstrmemdup(
                                            pool, count.text, count.len))
           && number >= 1 && number <= 100
           ? apr_itoa(pool, (int)number) : NULL;
}

/* An mcp_tool_t.serve of a tool that has parts. */
static crm_error_t *serve_parts(crm_call_t *call, const mcp_tool_t *tool,
                                crm_slice_t arguments)
{
    const char *name = tool->data == &combined[1] ? "messages" : "rows";
    const char *count = read_count(crm_json_find(arguments, name), call->pool);
    crm_error_t *error = NULL, *first;
    crm_buf_t out;

    check_parts(&error, arguments, name, call->pool);
    if (!count) {
        crm_error_detail(&error, name, "must be an integer from 1 to 100",
                         call->pool);
    }
    if (error) {
        first = mcp_rights_check(call, tool);
        return mcp_answer_failure(call, first ? first : error);
    }
    crm_buf_init(&out, 16384, call->pool);
    crm_buf_puts(&out, "{\"data\":");
    error = mcp_combined_write(&out, call, tool,
                               crm_json_find(arguments, "id"), count);
    if (error) {
        return mcp_answer_failure(call, error);
    }
    crm_buf_putc(&out, '}');
    mcp_answer_data(call, out.data, out.len);
    return NULL;
}

/* ---- contacts_find ------------------------------------------------------- */

/* Return whether ARGUMENTS say whom to find: blanks find anybody. */
static int says_whom(crm_slice_t arguments, apr_pool_t *scratch_pool)
{
    static const char *const names[] = {
        "search", "email", "phone", "external_id"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        crm_slice_t value = crm_json_find(arguments, names[i]);

        if (value.text && (crm_slice_type(value) == '"'
                           ? crm_text_shows(crm_slice_text(value, NULL,
                                                           scratch_pool))
                           : *value.text != 'n')) {
            return 1;
        }
    }
    return 0;
}

/* Return, in POOL, ARGUMENTS with FIELDS, unless they choose fields. */
static crm_slice_t with_fields(crm_slice_t arguments, const char *fields,
                               apr_pool_t *pool)
{
    crm_json_walk_t walk;
    crm_slice_t name, value;
    crm_buf_t with;

    if (crm_slice_type(crm_json_find(arguments, "fields")) == '[') {
        return arguments;
    }
    crm_buf_init(&with, arguments.len + 256, pool);
    crm_buf_printf(&with, "{\"fields\":%s", fields);
    crm_json_walk(&walk, arguments, '{');
    while (crm_json_member(&name, &value, &walk)) {
        if (*value.text != 'n') {
            crm_buf_putc(&with, ',');
            crm_buf_add(&with, name.text, name.len);
            crm_buf_putc(&with, ':');
            crm_buf_add(&with, value.text, value.len);
        }
    }
    crm_buf_putc(&with, '}');
    return crm_json_slice(with.data, with.len);
}

/* An mcp_tool_t.serve of contacts_find: a list with the fields that tell people
 * apart. */
static crm_error_t *serve_find(crm_call_t *call, const mcp_tool_t *tool,
                               crm_slice_t arguments)
{
    static const char *const names[] = {
        "search", "email", "phone", "external_id", "page_size", "cursor",
        "fields", NULL
    };
    const mcp_tool_t *list = mcp_tool_find("contacts_list");
    crm_error_t *error = NULL, *first;

    if (!says_whom(arguments, call->pool)) {
        crm_error_detail(&error, "", "search, email, phone or external_id is"
                         " required", call->pool);
    }
    check_names(&error, arguments, names, call->pool);
    if (error) {
        first = mcp_rights_check(call, tool);
        return mcp_answer_failure(call, first ? first : error);
    }
    return list->serve(call, list, with_fields(arguments, ((const combined_t *)
                                               tool->data)->fields,
                                               call->pool));
}

/* ---- the tools ----------------------------------------------------------- */

/* Return whether there is OF, a tool (NULL: none), and its rows show FIELDS (NULL:
 * all). */
static int shows(const mcp_tool_t *of, const char *fields, apr_pool_t *pool)
{
    const crm_endpoint_t *endpoint = of ? of->route->data : NULL;
    crm_error_t *error = NULL;

    if (of && fields) {
        mcp_fields_check(&error, slice_of(fields), endpoint->resource, pool);
    }
    return of && !error;
}

/* Add ONE to TOOLS. */
static crm_error_t *add_tool(apr_array_header_t *tools, const combined_t *one,
                             apr_pool_t *pool)
{
    const mcp_tool_t *of = tool_of(tools, one->operation ? one->operation
                                   : one->parts[0].operation);
    const crm_route_t *route = shows(of, one->fields, pool) ? of->route : NULL;
    mcp_tool_t *tool;

    for (const part_t *part = one->parts; part && part->member; part++) {
        route = shows(tool_of(tools, part->operation), part->fields, pool)
                ? route : NULL;
    }
    if (!route) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "CRM1008: the tool %s lacks"
                              " an operation or a field", one->name);
    }
    tool = apr_array_push(tools);
    memset(tool, 0, sizeof(*tool));
    tool->name = one->name;
    tool->route = route;
    tool->data = one;
    tool->serve = one->parts ? serve_parts : serve_find;
    tool->label = apr_pstrcat(pool, "mcp ", one->name, NULL);
    tool->entry = apr_pstrcat(
        pool, "{\"name\":\"", one->name, "\",\"description\":\"",
        one->description, "\",\"inputSchema\":", one->input,
        ",\"outputSchema\":{\"type\":\"object\",\"properties\":{", one->output,
        "},\"required\":[\"data\"]},\"annotations\":{\"readOnlyHint\":true,"
        "\"openWorldHint\":false}}", NULL);
    tool->entry_len = strlen(tool->entry);
    return NULL;
}

crm_error_t *mcp_combined_add(apr_array_header_t *tools, apr_pool_t *pool)
{
    for (size_t i = 0; i < CRM_NELTS(combined); i++) {
        CRM_ERR(add_tool(tools, &combined[i], pool));
    }
    return NULL;
}
