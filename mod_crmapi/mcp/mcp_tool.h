/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.h: tools: the operations of the API for models (contract 21.3) */
#ifndef MCP_TOOL_H
#define MCP_TOOL_H

#include "crm_endpoint.h"

#include "mcp_answer.h"

typedef struct mcp_tool_t mcp_tool_t;

/* A tool. */
struct mcp_tool_t {
    const char *name;           /* "contacts_list" */
    const crm_route_t *route;   /* of the operation */
    const char *ids[CRM_ROUTE_ARGS]; /* the names of its path's parameters */
    int write;                  /* a call is a write */
    int sequences;              /* requires a plan with sequences */
    int pages;                  /* a list with pages, by number or cursor */
    int log;                    /* a list by cursor only */
    int fields;                 /* the argument "fields" chooses fields of
                                   rows */
    int key;                    /* the argument "idempotency_key" is the
                                   Idempotency-Key */
    const void *data;           /* for SERVE */
    const char *label;          /* for logs: "mcp contacts_list" */
    const char *entry;          /* its JSON in tools/list */
    apr_size_t entry_len;
    /* Serve CALL, a call of TOOL with ARGUMENTS, an object or none. */
    crm_error_t *(*serve)(crm_call_t *call, const mcp_tool_t *tool,
                          crm_slice_t arguments);
};

/* Make all tools, in POOL: see crm_mcp_init(). */
crm_error_t *mcp_tools_init(apr_pool_t *pool);

/* Return the tool NAME, or NULL. */
const mcp_tool_t *mcp_tool_find(const char *name);

/* Return all tools (of mcp_tool_t), in the order of tools/list. */
const apr_array_header_t *mcp_tools(void);

#endif /* MCP_TOOL_H */
