/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_header.h: the headers that repeat what is in a message (MCP 2026-07-28,
 * basic/transports/streamable-http, "Request Metadata") */
#ifndef MCP_HEADER_H
#define MCP_HEADER_H

#include "apr_pools.h"

/* Return, in POOL, the text that VALUE, a header's, stands for: itself, or what
 * "=?base64?...?=" encodes. NULL if that is not valid base64 of UTF-8 without
 * U+0000. */
const char *mcp_header_text(const char *value, apr_pool_t *pool);

/* Return NULL if the header NAME has the VALUE (NULL: it is missing) that
 * EXPECTED in the body asks for. Otherwise return what is wrong, in POOL. If
 * ENCODED, VALUE is read by mcp_header_text(). */
const char *mcp_header_check(const char *name, const char *value,
                             const char *expected, int encoded,
                             apr_pool_t *pool);

#endif /* MCP_HEADER_H */
