/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.h: the mount of the REST API */
#ifndef CRM_API_H
#define CRM_API_H

#include "crm_endpoint.h"
#include "crm_openapi.h"
#include "crm_resource.h"
#include "crm_serve.h"

/* The mount with the routes of all resources and of the OpenAPI document. */
extern crm_mount_t crm_api_mount;

/* What the engine is given. */
typedef struct crm_domain_t {
    const crm_resource_t *const *resources; /* ended by NULL */
    const crm_handler_t *handlers; /* by crm_op_t: the kinds of its own */
    const crm_event_type_t *events; /* ended by one without a type */
    const crm_json_part_t *openapi; /* its part of the document */
} crm_domain_t;

/* Make DOMAIN's resources those of the API. Build routes, shapes and the OpenAPI
 * document from their tables, in POOL, which must live as long as requests are
 * served. Call this once in each child process, before its threads start.
 * Errors: those of crm_endpoint_init() and crm_openapi_init(). */
crm_error_t *crm_api_init(const crm_domain_t *domain, apr_pool_t *pool);

#endif /* CRM_API_H */
