/* SPDX-License-Identifier: Apache-2.0 */
/* review_load.h: the data of a review page */
#ifndef CRM_REVIEW_LOAD_H
#define CRM_REVIEW_LOAD_H

#include "crm_pages.h"

/* The maximum number of texts of a step. */
#define CRM_REVIEW_TEXTS 2

/* A text of a step. */
typedef struct crm_review_text_t {
    const char *name;           /* of its form field: "subject", "body",
                                   "objective" */
    const char *label;
    int is_line;                /* one line of text, not several */
    int max;                    /* characters */
    const char *value;          /* the stored text; "" if there is none */
    const char *typed;          /* the text sent with a form, or NULL */
    const char *rule;           /* the rule that TYPED breaks, or NULL */
} crm_review_text_t;

typedef struct crm_review_step_t {
    const char *id;
    const char *number;
    const char *channel;
    const char *status;
    const char *to;             /* recipient, or NULL */
    const char *when;           /* in the workspace's time zone, or NULL */
    crm_review_text_t texts[CRM_REVIEW_TEXTS];
    int count;                  /* number of TEXTS */
} crm_review_step_t;

/* An enrollment. Strings may be NULL if unknown. */
typedef struct crm_review_t {
    const char *status;
    const char *sequence;
    const char *template_name;
    const char *agent;
    const char *contact;        /* NULL: it was deleted */
    const char *address;        /* the contact's e-mail address */
    const char *company;
    const char *workspace;
    const char *time_zone;
    const char *digest;         /* crmapi.review_digest() */
    const char *admin;
    const char *reason;         /* why it was stopped or failed */
    const char *approved;       /* when, in the workspace's time zone */
    apr_array_header_t *steps;  /* of crm_review_step_t */
    const char *form_token;     /* for the form of this page */
    /* about a form that was sent, or an action done before: */
    int form_signed;            /* its token was signed by the workspace */
    const char *done;           /* the action done before, from the query, or
                                   NULL */
    const char *problem;        /* why the action was refused, or NULL */
    int conflict;               /* the texts were changed since the form was
                                   loaded */
} crm_review_t;

/* Set *REVIEW to the enrollment of PAGE's token, with strings in PAGE's pool.
 * Its status is NULL if the enrollment does not exist or the user is no longer
 * an admin. */
crm_error_t *crm_review_load(crm_review_t *review, const crm_page_t *page);

/* Return whether REVIEW is waiting for approval. */
int crm_review_waits(const crm_review_t *review);

#endif /* CRM_REVIEW_LOAD_H */
