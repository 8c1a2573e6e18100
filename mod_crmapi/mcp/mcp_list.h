/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_list.h: lists of what the mount offers (tools, prompts, resources) */
#ifndef MCP_LIST_H
#define MCP_LIST_H

#include "mcp_rights.h"

/* How long a client may keep what does not depend on data, such as a list, in
 * seconds: a key's rights may change. */
#define MCP_LIFETIME 300

/* Write the members of a list for CALL, whose key has RIGHTS, to OUT. */
typedef void mcp_list_write_t(crm_buf_t *out, const crm_call_t *call,
                              const mcp_rights_t *rights);

/* Respond to CALL with the list NAME, a member of the result, whose one page
 * WRITE makes (MCP 2026-07-28, server/utilities/pagination). A cursor is refused.
 * Errors: those of mcp_rights_read(). */
crm_error_t *mcp_list(crm_call_t *call, const char *name,
                      mcp_list_write_t *write);

#endif /* MCP_LIST_H */
