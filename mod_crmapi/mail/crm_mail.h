/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail.h: reading a mail */
#ifndef CRM_MAIL_H
#define CRM_MAIL_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_mail_status.h"

/* Maximum characters of a mail's text that are stored (message.content), and
 * maximum recipients, references, attachments and bounced addresses that are
 * read. */
#define CRM_MAIL_TEXT_MAX 65536
#define CRM_MAIL_LIST_MAX 100

/* The defaults of crm_mail_options_t. */
#define CRM_MAIL_MAX_MESSAGE (25 * 1024 * 1024)
#define CRM_MAIL_ATTACHMENT_BYTES (10 * 1024 * 1024)
#define CRM_MAIL_HOURLY 30

/* The header of our own mails with their reply token. */
#define CRM_MAIL_TOKEN_HEADER "X-Crmapi-Return"

/* How mails are read and delivered. */
typedef struct crm_mail_options_t {
    apr_size_t attachment_bytes; /* largest attachment whose body is stored; 0:
                                   none */
    int keep_original;          /* the mail is kept as it came, and its
                                   HTML */
    int hourly;                 /* mails per hour from one sender to one agent;
                                   further ones count as automatic; 0: no
                                   limit */
    const char *sender;         /* the envelope's: "" is the null sender of
                                   bounces; NULL: use Return-Path */
    const char *workspace;      /* deliver to its agents only: id or slug; NULL:
                                   to all */
    const char *authserv_ids;   /* trusted authserv-ids of
                                   Authentication-Results headers, separated by
                                   blanks or commas; NULL: none */
} crm_mail_options_t;

/* An attachment. */
typedef struct crm_mail_attachment_t {
    const char *name;           /* without slashes, or NULL */
    const char *type;           /* "image/png" */
    const char *content_id;     /* without brackets, or NULL */
    apr_size_t size;            /* decoded bytes */
    const char *body;           /* decoded; NULL: too large to be stored */
} crm_mail_attachment_t;

/* An address that a bounce reports (RFC 3464). */
typedef struct crm_mail_bounce_t {
    const char *address;
    const char *status;         /* "5.1.1" (RFC 3463), or NULL */
    const char *action;         /* "failed", "delayed", ..., or NULL */
    const char *diagnostic;     /* the remote server's text, or NULL */
    crm_mail_failure_t failure;
} crm_mail_bounce_t;

/* Whom a mail may be from. */
typedef struct crm_mail_person_t {
    const char *address;
    const char *name;           /* or NULL */
} crm_mail_person_t;

/* What was left out of a mail, because it is beyond the limits of contract 18.7:
 * bits. */
#define CRM_MAIL_CUT_LEVELS 1u  /* parts within parts */
#define CRM_MAIL_CUT_PARTS 2u
#define CRM_MAIL_CUT_HEADERS 4u /* fields, or their ends */
#define CRM_MAIL_CUT_HTML 8u
#define CRM_MAIL_CUT_ATTRIBUTES 16u /* of an element of HTML */
#define CRM_MAIL_CUT_TEXT 32u

/* A mail as it was read. Texts are UTF-8 without NUL and, except TEXT, without
 * control characters. NULL: the mail does not contain it. */
typedef struct crm_mail_t {
    apr_array_header_t *recipients; /* of const char *: the addresses in
                                   Delivered-To, X-Original-To, Envelope-To,
                                   X-Envelope-To, X-Delivered-To, To, Cc,
                                   Resent-To, Resent-Cc, Bcc and
                                   X-Forwarded-To, in this order, each once */
    const char *from;           /* the first address in From, Sender, Reply-To
                                   and the envelope's sender */
    const char *from_name;
    const char *reply_to;       /* the first address in Reply-To */
    const char *original_sender; /* X-Original-Sender: who wrote the mail that
                                   a mailing list sends */
    apr_array_header_t *people; /* of crm_mail_person_t: whom the mail is from
                                   (contract 18.2), the best first; the last one
                                   is FROM */
    int verified;               /* a trusted host has verified that FROM's
                                   domain sent it */
    const char *to;             /* To, decoded */
    const char *cc;
    const char *subject;
    const char *date;           /* Date in UTC (RFC 3339); unchanged if it is
                                   malformed */
    const char *message_id;     /* with brackets */
    const char *in_reply_to;    /* the first id in In-Reply-To */
    const char *thread_index;   /* Outlook's place in the thread, as it came, or NULL */
    apr_array_header_t *references_header; /* of const char *: the ids in
                                   References alone */
    apr_array_header_t *references; /* of const char *, with brackets: from
                                   References and In-Reply-To, the closest
                                   last; of a bounce: the returned mail */
    const char *text;           /* never NULL; lines end with LF */
    apr_size_t text_cut;        /* characters left out at its end */
    int html;                   /* the text was made from HTML */
    const char *display;        /* its HTML, made safe to be shown
                                   (mail_display.h); NULL: it has none */
    apr_array_header_t *attachments; /* of crm_mail_attachment_t */
    apr_size_t more_attachments; /* number of those that are not listed */
    const char *automatic;      /* NULL: written by a person; "auto-reply",
                                   "bounce", "receipt", "report", "list",
                                   "bulk", "loop" */
    int generated;              /* "auto-reply": a program has written it, but it
                                   does not say that it answers by itself */
    apr_array_header_t *bounces; /* of crm_mail_bounce_t */
    crm_mail_failure_t failure; /* what a mail by a mail server or the null
                                   sender says as a whole, if it has no fields
                                   of RFC 3464 */
    const char *status;         /* in its words, or NULL */
    apr_array_header_t *tokens; /* of const char *: reply tokens of the mails
                                   that a report returns */
    unsigned cut;               /* bits of CRM_MAIL_CUT_... */
    apr_size_t converted;       /* bytes of its texts, crm_mail_source() */
    int complaint;              /* a report that the recipient of the returned
                                   mail has complained (RFC 5965) */
    const char *complainer;     /* its Original-Rcpt-To, or NULL */
} crm_mail_t;

/* Initialise GMime and libxml2. Call it before the process has threads that use
 * GMime without crm_mail_read(). Further calls do nothing. No lock is needed
 * afterwards: threads share no object of GMime. */
void crm_mail_init(void);

/* Read the LEN BYTES of a mail (RFC 5322, MIME) into MAIL, in RESULT_POOL. It
 * never fails: bytes that are not a mail become its text. For any thread. */
void crm_mail_read(crm_mail_t *mail, const char *bytes, apr_size_t len,
                   const crm_mail_options_t *options, apr_pool_t *result_pool);

#endif /* CRM_MAIL_H */
