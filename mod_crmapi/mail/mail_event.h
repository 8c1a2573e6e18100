/* SPDX-License-Identifier: Apache-2.0 */
/* mail_event.h: a mail for one agent, and the event of it */
#ifndef CRM_MAIL_EVENT_H
#define CRM_MAIL_EVENT_H

#include "crm_intake.h"
#include "crm_mail_deliver.h"

/* A delivery of a mail to one agent. */
typedef struct crm_mail_delivery_t {
    crm_conn_t *conn;
    const crm_mail_t *mail;
    const crm_mail_options_t *options;
    const char *key;            /* identifies the mail in the ids of events */
    const char *recipient;
    const char *workspace_id;
    const char *bot_id;
    const char *bytes;          /* the mail as it came */
    apr_size_t len;
    const apr_array_header_t *ids; /* of const char *: of its attachments */
    apr_pool_t *pool;
    /* what crm_mail_event() finds out */
    const char *step_id;        /* the step that it answers or returns, or
                                   NULL */
    const char *answer_id;      /* the same of an answer */
    int named;                  /* there is either */
    const char *sent_to;        /* the address that it was sent to */
    const char *copies;         /* and those of its copies, with blanks between
                                   them, or NULL */
    const crm_mail_person_t *person; /* whom the mail is from, or NULL */
    const char *automatic;      /* as in crm_mail_t */
} crm_mail_delivery_t;

/* Set EVENT to that of DELIVERY's mail, in the delivery's pool. It reads in the
 * database what the mail answers or returns. */
crm_error_t *crm_mail_event(crm_intake_event_t *event,
                            crm_mail_delivery_t *delivery);

#endif /* CRM_MAIL_EVENT_H */
