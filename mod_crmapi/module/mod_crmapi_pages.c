/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_pages.c: pages that people open from mails: request_rec to core */
#include "mod_crmapi.h"

#include "apr_strings.h"

#include "crm_pages.h"

/* Serve REQUEST, for the page KIND with TOKEN. */
static void serve(crmapi_request_t *request, crm_page_kind_t kind,
                  const char *token)
{
    request_rec *r = request->r;
    crm_page_request_t page;

    request->config = apr_pmemdup(r->pool, request->config,
                                  sizeof(*request->config));
    if (request->config->max_body > CRM_PAGE_BODY_MAX) {
        request->config->max_body = CRM_PAGE_BODY_MAX;
    }
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

void crmapi_serve_review(crmapi_request_t *request, const char *rest)
{
    serve(request, CRM_PAGE_REVIEW, rest);
}

void crmapi_serve_unsubscribe(crmapi_request_t *request, const char *rest)
{
    serve(request, CRM_PAGE_UNSUBSCRIBE, rest);
}
