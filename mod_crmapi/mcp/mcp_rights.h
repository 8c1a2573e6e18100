/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_rights.h: what the key of a call may do */
#ifndef MCP_RIGHTS_H
#define MCP_RIGHTS_H

#include "mcp_tool.h"

/* The rights of a key that may use the API. */
typedef struct mcp_rights_t {
    int write;
    int sequences;
} mcp_rights_t;

/* Set *RIGHTS to those of CALL's key, which the database is asked for: a revoked
 * key gets nothing (contract 3.2). Errors: a 401, and a 403 as the API has
 * it. */
crm_error_t *mcp_rights_read(mcp_rights_t *rights, crm_call_t *call);

/* Return NULL if CALL's key may call TOOL, otherwise the API's error. */
crm_error_t *mcp_rights_check(crm_call_t *call, const mcp_tool_t *tool);

#endif /* MCP_RIGHTS_H */
