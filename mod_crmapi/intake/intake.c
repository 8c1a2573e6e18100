/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c: a request of a channel, from its path to its answer */
#include "crm_intake_call.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_address.h"
#include "crm_array.h"

static const crm_intake_route_t *const parts[] = {
    crm_intake_event_routes, crm_intake_twilio_routes, crm_intake_form_routes,
    crm_intake_chat_routes,
};

crm_error_t *crm_intake_body(const char **data_p, apr_size_t *len_p,
                             crm_intake_call_t *call)
{
    return call->service->read_body(data_p, len_p, call->request->baton,
                                    call->pool);
}

crm_error_t *crm_intake_conn(crm_intake_call_t *call)
{
    apr_time_t began = apr_time_now();
    crm_error_t *error = NULL;

    if (!call->conn) {
        error = call->service->acquire(&call->conn, call->request->baton,
                                       call->pool);
        call->response->db_us += apr_time_now() - began;
    }
    return error;
}

crm_error_t *crm_intake_query(PGresult **result_p, crm_intake_call_t *call,
                              const char *sql, int count,
                              const char *const *values)
{
    crm_stmt_t stmt = {sql, count, values};
    crm_error_t *error;
    apr_time_t began;

    CRM_ERR(crm_intake_conn(call));
    began = apr_time_now();
    error = crm_db_query(result_p, call->conn, &stmt, call->pool);
    call->response->db_us += apr_time_now() - began;
    return error;
}

void crm_intake_release(crm_intake_call_t *call)
{
    if (call->conn) {
        call->service->release(call->conn, call->request->baton);
        call->conn = NULL;
    }
}

/* ---- budgets of addresses ------------------------------------------------ */

crm_error_t *crm_intake_charge(crm_intake_call_t *call, const char *kind)
{
    return crm_address_charge(call->service->addresses, kind,
                              call->request->address,
                              call->service->settings.realm, CRM_LIMIT_WRITE,
                              call->site->address_limit, call->pool);
}

/* ---- events -------------------------------------------------------------- */

crm_error_t *crm_intake_take(crm_intake_result_t *result,
                             crm_intake_call_t *call,
                             const char *workspace_id,
                             crm_intake_event_t *event)
{
    crm_error_t *error = NULL;
    apr_time_t began;
    int known;

    crm_intake_tidy(event, call->pool);
    CRM_ERR(crm_intake_conn(call));
    call->response->workspace_id = workspace_id;
    began = apr_time_now();
    error = crm_intake(result, &known, call->conn, workspace_id, NULL, event,
                       1, call->pool);
    call->response->db_us += apr_time_now() - began;
    CRM_ERR(error);
    if (result->field) {
        crm_error_detail(&error, result->field, result->message, call->pool);
    }
    else if (result->conversation_id) {
        crm_bell_ring(call->site->bell, result->conversation_id);
    }
    return error;
}

crm_error_t *crm_intake_find_agent(crm_intake_agent_t *agent,
                                   crm_intake_call_t *call,
                                   const char *email, const char *phone,
                                   const char *workspace)
{
    apr_time_t began;
    crm_error_t *error;

    CRM_ERR(crm_intake_conn(call));
    began = apr_time_now();
    error = crm_intake_agent(agent, call->conn, email, phone,
                             workspace ? workspace
                                       : call->service->settings.workspace,
                             call->pool);
    call->response->db_us += apr_time_now() - began;
    return error;
}

/* ---- answers ------------------------------------------------------------- */

void crm_intake_type(crm_intake_call_t *call, const char *type)
{
    apr_table_setn(call->response->headers, "Content-Type", type);
}

/* Make ERROR the answer to CALL, which ROUTE (NULL: none) served. */
static void respond_error(crm_intake_call_t *call,
                          const crm_intake_route_t *route,
                          const crm_error_t *error)
{
    crm_response_t *response = call->response;

    response->status = crm_code_info(error->code)->status;
    response->log = error->log;
    response->level = response->status >= 500 ? CRM_LOG_ERR : CRM_LOG_INFO;
    response->body.len = 0;
    if (error->retry_after) {
        apr_table_setn(response->headers, "Retry-After",
                       apr_itoa(call->pool, error->retry_after));
    }
    if (error->code == CRM_E_UNAUTHORIZED) {
        apr_table_setn(response->headers, "WWW-Authenticate", "Bearer");
    }
    if (error->code == CRM_E_METHOD_NOT_ALLOWED) {
        apr_table_setn(response->headers, "Allow", route->methods);
    }
    if (route && route->error) {
        route->error(call, error);
    }
    else {
        crm_intake_type(call, "application/json");
        crm_api_write_error(&response->body, error);
    }
}

/* Return whether METHOD is one of METHODS, "GET, POST". */
static int is_method(const char *method, const char *methods)
{
    size_t len = strlen(method);

    for (const char *one = methods; one; one = strchr(one, ',')) {
        one += strspn(one, ", ");
        if (!strncmp(one, method, len) && (!one[len] || one[len] == ',')) {
            return 1;
        }
    }
    return 0;
}

/* Return what follows ROUTE's path in PATH, NULL if that is another one. */
static const char *rest_of(const crm_intake_route_t *route, const char *path)
{
    size_t len = strlen(route->path);

    if (strncmp(path, route->path, len)
        || (route->path[len - 1] != '/' && path[len])) {
        return NULL;
    }
    return path + len;
}

/* Return the route of PATH and set *REST_P, NULL if there is none. */
static const crm_intake_route_t *find_route(const char **rest_p,
                                            const char *path)
{
    for (size_t i = 0; i < CRM_NELTS(parts); i++) {
        for (const crm_intake_route_t *route = parts[i]; route->path;
             route++) {
            *rest_p = rest_of(route, path);
            if (*rest_p) {
                return route;
            }
        }
    }
    return NULL;
}

/* Serve CALL by ROUTE, with REST. */
static crm_error_t *serve(crm_intake_call_t *call,
                          const crm_intake_route_t *route, const char *rest)
{
    const char *method = call->request->method;

    if (!route) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    if (!is_method(strcmp(method, "HEAD") ? method : "GET", route->methods)) {
        return crm_error_create(CRM_E_METHOD_NOT_ALLOWED, NULL, call->pool);
    }
    return route->serve(call, rest);
}

void crm_intake_serve(crm_response_t *response, const crm_service_t *service,
                      const crm_intake_site_t *site,
                      const crm_intake_request_t *request)
{
    const char *rest = NULL;
    const crm_intake_route_t *route = find_route(&rest, request->path);
    crm_intake_call_t call = {service, site, request, response,
                              request->pool, NULL};
    crm_error_t *error;

    memset(response, 0, sizeof(*response));
    response->status = 200;
    response->headers = apr_table_make(request->pool, 8);
    crm_buf_init(&response->body, 1024, request->pool);
    response->route = route
        ? apr_pstrcat(request->pool, request->method, " intake ", route->path,
                      NULL) : "no intake route";
    apr_table_setn(response->headers, "Cache-Control", "private, no-store");
    apr_table_setn(response->headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(response->headers, "X-Request-Id", request->request_id);
    error = serve(&call, route, rest);
    crm_intake_release(&call);
    if (error) {
        respond_error(&call, route, error);
    }
}
