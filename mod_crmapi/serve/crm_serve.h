/* SPDX-License-Identifier: Apache-2.0 */
/* crm_serve.h: the pipeline of every HTTP request */
#ifndef CRM_SERVE_H
#define CRM_SERVE_H

#include "crm_access.h"
#include "crm_call.h"

/* A set of routes below one path of a vhost. */
typedef struct crm_mount_t {
    const crm_access_t *other;  /* admission of requests without a route */
    int rest;                   /* OPTIONS lists the path's methods, without
                                   authentication, and a path may end with a
                                   slash (contract 4.4, 5.1, 5.2) */
    int slash;                  /* a path may end with a slash */
    const char *no_path;        /* the message of a 404 of a path without a route;
                                   NULL: the code's */
    /* As crm_route_t.show_error, for routes without one and requests without a
     * route. NULL: the JSON envelope. */
    void (*show_error)(crm_call_t *call, const crm_error_t *error);
    /* The routes, created once in each process before its threads start. NULL
     * until then: requests get a 503. */
    const crm_router_t *router;
} crm_mount_t;

/* Serve REQUEST of MOUNT with SERVICE: route, admit, run the handler, and turn
 * an error into a response. Fill *RESPONSE, everything in REQUEST->pool. The
 * caller must send nothing before this returns, because only then the
 * transaction has been committed. */
void crm_serve(crm_response_t *response, const crm_service_t *service,
               const crm_mount_t *mount, const crm_request_t *request);

/* Serve the request of RESPONSE again, which is discarded. It is not charged
 * again. Any thread may call this, one at a time. */
void crm_serve_again(crm_response_t *response);

#endif /* CRM_SERVE_H */
