/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_message.h: JSON-RPC messages of the Model Context Protocol */
#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include "apr_pools.h"

#include "crm_json_slice.h"

/* Codes of JSON-RPC 2.0, section 5.1, and of MCP 2026-07-28, basic/index,
 * "Error Codes". */
enum {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_BAD_VERSION = -32022
};

/* The largest id that is sent back, in bytes of JSON. */
#define MCP_ID_MAX 256

/* The largest name of a method, tool, prompt or resource, in bytes. */
#define MCP_NAME_MAX 1024

/* A request, or a notification, which has no id. The slices are parts of its
 * text. */
typedef struct mcp_message_t {
    crm_slice_t id;             /* as it was sent */
    const char *method;         /* NULL: it has none that can be told */
    crm_slice_t params;         /* an object, or none */
    const char *name, *uri;     /* of params, as mcp_short_text() has them */
    const char *asked;          /* the same of its protocolVersion */
    crm_slice_t arguments;      /* of params */
    crm_slice_t cursor;
    const char *version;        /* the protocol's, of params._meta, or NULL */
    crm_slice_t capabilities;   /* the client's, the same */
} mcp_message_t;

/* Read the LEN bytes at TEXT, the body of a request, into *MESSAGE, with strings
 * in POOL. Return 0, or the code of the error, with *PROBLEM_P set to what is
 * wrong. The id is set then as well, if it can be told. */
int mcp_message_read(mcp_message_t *message, const char **problem_p,
                     const char *text, apr_size_t len, apr_pool_t *pool);

/* Return the text of VALUE, in POOL, if it is a string of at most MCP_NAME_MAX
 * bytes without U+0000. Otherwise NULL. */
const char *mcp_short_text(crm_slice_t value, apr_pool_t *pool);

#endif /* MCP_MESSAGE_H */
