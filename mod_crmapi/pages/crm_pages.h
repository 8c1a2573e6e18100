/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pages.h: the mounts of pages opened by links in mails */
#ifndef CRM_PAGES_H
#define CRM_PAGES_H

#include "crm_page.h"
#include "crm_serve.h"
#include "crm_token.h"

/* Default paths of the pages. */
#define CRM_PAGE_REVIEW_PATH "/crmapi/review/"
#define CRM_PAGE_UNSUBSCRIBE_PATH "/crmapi/unsubscribe/"

/* The review of a sequence before it is sent, and the page for one-click
 * unsubscription (RFC 8058). Errors are shown as pages. GET and HEAD change
 * nothing, since mail programs and scanners may open links. */
extern crm_mount_t crm_review_mount;
extern crm_mount_t crm_unsubscribe_mount;

/* Build the routers of the mounts in POOL. Call once in each process, before
 * its threads start. */
void crm_pages_init(apr_pool_t *pool);

/* A page being served. The handlers get it after its workspace's signature of
 * TOKEN was checked. */
typedef struct crm_page_t {
    crm_call_t *call;
    crm_response_t *response;   /* the call's */
    apr_pool_t *pool;           /* the call's */
    const char *token_text;
    crm_token_t token;
    apr_time_t now;
    int posts;                  /* the method is POST */
    const apr_array_header_t *fields;   /* of the form; NULL for GET */
} crm_page_t;

#endif /* CRM_PAGES_H */
