/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi.h: the OpenAPI document, built from the resources' tables */
#ifndef CRM_OPENAPI_H
#define CRM_OPENAPI_H

#include "crm_call.h"

/* Build the document in POOL from the registry and the routes of ROUTER. */
void crm_openapi_init(const crm_router_t *router, apr_pool_t *pool);

/* A crm_route_t.serve: respond to CALL with the document. */
crm_error_t *crm_openapi_serve(crm_call_t *call);

/* Return the document (OpenAPI 3.1, JSON) and set *LEN_P to its length. */
const char *crm_openapi_document(apr_size_t *len_p);

#endif /* CRM_OPENAPI_H */
