/* SPDX-License-Identifier: Apache-2.0 */
/* crm_page.h: the frame, style and headers of HTML pages */
#ifndef CRM_PAGE_H
#define CRM_PAGE_H

#include "crm_html.h"
#include "crm_request.h"

/* Begin a page in RESPONSE with STATUS, and set its headers. TITLE (text) is
 * also the heading. Values are in POOL. */
void crm_page_begin(crm_response_t *response, int status, const char *title,
                    apr_pool_t *pool);

/* End the page. */
void crm_page_end(crm_response_t *response);

/* Make RESPONSE a complete page with STATUS, TITLE and TEXT. */
void crm_page_say(crm_response_t *response, int status, const char *title,
                  const char *text, apr_pool_t *pool);

/* Make RESPONSE the page for invalid links. It gives no reason. */
void crm_page_refuse(crm_response_t *response, apr_pool_t *pool);

/* Make RESPONSE a redirect to the same page with QUERY ("?done=saved"). */
void crm_page_redirect(crm_response_t *response, const char *query,
                       apr_pool_t *pool);

#endif /* CRM_PAGE_H */
