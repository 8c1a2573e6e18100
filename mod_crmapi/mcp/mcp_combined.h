/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_combined.h: tools that combine what an agent needs at once (contract
 * 21.3) */
#ifndef MCP_COMBINED_H
#define MCP_COMBINED_H

#include "mcp_tool.h"

/* Add the combined tools to TOOLS (of mcp_tool_t), which has those of all
 * operations, with strings in POOL. Errors: CRM_E_INTERNAL if an operation that
 * they use is not there. */
crm_error_t *mcp_combined_add(apr_array_header_t *tools, apr_pool_t *pool);

/* Add to OUT what TOOL, a combined one of several operations, has about ID: an
 * object. COUNT: of the rows of its lists. Errors: the API's. */
crm_error_t *mcp_combined_write(crm_buf_t *out, crm_call_t *call,
                                const mcp_tool_t *tool, crm_slice_t id,
                                const char *count);

#endif /* MCP_COMBINED_H */
