/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.h: the mount of the REST API */
#ifndef CRM_API_H
#define CRM_API_H

#include "crm_openapi.h"
#include "crm_resource.h"
#include "crm_serve.h"

/* The mount with the routes of all resources and of the OpenAPI document. */
extern crm_mount_t crm_api_mount;

/* Make RESOURCES (ended by NULL) the resources of the API. Build routes, shapes
 * and the OpenAPI document from their tables, in POOL, which must live as long
 * as requests are served. OPENAPI and EVENTS (ended by one without a type) are
 * the domain's part of the document. Call this once in each child process,
 * before its threads start. Errors: those of crm_registry_init() and
 * crm_openapi_init(). */
crm_error_t *crm_api_init(const crm_resource_t *const *resources,
                          const crm_event_type_t *events,
                          const crm_json_part_t *openapi, apr_pool_t *pool);

#endif /* CRM_API_H */
