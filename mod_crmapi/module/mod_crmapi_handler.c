/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_handler.c: between httpd's request_rec and the pipeline */
#include "mod_crmapi_handler.h"

#include <poll.h>
#include <string.h>

#include "apr_strings.h"

#include "ap_mpm.h"
#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"
#include "util_filter.h"

#include "crm_array.h"
#include "crm_time.h"
#include "crm_touch.h"
#include "crm_trace.h"

#include "mod_crmapi_body.h"
#include "mod_crmapi_keepalive.h"
#include "mod_crmapi_metrics.h"
#include "mod_crmapi_outage.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_request.h"
#include "mod_crmapi_usage.h"
#include "mod_crmapi_wait.h"

APLOG_USE_MODULE(crmapi);

/* Set the header NAME to VALUE, replacing others, for successes and errors. */
static int set_header(void *r, const char *name, const char *value)
{
    apr_table_unset(((request_rec *)r)->headers_out, name);
    apr_table_setn(((request_rec *)r)->err_headers_out, name, value);
    return 1;
}

void crmapi_set_headers(crmapi_request_t *request, apr_off_t len)
{
    /* Filters look for these in headers_out: mod_deflate and mod_brotli mark the
     * tag of what they compress, and do not compress a part. */
    static const char *const seen[] = {"ETag", "Content-Range"};
    request_rec *r = request->r;

    set_header(r, "Cache-Control", "private, no-store");
    set_header(r, "X-Content-Type-Options", "nosniff");
    set_header(r, "X-Request-Id", request->id);
    if (request->response.headers) {
        apr_table_do(set_header, r, request->response.headers, NULL);
    }
    for (size_t i = 0; i < CRM_NELTS(seen); i++) {
        const char *value = apr_table_get(r->err_headers_out, seen[i]);

        if (value) {
            apr_table_unset(r->err_headers_out, seen[i]);
            apr_table_setn(r->headers_out, seen[i], value);
        }
    }
    if (len || request->response.content_type) {
        ap_set_content_type(r, request->response.content_type
                               ? request->response.content_type
                               : "application/json");
        ap_set_content_length(r, len);
    }
    else {
        r->content_type = NULL;
    }
}

/* Log REQUEST's line. Of an outage, the line of one request is enough. */
static void write_line(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    crmapi_pool_t *pool = request->config->pool;
    request_rec *r = request->r;
    const char *text = apr_psprintf(r->pool, "%s [%s, request %s]",
                                    response->log, response->route
                                    ? response->route : "no route",
                                    request->id);

    if (response->outage == CRM_OUTAGE_AWAY && pool) {
        crmapi_outage_tell(pool, text, (int)response->level, r->server,
                           r->pool);
    }
    else if (response->outage != CRM_OUTAGE_REFUSAL || !pool
             || crmapi_pool_refusal_is_news(pool, response->log)) {
        ap_log_rerror(APLOG_MARK, (int)response->level, 0, r, "%s", text);
    }
}

/* Log REQUEST. The values of crm_level_t are httpd's log levels. */
static void write_log(crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;

    if (response->log) {
        write_line(request);
    }
    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, r, "CRM1201: %s: %d, %"
                  APR_SIZE_T_FMT " bytes, database %" APR_INT64_T_FMT
                  " us, all %" APR_INT64_T_FMT " us, request %s",
                  response->route ? response->route : "no route",
                  response->status, response->body.len, response->db_us,
                  crm_time_monotonic() - request->begun, request->id);
}

/* Set the notes for the access log. None contains the key itself. */
static void set_notes(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    apr_table_t *notes = request->r->notes;
    apr_pool_t *pool = request->r->pool;

    if (request->trace) {
        apr_table_setn(notes, "crmapi-trace", request->trace);
    }
    if (response->workspace_id) {
        apr_table_set(notes, "crmapi-workspace", response->workspace_id);
    }
    if (response->key_id) {
        apr_table_set(notes, "crmapi-key", response->key_id);
    }
    if (response->route) {
        apr_table_setn(notes, "crmapi-route", response->route);
    }
    apr_table_setn(notes, "crmapi-db-us",
                   apr_psprintf(pool, "%" APR_INT64_T_FMT, response->db_us));
}

/* If an output filter of R compresses, add the Vary that the response to the
 * same request without If-None-Match has (RFC 9110, section 15.4.5): such
 * filters ignore responses without a body. */
