/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi.h: the OpenAPI document, made from the tables of resources */
#ifndef CRM_OPENAPI_H
#define CRM_OPENAPI_H

#include "crm_api.h"

/* Where it is served below CRM_API_BASE, without a key. */
#define CRM_OPENAPI_PATH "/openapi.json"

/* Make the document in POOL; crm_route_init() has been called. */
void crm_openapi_init(apr_pool_t *pool);

/* Fill *RESPONSE for METHOD on CRM_OPENAPI_PATH (GET, HEAD, OPTIONS). Return
 * 0 for other methods: those are answered like any other path's. */
int crm_openapi_serve(crm_response_t *response, const char *method);

/* Return the document, OpenAPI 3.1 in JSON, *LEN_P bytes. */
const char *crm_openapi_document(apr_size_t *len_p);

#endif /* CRM_OPENAPI_H */
