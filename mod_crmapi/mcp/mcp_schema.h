/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_schema.h: the schemas of a tool, from those of its operation in the OpenAPI
 * document */
#ifndef MCP_SCHEMA_H
#define MCP_SCHEMA_H

#include <json-c/json.h>

#include "mcp_tool.h"

/* Return the operation of DOCUMENT, the OpenAPI document, that TOOL calls, or
 * NULL. */
json_object *mcp_schema_operation(json_object *document,
                                  const mcp_tool_t *tool);

/* Return the schema of TOOL's arguments, which the caller owns: the parameters of
 * OPERATION's path and query, and the members of its body. A model reads all of
 * it: limits and examples are left out, references resolved. */
json_object *mcp_schema_input(json_object *document, json_object *operation,
                              const mcp_tool_t *tool);

/* Return whether a body of OPERATION has the member NAME. */
int mcp_schema_has(json_object *document, json_object *operation,
                   const char *name);

/* Return the schema of TOOL's results, which the caller owns. Those of lists name
 * the fields of a row. */
json_object *mcp_schema_output(json_object *document, json_object *operation,
                               const mcp_tool_t *tool);

#endif /* MCP_SCHEMA_H */
