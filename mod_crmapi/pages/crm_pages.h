/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pages.h: the mounts of the pages that people open from mails */
#ifndef CRM_PAGES_H
#define CRM_PAGES_H

#include "crm_page.h"
#include "crm_serve.h"
#include "crm_token.h"

/* Where pages live unless the configuration says otherwise. */
#define CRM_PAGE_REVIEW_PATH "/crmapi/review/"
#define CRM_PAGE_UNSUBSCRIBE_PATH "/crmapi/unsubscribe/"

/* The review of a sequence before it is sent, and the page to unsubscribe with
 * one click (RFC 8058). Every failure is shown as a page. GET and HEAD change
 * nothing, whatever program opens the links of a mail. */
extern crm_mount_t crm_review_mount;
extern crm_mount_t crm_unsubscribe_mount;

/* Build their routers in POOL. Call once in a process, before its threads. */
void crm_pages_init(apr_pool_t *pool);

/* A page under way, for a token that its workspace has signed. */
typedef struct crm_page_t {
    crm_call_t *call;
    crm_response_t *response;   /* the call's */
    apr_pool_t *pool;           /* the call's */
    const char *token_text;
    crm_token_t token;
    apr_time_t now;
    int posts;                  /* it is a POST, which may change something */
    const apr_array_header_t *fields;   /* of its form; NULL for a GET */
} crm_page_t;

/* Do what the page is for and fill its response: review.c, unsubscribe.c. */
crm_error_t *crm_page_review(crm_page_t *page);
crm_error_t *crm_page_unsubscribe(crm_page_t *page);

#endif /* CRM_PAGES_H */
