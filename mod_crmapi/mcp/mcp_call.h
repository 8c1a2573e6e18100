/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_call.h: calls of tools, as operations of the API */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include "mcp_tool.h"

/* An mcp_tool_t.serve of a tool that is one operation. */
crm_error_t *mcp_call_operation(crm_call_t *call, const mcp_tool_t *tool,
                                crm_slice_t arguments);

#endif /* MCP_CALL_H */
