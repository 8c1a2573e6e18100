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
    CRM_MAIL_RETRY              /* a temporary failure: see ERROR */
} crm_mail_result_t;

/* The outcome of a delivery for one recipient. */
typedef struct crm_mail_outcome_t {
    const char *recipient;
    crm_mail_result_t result;
    const char *reason;         /* one line, or NULL */
    crm_error_t *error;         /* of CRM_MAIL_RETRY */
    int again;                  /* it was stored before */
    const char *automatic;      /* as in crm_mail_t */
    const char *conversation_id;
    const char *message_id;     /* id of the message's row */
} crm_mail_outcome_t;

/* Set *KNOWN_P to whether an agent receives mail at ADDRESS. WORKSPACE: see
 * crm_mail_options_t. Errors: the database's. */
crm_error_t *crm_mail_known(int *known_p, crm_conn_t *conn,
                            const char *address, const char *workspace,
                            apr_pool_t *scratch_pool);

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
