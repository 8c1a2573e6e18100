/* SPDX-License-Identifier: Apache-2.0 */
/* crm_endpoint.h: operations as routes, and the shapes of their rows */
#ifndef CRM_ENDPOINT_H
#define CRM_ENDPOINT_H

#include "crm_resource.h"
#include "crm_route.h"

/* What is made once of a resource's table. */
typedef struct crm_shape_t {
    const crm_resource_t *resource;
    int requested;                  /* with the CRM_F_ON_REQUEST fields */
    int count;                  /* fields in responses */
    const crm_field_t **fields; /* those */
    int *indexes;               /* of each in the resource's table */
    const char **keys;          /* ",\"name\":" of each */
    apr_size_t *key_lens;
    const char *columns;        /* SQL: their columns and expressions over t */
    int has_updated_at;
} crm_shape_t;

/* An operation with what was made for it. */
typedef struct crm_endpoint_t {
    const crm_operation_t *operation;
    const crm_resource_t *resource;
    const crm_shape_t *shape;
    const crm_shape_t *requested;   /* with the CRM_F_ON_REQUEST fields */
    int write;                  /* needs the scope "write" */
} crm_endpoint_t;

/* Make RESOURCES the registry and build their shapes and endpoints in POOL.
 * Call once, before there are threads. Errors: those of
 * crm_registry_init(). */
crm_error_t *crm_endpoint_init(const crm_resource_t *const *resources,
                               apr_pool_t *pool);

/* Return the routes of all operations (crm_endpoint_t is their data), which
 * SERVE serves under ACCESS, in POOL; the last has no method. */
const crm_route_t *crm_endpoint_routes(crm_error_t *(*serve)(crm_call_t *call),
                                       const crm_access_t *access,
                                       apr_pool_t *pool);

/* Return the shape of RESOURCE. */
const crm_shape_t *crm_shape_of(const crm_resource_t *resource);

/* Add to BUF the JSON object of ROW of RESULT, whose columns from FIRST_COLUMN
 * on are SHAPE's. */
void crm_shape_write(crm_buf_t *buf, const crm_shape_t *shape,
                     const PGresult *result, int row, int first_column);

#endif /* CRM_ENDPOINT_H */
