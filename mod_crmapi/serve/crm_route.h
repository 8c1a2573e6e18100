/* SPDX-License-Identifier: Apache-2.0 */
/* crm_route.h: routes as data, and the router that finds them */
#ifndef CRM_ROUTE_H
#define CRM_ROUTE_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

typedef struct crm_call_t crm_call_t;
typedef struct crm_access_t crm_access_t;

/* One method of one path. */
typedef struct crm_route_t {
    const char *method;         /* "GET", which serves HEAD, too */
    const char *path;           /* below the mount: "/contacts/{id}" */
    const crm_access_t *access; /* who may call it, and which budget is charged
                                   before its body is read */
    apr_size_t max_body;        /* bytes; 0: CrmApiMaxBody */
    /* Serve CALL and fill its response. */
    crm_error_t *(*serve)(crm_call_t *call);
    /* Make ERROR the body of CALL's response, whose status and headers are
     * set. NULL: as the mount does. */
    void (*show_error)(crm_call_t *call, const crm_error_t *error);
    const void *data;           /* the handler's own */
} crm_route_t;

#define CRM_ROUTE_SEGMENTS 5
#define CRM_ROUTE_ARGS 2
#define CRM_ROUTE_METHODS 4

/* The value of a parameter of a path, not ended by NUL. */
typedef struct crm_arg_t {
    const char *text;
    apr_size_t len;
} crm_arg_t;

/* A path with its routes. */
typedef struct crm_path_t {
    const char *template;       /* "/contacts/{id}" */
    int count;                  /* segments */
    const char *segments[CRM_ROUTE_SEGMENTS]; /* NULL: a parameter */
    int literals;               /* segments that are no parameters */
    const crm_route_t *routes[CRM_ROUTE_METHODS + 1]; /* NULL at the end */
    const char *allow;          /* value of the header Allow */
} crm_path_t;

/* The paths of a mount, of crm_path_t, in the order of its routes. */
typedef apr_array_header_t crm_router_t;

/* Return a router of the routes in TABLES (NULL at the end), each of which
 * ends with a route without a method, in POOL. MORE ("OPTIONS" or NULL) is a
 * method that every path has without a route. The tables must live as long. */
crm_router_t *crm_router_create(const crm_route_t *const *tables,
                                const char *more, apr_pool_t *pool);

/* Return the path of ROUTER that fits PATH (decoded), NULL if none does. Where
 * several fit, literal segments go before parameters. ARGS are set to the
 * path's parameters. One trailing slash is ignored if SLASH (contract 5.2). */
const crm_path_t *crm_router_find(crm_arg_t args[CRM_ROUTE_ARGS],
                                  const crm_router_t *router,
                                  const char *path, int slash);

/* Return the route of METHOD (HEAD is served by GET) on PATH, or NULL. */
const crm_route_t *crm_path_route(const crm_path_t *path, const char *method);

#endif /* CRM_ROUTE_H */
