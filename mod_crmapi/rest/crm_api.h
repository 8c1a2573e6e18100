/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.h: the mount of the REST API */
#ifndef CRM_API_H
#define CRM_API_H

#include "crm_openapi.h"
#include "crm_resource.h"
#include "crm_serve.h"

/* The routes of all resources, and the OpenAPI document. */
extern crm_mount_t crm_api_mount;

/* Serve RESOURCES from now on: build what is made from their tables once
 * (routes, statement texts, the OpenAPI document with OPENAPI, the domain's part)
 * in POOL, which must live as long as requests are served. Call once in a process, in a child before its
 * threads start. Errors: those of crm_registry_init(). */
crm_error_t *crm_api_init(const crm_resource_t *const *resources,
                          const crm_json_part_t *openapi, apr_pool_t *pool);

#endif /* CRM_API_H */
