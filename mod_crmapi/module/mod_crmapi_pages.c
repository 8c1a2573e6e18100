/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_pages.c: pages that people open from mails, from httpd and back */
#include "mod_crmapi.h"

#include <string.h>

#include "apr_strings.h"

#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"

#include "crm_pages.h"
#include "crm_uuid.h"

APLOG_USE_MODULE(crmapi);

#define HANDLER "crmapi-page"

/* A note of a request that no rewriting has led elsewhere: it is for a page. */
#define NOTE "crmapi-page"

/* Why this process can serve nothing, told in the log. */
static int refusing;

void crmapi_pages_refuse_all(void)
{
    refusing = 1;
}

/* Return what follows PATH (NULL or "": none) in R's path, NULL if R is for
 * something else. */
static const char *rest_of(const request_rec *r, const char *path)
{
    size_t len = path ? strlen(path) : 0;

    return len && r->uri && !strncmp(r->uri, path, len) ? r->uri + len : NULL;
}

/* Return the token in R's path, NULL if R is for no page; set *KIND_P to which
 * one it is for. */
static const char *find_page(crm_page_kind_t *kind_p, const request_rec *r)
{
    const crmapi_config_t *config = crmapi_config(r->server);
    const char *rest = rest_of(r, config->review_path);

    *kind_p = CRM_PAGE_REVIEW;
    if (!rest) {
        *kind_p = CRM_PAGE_UNSUBSCRIBE;
        rest = rest_of(r, config->unsubscribe_path);
    }
    return rest;
}

/* A hook: R's path is decoded, mod_rewrite has had its say, mod_proxy not yet.
 * What mod_alias redirects comes after. */
static int translate_name(request_rec *r)
{
    crm_page_kind_t kind;

    if (!r->proxyreq && find_page(&kind, r)) {
        apr_table_setn(r->notes, NOTE, "");
    }
    return DECLINED;
}

/* A hook: a page is no file: no module is to look for one. */
static int map_to_storage(request_rec *r)
{
    crm_page_kind_t kind;

    if (!apr_table_get(r->notes, NOTE) || !find_page(&kind, r)) {
        return DECLINED;
    }
    /* A ProxyPass of all that a site has does not take pages along. */
    r->proxyreq = PROXYREQ_NONE;
    r->handler = HANDLER;
    /* Nothing that mod_mime would see a file's extension in. */
    r->filename = apr_pstrdup(r->pool, HANDLER ":");
    r->path_info = NULL;
    return OK;
}

/* Fill REQUEST, what the API's functions know a request by, with R. It is not
 * found by crmapi_request_find(): errors of httpd's stay httpd's here. */
static void begin(crmapi_request_t *request, request_rec *r)
{
    crmapi_config_t *config = apr_pmemdup(r->pool, crmapi_config(r->server),
                                          sizeof(*config));
    char *id = apr_palloc(r->pool, CRM_UUID_LEN + 1);

    if (config->max_body > CRM_PAGE_BODY_MAX) {
        config->max_body = CRM_PAGE_BODY_MAX;
    }
    crm_uuid_v7(id);
    memset(request, 0, sizeof(*request));
    request->r = r;
    request->config = config;
    request->id = id;
}

/* Serve REQUEST, for the page KIND with TOKEN. */
static void serve(crmapi_request_t *request, crm_page_kind_t kind,
                  const char *token)
{
    request_rec *r = request->r;
    crm_page_request_t page;

    page.pool = r->pool;
    page.baton = request;
    page.kind = kind;
    page.method = r->method;
    page.token = token;
    page.query = r->args;
    page.content_type = apr_table_get(r->headers_in, "Content-Type");
    page.host = apr_table_get(r->headers_in, "Host");
    page.origin = apr_table_get(r->headers_in, "Origin");
    page.fetch_site = apr_table_get(r->headers_in, "Sec-Fetch-Site");
    page.now = apr_time_now();
    crm_page_serve(&request->response, &request->config->service, &page);
}

/* The core's levels are httpd's. No line has a token in it. */
static void write_log(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;

    if (response->log) {
        ap_log_rerror(APLOG_MARK, (int)response->level, 0, request->r,
                      "%s [%s, request %s]", response->log, response->route,
                      request->id);
    }
}

/* What the access log may show. */
static void set_notes(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    apr_table_t *notes = request->r->notes;

    if (response->workspace_id) {
        apr_table_setn(notes, "crmapi-workspace", response->workspace_id);
    }
    apr_table_setn(notes, "crmapi-route", response->route);
    apr_table_setn(notes, "crmapi-db-us",
                   apr_psprintf(request->r->pool, "%" APR_INT64_T_FMT,
                                response->db_us));
}

/* Set NAME to VALUE, once. */
static int set_header(void *r, const char *name, const char *value)
{
    apr_table_unset(((request_rec *)r)->err_headers_out, name);
    apr_table_setn(((request_rec *)r)->headers_out, name, value);
    return 1;
}

/* Send the answer; its body lives as long as the request. */
static int send_answer(crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, alloc);
    int rest = crmapi_spare_body(request);

    r->status = response->status;
    r->status_line = NULL;
    r->no_local_copy = 1;
    apr_table_do(set_header, r, response->headers, NULL);
    ap_set_content_length(r, (apr_off_t)response->body.len);
    if (response->body.len) {
        ap_set_content_type(r, "text/html; charset=utf-8");
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(
                                    response->body.data, response->body.len,
                                    r->pool, alloc));
    }
    if (rest) {
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(alloc));
    }
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(alloc));
    return ap_pass_brigade(r->output_filters, bb) == APR_SUCCESS
           || r->connection->aborted ? OK : AP_FILTER_ERROR;
}

/* A hook: serve R if it is for a page. */
static int handler(request_rec *r)
{
    crmapi_request_t *request;
    crm_page_kind_t kind;
    const char *token;

    if (!r->handler || strcmp(r->handler, HANDLER)) {
        return DECLINED;
    }
    token = find_page(&kind, r);
    if (!token || !apr_table_get(r->notes, NOTE)) {
        return DECLINED;
    }
    if (refusing) {
        return HTTP_SERVICE_UNAVAILABLE;
    }
    request = apr_palloc(r->pool, sizeof(*request));
    begin(request, r);
    serve(request, kind, token);
    set_notes(request);
    write_log(request);
    return send_answer(request);
}

void crmapi_pages_register(void)
{
    static const char *const rewrite[] = {"mod_rewrite.c", NULL};
    static const char *const proxy[] = {"mod_proxy.c", NULL};

    ap_hook_translate_name(translate_name, rewrite, proxy, APR_HOOK_FIRST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_FIRST);
}
