/* SPDX-License-Identifier: Apache-2.0 */
/* crm_route.h: routes as data, and the router */
#ifndef CRM_ROUTE_H
#define CRM_ROUTE_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

typedef struct crm_call_t crm_call_t;
typedef struct crm_access_t crm_access_t;

/* One method of one path. */
typedef struct crm_route_t {
    const char *method;         /* "GET", which also serves HEAD */
    const char *path;           /* below the mount: "/contacts/{id}"; "/" is the
                                   mount itself */
    const crm_access_t *access; /* who may call it and which budget is charged;
                                   checked before the body is read */
    apr_size_t max_body;        /* bytes; 0: CrmApiMaxBody, which also limits
                                   what is less; what is more replaces the
                                   default of it */
    /* Serve CALL and fill its response, or return an error. */
    crm_error_t *(*serve)(crm_call_t *call);
    /* Write ERROR as the body of CALL's response, whose status and headers are
     * set. NULL: the mount's show_error. */
    void (*show_error)(crm_call_t *call, const crm_error_t *error);
    const void *data;           /* for the handler */
} crm_route_t;

#define CRM_ROUTE_SEGMENTS 5
#define CRM_ROUTE_ARGS 2
#define CRM_ROUTE_METHODS 4

/* The value of a path parameter, not terminated by NUL. */
typedef struct crm_arg_t {
    const char *text;
    apr_size_t len;
} crm_arg_t;

/* A path and its routes. */
typedef struct crm_path_t {
    const char *template;       /* "/contacts/{id}" */
    int count;                  /* segments */
    const char *segments[CRM_ROUTE_SEGMENTS]; /* NULL for a parameter */
    int literals;               /* number of segments that are not parameters */
    const crm_route_t *routes[CRM_ROUTE_METHODS + 1]; /* ended by NULL */
    const char *names[CRM_ROUTE_METHODS]; /* of each, for logs and metrics:
                                             "POST intake/events" */
    const char *allow;          /* value of the Allow header */
    int first;                  /* number of its first route: see
                                   crm_path_number() */
} crm_path_t;

/* The paths of a mount (of crm_path_t), in the order of its routes. */
typedef apr_array_header_t crm_router_t;

/* Return, in POOL, a router of the routes in TABLES. TABLES is ended by NULL,
 * each table by a route without a method. The tables must live as long as the
 * router. PREFIX ("intake") precedes the paths in the routes' names. MORE
 * ("OPTIONS" or NULL) is a method that every path has without a route. */
crm_router_t *crm_router_create(const crm_route_t *const *tables,
                                const char *prefix, const char *more,
                                apr_pool_t *pool);

/* Return the path of ROUTER that matches PATH (decoded), or NULL. If several
 * match, the one with the most literal segments is returned. ARGS are set to
 * the path's parameters. If SLASH, one trailing slash is ignored (contract
 * 5.2). */
const crm_path_t *crm_router_find(crm_arg_t args[CRM_ROUTE_ARGS],
                                  const crm_router_t *router,
                                  const char *path, int slash);

/* Return, in POOL, what to say of ARGS, the parameters of a path, if one of them
 * is a word of ROUTER's paths and so no id: " (\"merge\" is no id, but a part of
 * /contacts/{id}/merge)". Otherwise return "". PATH is the one that matches. */
const char *crm_router_hint(const crm_router_t *router, const crm_path_t *path,
                            const crm_arg_t args[CRM_ROUTE_ARGS],
                            apr_pool_t *pool);

/* Return the name of ROUTE, one of PATH's. */
const char *crm_path_name(const crm_path_t *path, const crm_route_t *route);

/* Return the number of ROUTE, one of PATH's, among all routes of its router,
 * from 1. */
int crm_path_number(const crm_path_t *path, const crm_route_t *route);

/* Return the number of all routes of ROUTER. */
int crm_router_count(const crm_router_t *router);

/* Return the route of METHOD on PATH, or NULL. HEAD is served by GET. */
const crm_route_t *crm_path_route(const crm_path_t *path, const char *method);

#endif /* CRM_ROUTE_H */
