/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_message.c: JSON-RPC messages of the Model Context Protocol */
#include "mcp_message.h"

#include <string.h>

#include "crm_json_check.h"

/* The prefix of keys in _meta (MCP 2026-07-28, basic/index, "_meta"). */
#define PREFIX "io.modelcontextprotocol/"

/* The members that are read, of a message, of its params, and of their _meta. */
enum {VERSION, ID, METHOD, PARAMS, RESULT, ERROR, MEMBERS};
enum {NAME, URI, ARGUMENTS, CURSOR, ASKED, META, PARAM_MEMBERS};
enum {META_VERSION, META_CAPABILITIES, META_MEMBERS};

static const char *const members[MEMBERS + 1] = {
    "jsonrpc", "id", "method", "params", "result", "error", NULL
};
static const char *const param_members[PARAM_MEMBERS + 1] = {
    "name", "uri", "arguments", "cursor", "protocolVersion", "_meta", NULL
};
static const char *const meta_members[META_MEMBERS + 1] = {
    PREFIX "protocolVersion", PREFIX "clientCapabilities", NULL
};

const char *mcp_short_text(crm_slice_t value, apr_pool_t *pool)
{
    const char *text;
    apr_size_t len;

    if (crm_slice_type(value) != '"' || value.len > MCP_NAME_MAX + 2) {
        return NULL;
    }
    text = crm_slice_text(value, &len, pool);
    return strlen(text) == len ? text : NULL;
}

/* Return whether VALUE may be an id: a string or an integer, not null (MCP,
 * basic/index, "Requests"). */
static int is_id(crm_slice_t value)
{
    apr_size_t sign = crm_slice_type(value) == '-';

    if (value.len > MCP_ID_MAX) {
        return 0;
    }
    for (apr_size_t i = sign; i < value.len; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            return crm_slice_type(value) == '"';
        }
    }
    return 1;
}

/* Set MESSAGE's params and what is in them. Null is as good as nothing: programs in Go,
 * Java and C# write it for what is not set. Return 0 if they are no object. */
static int read_params(mcp_message_t *message, crm_slice_t params,
                       apr_pool_t *pool)
{
    crm_slice_t found[PARAM_MEMBERS], meta[META_MEMBERS];

    if (!crm_slice_is_given(params)) {
        return 1;
    }
    if (*params.text != '{') {
        return 0;
    }
    crm_json_find_all(found, params, param_members);
    crm_json_find_all(meta, found[META], meta_members);
    message->params = params;
    message->name = mcp_short_text(found[NAME], pool);
    message->uri = mcp_short_text(found[URI], pool);
    message->asked = mcp_short_text(found[ASKED], pool);
    if (crm_slice_is_given(found[ARGUMENTS])) {
        message->arguments = found[ARGUMENTS];
    }
    message->cursor = found[CURSOR];
    message->version = mcp_short_text(meta[META_VERSION], pool);
    message->capabilities = meta[META_CAPABILITIES];
    return 1;
}

/* Read VALUE, valid JSON, into *MESSAGE. Return NULL or what is wrong. */
static const char *read_message(mcp_message_t *message, crm_slice_t value,
                                apr_pool_t *pool)
{
    crm_slice_t found[MEMBERS];

    if (*value.text == '[') {
        return "Batches are not supported: send one message";
    }
    if (*value.text != '{') {
        return "The message must be an object";
    }
    crm_json_find_all(found, value, members);
    if (found[ID].text && !is_id(found[ID])) {
        return "The id must be an integer or a string, of at most 256 bytes";
    }
    message->id = found[ID];
    message->method = mcp_short_text(found[METHOD], pool);
    if (!crm_slice_is(found[VERSION], "2.0")) {
        return "The member \"jsonrpc\" must be \"2.0\"";
    }
    if (!message->method) {
        return found[RESULT].text || found[ERROR].text
               ? "Responses are not accepted"
               : "The method must be a string of at most 1024 bytes";
    }
    return read_params(message, found[PARAMS], pool) ? NULL
           : "The params must be an object";
}

int mcp_message_read(mcp_message_t *message, const char **problem_p,
                     const char *text, apr_size_t len, apr_pool_t *pool)
{
    apr_size_t offset;
    const char *rule = crm_json_check(&offset, text, len, pool);

    memset(message, 0, sizeof(*message));
    if (rule) {
        *problem_p = crm_json_problem(rule, offset, pool);
        return MCP_PARSE_ERROR;
    }
    *problem_p = read_message(message, crm_json_slice(text, len), pool);
    return *problem_p ? MCP_INVALID_REQUEST : 0;
}
