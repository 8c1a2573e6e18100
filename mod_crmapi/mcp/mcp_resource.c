/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_resource.c: resources: what a client may read for a model (contract
 * 21.4) */
#include "mcp_resource.h"

#include <string.h>

#include "crm_openapi.h"

#include "mcp_arguments.h"
#include "mcp_combined.h"
#include "mcp_list.h"
#include "mcp_run.h"

/* How long a client may keep the workspace, in seconds: it changes now and then.
 * The document changes with the server only, as lists do. */
#define WORKSPACE_LIFETIME 60

/* The code of a resource that is not there, before revision 2026-07-28. */
#define EARLIER_NOT_FOUND (-32002)
#define NOT_FOUND "Resource not found"

#define TIMELINE_BEGIN "crmapi://contacts/"
#define TIMELINE_END "/timeline"

static const char resources[] =
    "{\"uri\":\"crmapi://workspace\",\"name\":\"workspace\","
    "\"title\":\"Workspace\",\"description\":\"The workspace of the key, and"
    " what the key may do\",\"mimeType\":\"application/json\"},"
    "{\"uri\":\"crmapi://openapi\",\"name\":\"openapi\",\"title\":\"OpenAPI"
    " document\",\"description\":\"All operations and fields of the"
    " API\",\"mimeType\":\"application/json\"}";

static const char templates[] =
    "{\"uriTemplate\":\"" TIMELINE_BEGIN "{id}"
    TIMELINE_END "\",\"name\":\"timeline\",\"title\":\"Timeline of a"
    " contact\",\"description\":\"A contact with its last conversations and"
    " activities\",\"mimeType\":\"application/json\"}";

/* A mcp_list_write_t. */
static void write_resources(crm_buf_t *out, const crm_call_t *call,
                            const mcp_rights_t *rights)
{
    (void)call;
    (void)rights;
    crm_buf_puts(out, resources);
}

/* A mcp_list_write_t. */
static void write_templates(crm_buf_t *out, const crm_call_t *call,
                            const mcp_rights_t *rights)
{
    (void)call;
    (void)rights;
    crm_buf_puts(out, templates);
}

crm_error_t *mcp_resources_list(crm_call_t *call)
{
    return mcp_list(call, "resources", write_resources);
}

crm_error_t *mcp_resources_templates(crm_call_t *call)
{
    return mcp_list(call, "resourceTemplates", write_templates);
}

/* Respond to CALL, which reads URI, with the LEN bytes of JSON at TEXT, which may
 * be kept for LIFETIME seconds. */
static void answer_text(crm_call_t *call, const char *uri, const char *text,
                        apr_size_t len, int lifetime)
{
    crm_buf_t out;

    crm_buf_init(&out, len + len / 4 + 512, call->pool);
    mcp_begin_result(&out, mcp_of(call));
    mcp_add_lifetime(&out, mcp_of(call), lifetime);
    crm_buf_puts(&out, "\"contents\":[{\"uri\":");
    crm_buf_json_text(&out, uri);
    crm_buf_puts(&out, ",\"mimeType\":\"application/json\",\"text\":");
    crm_buf_json_string(&out, text, len);
    crm_buf_puts(&out, "}]");
    mcp_end_result(&out);
    call->response->body = out;
    call->response->status = 200;
}

/* Respond to CALL that there is no resource URI: MESSAGE. */
static crm_error_t *answer_missing(crm_call_t *call, const char *uri,
                                   const char *message)
{
    crm_buf_t data;

    crm_buf_init(&data, 256, call->pool);
    crm_buf_puts(&data, "{\"uri\":");
    crm_buf_json_text(&data, uri);
    crm_buf_puts(&data, "}");
    crm_buf_putc(&data, '\0');
    mcp_answer_error(call, 200, mcp_of(call)->modern ? MCP_INVALID_PARAMS
                     : EARLIER_NOT_FOUND, message, data.data);
    return NULL;
}

static crm_error_t *read_openapi(crm_call_t *call, const char *uri)
{
    mcp_rights_t rights;
    crm_buf_t text;

    CRM_ERR(mcp_rights_read(&rights, call));
    crm_buf_init(&text, 524288, call->pool);
    crm_openapi_write(&text, call->request);
    answer_text(call, uri, text.data, text.len, MCP_LIFETIME);
    return NULL;
}

static crm_error_t *read_workspace(crm_call_t *call, const char *uri)
{
    const mcp_tool_t *tool = mcp_tool_find("workspace_get");
    crm_slice_t none = {NULL, 0}, data;
    mcp_operation_t operation;

    CRM_ERR(mcp_arguments_read(&operation, tool, none, call->pool));
    CRM_ERR(mcp_run(call, &operation));
    data = crm_json_find(crm_json_slice(call->response->body.data,
                                        call->response->body.len), "data");
    answer_text(call, uri, data.text, data.len, WORKSPACE_LIFETIME);
    return NULL;
}

/* Return, in POOL, the id of a contact in URI as a JSON string. Its text is NULL
 * if URI is no timeline. */
static crm_slice_t contact_of(const char *uri, apr_pool_t *pool)
{
    apr_size_t first = sizeof(TIMELINE_BEGIN) - 1;
    apr_size_t last = sizeof(TIMELINE_END) - 1, len = strlen(uri);
    crm_slice_t none = {NULL, 0};
    crm_buf_t id;

    if (len < first + last || strncmp(uri, TIMELINE_BEGIN, first)
        || strcmp(uri + len - last, TIMELINE_END)) {
        return none;
    }
    crm_buf_init(&id, 64, pool);
    crm_buf_json_string(&id, uri + first, len - first - last);
    return crm_json_slice(id.data, id.len);
}

static crm_error_t *read_timeline(crm_call_t *call, const char *uri,
                                  crm_slice_t id)
{
    const mcp_tool_t *tool = mcp_tool_find("contacts_timeline");
    crm_error_t *error;
    crm_buf_t out;

    crm_buf_init(&out, 16384, call->pool);
    error = mcp_combined_write(&out, call, tool, id, MCP_ROWS);
    if (error && error->code == CRM_E_NOT_FOUND) {
        return answer_missing(call, uri, NOT_FOUND);
    }
    if (error && error->code == CRM_E_GONE) {   /* it says where the contact is */
        return answer_missing(call, uri, error->message);
    }
    CRM_ERR(error);
    answer_text(call, uri, out.data, out.len, 0);
    return NULL;
}

crm_error_t *mcp_resources_read(crm_call_t *call)
{
    const char *uri = mcp_of(call)->message.uri;
    crm_slice_t id = contact_of(uri ? uri : "", call->pool);
    mcp_rights_t rights;

    call->response->route = "mcp resources/read";
    if (id.text) {
        return read_timeline(call, uri, id);
    }
    if (uri && !strcmp(uri, "crmapi://workspace")) {
        return read_workspace(call, uri);
    }
    if (uri && !strcmp(uri, "crmapi://openapi")) {
        return read_openapi(call, uri);
    }
    CRM_ERR(mcp_rights_read(&rights, call));
    if (!uri) {
        mcp_answer_error(call, 200, MCP_INVALID_PARAMS, "The uri of the resource"
                         " must be a string", NULL);
        return NULL;
    }
    return answer_missing(call, uri, NOT_FOUND);
}
