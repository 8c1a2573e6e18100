/* SPDX-License-Identifier: Apache-2.0 */
/* mail_kind.h: which mails are automatic */
#ifndef CRM_MAIL_KIND_H
#define CRM_MAIL_KIND_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* Set the members automatic, generated, bounces, failure, tokens and complaint of MAIL,
 * in POOL, and add returned mails to its references. All other members must be set
 * before. */
void crm_mail_kind(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

#endif /* CRM_MAIL_KIND_H */
