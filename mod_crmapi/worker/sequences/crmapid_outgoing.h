/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_outgoing.h: a step or an answer that is being sent */
#ifndef CRMAPID_OUTGOING_H
#define CRMAPID_OUTGOING_H

#include "crmapid_relay.h"
#include "crmapid_send.h"

/* A message that is being sent. */
typedef struct crmd_outgoing_t {
    crmd_work_t *work;
    const crmd_source_t *source;
    const char *group;          /* the id of its enrollment or conversation */
    const char *id;             /* its own */
    const char *part;           /* a step's number */
    apr_int64_t number;         /* of crmapi.mark_next() */
    apr_time_t asked;           /* when it was to be taken, on
                                   crm_time_monotonic() */
    const char *link;           /* head of the unsubscribe token, or NULL */
    const crmd_relay_t *relay;
    const char *own;            /* the agent's address that it is from, */
    const char *agent_email;    /* and its agent_email; or NULL */
    int was_sending;            /* it was taken before this attempt */
    int doubtful;               /* an earlier attempt may have sent it: any
                                   verdict but CRMD_SENT leaves that unknown */
    crmd_message_t message;
    crmd_receipt_t receipt;
} crmd_outgoing_t;

/* Read the message of WORK's job from SOURCE into SENDING; *EXISTS_P = whether it
 * exists. Errors: the database's. */
crm_error_t *crmd_outgoing_read(int *exists_p, crmd_outgoing_t *sending,
                                crmd_work_t *work,
                                const crmd_source_t *source);

/* Return whether MESSAGE is a mail. */
int crmd_outgoing_is_mail(const crmd_message_t *message);

#endif /* CRMAPID_OUTGOING_H */