static void vary_by_coding(request_rec *r)
{
    static const char *const names[] = {"deflate", "brotli"};

    for (const ap_filter_t *f = r->output_filters; f; f = f->next) {
        for (size_t i = 0; i < CRM_NELTS(names); i++) {
            if (ap_strcasestr(f->frec->name, names[i])) {
                apr_table_mergen(r->headers_out, "Vary", "Accept-Encoding");
                return;
            }
        }
    }
}

/* End the response of R because of ERROR. If a part of it was SENT, its client shall
 * know that it is not whole, which httpd does for this status. */
static void break_off(request_rec *r, apr_bucket_brigade *bb,
                      const crm_error_t *error, int sent)
{
    int status = sent ? HTTP_BAD_GATEWAY : crm_code_info(error->code)->status;

    apr_brigade_cleanup(bb);
    if (sent) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
    APR_BRIGADE_INSERT_TAIL(bb, ap_bucket_error_create(
                                status, NULL, r->pool,
                                r->connection->bucket_alloc));
}

/* Send the stream of REQUEST's response in BB, part by part: each is out before
 * the next one is read. */
static void send_stream(crmapi_request_t *request, apr_bucket_brigade *bb)
{
    crm_stream_t *stream = request->response.stream;
    request_rec *r = request->r;
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    crm_error_t *error = NULL;
    apr_pool_t *pool;
    int sent = 0;

    apr_pool_create(&pool, r->pool);
    while (!error && stream->left && !r->connection->aborted) {
        const char *data;
        apr_size_t len;

        apr_pool_clear(pool);
        error = stream->read(&data, &len, stream, pool);
        if (!error) {
            APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_transient_create(
                                        data, len, alloc));
            APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(alloc));
            if (ap_pass_brigade(r->output_filters, bb) != APR_SUCCESS) {
                r->connection->aborted = 1;
            }
            apr_brigade_cleanup(bb);
            sent = 1;
        }
    }
    if (error) {
        ap_log_rerror(APLOG_MARK, error->code == CRM_E_NOT_FOUND
                      || error->code == CRM_E_REQUEST_TIMEOUT
                      ? APLOG_INFO : APLOG_ERR, 0, r,
                      "CRM1203: the response was broken off, %"
                      APR_OFF_T_FMT " bytes before its end: %s [%s, request"
                      " %s]", stream->left,
                      error->log ? error->log : error->message,
                      request->response.route, request->id);
        break_off(r, bb, error, sent);
    }
    apr_pool_destroy(pool);
}

/* The body lives as long as the request. httpd would take the part of it that
 * comes for a HEAD for all of it. If a rest of the request's body must still be
 * read, the response is flushed before. */
int crmapi_send_answer(crmapi_request_t *request, int flush)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, alloc);
    int rest = crmapi_spare_body(request) || flush;
    int streams = response->stream && !r->header_only;

    set_notes(request);
    /* parts are of files only, which are cut already */
    ap_remove_output_filter_byhandle(r->output_filters, "byterange");
    r->status = response->status;
    r->status_line = NULL;
    r->no_local_copy = 1;
    r->content_encoding = NULL;
    r->content_languages = NULL;
    crmapi_set_headers(request, (apr_off_t)response->body.len
                       + (response->stream ? response->stream->left : 0));
    if (response->status == HTTP_NOT_MODIFIED) {
        vary_by_coding(r);
    }
    if (response->body.len && (streams || !response->stream)) {
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(
                                    response->body.data, response->body.len,
                                    r->pool, alloc));
    }
    if (rest) {
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(alloc));
    }
    if (streams) {
        send_stream(request, bb);
    }
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(alloc));
    return ap_pass_brigade(r->output_filters, bb) == APR_SUCCESS
           || r->connection->aborted ? OK : AP_FILTER_ERROR;
}

/* Return the path in TARGET, which may begin with a scheme and a host. */
static const char *path_of(const char *target)
{
    const char *host = *target == '/' ? NULL : strstr(target, "://");

    return host ? strchrnul(host + 3, '/') : target;
}

/* Return whether REQUEST's path has two consecutive slashes below its mount.
 * httpd has merged them in R's uri, so that different paths would be equal. */
static int has_empty_segment(const crmapi_request_t *request)
{
    const request_rec *r = request->r;
    size_t base = (size_t)(request->path - r->uri);
    const char *target = path_of(r->unparsed_uri);
    const char *path = strlen(target) > base ? target + base : "";
    const char *slashes = strstr(path, "//");

    return slashes && slashes < path + strcspn(path, "?");
}

