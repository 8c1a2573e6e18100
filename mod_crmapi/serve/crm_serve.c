/* SPDX-License-Identifier: Apache-2.0 */
/* crm_serve.c: the pipeline of every HTTP request */
#include "crm_serve.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_envelope.h"

/* The maximum number of times that a request is served again, because the terms
 * of its key have changed meanwhile. */
#define RENEWALS 2

/* Set CALL's path and route. Errors: CRM_E_NOT_FOUND, and
 * CRM_E_METHOD_NOT_ALLOWED, in which case the path is set. */
static crm_error_t *find_route(crm_call_t *call)
{
    call->path = crm_router_find(call->args, call->mount->router,
                                 call->request->path,
                                 call->mount->rest || call->mount->slash);
    if (!call->path) {
        return crm_error_create(CRM_E_NOT_FOUND, call->mount->no_path,
                                call->pool);
    }
    call->route = crm_path_route(call->path, call->request->method);
    if (!call->route) {
        return crm_error_createf(CRM_E_METHOD_NOT_ALLOWED, call->pool,
                                 "This path takes %s%s", call->path->allow,
                                 crm_router_hint(call->mount->router,
                                                 call->path, call->args,
                                                 call->pool));
    }
    call->response->route_number = crm_path_number(call->path, call->route);
    call->response->route = crm_path_name(call->path, call->route);
    return NULL;
}

/* Respond to OPTIONS on a path that exists. */
static crm_error_t *serve_options(crm_call_t *call)
{
    apr_table_setn(call->response->headers, "Allow", call->path->allow);
    call->response->status = 204;
    return NULL;
}

/* Serve CALL in the order of contract 2: authentication precedes 404 and
 * 405. */
static crm_error_t *serve_once(crm_call_t *call)
{
    crm_error_t *missing, *error;

    if (!call->mount->router) {
        return crm_error_logf(CRM_E_UNAVAILABLE, call->pool, "CRM1001: this "
                              "process failed to initialise");
    }
    missing = find_route(call);
    if (missing && call->mount->rest
        && !strcmp(call->request->method, "OPTIONS")) {
        return call->path ? serve_options(call) : missing;
    }
    error = (call->route ? call->route->access
                         : call->mount->other)->admit(call);
    if (!error) {
        error = missing;
    }
    if (error) {
        return call->confirm ? crm_access_confirm(call, error) : error;
    }
    return call->route->serve(call);
}

/* Serve CALL, and again if the terms of its key in shared memory were outdated.
 * Nothing was done then, and the terms are renewed. */
static crm_error_t *serve(crm_call_t *call)
{
    crm_error_t *error = crm_access_settle(call, serve_once(call));

    for (int i = 0; error && call->renewed && i < RENEWALS; i++) {
        call->renewed = call->confirm = 0;
        apr_table_clear(call->response->headers);
        error = crm_access_settle(call, serve_once(call));
    }
    return error;
}

/* Set the headers of CALL's response that ERROR requires. */
static void set_error_headers(crm_call_t *call, const crm_error_t *error)
{
    crm_response_t *response = call->response;

    if (error->retry_after) {
        apr_table_setn(response->headers, "Retry-After",
                       apr_itoa(call->pool, error->retry_after));
    }
    if (error->code == CRM_E_UNAUTHORIZED) {
        apr_table_setn(response->headers, "WWW-Authenticate", "Bearer");
        apr_table_unset(response->headers, "X-RateLimit-Limit");
        apr_table_unset(response->headers, "X-RateLimit-Remaining");
        apr_table_unset(response->headers, "X-RateLimit-Reset");
        response->workspace_id = response->key_id = NULL;
        response->touch = 0;
    }
    if (error->code == CRM_E_METHOD_NOT_ALLOWED && call->path) {
        apr_table_setn(response->headers, "Allow", call->path->allow);
    }
}

/* Make ERROR the response of CALL. */
static void respond_error(crm_call_t *call, const crm_error_t *error)
{
    crm_response_t *response = call->response;

    response->status = crm_code_info(error->code)->status;
    response->log = error->log;
    response->outage = error->outage;
    response->level = response->status >= 500 ? CRM_LOG_ERR : CRM_LOG_INFO;
    response->body.len = 0;
    response->stream = NULL;
    response->content_type = NULL;
    response->waits = 0;
    set_error_headers(call, error);
    if (call->route && call->route->show_error) {
        call->route->show_error(call, error);
    }
    else if (call->mount->show_error) {
        call->mount->show_error(call, error);
    }
    else {
        crm_envelope_error(&response->body, error);
    }
}

static void begin(crm_response_t *response, apr_pool_t *pool)
{
    memset(response, 0, sizeof(*response));
    response->status = 200;
    response->headers = apr_table_make(pool, 8);
    crm_buf_init(&response->body, 4096, pool);
}

static void serve_and_respond(crm_call_t *call)
{
    crm_error_t *error = serve(call);

    crm_call_release(call);
    if (error) {
        respond_error(call, error);
    }
}

void crm_serve(crm_response_t *response, const crm_service_t *service,
               const crm_mount_t *mount, const crm_request_t *request)
{
    crm_call_t *call = apr_pcalloc(request->pool, sizeof(*call));

    begin(response, request->pool);
    response->call = call;
    call->service = service;
    call->mount = mount;
    call->request = request;
    call->response = response;
    call->pool = request->pool;
    serve_and_respond(call);
}

void crm_serve_again(crm_response_t *response)
{
    response->status = 200;
    response->body.len = 0;
    response->waits = 0;
    serve_and_respond(response->call);
}
