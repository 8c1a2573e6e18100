/* SPDX-License-Identifier: Apache-2.0 */
/* crm_review.h: what the page of a review is made from */
#ifndef CRM_REVIEW_H
#define CRM_REVIEW_H

#include "crm_pages.h"

/* The most texts that a step has. */
#define CRM_REVIEW_TEXTS 2

/* A text of a step. */
typedef struct crm_review_text_t {
    const char *name;           /* of its field in the form: "subject", "body",
                                   "objective" */
    const char *label;
    int is_line;                /* else several lines */
    const char *value;          /* as it is stored; "" if it is not */
    const char *typed;          /* as it was sent with a form, or NULL */
    const char *rule;          /* the rule that TYPED breaks, or NULL */
} crm_review_text_t;

typedef struct crm_review_step_t {
    const char *id;
    const char *number;
    const char *channel;
    const char *status;
    const char *to;             /* or NULL */
    const char *when;           /* in the workspace's time zone, or NULL */
    crm_review_text_t texts[CRM_REVIEW_TEXTS];
    int count;                  /* of texts */
} crm_review_step_t;

/* An enrollment. Texts may be NULL where nothing is known. */
typedef struct crm_review_t {
    const char *status;
    const char *sequence;
    const char *template_name;
    const char *agent;
    const char *contact;        /* NULL: it is gone */
    const char *address;        /* the contact's e-mail address */
    const char *company;
    const char *workspace;
    const char *time_zone;
    const char *digest;         /* crmapi.review_digest() */
    const char *admin;
    const char *reason;         /* why it has stopped or failed */
    const char *approved;       /* when, in the workspace's time zone */
    apr_array_header_t *steps;  /* of crm_review_step_t */
    const char *form_token;     /* for the form of this page */
    /* about what was sent with a form, or done before: */
    int form_signed;            /* its token is the workspace's */
    const char *done;           /* what the query says was done, or NULL */
    const char *problem;        /* why it was not done, or NULL */
    int conflict;               /* others have changed texts meanwhile */
} crm_review_t;

/* Set *REVIEW to what PAGE's token is for, with the strings of PAGE's pool; its
 * status is NULL if there is no such, or the admin is none any more
 * (review_load.c). */
crm_error_t *crm_review_load(crm_review_t *review, const crm_page_t *page);

/* Return whether REVIEW waits for approval. */
int crm_review_waits(const crm_review_t *review);

/* Make PAGE's response the page of REVIEW, with STATUS (review_html.c). */
void crm_review_show(crm_page_t *page, const crm_review_t *review,
                     int status);

#endif /* CRM_REVIEW_H */
