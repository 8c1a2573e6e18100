/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.c: a request's way: key, budget, route, operation, answer */
#include "crm_api.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_address.h"
#include "crm_budget.h"
#include "crm_call.h"
#include "crm_key.h"
#include "crm_openapi.h"
#include "crm_prefer.h"
#include "crm_uuid.h"

static const char *not_ready = "CRM1001: crm_api_init() was not called";

crm_error_t *crm_api_init(const crm_resource_t *const *resources,
                          apr_pool_t *pool)
{
    CRM_ERR(crm_route_init(resources, pool));
    crm_openapi_init(pool);
    not_ready = NULL;
    return NULL;
}

void crm_api_write_details(crm_buf_t *body, const apr_array_header_t *details)
{
    crm_buf_putc(body, '[');
    for (int i = 0; i < details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(details, i, crm_detail_t);

        crm_buf_puts(body, i ? ",{\"field\":" : "{\"field\":");
        crm_buf_json_string(body, detail->field, strlen(detail->field));
        crm_buf_puts(body, ",\"message\":");
        crm_buf_json_string(body, detail->message, strlen(detail->message));
        crm_buf_putc(body, '}');
    }
    crm_buf_putc(body, ']');
}

void crm_api_write_refused(crm_buf_t *body, int index,
                           const apr_array_header_t *details)
{
    crm_buf_t message;

    crm_buf_init(&message, 128, body->pool);
    for (int i = 0; i < details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(details, i, crm_detail_t);

        crm_buf_puts(&message, i ? "; " : "");
        crm_buf_puts(&message, detail->field);
        crm_buf_puts(&message, *detail->field ? " " : "");
        crm_buf_puts(&message, detail->message);
    }
    crm_buf_printf(body, "{\"index\":%d,\"message\":", index);
    crm_buf_json_string(body, message.data, message.len);
    crm_buf_puts(body, ",\"details\":");
    crm_api_write_details(body, details);
    crm_buf_putc(body, '}');
}

/* Return what ERROR says of fields, NULL for nothing. A 422 that names none is
 * about the whole body, whose name is "" (contract 5.6). */
static const apr_array_header_t *details_of(const crm_error_t *error,
                                            apr_pool_t *pool)
{
    crm_error_t *whole = NULL;

    if (error->details || error->code != CRM_E_VALIDATION) {
        return error->details;
    }
    crm_error_detail(&whole, "", error->message, pool);
    return whole->details;
}

void crm_api_write_error(crm_buf_t *body, const crm_error_t *error)
{
    const apr_array_header_t *details = details_of(error, body->pool);

    crm_buf_puts(body, "{\"error\":{\"code\":\"");
    crm_buf_puts(body, crm_code_info(error->code)->code);
    crm_buf_puts(body, "\",\"message\":");
    crm_buf_json_string(body, error->message, strlen(error->message));
    if (details) {
        crm_buf_puts(body, ",\"details\":");
        crm_api_write_details(body, details);
    }
    crm_buf_puts(body, "}}");
}

/* Make ERROR the answer to CALL's request. */
static void respond_error(crm_call_t *call, const crm_error_t *error)
{
    crm_response_t *response = call->response;

    response->status = crm_code_info(error->code)->status;
    response->log = error->log;
    response->level = response->status >= 500 ? CRM_LOG_ERR : CRM_LOG_INFO;
    response->body.len = 0;
    crm_api_write_error(&response->body, error);
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
    if (error->code == CRM_E_METHOD_NOT_ALLOWED) {
        apr_table_setn(response->headers, "Allow", call->route->allow);
    }
}

static crm_error_t *unauthorized(crm_call_t *call)
{
    return crm_error_create(CRM_E_UNAUTHORIZED, NULL, call->pool);
}

/* Look up the key of CALL->key.hash, which the shared memory does not know,
 * in the database, and make it known. */
