/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.c: tools: the operations of the API for models (contract 21.3) */
#include "mcp_tool.h"

#include <string.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "crm_api.h"
#include "crm_array.h"
#include "crm_json.h"

#include "mcp_call.h"
#include "mcp_combined.h"
#include "mcp_schema.h"

/* Set once in each process before threads start, read-only afterwards. */
static apr_array_header_t *tools;       /* of mcp_tool_t */
static apr_hash_t *by_name;

/* ---- what the tables of the API do not say ------------------------------- */

/* What a tool may do (MCP 2026-07-28, schema, "ToolAnnotations"). */
enum {
    ADDS = 1,                   /* it destroys nothing that was there */
    REPEATS = 2,                /* a second call changes nothing more */
    SENDS = 4                   /* it reaches people outside */
};

/* An operation about which a model should know more than its summary. */
typedef struct note_t {
    const char *id;             /* the operation's */
    const char *name;           /* the tool's; NULL: name_of() */
    const char *more;           /* of its description; or NULL */
    int effects;                /* of a write; 0: those of its method */
} note_t;

/* Of an update with lists or objects. */
#define REPLACES "Lists and objects are replaced as a whole: send what shall" \
    " stay, too."

/* Of cards: models are asked for deals. */
#define CARD "A card is a deal, or what else goes through the stages of a" \
    " pipeline."

static const note_t notes[] = {
    {"getWorkspace", "workspace_get",
     "Call it first: time zone, currency, limits, scopes.", 0},
    {"findContactByEmail", "contacts_get_by_email", NULL, 0},
    {"listContacts", NULL, "To find one person use contacts_find.", 0},
    {"listEvents", NULL, "Oldest first; keep the last cursor.", 0},
    {"createContact", NULL, "It makes a second contact if the address is"
     " known: contacts_upsert does not.", 0},
    {"upsertContacts", NULL, "Matched by external_id, e-mail, then phone.", 0},
    {"updateContact", NULL, REPLACES, 0},
    {"updateCompany", NULL, REPLACES, 0},
    {"listPipelineCards", NULL, CARD, 0},
    {"createPipelineCard", NULL, CARD, 0},
    {"updatePipelineCard", NULL, REPLACES, 0},
    {"updateActivity", NULL, REPLACES, 0},
    {"mergeContact", NULL, "It cannot be undone.", REPEATS},
    {"eraseContact", NULL, "For a person who asks to be forgotten: contact,"
     " conversations, sequences. It cannot be undone.", REPEATS},
    {"createMessage", "conversations_reply",
     "It is sent to the person: write nothing that they should not read.",
     ADDS | SENDS},
    {"startSequence", NULL, "Unless it is approved automatically, a person"
     " reviews the messages before they are sent.", ADDS | SENDS},
    {"approveEnrollment", NULL, "Its messages will be sent.", ADDS | SENDS},
    {"stopEnrollment", NULL, NULL, REPEATS},
    {"addSuppression", "suppressions_add", "Nothing more is sent to it.",
     ADDS | REPEATS},
    {"listMessages", NULL, "To read a conversation use conversations_read.",
     0},
};

/* Return what is noted of OPERATION. */
static const note_t *note_of(const crm_operation_t *operation)
{
    static const note_t none;

    for (size_t i = 0; i < CRM_NELTS(notes); i++) {
        if (!strcmp(notes[i].id, operation->id)) {
            return &notes[i];
        }
    }
    return &none;
}

/* Return what a call of OPERATION, a write, does. */
static int effects_of(const crm_operation_t *operation)
{
    const note_t *note = note_of(operation);

    return note->effects ? note->effects
           : operation->kind == CRM_OP_CREATE ? ADDS
           : operation->kind == CRM_OP_UPDATE
             || operation->kind == CRM_OP_DELETE ? REPEATS : 0;
}

/* ---- names --------------------------------------------------------------- */

/* Return the verb for OPERATION, NULL if its path ends with one. */
static const char *verb_of(const crm_operation_t *operation)
{
    static const struct {
        crm_op_t kind;
        const char *verb;
    } verbs[] = {
        {CRM_OP_LIST, "list"}, {CRM_OP_LOG, "list"}, {CRM_OP_GET, "get"},
        {CRM_OP_CREATE, "create"}, {CRM_OP_UPDATE, "update"},
        {CRM_OP_DELETE, "delete"},
    };

    for (size_t i = 0; i < CRM_NELTS(verbs); i++) {
        if (verbs[i].kind == operation->kind) {
            return verbs[i].verb;
        }
    }
    return NULL;
}

/* Set TOOL's name and ids: "/pipelines/{id}/stages" and "list" make
 * "pipelines_stages_list". */
