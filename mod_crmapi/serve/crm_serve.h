/* SPDX-License-Identifier: Apache-2.0 */
/* crm_serve.h: the pipeline of all that is served over HTTP */
#ifndef CRM_SERVE_H
#define CRM_SERVE_H

#include "crm_access.h"
#include "crm_call.h"

/* A set of routes below one path of a vhost. */
typedef struct crm_mount_t {
    const char *prefix;         /* of its routes' names in logs: "intake" */
    const crm_access_t *other;  /* for requests that no route serves */
    int rest;                   /* OPTIONS is answered with the path's methods,
                                   for anybody, and a path may end with a slash
                                   (contract 4.4, 5.1, 5.2) */
    /* As crm_route_t.show_error, for routes that have none and requests that
     * no route serves. NULL: the JSON envelope. */
    void (*show_error)(crm_call_t *call, const crm_error_t *error);
    /* The routes, made once in a process before it has threads; NULL before
     * that: requests get a 503. */
    const crm_router_t *router;
} crm_mount_t;

/* Serve REQUEST of MOUNT with SERVICE: route, admit, run the handler, and turn
 * an error into a response. Fill *RESPONSE, all in REQUEST->pool. Nothing of
 * it may be sent before this returns; the database has committed by then. */
void crm_serve(crm_response_t *response, const crm_service_t *service,
               const crm_mount_t *mount, const crm_request_t *request);

#endif /* CRM_SERVE_H */
