/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_status.h: what a failure of delivery says of the address */
#ifndef CRM_MAIL_STATUS_H
#define CRM_MAIL_STATUS_H

#include "apr_pools.h"

/* What a failure means for the address (contract 17.5). */
typedef enum crm_mail_failure_t {
    CRM_MAIL_NO_FAILURE,        /* none, or a temporary one */
    CRM_MAIL_FAILED,            /* permanent, but the address may be good */
    CRM_MAIL_NO_ADDRESS         /* the address does not exist */
} crm_mail_failure_t;

/* Return the status (RFC 3463) in TEXT (may be NULL) that decides, in POOL: the
 * first permanent one, if possible one that says more than 5.0.0 and 5.1.0, else
 * the first one; NULL if there is none. */
const char *crm_mail_status_find(const char *text, apr_pool_t *pool);

/* Return whether TEXT (may be NULL), lines of an explanation, says that the
 * address does not exist. Paragraphs that speak of the sender, of spam or of
 * space do not count. */
int crm_mail_status_says(const char *text, apr_pool_t *scratch_pool);

/* Return whether TEXT (may be NULL) says that the address exists, whatever the
 * status is: that its mailbox is full, or gets too many mails. */
int crm_mail_status_exists(const char *text, apr_pool_t *scratch_pool);

/* Return whether TEXT, of a server that is given a mail, says that the sender has sent
 * as much as it may for now. */
int crm_mail_status_sent_enough(const char *text, apr_pool_t *scratch_pool);

/* Return whether TEXT, the subject and the words of a mail server that returns a
 * mail, says that the server has given up. Without a STATUS (NULL) it is enough that
 * the mail was not delivered. A TEXT that says that the server tries again does
 * not. */
int crm_mail_status_final(const char *status, const char *text,
                          apr_pool_t *scratch_pool);

/* Return what STATUS (may be NULL) means, and TEXT beside it (may be NULL): it is
 * read for 5.0.0, for 5.1.0 and without a status, and it may say that the address
 * exists. */
crm_mail_failure_t crm_mail_status_failure(const char *status,
                                           const char *text,
                                           apr_pool_t *scratch_pool);

/* Return what TEXT, an explanation without fields of RFC 3464, means. *STATUS_P
 * is its status; if it has a reply code of SMTP only, that class: "5.0.0"; NULL
 * if it has none. */
crm_mail_failure_t crm_mail_status_read(const char **status_p,
                                        const char *text, apr_pool_t *pool);

#endif /* CRM_MAIL_STATUS_H */
