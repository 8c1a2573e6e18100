/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_call.c: calls of tools, as operations of the API */
#include "mcp_call.h"

#include "mcp_fields.h"
#include "mcp_rights.h"
#include "mcp_run.h"

/* Respond to CALL with what OPERATION has put into the body of the response. */
static void answer(crm_call_t *call, const mcp_operation_t *operation)
{
    crm_buf_t *body = &call->response->body, trimmed;

    if (call->response->status == 204) {
        /* the API has no body: what was deleted, as its events say it */
        crm_buf_puts(body, "{\"data\":{\"id\":");
        crm_buf_json_string(body, operation->args[0].text,
                            operation->args[0].len);
        crm_buf_puts(body, "}}");
    }
    if (crm_slice_type(operation->fields) == '[') {
        crm_buf_init(&trimmed, body->len, call->pool);
        mcp_fields_trim(&trimmed, body->data, body->len, operation->fields);
        body = &trimmed;
    }
    mcp_answer_data(call, body->data, body->len);
}

/* Refuse CALL with ERROR, a 422 that the API was not asked for: a key that is
 * revoked or lacks the scope comes first (contract 2). */
static crm_error_t *refuse(crm_call_t *call, const mcp_tool_t *tool,
                           crm_error_t *error)
{
    crm_error_t *first = mcp_rights_check(call, tool);

    return mcp_answer_failure(call, first ? first : error);
}

crm_error_t *mcp_call_operation(crm_call_t *call, const mcp_tool_t *tool,
                                crm_slice_t arguments)
{
    const crm_endpoint_t *endpoint = tool->route->data;
    mcp_operation_t operation;
    crm_error_t *error = mcp_arguments_read(&operation, tool, arguments,
                                            call->pool);

    mcp_fields_check(&error, operation.fields, endpoint->resource,
                     call->pool);
    if (error) {
        return refuse(call, tool, error);
    }
    error = mcp_run(call, &operation);
    if (error) {
        return mcp_answer_failure(call, error);
    }
    answer(call, &operation);
    return NULL;
}
