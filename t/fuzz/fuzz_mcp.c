/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp.c: JSON-RPC messages, and the arguments of tools in them */
/* libFuzzer: -max_len=16384 */
#include "fuzz.h"

#include "crm_api.h"
#include "crm_domain.h"
#include "crm_json_check.h"
#include "crm_query.h"
#include "mcp_arguments.h"
#include "mcp_fields.h"
#include "mcp_header.h"

/* Read ARGUMENTS as those of TOOL: what comes out is a query and a body that the
 * API can read. */
static void read_as(const mcp_tool_t *tool, crm_slice_t arguments,
                    apr_pool_t *pool)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    apr_array_header_t *params;
    mcp_operation_t operation;
    crm_error_t *error = mcp_arguments_read(&operation, tool, arguments, pool);
    apr_size_t offset;

    mcp_fields_check(&error, operation.fields, endpoint->resource, pool);
    must(!error || error->details->nelts);
    if (error) {
        return;
    }
    must(operation.path != NULL);
    must(!operation.query.data
         || strlen(operation.query.data) == operation.query.len);
    crm_query_parse(&params, operation.query.data, pool);
    must(!crm_kind_of(endpoint->operation)->has_body
         || !crm_json_check(&offset, operation.body.data, operation.body.len,
                            pool));
}

/* Read the parts of MESSAGE as the server does. */
static void read_parts(const mcp_message_t *message, apr_pool_t *pool)
{
    const apr_array_header_t *tools = mcp_tools();
    crm_slice_t arguments = message->arguments;
    const char *name = message->name;

    must(message->id.len <= MCP_ID_MAX);
    must(!name || strlen(name) <= MCP_NAME_MAX);
    if (name) {
        mcp_header_text(name, pool);
    }
    for (int i = 0; i < tools->nelts && crm_slice_type(arguments) == '{';
         i++) {
        read_as(&APR_ARRAY_IDX(tools, i, mcp_tool_t), arguments, pool);
    }
    if (message->params.text) {
        crm_buf_t out;
        apr_size_t offset;

        crm_buf_init(&out, 64, pool);
        mcp_fields_trim(&out, message->params.text, message->params.len,
                        crm_json_find(message->params, "fields"));
        must(!crm_json_check(&offset, out.data, out.len, pool));
    }
}

static void init(apr_pool_t *pool)
{
    must(!crm_api_init(&crm_domain, pool) && !crm_mcp_init(pool));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    const char *problem = NULL;
    mcp_message_t message;

    must(!mcp_message_read(&message, &problem, (const char *)data, size, pool)
         == !problem);
    if (!problem) {
        must(message.method != NULL);
        read_parts(&message, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
