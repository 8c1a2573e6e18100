/* SPDX-License-Identifier: Apache-2.0 */
/* mail_body.h: a mail's parts: its text and its attachments */
#ifndef CRM_MAIL_BODY_H
#define CRM_MAIL_BODY_H

#include "mail_walk.h"

/* Add OBJECT to the mail of WALK. TEXT: its parts may be the mail's text; otherwise
 * they are attachments or left out. */
void crm_mail_walk(crm_mail_walk_t *walk, GMimeObject *object, int text);

/* Set MAIL's text and attachments from MIME, in POOL. */
void crm_mail_body(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

#endif /* CRM_MAIL_BODY_H */
