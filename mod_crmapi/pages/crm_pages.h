/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pages.h: the pages that people open from mails */
#ifndef CRM_PAGES_H
#define CRM_PAGES_H

#include "crm_api.h"
#include "crm_token.h"

/* Where pages live unless the configuration says otherwise. */
#define CRM_PAGE_REVIEW_PATH "/crmapi/review/"
#define CRM_PAGE_UNSUBSCRIBE_PATH "/crmapi/unsubscribe/"

/* The largest body of a form, in bytes. */
#define CRM_PAGE_BODY_MAX (1024 * 1024)

/* Which page it is. */
typedef enum crm_page_kind_t {
    CRM_PAGE_REVIEW,            /* of a sequence, before it is sent */
    CRM_PAGE_UNSUBSCRIBE        /* by one click (RFC 8058) */
} crm_page_kind_t;

/* The parts of a request for a page. Strings live as long as POOL. */
typedef struct crm_page_request_t {
    apr_pool_t *pool;
    void *baton;                /* given to the service's functions */
    crm_page_kind_t kind;
    const char *method;         /* as sent: "GET" */
    const char *token;          /* the path's rest, decoded; anything at all */
    const char *query;          /* undecoded, without '?', or NULL */
    const char *content_type;   /* headers' values, or NULL */
    const char *host;
    const char *origin;
    const char *fetch_site;     /* Sec-Fetch-Site */
    apr_time_t now;
} crm_page_request_t;

/* Serve REQUEST with SERVICE (its settings' workspace, acquire, release and
 * read_body) and fill *RESPONSE, all in REQUEST->pool: status, all headers but
 * Content-Length, a page of HTML (none with a redirect), and for the log what
 * went wrong here, never a token. Every failure becomes a page. GET and HEAD
 * change nothing, whatever opens links in mails. */
void crm_page_serve(crm_response_t *response, const crm_service_t *service,
                    const crm_page_request_t *request);

#endif /* CRM_PAGES_H */
