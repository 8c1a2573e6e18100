/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_arguments.h: arguments of a tool as the parts of a request to the API */
#ifndef MCP_ARGUMENTS_H
#define MCP_ARGUMENTS_H

#include "mcp_tool.h"

/* The number of rows of a list if nobody asks for another one (contract 21.3). */
#define MCP_ROWS "10"

/* A request to an operation of the API. */
typedef struct mcp_operation_t {
    const crm_route_t *route;
    crm_arg_t args[CRM_ROUTE_ARGS]; /* the ids of its path */
    const char *path;           /* "/contacts/0190..." */
    crm_buf_t query;            /* ends with NUL; its data is NULL without one */
    crm_buf_t body;             /* its data is NULL without one */
    const char *key;            /* its Idempotency-Key, or NULL */
    crm_slice_t fields;         /* the argument "fields": an array, or none */
} mcp_operation_t;

/* Set OPERATION to a call of TOOL with ARGUMENTS, an object or none, in POOL.
 * The API checks them, except for what cannot be sent to it. Errors:
 * CRM_E_VALIDATION. */
crm_error_t *mcp_arguments_read(mcp_operation_t *operation,
                                const mcp_tool_t *tool, crm_slice_t arguments,
                                apr_pool_t *pool);

#endif /* MCP_ARGUMENTS_H */