static void name_tool(mcp_tool_t *tool, const crm_operation_t *operation,
                      apr_pool_t *pool)
{
    const char *noted = note_of(operation)->name, *verb = verb_of(operation);
    char *last, *copy = apr_pstrdup(pool, operation->path), *name = NULL;
    int ids = 0;

    for (char *part = apr_strtok(copy, "/", &last); part;
         part = apr_strtok(NULL, "/", &last)) {
        if (*part == '{') {
            part[strlen(part) - 1] = '\0';
            tool->ids[ids++] = part + 1;
            continue;
        }
        name = name ? apr_pstrcat(pool, name, "_", part, NULL) : part;
    }
    name = apr_pstrcat(pool, name, verb ? "_" : "", verb, NULL);
    for (char *c = name; *c; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    tool->name = noted ? noted : name;
    tool->label = apr_pstrcat(pool, "mcp ", tool->name, NULL);
}

/* ---- entries of tools/list ----------------------------------------------- */

static void add_flag(json_object *object, const char *name, int is)
{
    json_object_object_add(object, name, json_object_new_boolean(is));
}

static json_object *annotations_of(const mcp_tool_t *tool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    json_object *made = json_object_new_object();
    int effects = effects_of(endpoint->operation);

    add_flag(made, "readOnlyHint", !tool->write);
    if (tool->write) {          /* the two mean nothing for others */
        add_flag(made, "destructiveHint", !(effects & ADDS));
        add_flag(made, "idempotentHint", (effects & REPEATS) != 0);
    }
    add_flag(made, "openWorldHint", tool->write && (effects & SENDS));
    return made;
}

/* Set TOOL's entry. */
static void describe(mcp_tool_t *tool, json_object *document,
                     json_object *operation, apr_pool_t *pool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    const char *more = note_of(endpoint->operation)->more;
    json_object *entry = json_object_new_object();

    crm_json_add_text(entry, "name", tool->name);
    crm_json_add_text(entry, "description",
                      apr_pstrcat(pool, endpoint->operation->summary,
                                  more ? ". " : "", more, NULL));
    json_object_object_add(entry, "inputSchema",
                           mcp_schema_input(document, operation, tool));
    json_object_object_add(entry, "outputSchema",
                           mcp_schema_output(document, operation, tool));
    json_object_object_add(entry, "annotations", annotations_of(tool));
    tool->entry = crm_json_end(entry, pool);
    tool->entry_len = strlen(tool->entry);
}

/* ---- the table ----------------------------------------------------------- */

/* Return whether OPERATION reads rows of its resource. */
static int has_rows(const crm_operation_t *operation)
{
    crm_op_t kind = operation->kind;

    return kind == CRM_OP_LIST || kind == CRM_OP_GET || kind == CRM_OP_LOG;
}

/* Add the tool that calls ROUTE. */
static crm_error_t *add_tool(const crm_route_t *route, json_object *document,
                             apr_pool_t *pool)
{
    const crm_endpoint_t *endpoint = route->data;
    const crm_operation_t *operation = endpoint->operation;
    mcp_tool_t *tool = apr_array_push(tools);
    json_object *described;

    memset(tool, 0, sizeof(*tool));
    tool->route = route;
    tool->write = endpoint->write;
    tool->sequences = operation->sequences;
    tool->pages = operation->kind == CRM_OP_LIST && !operation->whole;
    tool->log = operation->kind == CRM_OP_LOG;
    tool->fields = has_rows(operation);
    tool->serve = mcp_call_operation;
    name_tool(tool, operation, pool);
    described = mcp_schema_operation(document, tool);
    if (!described) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "CRM1008: the OpenAPI"
                              " document has no operation %s", operation->id);
    }
    tool->key = tool->write && !mcp_schema_has(document, described,
                                               "idempotency_key");
    describe(tool, document, described, pool);
    return NULL;
}

/* Add the tools of PATH's operations that respond with JSON. */
static crm_error_t *add_path(const crm_path_t *path, json_object *document,
                             apr_pool_t *pool)
{
    for (int i = 0; path->routes[i]; i++) {
        const crm_endpoint_t *endpoint = path->routes[i]->data;

        if (endpoint && !endpoint->operation->file) {
            CRM_ERR(add_tool(path->routes[i], document, pool));
        }
    }
    return NULL;
}

crm_error_t *mcp_tools_init(apr_pool_t *pool)
{
    const crm_router_t *router = crm_api_mount.router;
    json_object *document;
    apr_pool_t *scratch;
    apr_size_t len, offset;
    const char *text = crm_openapi_document(&len);

    tools = apr_array_make(pool, 64, sizeof(mcp_tool_t));
    by_name = apr_hash_make(pool);
    apr_pool_create(&scratch, pool);
    crm_json_parse(&document, &offset, text, len, scratch);
    for (int i = 0; i < router->nelts; i++) {
        CRM_ERR(add_path(&APR_ARRAY_IDX(router, i, crm_path_t), document,
                         pool));
    }
    apr_pool_destroy(scratch);
    CRM_ERR(mcp_combined_add(tools, pool));
    for (int i = 0; i < tools->nelts; i++) {
        mcp_tool_t *tool = &APR_ARRAY_IDX(tools, i, mcp_tool_t);

        apr_hash_set(by_name, tool->name, APR_HASH_KEY_STRING, tool);
    }
    return NULL;
}

const mcp_tool_t *mcp_tool_find(const char *name)
{
    return apr_hash_get(by_name, name, APR_HASH_KEY_STRING);
}

const apr_array_header_t *mcp_tools(void)
{
    return tools;
}
