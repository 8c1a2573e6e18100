/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_list.c: lists of what the mount offers */
#include "mcp_list.h"

/* Refuse the cursor of CALL, if it has one. Return whether it has. */
static int refuse_cursor(crm_call_t *call)
{
    if (!crm_slice_is_given(mcp_of(call)->message.cursor)) {
        return 0;
    }
    mcp_answer_error(call, 200, MCP_INVALID_PARAMS, "Unknown cursor: the list"
                     " has one page", NULL);
    return 1;
}

crm_error_t *mcp_list(crm_call_t *call, const char *name,
                      mcp_list_write_t *write)
{
    crm_buf_t *out = &call->response->body;
    mcp_rights_t rights;

    CRM_ERR(mcp_rights_read(&rights, call));
    if (refuse_cursor(call)) {
        return NULL;
    }
    mcp_begin_result(out, mcp_of(call));
    mcp_add_lifetime(out, mcp_of(call), MCP_LIFETIME);
    crm_buf_printf(out, "\"%s\":[", name);
    write(out, call, &rights);
    crm_buf_putc(out, ']');
    mcp_end_result(out);
    return NULL;
}
