/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fields.h: the argument "fields": only these fields of rows (contract
 * 21.3) */
#ifndef MCP_FIELDS_H
#define MCP_FIELDS_H

#include "crm_endpoint.h"
#include "crm_json_slice.h"

/* Add to *ERROR_P which items of FIELDS, an array, are no names of fields of
 * RESOURCE: a 422 in POOL. */
void mcp_fields_check(crm_error_t **error_p, crm_slice_t fields,
                      const crm_resource_t *resource, apr_pool_t *pool);

/* Add to OUT the LEN bytes at BODY, a response of the API, in which rows have only
 * their id and FIELDS, an array. */
void mcp_fields_trim(crm_buf_t *out, const char *body, apr_size_t len,
                     crm_slice_t fields);

#endif /* MCP_FIELDS_H */
