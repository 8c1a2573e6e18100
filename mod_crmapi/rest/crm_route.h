/* SPDX-License-Identifier: Apache-2.0 */
/* crm_route.h: from a path to the operations there */
#ifndef CRM_ROUTE_H
#define CRM_ROUTE_H

#include "crm_resource.h"

/* What is made once of a resource's table. */
typedef struct crm_shape_t {
    const crm_resource_t *resource;
    int asked;                  /* with the CRM_F_ASKED fields */
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
    const crm_shape_t *asked;   /* with the CRM_F_ASKED fields */
    const char *name;           /* "GET /contacts/{id}" */
    int write;                  /* needs the scope "write" */
} crm_endpoint_t;

/* A path with its operations. */
#define CRM_ROUTE_SEGMENTS 5
#define CRM_ROUTE_ENDPOINTS 4
typedef struct crm_route_t {
    const char *path;           /* template */
    int count;                  /* segments */
    const char *segments[CRM_ROUTE_SEGMENTS]; /* NULL: a parameter */
    int literals;               /* segments that are not parameters */
    const crm_endpoint_t *endpoints[CRM_ROUTE_ENDPOINTS]; /* NULL at the end */
    const char *allow;          /* value of the header Allow */
} crm_route_t;

/* Make RESOURCES the registry and build their routes and shapes in POOL. Call
 * once, before there are threads. Errors: those of crm_registry_init(). */
crm_error_t *crm_route_init(const crm_resource_t *const *resources,
                            apr_pool_t *pool);

/* Return the route of PATH (decoded, below /api/v1; one trailing slash is
 * ignored, contract 5.2) or NULL. Where several fit, reserved words go before
 * parameters. *PARAMETER_P, *LEN_P = the path's parameter, NULL if none. */
const crm_route_t *crm_route_find(const char **parameter_p, apr_size_t *len_p,
                                  const char *path);

/* Return the endpoint of METHOD ("GET"; HEAD is served by GET) on ROUTE, or
 * NULL. */
const crm_endpoint_t *crm_route_endpoint(const crm_route_t *route,
                                         const char *method);

/* Return all routes, an array of crm_route_t. */
const apr_array_header_t *crm_route_all(void);

/* Return the shape of RESOURCE. */
const crm_shape_t *crm_shape_of(const crm_resource_t *resource);

/* Add to BUF the JSON object of ROW of RESULT, whose columns from FIRST_COLUMN
 * on are SHAPE's. */
void crm_shape_write(crm_buf_t *buf, const crm_shape_t *shape,
                     const PGresult *result, int row, int first_column);

#endif /* CRM_ROUTE_H */
