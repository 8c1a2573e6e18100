/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_error.c: httpd's own errors under /api/v1 as JSON (contract
 * 5.5) */
#include "mod_crmapi_error.h"

#include <string.h>

#include "apr_strings.h"

#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"
#include "mod_core.h"
#include "util_filter.h"

#include "crm_array.h"
#include "crm_envelope.h"

#include "mod_crmapi_handler.h"
#include "mod_crmapi_request.h"

static ap_filter_rec_t *error_handle;

/* Return the error shown to the client for STATUS. */
static crm_error_t *describe(int status, apr_pool_t *pool)
{
    crm_code_t code = crm_code_from_status(status);

    if (crm_code_info(code)->status == status) {
        return crm_error_create(code, NULL, pool);
    }
    return crm_error_create(code, ap_get_status_line(status) + 4, pool);
}

/* Remove the headers of httpd's error page and of the response it replaces. */
static void clear_headers(request_rec *r)
{
    static const char *const names[] = {
        "Accept-Ranges", "Content-Disposition", "Content-Encoding",
        "Content-Language", "Content-Range", "Content-Security-Policy", "ETag",
        "Last-Modified", "Location"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        apr_table_unset(r->headers_out, names[i]);
        apr_table_unset(r->err_headers_out, names[i]);
    }
    r->content_encoding = NULL;
    r->content_languages = NULL;
    r->status_line = NULL;
}

/* Return whether R's response has the header NAME. */
static int has_header(const request_rec *r, const char *name)
{
    return apr_table_get(r->headers_out, name)
           || apr_table_get(r->err_headers_out, name);
}

/* The output filter of an error response. It replaces httpd's page by the JSON
 * envelope (contract 5.5). */
static apr_status_t error_filter(ap_filter_t *f, apr_bucket_brigade *bb)
{
    request_rec *r = f->r;
    crmapi_request_t *request = crmapi_request_find(r);
    crm_error_t *error;
    crm_buf_t *body;

    apr_brigade_cleanup(bb);
    if (f->ctx) {               /* already sent */
        return APR_SUCCESS;
    }
    request->response.content_type = NULL;      /* that of what it replaces */
    body = f->ctx = apr_palloc(r->pool, sizeof(*body));
    error = describe(r->status, r->pool);
    crm_buf_init(body, 256, r->pool);
    crm_envelope_error(body, error);
    crmapi_set_headers(request, body->len);
    clear_headers(r);
    if (error->retry_after && !has_header(r, "Retry-After")) {
        /* where "Header always set" replaces it */
        apr_table_setn(r->err_headers_out, "Retry-After",
                       apr_itoa(r->pool, error->retry_after));
    }
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(body->data, body->len,
                                                       r->pool,
                                                       bb->bucket_alloc));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(bb->bucket_alloc));
    return ap_pass_brigade(f->next, bb);
}

/* Return the original status of R. If an error occurred before R had a state,
 * and its ErrorDocument is a URL, httpd has made it a redirect. Then the status
 * is the one whose ErrorDocument is the redirect's Location. Return 0 if R is
 * any other redirect. */
static int original_status(request_rec *r)
{
    const char *location = apr_table_get(r->headers_out, "Location");

    for (int status = HTTP_BAD_REQUEST; location && status < 600; status++) {
        int index = ap_index_of_response(status);
        const char *document;

        if (index == ap_index_of_response(HTTP_INTERNAL_SERVER_ERROR)
            && status != HTTP_INTERNAL_SERVER_ERROR) {
            continue;           /* an unknown status */
        }
        document = ap_response_code_string(r, index);
        if (document && !strcmp(document, location)) {
            return status;
        }
    }
    return 0;
}

/* The insert_error_filter hook: httpd is about to send an error or a
 * redirect. */
static void insert_error_filter(request_rec *r)
{
    crmapi_request_t *request;

    if (r->main || !crmapi_has_json_errors(r)) {
        return;
    }
    if (ap_is_HTTP_REDIRECT(r->status) && !crmapi_request_find(r)) {
        int status = original_status(r);

        r->status = status ? status : r->status;
    }
    request = crmapi_request_begin(r);
    if (ap_is_HTTP_ERROR(r->status)) {
        ap_add_output_filter_handle(error_handle, NULL, r, r->connection);
    }
    else {
        apr_table_setn(r->err_headers_out, "X-Request-Id", request->id);
    }
}

/* The quick_handler hook. R may be an internal redirect to a local
 * ErrorDocument, for an error that occurred before the request had a state. In
 * this case return the status of the error, which httpd then sends without the
 * document. */
static int refuse_document(request_rec *r, int lookup)
{
    const request_rec *failed = r->prev;

    if (lookup || !failed || !ap_is_HTTP_ERROR(failed->status)
        || !crmapi_has_json_errors(failed)) {
        return DECLINED;
    }
    return failed->status;
}

void crmapi_error_register(void)
{
    error_handle = ap_register_output_filter("CRMAPI_ERROR", error_filter,
                                             NULL, AP_FTYPE_RESOURCE);
    ap_hook_insert_error_filter(insert_error_filter, NULL, NULL,
                                APR_HOOK_LAST);
    ap_hook_quick_handler(refuse_document, NULL, NULL,
                          APR_HOOK_REALLY_FIRST);
}
