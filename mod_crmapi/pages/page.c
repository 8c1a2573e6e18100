/* SPDX-License-Identifier: Apache-2.0 */
/* page.c: a request for a page, from its token to its answer */
#include "crm_page.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_form.h"

/* Whether the token of the head $3 and the signature $4 is one of its workspace
 * $1; no row: this server is for another one, $2, an id or a slug. */
static const char signed_sql[] =
    "SELECT crmapi.token_signed($3::bytea, $4::bytea)"
    " FROM crmapi.workspace w WHERE w.id = $1::uuid AND ($2::text IS NULL"
    " OR w.id::text = lower($2::text) OR w.slug = $2::text)";

crm_error_t *crm_page_query(PGresult **result_p, const crm_page_t *page,
                            const char *sql, int count,
                            const char *const *values)
{
    apr_time_t began = apr_time_now();
    crm_stmt_t stmt;
    crm_error_t *error;

    stmt.sql = sql;
    stmt.count = count;
    stmt.values = values;
    error = crm_db_query(result_p, page->conn, &stmt, page->pool);
    page->response->db_us += apr_time_now() - began;
    return error;
}

/* Set *IS_P to whether the token of PAGE was signed by its workspace. */
static crm_error_t *authenticate(int *is_p, crm_page_t *page,
                                 const crm_service_t *service)
{
    const char *values[4];
    PGresult *result;

    values[0] = page->token.workspace_id;
    values[1] = service->settings.workspace;
    crm_token_parts(&values[2], &values[3], page->request->token, page->pool);
    CRM_ERR(crm_page_query(&result, page, signed_sql, 4, values));
    *is_p = PQntuples(result) == 1 && *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* Say that the link of RESPONSE's page is too old. */
static void say_expired(crm_response_t *response, apr_pool_t *pool)
{
    crm_page_say(response, 410, "This link has expired",
                 "Ask whoever sent it to you for a new one.", pool);
}

/* Serve PAGE, which has a connection. */
static crm_error_t *serve_with_conn(crm_page_t *page,
                                    const crm_service_t *service)
{
    int is_good;

    CRM_ERR(authenticate(&is_good, page, service));
    if (!is_good) {
        crm_page_refuse(page->response, page->pool);
        return NULL;
    }
    page->response->workspace_id = apr_pstrdup(page->pool,
                                               page->token.workspace_id);
    if (crm_token_expired(&page->token, page->request->now)) {
        say_expired(page->response, page->pool);
        return NULL;
    }
    return page->request->kind == CRM_PAGE_REVIEW
           ? crm_page_review(page) : crm_page_unsubscribe(page);
}

/* Read the form of PAGE's request. */
static crm_error_t *read_form(crm_page_t *page, const crm_service_t *service)
{
    apr_array_header_t *fields;
    const char *body;
    apr_size_t len;

    CRM_ERR(service->read_body(&body, &len, page->request->baton,
                               page->pool));
    CRM_ERR(crm_form_parse(&fields, body, len, page->request->content_type,
                           page->pool));
    page->fields = fields;
    return NULL;
}

/* Serve PAGE. A client that sends its form slowly holds no connection. */
static crm_error_t *serve(crm_page_t *page, const crm_service_t *service)
{
    apr_time_t began;
    crm_error_t *error;

    if (page->posts) {
        CRM_ERR(read_form(page, service));
    }
    began = apr_time_now();
    error = service->acquire(&page->conn, page->request->baton, page->pool);
    page->response->db_us += apr_time_now() - began;
    if (!error) {
        error = serve_with_conn(page, service);
        service->release(page->conn, page->request->baton);
        page->conn = NULL;
    }
    return error;
}

/* Make RESPONSE a page that tells of ERROR. */
static void say_error(crm_response_t *response, const crm_error_t *error,
                      apr_pool_t *pool)
{
    int status = crm_code_info(error->code)->status;

    if (status >= 500) {
        crm_page_say(response, status, "Please try again",
                     "This does not work at the moment. Nothing has been "
                     "changed. Please try again in a minute.", pool);
    }
    else {
        crm_page_say(response, status, "This did not work", error->message,
                     pool);
    }
    if (error->retry_after) {
        apr_table_setn(response->headers, "Retry-After",
                       apr_itoa(pool, error->retry_after));
    }
    response->log = error->log;
    response->level = CRM_LOG_ERR;
}

/* Return the route of REQUEST, for the log: no token. */
static const char *route_of(const crm_page_request_t *request)
{
    return apr_pstrcat(request->pool, request->method,
                       request->kind == CRM_PAGE_REVIEW
                       ? " review page" : " unsubscribe page", NULL);
}

void crm_page_serve(crm_response_t *response, const crm_service_t *service,
                    const crm_page_request_t *request)
{
    int reads = !strcmp(request->method, "GET")
                || !strcmp(request->method, "HEAD");
    crm_page_t page;
    crm_error_t *error;

    memset(response, 0, sizeof(*response));
    memset(&page, 0, sizeof(page));
    page.request = request;
    page.response = response;
    page.pool = request->pool;
    page.posts = !strcmp(request->method, "POST");
    response->route = "other page";
    if (!reads && !page.posts) {
        crm_page_say(response, 405, "This did not work",
                     "A page is there for reading and for sending its form.",
                     request->pool);
        apr_table_setn(response->headers, "Allow", "GET, HEAD, POST");
        return;
    }
    response->route = route_of(request);
    if (!crm_token_read(&page.token, request->token, strlen(request->token))
        || page.token.purpose != (request->kind == CRM_PAGE_REVIEW
                                  ? CRM_TOKEN_REVIEW
                                  : CRM_TOKEN_UNSUBSCRIBE)) {
        crm_page_refuse(response, request->pool);
        return;
    }
    error = serve(&page, service);
    if (error) {
        say_error(response, error, request->pool);
    }
}
