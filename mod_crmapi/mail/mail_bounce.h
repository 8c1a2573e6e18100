/* SPDX-License-Identifier: Apache-2.0 */
/* mail_bounce.h: reports that a mail was not delivered */
#ifndef CRM_MAIL_BOUNCE_H
#define CRM_MAIL_BOUNCE_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* Return whether MIME is a bounce: a report (RFC 3464), a mail in the words of
 * qmail or Exim, or, if DAEMON, any mail that returns another one. DAEMON: it
 * is from a mail server or the null sender. If it is a bounce, add to MAIL, in
 * POOL, what it says of addresses, and what the returned mail is known by. */
int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, int daemon,
                     apr_pool_t *pool);

/* If TEXT, the explanation of MAIL without fields of RFC 3464, or its subject says
 * that the server has given up, the mail has failed, whatever the reason is. */
void crm_mail_given_up(crm_mail_t *mail, const char *text, apr_pool_t *pool);

/* Return the report-type of MIME (RFC 6522), "" if it has none; NULL if it is
 * not a report. MIME has it. */
const char *crm_mail_report_type(GMimeMessage *mime);

/* Return whether MIME is a feedback report (RFC 5965). If it is, set MAIL's
 * complaint, and add what the returned mail is known by. */
int crm_mail_complained(crm_mail_t *mail, GMimeMessage *mime,
                        apr_pool_t *pool);

#endif /* CRM_MAIL_BOUNCE_H */
