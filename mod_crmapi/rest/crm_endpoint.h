/* SPDX-License-Identifier: Apache-2.0 */
/* crm_endpoint.h: operations as routes */
#ifndef CRM_ENDPOINT_H
#define CRM_ENDPOINT_H

#include "crm_route.h"
#include "crm_shape.h"

/* Serve CALL, which is authenticated and within its budget, and fill its response.
 * Return the error to respond with instead. */
typedef crm_error_t *(*crm_handler_t)(crm_call_t *call);

/* Where a statement asks whether the key permits CALL's operation (contract 3.2,
 * 3.3), which does not depend on the row and is evaluated once. A write with an
 * Idempotency-Key asks instead whether its transaction has claimed it
 * (CRM_IDEMPOTENCY_OPEN), which happens only if the API key permits the
 * operation; not with Citus, where that is on another server. */
typedef enum crm_permit_t {
    CRM_PERMIT,                 /* a condition */
    CRM_PERMIT_KEY,             /* the same, always about the API key */
    CRM_PERMIT_ONE,             /* CRM_PERMIT in a SELECT of one row t. With
                                   Citus, a call: a statement of one table,
                                   without sub-selects, is planned once */
    CRM_PERMIT_KEY_ONE,         /* the same, always about the API key */
    CRM_PERMIT_FROM,            /* For a SELECT that is joined with one row s.
                                   With Citus, in the FROM of s: a row k and its
                                   WHERE. Otherwise nothing */
    CRM_PERMIT_WHERE,           /* and at its end: " WHERE", unless with Citus */
    CRM_PERMIT_BEFORE,          /* a condition. With Citus, a statement before
                                   this one: crm_sql_before() */
    CRM_PERMITS
} crm_permit_t;

/* The key of a call, as a row k. */
#define CRM_PERMIT_ROW " crmapi.live_key k WHERE " CRM_SQL_OWN("k") \
    " AND k.terms = " CRM_SQL_TERMS

/* A value that is not used needs a type. */
#define CRM_PERMIT_USED CRM_SQL_TERMS " IS NOT NULL"

/* An operation with its resource and shapes. */
typedef struct crm_endpoint_t {
    const crm_operation_t *operation;
    const crm_resource_t *resource;
    const crm_shape_t *shape;
    crm_handler_t serve;
    int write;                  /* requires the scope "write" */
    const char *permits[CRM_PERMITS]; /* for crm_rest_permit() with Citus */
    const char *before;         /* crm_sql_t.before of CRM_PERMIT_BEFORE */
    int tagged;                 /* a successful response has an entity tag */
    /* The headers of a deprecated operation, else NULL: */
    const char *deprecation;
    const char *sunset;
} crm_endpoint_t;

/* Make RESOURCES the registry and build their shapes and endpoints in POOL.
 * HANDLERS, by crm_op_t, serve the kinds that the engine does not know. Call once,
 * before threads start. Errors: those of crm_shape_init(), and CRM_E_INTERNAL for an
 * operation of a kind without a handler. */
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