static crm_error_t *learn_key(crm_call_t *call)
{
    char hash[2 + 2 * CRM_KEY_HASH_LEN + 1] = "\\x";
    crm_limit_key_t *key = &call->key;
    PGresult *result;
    crm_sql_t sql;

    crm_key_hash_hex(hash + 2, key->hash);
    crm_sql_init(&sql, call->pool);
    crm_sql_template(&sql, "SELECT k.key_id, k.workspace_id, k.slug"
                     " FROM crmapi.key_find(?) k", hash, "bytea");
    CRM_ERR(crm_call_query(&result, call, &sql));
    if (!PQntuples(result)) {
        return unauthorized(call);
    }
    apr_cpystrn(key->key_id, PQgetvalue(result, 0, 0), sizeof(key->key_id));
    apr_cpystrn(key->workspace_id, PQgetvalue(result, 0, 1),
                sizeof(key->workspace_id));
    apr_cpystrn(key->slug, PQgetvalue(result, 0, 2), sizeof(key->slug));
    if (crm_limit_add(call->service->limit, key) == CRM_LIMIT_FULL) {
        return crm_error_logf(CRM_E_UNAVAILABLE, call->pool,
                              "CRM1003: the table of keys is full: raise "
                              "CrmApiRateLimitKeys");
    }
    return NULL;
}

crm_error_t *crm_api_charge_look_up(const crm_service_t *service,
                                    const char *address, apr_pool_t *pool)
{
    return crm_address_charge(service->addresses, CRM_ADDRESS_KEY, address,
                              service->settings.realm, CRM_LIMIT_READ,
                              service->settings.unknown_key_limit, pool);
}

/* Find out whose key the request carries (contract 3). */
static crm_error_t *authenticate(crm_call_t *call)
{
    const crm_settings_t *settings = &call->service->settings;
    crm_limit_key_t *key = &call->key;
    unsigned char hash[CRM_KEY_HASH_LEN];
    const char *text;
    apr_size_t len;

    if (!call->request->authorization
        || !crm_key_from_bearer(&text, &len, call->request->authorization,
                                settings->key_prefix)) {
        return unauthorized(call);
    }
    crm_key_hash(hash, text, len);
    if (!crm_limit_find(key, call->service->limit, hash, settings->realm)) {
        memcpy(key->hash, hash, sizeof(hash));
        key->realm = settings->realm;
        CRM_ERR(crm_api_charge_look_up(call->service, call->request->address,
                                       call->pool));
        CRM_ERR(learn_key(call));
    }
    if (settings->workspace && strcmp(settings->workspace, key->slug)
        && apr_cstr_casecmp(settings->workspace, key->workspace_id)) {
        return unauthorized(call);
    }
    call->response->workspace_id = key->workspace_id;
    call->response->key_id = key->key_id;
    return NULL;
}

/* Charge the key's budget and set the headers of contract 4.2. *CONFIRM_P =
 * whether it is time to ask whether the key still lives. */
static crm_error_t *charge(int *confirm_p, crm_call_t *call)
{
    const crm_settings_t *settings = &call->service->settings;
    const char *method = call->request->method;
    crm_limit_class_t class = !strcmp(method, "GET") || !strcmp(method, "HEAD")
                              ? CRM_LIMIT_READ : CRM_LIMIT_WRITE;
    crm_limit_verdict_t verdict;
    crm_error_t *error;

    error = crm_budget_charge(&verdict, &call->key, call->service->limit,
                              call->key.hash, call->key.realm, class,
                              settings->limits[class],
                              call->response->headers, call->pool);
    if (!verdict.known) {
        /* Another process took the slot away since: it was revoked. */
        return unauthorized(call);
    }
    call->response->touch = verdict.touch;
    *confirm_p = verdict.confirm;
    return error;
}

