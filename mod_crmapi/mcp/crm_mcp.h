/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mcp.h: the mount of the Model Context Protocol (contract 21) */
#ifndef CRM_MCP_H
#define CRM_MCP_H

#include "apr_tables.h"

#include "crm_serve.h"

/* The default path of the mount, which may be sent without its last slash. */
#define CRM_MCP_PATH "/crmapi/mcp/"

/* Which tools a site offers. */
typedef enum crm_mcp_tools_t {
    CRM_MCP_ALL,
    CRM_MCP_READ                /* those that change nothing */
} crm_mcp_tools_t;

/* The configuration of a vhost: crm_service_t.mcp. */
typedef struct crm_mcp_site_t {
    const apr_array_header_t *origins; /* of const char *: values of Origin that
                                          are allowed; NULL: none */
    int tools;                  /* a crm_mcp_tools_t */
} crm_mcp_site_t;

extern crm_mount_t crm_mcp_mount;

/* Make the tools from the operations of crm_api_mount and their descriptions in
 * the OpenAPI document, in POOL, which must live as long as requests are served.
 * Call this after crm_api_init(). Errors: CRM_E_INTERNAL if an operation is not
 * in the document. */
crm_error_t *crm_mcp_init(apr_pool_t *pool);

#endif /* CRM_MCP_H */
