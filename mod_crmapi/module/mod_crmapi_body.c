/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_body.c: reading a request's body within limits (contract 5.3) */
#include "mod_crmapi_body.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>

#include "http_core.h"
#include "http_protocol.h"
#include "util_filter.h"

#include "crm_buf.h"

#include "mod_crmapi_request.h"

/* The number of bytes that the input filters are asked for at a time. */
#define READ_SIZE 65536

/* An unread body of at most this length is read and discarded to keep the
 * connection. A longer one closes it. */
#define DRAIN_MAX 65536

/* From this length on, the memory freed after a request (body, JSON, rows) is
 * returned to the system. */
#define LARGE 262144

static ap_filter_rec_t *catcher_handle;

/* An output filter during the reading of a body. httpd's input filter reports
 * an invalid or too large body by sending an error response itself. It is
 * caught here, so that the response gets the API's format and headers. */
static apr_status_t catch_error(ap_filter_t *f, apr_bucket_brigade *bb)
{
    crmapi_request_t *request = f->ctx;

    for (apr_bucket *b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb);
         b = APR_BUCKET_NEXT(b)) {
        if (AP_BUCKET_IS_ERROR(b)) {
            request->caught = ((ap_bucket_error *)b->data)->status;
            apr_brigade_cleanup(bb);
            return AP_FILTER_ERROR;
        }
    }
    return ap_pass_brigade(f->next, bb);
}

void crmapi_body_register(void)
{
    catcher_handle = ap_register_output_filter("CRMAPI_CATCH", catch_error,
                                               NULL, AP_FTYPE_RESOURCE);
}

/* Return the error for STATUS, by which httpd reports that a body could not be
 * read. */
static crm_error_t *body_error(const crmapi_request_t *request, int status)
{
    apr_pool_t *pool = request->r->pool;

    /* It is unknown where the next request on the connection starts. */
    request->r->connection->keepalive = AP_CONN_CLOSE;
    switch (status) {
    case HTTP_REQUEST_ENTITY_TOO_LARGE:
        return crm_error_create(CRM_E_PAYLOAD_TOO_LARGE, NULL, pool);
    case HTTP_REQUEST_TIME_OUT:
        return crm_error_create(CRM_E_REQUEST_TIMEOUT, NULL, pool);
    default:
        return crm_error_create(CRM_E_BAD_REQUEST, "The request body is "
                                "malformed or incomplete", pool);
    }
}

/* Add the data in BB to BODY, at most MAX bytes in total. */
static crm_error_t *take(crm_buf_t *body, crmapi_request_t *request,
                         apr_bucket_brigade *bb, apr_size_t max)
{
    for (apr_bucket *b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb);
         b = APR_BUCKET_NEXT(b)) {
        const char *data;
        apr_size_t len;

        if (APR_BUCKET_IS_EOS(b)) {
            request->body_read = 1;
            break;
        }
        if (AP_BUCKET_IS_ERROR(b)) {
            return body_error(request, ((ap_bucket_error *)b->data)->status);
        }
        if (APR_BUCKET_IS_METADATA(b)) {
            continue;
        }
        if (apr_bucket_read(b, &data, &len, APR_BLOCK_READ)) {
            return body_error(request, HTTP_BAD_REQUEST);
        }
        if (len > max - body->len) {
            return body_error(request, HTTP_REQUEST_ENTITY_TOO_LARGE);
        }
        crm_buf_add(body, data, len);
    }
    return NULL;
}

/* Read REQUEST's body into BODY, at most MAX bytes. */
static crm_error_t *read_all(crm_buf_t *body, crmapi_request_t *request,
                             apr_size_t max)
{
    request_rec *r = request->r;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool,
                                                r->connection->bucket_alloc);

    while (!request->body_read) {
        apr_status_t status = ap_get_brigade(r->input_filters, bb,
                                             AP_MODE_READBYTES,
                                             APR_BLOCK_READ, READ_SIZE);

        if (request->caught) {
            return body_error(request, request->caught);
        }
        if (status) {
            return body_error(request,
                              ap_map_http_request_error(status,
                                                        HTTP_BAD_REQUEST));
        }
        CRM_ERR(take(body, request, bb, max));
        apr_brigade_cleanup(bb);
    }
    return NULL;
}

