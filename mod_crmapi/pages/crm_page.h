/* SPDX-License-Identifier: Apache-2.0 */
/* crm_page.h: what the files of the pages share */
#ifndef CRM_PAGE_H
#define CRM_PAGE_H

#include "crm_html.h"
#include "crm_pages.h"

/* A page under way, for a token that its workspace has signed. */
typedef struct crm_page_t {
    const crm_page_request_t *request;
    crm_response_t *response;
    apr_pool_t *pool;
    crm_conn_t *conn;
    crm_token_t token;
    int posts;                  /* it is a POST, which may change something */
    const apr_array_header_t *fields;   /* of its form, or NULL */
} crm_page_t;

/* Do what the page is for and fill its response: review.c, unsubscribe.c. */
crm_error_t *crm_page_review(crm_page_t *page);
crm_error_t *crm_page_unsubscribe(crm_page_t *page);

/* Run SQL with its COUNT VALUES on PAGE's connection; *RESULT_P lives as long
 * as PAGE's pool. */
crm_error_t *crm_page_query(PGresult **result_p, const crm_page_t *page,
                            const char *sql, int count,
                            const char *const *values);

/* ---- page_html.c --------------------------------------------------------- */

/* Begin in RESPONSE a page of STATUS with TITLE (text), which is its heading,
 * too, and set its headers. */
void crm_page_begin(crm_response_t *response, int status, const char *title,
                    apr_pool_t *pool);

/* End the page. */
void crm_page_end(crm_response_t *response);

/* Make RESPONSE a whole page of STATUS with TITLE and TEXT. */
void crm_page_say(crm_response_t *response, int status, const char *title,
                  const char *text, apr_pool_t *pool);

/* Make RESPONSE the page that all links show that are worth nothing: it does
 * not tell why. */
void crm_page_refuse(crm_response_t *response, apr_pool_t *pool);

/* Make RESPONSE a redirect to the same page with QUERY ("?done=saved"). */
void crm_page_redirect(crm_response_t *response, const char *query,
                       apr_pool_t *pool);

#endif /* CRM_PAGE_H */
