/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_error.c: httpd's own errors under /api/v1 as JSON (contract 5.5) */
#include "mod_crmapi.h"

#include "apr_strings.h"

#include "http_protocol.h"
#include "util_filter.h"

static const char filter_name[] = "CRMAPI_ERROR";

/* Return the request that R answers: R itself, or the one whose ErrorDocument
 * it is. */
static const request_rec *first_request(const request_rec *r)
{
    while (r->prev) {
        r = r->prev;
    }
    return r;
}

/* Return whether R asks for something under /api/v1, by what is known: where
 * the request line could not be parsed, by its text. */
static int asks_for_api(const request_rec *r)
{
    const char *path = r->uri ? r->uri : r->unparsed_uri;

    if (crmapi_is_ours(path)) {
        return 1;
    }
    path = r->the_request ? strchr(r->the_request, ' ') : NULL;
    return path && crmapi_is_ours(path + strspn(path, " "));
}

/* Return the status that the client is to see: that of the error, not of the
 * document that a site shows for it. */
static int error_status(const request_rec *r)
{
    const request_rec *first = first_request(r);

    return first->status >= 400 ? first->status : r->status;
}

static void add_filter(request_rec *r)
{
    const request_rec *first = first_request(r);

    if (crmapi_config(r->server)->enabled == 1 && asks_for_api(first)
        && error_status(r) >= 400) {
        ap_add_output_filter(filter_name, NULL, r, r->connection);
    }
}

void crmapi_insert_error_filter(request_rec *r)
{
    add_filter(r);
}

/* An ErrorDocument of the site is no answer to an API's client. */
void crmapi_insert_filter(request_rec *r)
{
    if (r->prev) {
        add_filter(r);
    }
}

/* Set the headers of the answer in place of those of httpd's own page. */
static void set_headers(request_rec *r, int status, apr_size_t len)
{
    static const char *const others[] = {
        "Content-Language", "Content-Encoding", "Location", "Vary", "ETag",
        "Last-Modified", "Accept-Ranges", "Content-Range", NULL
    };

    for (int i = 0; others[i]; i++) {
        apr_table_unset(r->headers_out, others[i]);
    }
    r->status = status;
    r->status_line = NULL;
    ap_set_content_type(r, "application/json");
    ap_set_content_length(r, (apr_off_t)len);
    crmapi_set_headers(r, r->err_headers_out);
    if (status == HTTP_SERVICE_UNAVAILABLE
        && !apr_table_get(r->err_headers_out, "Retry-After")) {
        apr_table_setn(r->err_headers_out, "Retry-After", "1");
    }
}

/* Put the envelope in the place of all that comes. */
static apr_status_t error_filter(ap_filter_t *f, apr_bucket_brigade *bb)
{
    apr_bucket_alloc_t *alloc = f->c->bucket_alloc;
    request_rec *r = f->r;
    int status = error_status(r);
    crm_error_t *error;
    crm_buf_t body;

    apr_brigade_cleanup(bb);
    if (f->ctx) {
        return APR_SUCCESS;
    }
    f->ctx = f;
    error = crm_error_create(crm_code_from_status(status), NULL, r->pool);
    crm_buf_init(&body, 256, r->pool);
    crm_api_write_error(&body, error);
    set_headers(r, status, body.len);
    crmapi_status_count(status, 0);
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(body.data, body.len,
                                                       r->pool, alloc));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(alloc));
    return ap_pass_brigade(f->next, bb);
}

void crmapi_error_register(void)
{
    ap_register_output_filter(filter_name, error_filter, NULL,
                              AP_FTYPE_CONTENT_SET);
}