/* Set *LENGTH to R's Content-Length, 0 without one. Return 0 if the length is
 * unknown before the body has been read. */
static int known_length(apr_off_t *length, const request_rec *r)
{
    const char *text = apr_table_get(r->headers_in, "Content-Length");

    *length = 0;
    if (apr_table_get(r->headers_in, "Transfer-Encoding")) {
        return 0;
    }
    return !text || ap_parse_strict_length(length, text);
}

/* Return the maximum length of REQUEST's body: the least of CrmApiMaxBody,
 * LimitRequestBody and MAX, the route's limit (0: none). A MAX that is greater than
 * the default of CrmApiMaxBody, because files come with the body, is not limited by
 * it. */
static apr_off_t body_limit(const crmapi_request_t *request, apr_size_t max)
{
    apr_off_t limit = max > CRMAPI_MAX_BODY ? (apr_off_t)max
                      : request->config->max_body;
    apr_off_t site = ap_get_limit_req_body(request->r);

    if (site > 0 && site < limit) {
        limit = site;
    }
    return max && (apr_off_t)max < limit ? (apr_off_t)max : limit;
}

/* A cleanup of a request's pool: return freed memory to the system. glibc keeps
 * the memory that large requests have freed in an arena for each thread. After
 * many bodies of 2 MiB in 25 threads that was 77 times the size of a body, and
 * 13 times with malloc_trim(). */
static apr_status_t trim_memory(void *unused)
{
    (void)unused;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return APR_SUCCESS;
}

static crm_error_t *too_large(apr_off_t limit, apr_pool_t *pool)
{
    return crm_error_createf(CRM_E_PAYLOAD_TOO_LARGE, pool, "The request body has"
                             " more than %" APR_OFF_T_FMT " bytes", limit);
}

crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool)
{
    crmapi_request_t *request = baton;
    request_rec *r = request->r;
    apr_off_t limit = body_limit(request, max), length;
    ap_filter_t *catcher;
    crm_error_t *error;
    crm_buf_t body;

    if (known_length(&length, r) && length > limit) {
        return too_large(limit, pool);
    }
    crm_buf_init(&body, (apr_size_t)(length && length < READ_SIZE ? length + 1
                                     : 4096), pool);
    catcher = ap_add_output_filter_handle(catcher_handle, request, r,
                                          r->connection);
    error = read_all(&body, request, (apr_size_t)limit);
    ap_remove_output_filter(catcher);
    if (body.len >= LARGE) {
        /* Registered first, because cleanups run in reverse order. */
        apr_pool_cleanup_register(r->pool, NULL, trim_memory,
                                  apr_pool_cleanup_null);
    }
    if (error) {
        return error->code == CRM_E_PAYLOAD_TOO_LARGE ? too_large(limit, pool)
               : error;
    }
    *data_p = body.data;
    *len_p = body.len;
    return NULL;
}

int crmapi_decodes(void *baton)
{
    const crmapi_request_t *request = baton;
    const ap_filter_t *filter = request->r->input_filters;

    while (filter && strcmp(filter->frec->name, "deflate")) {
        filter = filter->next;
    }
    return filter != NULL;
}

int crmapi_spare_body(const crmapi_request_t *request)
{
    request_rec *r = request->r;
    apr_off_t length;
    int known = known_length(&length, r);

    if (request->body_read || r->main || (known && !length)) {
        return 0;
    }
    /* It is unknown whether a client that waits for "100 Continue" still sends
     * its body. A long or chunked body is not read. */
    if (!known || length > DRAIN_MAX || r->expecting_100
        || r->connection->keepalive == AP_CONN_CLOSE) {
        r->connection->keepalive = AP_CONN_CLOSE;
        return 0;
    }
    return 1;
}