static void serve(crmapi_request_t *request)
{
    request_rec *r = request->r;
    /* as long as the response, which may be read on while it is sent */
    crm_request_t *parts = apr_pcalloc(r->pool, sizeof(*parts));

    request->trace = crm_trace_read(apr_table_get(r->headers_in,
                                                  "traceparent"), r->pool);
    parts->pool = r->pool;
    parts->baton = request;
    parts->method = r->method;
    parts->path = has_empty_segment(request) ? "//" : request->path;
    parts->query = r->args;
    parts->target = r->unparsed_uri;
    parts->scheme = ap_http_scheme(r);
    parts->address = r->useragent_ip;
    parts->request_id = request->id;
    parts->trace = request->trace;
    parts->headers = r->headers_in;
    parts->expects_continue = r->expecting_100;
    crm_serve(&request->response, &request->config->service,
              request->mount->mount, parts);
}

/* The end of the client's data is seen behind unread data, too: TLS sends a
 * message before it closes a connection. A stream of HTTP/2 has a connection
 * without a client's socket, and mod_http2 marks it as aborted. */
int crmapi_aborted(void *baton)
{
    const crmapi_request_t *request = baton;
    conn_rec *c = request->r->connection;
    apr_socket_t *socket = c->master ? NULL : ap_get_conn_socket(c);
    struct pollfd poller = {-1, POLLRDHUP, 0};

    return c->aborted
           || (socket && apr_os_sock_get(&poller.fd, socket) == APR_SUCCESS
               && poll(&poller, 1, 0) == 1);
}

/* Serve REQUEST again as long as its response waits. */
static crmapi_wait_t wait_for_news(crmapi_request_t *request)
{
    crmapi_wait_t what = CRMAPI_WAIT_OVER;

    while (request->response.waits) {
        what = crmapi_wait(request);
        if (what != CRMAPI_WAIT_AGAIN) {
            return what;
        }
        crm_serve_again(&request->response);
    }
    return what;
}

/* Send REQUEST's response. */
static int finish(crmapi_request_t *request)
{
    crmapi_wait_end(request);
    write_log(request);
    return crmapi_send_answer(request, 0);
}

crmapi_wait_t crmapi_resume(crmapi_request_t *request)
{
    request_rec *r = request->r;
    apr_thread_mutex_t *mutex = r->invoke_mtx;
    crmapi_wait_t what = CRMAPI_WAIT_OVER;

    apr_thread_mutex_lock(mutex);
    if (crmapi_aborted(request)) {
        r->connection->aborted = 1;
    }
    else {
        crm_serve_again(&request->response);
        what = wait_for_news(request);
    }
    if (what == CRMAPI_WAIT_SUSPENDED) {
        apr_thread_mutex_unlock(mutex);
        return what;
    }
    r->connection->keepalive = AP_CONN_CLOSE;
    if (finish(request) != OK) {
        r->connection->aborted = 1;
    }
    apr_thread_mutex_unlock(mutex);
    ap_finalize_request_protocol(r);
    ap_process_request_after_handler(r);
    return what;
}

int crmapi_handler(request_rec *r)
{
    crmapi_request_t *request = crmapi_request_find(r);

    /* A rewrite rule in a <Location> may have moved the request after it was
     * claimed. */
    if (!request || !request->claimed || r->proxyreq
        || !strcmp(r->handler, "redirect-handler")) {
        return DECLINED;
    }
    serve(request);
    if (wait_for_news(request) == CRMAPI_WAIT_SUSPENDED) {
        return SUSPENDED;
    }
    /* the time until the client's next request is none of this one */
    r->request_time += request->response.idle;
    request->begun += request->response.idle;
    if (request->response.sent) {
        write_log(request);
        return request->result;
    }
    crmapi_keepalive(r, request->config->keepalive_wait);
    return finish(request);
}

int crmapi_log_transaction(request_rec *r)
{
    crmapi_request_t *request = crmapi_request_find(r);

    if (!request) {
        return DECLINED;
    }
    crmapi_metrics_count(request, r->status);
    crmapi_usage_count(request, r->status);
    if (request->response.touch && request->response.workspace_id) {
        request->response.touch = 0;
        request->answered = 1;
        crm_touch(&request->config->service, request, &request->response,
                  request->id, r->pool);
    }
    return DECLINED;
}
