/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail.h: what mails bring: reading one, and handing it to intake */
#ifndef CRM_MAIL_H
#define CRM_MAIL_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_db.h"
#include "crm_error.h"

/* The most that is kept of a mail's text (characters: message.content), and
 * the most recipients, references, attachments and bounced addresses that are
 * looked at. */
#define CRM_MAIL_TEXT_MAX 65536
#define CRM_MAIL_LIST_MAX 100

/* The defaults of crm_mail_options_t. */
#define CRM_MAIL_MAX_MESSAGE (25 * 1024 * 1024)
#define CRM_MAIL_ATTACHMENT_BYTES (256 * 1024)
#define CRM_MAIL_HOURLY 30

/* How mails are taken. */
typedef struct crm_mail_options_t {
    apr_size_t attachment_bytes; /* bodies up to this size are kept; 0: none */
    int hourly;                 /* more mails an hour from one sender to one
                                   agent are automatic; 0: no limit */
    const char *sender;         /* the envelope's: "" the null one of bounces;
                                   NULL: unknown, the mail's Return-Path */
    const char *workspace;      /* whose agents, by id or slug; NULL: all */
    const char *authserv_ids;   /* hosts whose Authentication-Results are
                                   believed, by what they call themselves
                                   there, with blanks or commas between them;
                                   NULL: none */
} crm_mail_options_t;

/* Something that came with a mail. */
typedef struct crm_mail_attachment_t {
    const char *name;           /* without slashes, or NULL */
    const char *type;           /* "image/png" */
    apr_size_t size;            /* bytes, decoded */
    const char *body;           /* these, or NULL: larger than is kept */
} crm_mail_attachment_t;

/* An address of which a bounce tells (RFC 3464). */
typedef struct crm_mail_bounce_t {
    const char *address;
    const char *status;         /* "5.1.1" (RFC 3463), or NULL */
    const char *action;         /* "failed", "delayed", ..., or NULL */
    const char *diagnostic;     /* what the other side said, or NULL */
    int hard;                   /* it has failed, for good */
} crm_mail_bounce_t;

/* A mail as it was read. Texts are UTF-8 without NUL and, but for TEXT,
 * without control characters; NULL: the mail does not say. */
typedef struct crm_mail_t {
    apr_array_header_t *recipients; /* of const char *: the addresses in
                                   Delivered-To, X-Original-To, Envelope-To,
                                   To, Cc, in this order, each once */
    const char *from;           /* From, else Sender, Reply-To, the envelope's
                                   sender: the first that is an address */
    const char *from_name;
    int verified;               /* one of the hosts that are trusted says that
                                   FROM's domain has sent it */
    const char *to;             /* To as it is shown */
    const char *cc;
    const char *subject;
    const char *date;           /* Date in UTC, RFC 3339; or as it is written */
    const char *message_id;     /* with its brackets */
    apr_array_header_t *references; /* of const char *, with brackets: of
                                   References, then In-Reply-To, the last the
                                   nearest; of a bounce what it is about */
    const char *text;           /* never NULL; lines end with LF */
    apr_size_t text_cut;        /* characters left out at its end */
    int html;                   /* it was made from HTML */
    apr_array_header_t *attachments; /* of crm_mail_attachment_t */
    apr_size_t more_attachments; /* that are not listed */
    const char *automatic;      /* NULL: a person wrote it. "auto-reply",
                                   "bounce", "receipt", "report", "list",
                                   "bulk", "loop" */
    apr_array_header_t *bounces; /* of crm_mail_bounce_t */
    apr_array_header_t *steps;  /* of const char *: the enrollment steps that
                                   those of REFERENCES would be of that have
                                   the form of our own Message-IDs */
} crm_mail_t;

/* Make the library ready. To be called before the process has threads that use
 * GMime; again: nothing happens. */
void crm_mail_init(void);

/* Hold GMime alone: it says little about threads, and a mail takes it some
 * milliseconds, so one thread of a process uses it at a time, whatever for. The
 * library is made ready. crm_mail_read() sees to it itself. */
void crm_mail_lock(void);
void crm_mail_unlock(void);

/* Read the LEN BYTES of a mail (RFC 5322, MIME) into MAIL. Whatever they are,
 * something is read: what is no mail is its text. OPTIONS as above; all that
 * is made lives in RESULT_POOL. Threads may call it at the same time. */
void crm_mail_read(crm_mail_t *mail, const char *bytes, apr_size_t len,
                   const crm_mail_options_t *options, apr_pool_t *result_pool);

/* What became of one recipient. */
typedef enum crm_mail_fate_t {
    CRM_MAIL_TAKEN,             /* it is in the database, or was before */
    CRM_MAIL_NOBODY,            /* no agent takes mails at this address */
    CRM_MAIL_REFUSED,           /* and never will be taken: REASON */
    CRM_MAIL_LATER              /* may be tried again: ERROR */
} crm_mail_fate_t;

typedef struct crm_mail_outcome_t {
    const char *recipient;
    crm_mail_fate_t fate;
    const char *reason;         /* one line, or NULL */
    crm_error_t *error;         /* of CRM_MAIL_LATER */
    int again;                  /* the mail was known */
    const char *automatic;      /* as in crm_mail_t */
    const char *conversation_id;
    const char *message_id;     /* the row's id */
} crm_mail_outcome_t;

/* Set *FATE_P to CRM_MAIL_TAKEN or CRM_MAIL_NOBODY: whether a mail to ADDRESS
 * would be taken. Errors: the database's. */
crm_error_t *crm_mail_known(crm_mail_fate_t *fate_p, crm_conn_t *conn,
                            const char *address, const char *workspace,
                            apr_pool_t *scratch_pool);

/* Hand the mail of LEN BYTES to the agents of RECIPIENTS (of const char *;
 * NULL: of those addresses in its headers that are an agent's, and none of
 * them is CRM_MAIL_NOBODY, once). Sets *OUTCOMES_P to an array of
 * crm_mail_outcome_t: one for each of RECIPIENTS, in their order, or for each
 * agent found. One transaction for each agent; may be called again with the
 * same mail after any outcome: what was taken is not taken twice. Everything
 * lives in RESULT_POOL. */
void crm_mail_deliver(apr_array_header_t **outcomes_p, crm_conn_t *conn,
                      const char *bytes, apr_size_t len,
                      const apr_array_header_t *recipients,
                      const crm_mail_options_t *options,
                      apr_pool_t *result_pool);

#endif /* CRM_MAIL_H */
