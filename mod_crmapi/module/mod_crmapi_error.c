/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_error.c: httpd's own errors under /api/v1 as JSON (contract 5.5) */
#include "mod_crmapi.h"

#include "apr_strings.h"

#include "http_protocol.h"
#include "mod_core.h"
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

/* What the filter knows. */
typedef struct shown_t {
    int status;                 /* that the client is to see */
    int done;                   /* the answer has been sent */
} shown_t;

/* Return the error behind R's redirection to an ErrorDocument that is a URL,
 * for which httpd has overwritten the status; 0 if it is none. */
static int redirected_status(request_rec *r)
{
    const char *location = apr_table_get(r->headers_out, "Location");

    for (int status = HTTP_BAD_REQUEST; location && status < 600; status++) {
        int index = ap_index_of_response(status);
        const char *document = ap_response_code_string(r, index);

        if (document && !strcmp(document, location)) {
            return index == ap_index_of_response(HTTP_INTERNAL_SERVER_ERROR)
                   ? HTTP_INTERNAL_SERVER_ERROR : status;
        }
    }
    return 0;
}

/* Return the status that the client is to see: that of the error, not of the
 * document that a site shows for it. 0: this is no error. */
static int error_status(request_rec *r)
{
    const request_rec *first = first_request(r);

    if (first->status >= 400) {
        return first->status;
    }
    return r->status >= 400 ? r->status
           : r->status == HTTP_MOVED_TEMPORARILY ? redirected_status(r) : 0;
}

static void add_filter(request_rec *r)
{
    int status = error_status(r);

    if (status && crmapi_config(r->server)->enabled == 1
        && asks_for_api(first_request(r))) {
        shown_t *shown = apr_pcalloc(r->pool, sizeof(*shown));

        shown->status = status;
        ap_add_output_filter(filter_name, shown, r, r->connection);
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
    shown_t *shown = f->ctx;
    crm_buf_t body;

    apr_brigade_cleanup(bb);
    if (shown->done) {
        return APR_SUCCESS;
    }
    shown->done = 1;
    crm_buf_init(&body, 256, r->pool);
    crm_api_write_error(&body, crm_error_create(
                            crm_code_from_status(shown->status), NULL,
                            r->pool));
    set_headers(r, shown->status, body.len);
    crmapi_status_count(shown->status, 0);
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