/* Find the route and the endpoint of the request's path and method. */
static crm_error_t *find_route(crm_call_t *call)
{
    char *id = apr_palloc(call->pool, CRM_UUID_LEN + 1);
    const char *parameter;
    apr_size_t len;

    call->route = crm_route_find(&parameter, &len, call->request->path);
    if (!call->route && !strcmp(call->request->path, CRM_OPENAPI_PATH)) {
        static const crm_route_t document = {.allow = "GET, HEAD, OPTIONS"};

        call->route = &document;        /* of no resource: any other method */
    }
    if (!call->route) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    if (parameter && crm_uuid_parse(id, parameter, len)) {
        call->path_id = id;
    }
    call->endpoint = crm_route_endpoint(call->route, call->request->method);
    if (!call->endpoint) {
        return crm_error_create(CRM_E_METHOD_NOT_ALLOWED, NULL, call->pool);
    }
    call->response->route = call->endpoint->name;
    return NULL;
}

/* OPTIONS needs no key and no budget (contract 4.4, 5.1). */
static crm_error_t *serve_options(crm_call_t *call)
{
    crm_error_t *error = find_route(call);

    if (!call->route) {
        return error;
    }
    apr_table_setn(call->response->headers, "Allow", call->route->allow);
    call->response->status = 204;
    return NULL;
}

/* Return ERROR, which the memory alone has decided, or 401 if the database
 * says that the key is dead. That is asked once in a while, so that a revoked
 * key is not answered from memory for ever (contract 2.3). A database that is
 * away changes nothing. */
static crm_error_t *refuse_confirmed(crm_call_t *call, crm_error_t *error)
{
    crm_error_t *refusal = crm_call_refuse(call, error, NULL);

    return refusal->code == CRM_E_UNAUTHORIZED ? refusal : error;
}

/* Serve in the order of contract 2. */
static crm_error_t *serve(crm_call_t *call)
{
    const crm_request_t *request = call->request;
    crm_error_t *error;
    int confirm = 0;

    if (not_ready) {
        return crm_error_logf(CRM_E_UNAVAILABLE, call->pool, "%s", not_ready);
    }
    if (!strcmp(request->path, CRM_OPENAPI_PATH)
        && crm_openapi_serve(call->response, request->method)) {
        return NULL;
    }
    if (!strcmp(request->method, "OPTIONS")) {
        return serve_options(call);
    }
    CRM_ERR(authenticate(call));
    error = charge(&confirm, call);
    if (!error) {
        error = find_route(call);
    }
    if (error) {
        return confirm ? refuse_confirmed(call, error) : error;
    }
    /* contract 6.2, 7.1 */
    call->lenient = crm_prefer_has(request->prefer, "handling", "lenient");
    call->strict = crm_prefer_has(request->prefer, "handling", "strict");
    return call->endpoint->operation->kind->serve(call);
}

void crm_api_serve(crm_response_t *response, const crm_service_t *service,
                   const crm_request_t *request)
{
    crm_call_t *call = apr_pcalloc(request->pool, sizeof(*call));
    crm_error_t *error;

    memset(response, 0, sizeof(*response));
    response->headers = apr_table_make(request->pool, 8);
    crm_buf_init(&response->body, 4096, request->pool);
    call->service = service;
    call->request = request;
    call->response = response;
    call->pool = request->pool;
    error = serve(call);
    crm_call_release(call);
    if (error) {
        respond_error(call, error);
    }
}

void crm_api_touch(const crm_service_t *service, void *baton,
                   const char *workspace_id, const char *key_id,
                   apr_pool_t *scratch_pool)
{
    crm_conn_t *conn;
    PGresult *result;
    crm_stmt_t stmt;
    crm_sql_t sql;

    if (service->acquire(&conn, baton, scratch_pool)) {
        return;
    }
    crm_sql_init(&sql, scratch_pool);
    crm_sql_template(&sql, "UPDATE crmapi.api_key SET last_used_at ="
                     " date_trunc('milliseconds', clock_timestamp())"
                     " WHERE workspace_id = ?", workspace_id, "uuid");
    crm_sql_template(&sql, " AND id = ?", key_id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    crm_db_query(&result, conn, &stmt, scratch_pool);
    service->release(conn, baton);
}
