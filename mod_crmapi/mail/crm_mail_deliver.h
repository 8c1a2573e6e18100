/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_deliver.h: delivering a mail to agents through intake */
#ifndef CRM_MAIL_DELIVER_H
#define CRM_MAIL_DELIVER_H

#include "crm_db_conn.h"
#include "crm_error.h"
#include "crm_mail.h"

/* The result of a delivery to one recipient. */
typedef enum crm_mail_result_t {
    CRM_MAIL_STORED,            /* now or before */
    CRM_MAIL_UNKNOWN,           /* no agent receives mail at this address */
    CRM_MAIL_REFUSED,           /* permanently: see REASON */
    CRM_MAIL_RETRY              /* a temporary failure: see REASON and ERROR */
} crm_mail_result_t;

/* The outcome of a delivery for one recipient. */
typedef struct crm_mail_outcome_t {
    const char *recipient;
    crm_mail_result_t result;
    const char *reason;         /* one line, or NULL */
    crm_error_t *error;         /* of CRM_MAIL_RETRY; NULL: the address is
                                   ambiguous, or its workspace is held */
    int again;                  /* it was stored before */
    const char *automatic;      /* as in crm_mail_t */
    const char *conversation_id;
    const char *message_id;     /* id of the message's row */
} crm_mail_outcome_t;

/* Fill OUTCOME for a mail that is to come to ADDRESS: CRM_MAIL_STORED if an agent
 * will receive it, CRM_MAIL_UNKNOWN or CRM_MAIL_RETRY. WORKSPACE: see
 * crm_mail_options_t. Strings are in RESULT_POOL. */
void crm_mail_expect(crm_mail_outcome_t *outcome, crm_conn_t *conn,
                     const char *address, const char *workspace,
                     apr_pool_t *result_pool);

/* Deliver the mail of LEN BYTES to the agents of RECIPIENTS (of const char *).
 * RECIPIENTS NULL: to the agents whose addresses are in its headers. Sets
 * *OUTCOMES_P to an array of crm_mail_outcome_t, in RESULT_POOL: one for each
 * of RECIPIENTS, in their order, or for each agent in the headers. There is
 * one transaction for each agent. The same mail may be delivered again after
 * any outcome: it is stored once. */
void crm_mail_deliver(apr_array_header_t **outcomes_p, crm_conn_t *conn,
                      const char *bytes, apr_size_t len,
                      const apr_array_header_t *recipients,
                      const crm_mail_options_t *options,
                      apr_pool_t *result_pool);

#endif /* CRM_MAIL_DELIVER_H */
