/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_body.c: reading a request's body within bounds (contract 5.3) */
#include "mod_crmapi.h"

#include "apr_strings.h"

#include "http_protocol.h"
#include "util_filter.h"

/* A body that was not wanted and is larger is not read to keep the
 * connection. */
#define SPARED 65536

static crm_error_t *too_large(apr_pool_t *pool)
{
    return crm_error_create(CRM_E_PAYLOAD_TOO_LARGE, NULL, pool);
}

/* Return what httpd's input filters say as an error. */
static crm_error_t *read_error(apr_status_t status, apr_pool_t *pool)
{
    if (APR_STATUS_IS_TIMEUP(status)) {
        return crm_error_create(CRM_E_REQUEST_TIMEOUT, NULL, pool);
    }
    if (status == AP_FILTER_ERROR) {
        return too_large(pool);
    }
    if (APR_STATUS_IS_ENOSPC(status)) {
        return too_large(pool);
    }
    return crm_error_create(CRM_E_BAD_REQUEST,
                            "The request's body is malformed or incomplete",
                            pool);
}

/* Add the data of BB to BODY; *END_P = the end of the body is there. */
static crm_error_t *add_brigade(crm_buf_t *body, int *end_p,
                                apr_bucket_brigade *bb, apr_size_t max,
                                apr_pool_t *pool)
{
    for (apr_bucket *bucket = APR_BRIGADE_FIRST(bb);
         bucket != APR_BRIGADE_SENTINEL(bb);
         bucket = APR_BUCKET_NEXT(bucket)) {
        const char *data;
        apr_size_t len;
        apr_status_t status;

        if (APR_BUCKET_IS_EOS(bucket)) {
            *end_p = 1;
            return NULL;
        }
        if (APR_BUCKET_IS_METADATA(bucket)) {
            continue;
        }
        status = apr_bucket_read(bucket, &data, &len, APR_BLOCK_READ);
        if (status) {
            return read_error(status, pool);
        }
        if (len > max - body->len) {
            return too_large(pool);
        }
        crm_buf_add(body, data, len);
    }
    return NULL;
}

static crm_error_t *read_all(crm_buf_t *body, crmapi_request_t *request,
                             apr_size_t max, apr_pool_t *pool)
{
    request_rec *r = request->r;
    apr_bucket_brigade *bb = apr_brigade_create(pool,
                                                r->connection->bucket_alloc);
    crm_error_t *error = NULL;

    while (!error && !request->body_read) {
        apr_status_t status = ap_get_brigade(r->input_filters, bb,
                                             AP_MODE_READBYTES,
                                             APR_BLOCK_READ, HUGE_STRING_LEN);

        error = status ? read_error(status, pool)
                : add_brigade(body, &request->body_read, bb, max, pool);
        apr_brigade_cleanup(bb);
    }
    return error;
}

/* Set *LENGTH_P to the Content-Length that R has, -1 for none. */
static void content_length(apr_off_t *length_p, const request_rec *r)
{
    const char *value = apr_table_get(r->headers_in, "Content-Length");
    char *end;

    if (!value || apr_strtoff(length_p, value, &end, 10) || *end) {
        *length_p = -1;
    }
}

crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              void *baton, apr_pool_t *pool)
{
    crmapi_request_t *request = baton;
    apr_size_t max = (apr_size_t)request->config->max_body;
    crm_error_t *error;
    apr_off_t length;
    crm_buf_t body;

    content_length(&length, request->r);
    if (length > (apr_off_t)max) {
        return too_large(pool);
    }
    crm_buf_init(&body, length > 0 ? (apr_size_t)length + 1 : 1024, pool);
    error = read_all(&body, request, max, pool);
    if (error) {
        request->r->connection->keepalive = AP_CONN_CLOSE;
        return error;
    }
    crm_buf_putc(&body, '\0');
    *data_p = body.data;
    *len_p = body.len - 1;
    return NULL;
}

void crmapi_spare_body(const crmapi_request_t *request)
{
    const request_rec *r = request->r;
    apr_off_t length;

    if (request->body_read) {
        return;
    }
    content_length(&length, r);
    if (length > SPARED || r->expecting_100
        || apr_table_get(r->headers_in, "Transfer-Encoding")) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}
