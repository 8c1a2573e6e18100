/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_resource.h: resources: what a client may read for a model (contract
 * 21.4) */
#ifndef MCP_RESOURCE_H
#define MCP_RESOURCE_H

#include "mcp_answer.h"

/* mcp_method_t.serve of resources/list, resources/templates/list and
 * resources/read. */
crm_error_t *mcp_resources_list(crm_call_t *call);
crm_error_t *mcp_resources_templates(crm_call_t *call);
crm_error_t *mcp_resources_read(crm_call_t *call);

#endif /* MCP_RESOURCE_H */
