/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_message.c: JSON-RPC messages of the Model Context Protocol */
#include "mcp_message.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json.h"

/* The key of a request's version in _meta (MCP 2026-07-28, basic/index,
 * "_meta"). */
#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

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

/* Set MESSAGE's params and what is in them. Return 0 if they are no object. */
static int read_params(mcp_message_t *message, crm_slice_t params,
                       apr_pool_t *pool)
{
    if (!params.text) {
        return 1;
    }
    if (*params.text != '{') {
        return 0;
    }
    message->params = params;
    message->meta = crm_json_find(params, "_meta");
    if (crm_slice_type(message->meta) != '{') {
        message->meta.text = NULL;
    }
    message->version = mcp_short_text(crm_json_find(message->meta, VERSION_KEY),
                                  pool);
    return 1;
}

/* The members of a message that matter. */
typedef struct parts_t {
    crm_slice_t version, id, method, params, other;
} parts_t;

/* Set PARTS to those of the object VALUE. OTHER is a member of a response. */
static void find_parts(parts_t *parts, crm_slice_t value)
{
    crm_json_walk_t walk;
    crm_slice_t name, found;

    memset(parts, 0, sizeof(*parts));
    crm_json_walk(&walk, value, '{');
    while (crm_json_member(&name, &found, &walk)) {
        crm_slice_t *into = crm_slice_is(name, "jsonrpc") ? &parts->version
                            : crm_slice_is(name, "id") ? &parts->id
                            : crm_slice_is(name, "method") ? &parts->method
                            : crm_slice_is(name, "params") ? &parts->params
                            : crm_slice_is(name, "result")
                              || crm_slice_is(name, "error") ? &parts->other
                            : NULL;

        if (into) {
            *into = found;
        }
    }
}

/* Read VALUE, valid JSON, into *MESSAGE. Return NULL or what is wrong. */
static const char *read_message(mcp_message_t *message, crm_slice_t value,
                                apr_pool_t *pool)
{
    parts_t parts;

    if (*value.text == '[') {
        return "Batches are not supported: send one message";
    }
    if (*value.text != '{') {
        return "The message must be an object";
    }
    find_parts(&parts, value);
    if (parts.id.text && !is_id(parts.id)) {
        return "The id must be an integer or a string, of at most 256 bytes";
    }
    message->id = parts.id;
    message->method = mcp_short_text(parts.method, pool);
    if (!crm_slice_is(parts.version, "2.0")) {
        return "The member \"jsonrpc\" must be \"2.0\"";
    }
    if (!message->method) {
        return parts.other.text ? "Responses are not accepted"
               : "The method must be a string of at most 1024 bytes";
    }
    return read_params(message, parts.params, pool) ? NULL
           : "The params must be an object";
}

int mcp_message_read(mcp_message_t *message, const char **problem_p,
                     const char *text, apr_size_t len, apr_pool_t *pool)
{
    apr_size_t offset;
    const char *rule = crm_json_check(&offset, text, len, pool);

    memset(message, 0, sizeof(*message));
    if (rule) {
        *problem_p = apr_psprintf(pool, "The body is not valid JSON: %s at byte"
                                  " %" APR_SIZE_T_FMT, rule, offset);
        return MCP_PARSE_ERROR;
    }
    *problem_p = read_message(message, crm_json_slice(text, len), pool);
    return *problem_p ? MCP_INVALID_REQUEST : 0;
}

const char *mcp_message_text(const mcp_message_t *message, const char *name,
                             apr_pool_t *pool)
{
    return mcp_short_text(crm_json_find(message->params, name), pool);
}
