/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_handler.c: a request of the API, from httpd and back */
#include "mod_crmapi.h"

#include "apr_strings.h"

#include "http_protocol.h"
#include "util_filter.h"

#include "crm_uuid.h"

APLOG_USE_MODULE(crmapi);

#define REQUEST_ID_MAX 128

/* Return whether ID is one that is kept (contract 5.4). */
static int is_sane_id(const char *id)
{
    size_t len = id ? strspn(id, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") : 0;

    return len && !id[len] && len <= REQUEST_ID_MAX;
}

const char *crmapi_request_id(request_rec *r)
{
    static const char note[] = "crmapi-request-id";
    const char *id = apr_table_get(r->notes, note);

    if (!id) {
        id = r->headers_in ? apr_table_get(r->headers_in, "X-Request-Id")
             : NULL;
        if (!is_sane_id(id)) {
            char *made = apr_palloc(r->pool, CRM_UUID_LEN + 1);

            crm_uuid_v7(made);
            id = made;
        }
        apr_table_setn(r->notes, note, id);
        r->log_id = id;
    }
    return id;
}

void crmapi_set_headers(request_rec *r, apr_table_t *headers)
{
    apr_table_setn(headers, "Cache-Control", "private, no-store");
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "X-Request-Id", crmapi_request_id(r));
}

/* The core's levels are httpd's. */
static void write_log(crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;

    if (response->log) {
        ap_log_rerror(APLOG_MARK, (int)response->level, 0, r,
                      "%s [%s, request %s]", response->log,
                      response->route ? response->route : "no route",
                      crmapi_request_id(r));
    }
    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, r, "CRM1201: %s: %d, %"
                  APR_SIZE_T_FMT " bytes, database %" APR_INT64_T_FMT
                  " us, all %" APR_TIME_T_FMT " us, request %s",
                  response->route ? response->route : "no route",
                  response->status, response->body.len, response->db_us,
                  apr_time_now() - r->request_time, crmapi_request_id(r));
}

/* What the access log may show (contract: never the key itself). */
static void set_notes(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    apr_table_t *notes = request->r->notes;
    apr_pool_t *pool = request->r->pool;

    if (response->workspace_id) {
        apr_table_set(notes, "crmapi-workspace", response->workspace_id);
        apr_table_set(notes, "crmapi-key", response->key_id);
    }
    if (response->route) {
        apr_table_setn(notes, "crmapi-route", response->route);
    }
    apr_table_setn(notes, "crmapi-db-us",
                   apr_psprintf(pool, "%" APR_INT64_T_FMT, response->db_us));
}

static int copy_header(void *headers, const char *name, const char *value)
{
    apr_table_setn(headers, name, value);
    return 1;
}

/* Send the answer; its body lives as long as the request. */
static int send_answer(crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;
    conn_rec *c = r->connection;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, c->bucket_alloc);
    apr_bucket *eos = apr_bucket_eos_create(c->bucket_alloc);

    r->status = response->status;
    r->status_line = NULL;
    apr_table_do(copy_header, r->err_headers_out, response->headers, NULL);
    crmapi_set_headers(r, r->err_headers_out);
    if (response->body.len) {
        ap_set_content_type(r, "application/json");
        ap_set_content_length(r, (apr_off_t)response->body.len);
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(
                                    response->body.data, response->body.len,
                                    r->pool, c->bucket_alloc));
    }
    APR_BRIGADE_INSERT_TAIL(bb, eos);
    ap_pass_brigade(r->output_filters, bb);
    return OK;
}

/* Answer 503 where something is missing that the log has told of. */
static void serve_missing(crmapi_request_t *request)
{
    crm_response_t *response = &request->response;
    apr_pool_t *pool = request->r->pool;
    const crm_error_t *error = crm_error_create(CRM_E_UNAVAILABLE, NULL, pool);

    response->status = crm_code_info(error->code)->status;
    response->headers = apr_table_make(pool, 1);
    apr_table_setn(response->headers, "Retry-After", "60");
    crm_buf_init(&response->body, 256, pool);
    crm_api_write_error(&response->body, error);
}

/* Return whether R's path has two slashes in a row: httpd has merged them,
 * which would make one path of many. */
static int has_empty_segment(const request_rec *r)
{
    const char *path = strstr(r->unparsed_uri, CRM_API_BASE);
    const char *slashes = path ? strstr(path, "//") : NULL;

    return slashes && slashes < path + strcspn(path, "?");
}

static void serve(crmapi_request_t *request)
{
    request_rec *r = request->r;
    crm_request_t api;

    api.pool = r->pool;
    api.baton = request;
    api.method = r->method;
    api.path = has_empty_segment(r) ? "//"
               : r->uri + sizeof(CRM_API_BASE) - 1;
    api.query = r->args;
    api.authorization = apr_table_get(r->headers_in, "Authorization");
    api.content_type = apr_table_get(r->headers_in, "Content-Type");
    api.prefer = apr_table_get(r->headers_in, "Prefer");
    api.request_id = crmapi_request_id(r);
    api.asks_first = r->expecting_100;
    crm_api_serve(&request->response, &request->config->service, &api);
    if (request->response.status == HTTP_SERVICE_UNAVAILABLE) {
        request->config->ready = 0;     /* look at the schema again */
    }
}

int crmapi_handler(request_rec *r)
{
    crmapi_config_t *config = crmapi_config(r->server);
    crmapi_request_t *request;

    if (!r->handler || strcmp(r->handler, "crmapi") || config->enabled != 1) {
        return DECLINED;
    }
    request = apr_pcalloc(r->pool, sizeof(*request));
    request->r = r;
    request->config = config;
    ap_set_module_config(r->request_config, &crmapi_module, request);
    r->allowed = ~(apr_int64_t)0;
    if (config->missing) {
        serve_missing(request);
    }
    else {
        serve(request);
    }
    set_notes(request);
    write_log(request);
    crmapi_spare_body(request);
    crmapi_status_count(request->response.status, request->response.db_us);
    return send_answer(request);
}

/* The answer is out: now the key's last use may be written down, if that
 * makes nobody wait. */
int crmapi_log_transaction(request_rec *r)
{
    crmapi_request_t *request = ap_get_module_config(r->request_config,
                                                     &crmapi_module);

    if (request && request->response.touch
        && request->response.workspace_id) {
        request->response.touch = 0;
        request->no_wait = 1;
        crm_api_touch(&request->config->service, request,
                      request->response.workspace_id,
                      request->response.key_id, r->pool);
    }
    return DECLINED;
}
