/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_answer.c: answers to a client as JSON-RPC */
#include "mcp_answer.h"

#include "apr_strings.h"

/* Who answers, in each result (MCP 2026-07-28, basic/index, "_meta"). */
#define IDENTITY \
    "\"resultType\":\"complete\",\"_meta\":{" \
    "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"mod_crmapi\"," \
    "\"version\":\"" CRM_VERSION "\"}},"

/* Begin a response to the request MCP (NULL: it is unknown). An id that could not
 * be read is left out, or null as JSON-RPC and earlier revisions have it. */
static void begin(crm_buf_t *out, const mcp_t *mcp)
{
    crm_buf_puts(out, "{\"jsonrpc\":\"2.0\",");
    if (mcp && mcp->message.id.text) {
        crm_buf_puts(out, "\"id\":");
        crm_buf_add(out, mcp->message.id.text, mcp->message.id.len);
        crm_buf_putc(out, ',');
    }
}

void mcp_begin_result(crm_buf_t *out, const mcp_t *mcp)
{
    begin(out, mcp);
    crm_buf_puts(out, "\"result\":{");
    if (mcp->modern) {
        crm_buf_puts(out, IDENTITY);
    }
}

void mcp_end_result(crm_buf_t *out)
{
    crm_buf_puts(out, "}}");
}

void mcp_add_lifetime(crm_buf_t *out, const mcp_t *mcp, int seconds)
{
    if (mcp->modern) {
        crm_buf_printf(out, "\"ttlMs\":%d,\"cacheScope\":\"private\",",
                       seconds * 1000);
    }
}

void mcp_answer_error(crm_call_t *call, int status, int code,
                      const char *message, const char *data)
{
    crm_buf_t *out = &call->response->body;

    call->response->status = status;
    out->len = 0;
    begin(out, mcp_of(call));
    crm_buf_printf(out, "\"error\":{\"code\":%d,\"message\":", code);
    crm_buf_json_text(out, message);
    if (data) {
        crm_buf_puts(out, ",\"data\":");
        crm_buf_puts(out, data);
    }
    crm_buf_puts(out, "}}");
}

/* The code of an error of HTTP is its status: the codes below -32000 are those of
 * the protocol (MCP 2026-07-28, basic/index, "Error Codes"). */
void mcp_show_error(crm_call_t *call, const crm_error_t *error)
{
    const crm_code_info_t *info = crm_code_info(error->code);
    const char *data = error->retry_after
        ? apr_psprintf(call->pool, "{\"code\":\"%s\",\"retry_after\":%d}",
                       info->code, error->retry_after)
        : apr_psprintf(call->pool, "{\"code\":\"%s\"}", info->code);

    mcp_answer_error(call, info->status,
                     info->status >= 500 ? MCP_INTERNAL : info->status,
                     error->message, data);
}
