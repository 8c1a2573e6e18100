/* SPDX-License-Identifier: Apache-2.0 */
/* mail_bounce.h: reports that a mail was not delivered */
#ifndef CRM_MAIL_BOUNCE_H
#define CRM_MAIL_BOUNCE_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* Return whether MIME is a bounce. If it is, add the reported addresses and the
 * Message-ID of the returned mail to MAIL, in POOL. */
int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool);

#endif /* CRM_MAIL_BOUNCE_H */
