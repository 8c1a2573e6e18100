/* SPDX-License-Identifier: Apache-2.0 */
/* crm_endpoint.h: operations as routes */
#ifndef CRM_ENDPOINT_H
#define CRM_ENDPOINT_H

#include "crm_route.h"
#include "crm_shape.h"

/* Serve CALL, which is authenticated and within its budget, and fill its response.
 * Return the error to respond with instead. */
typedef crm_error_t *(*crm_handler_t)(crm_call_t *call);

/* An operation with its resource and shapes. */
typedef struct crm_endpoint_t {
    const crm_operation_t *operation;
    const crm_resource_t *resource;
    const crm_shape_t *shape;
    crm_handler_t serve;
    int write;                  /* requires the scope "write" */
    int tagged;                 /* a successful response has an entity tag */
    /* The headers of a deprecated operation, else NULL: */
    const char *deprecation;
    const char *sunset;
} crm_endpoint_t;

/* Make RESOURCES the registry and build their shapes and endpoints in POOL.
 * HANDLERS, by crm_op_t, serve the kinds that the engine does not know. Call once, before threads start. Errors: those of crm_shape_init(), and
 * CRM_E_INTERNAL for an operation of a kind without a handler. */
crm_error_t *crm_endpoint_init(const crm_resource_t *const *resources,
                               const crm_handler_t *handlers,
                               apr_pool_t *pool);

/* Return in POOL the routes of all operations, ended by one without a method.
 * SERVE serves them and ACCESS admits their requests. The data of each is its
 * crm_endpoint_t. */
const crm_route_t *crm_endpoint_routes(crm_error_t *(*serve)(crm_call_t *call),
                                       const crm_access_t *access,
                                       apr_pool_t *pool);

#endif /* CRM_ENDPOINT_H */
