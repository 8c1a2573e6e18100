/* SPDX-License-Identifier: Apache-2.0 */
/* mail_attach.h: a mail's attachments, and what enclosed mails say */
#ifndef CRM_MAIL_ATTACH_H
#define CRM_MAIL_ATTACH_H

#include "mail_walk.h"

/* Attach PART to the mail of WALK. FORM: it is one of alternatives. Then it is no file
 * if it is only another form of the text, as AMP is. */
void crm_mail_attach(crm_mail_walk_t *walk, GMimePart *part, int form);

/* Attach PART, an enclosed mail, unchanged. */
void crm_mail_attach_message(crm_mail_walk_t *walk, GMimeMessagePart *part);

/* Read PART if it is a signed message that encloses what was signed (RFC 8551,
 * 3.5.2). */
void crm_mail_attach_signed(crm_mail_walk_t *walk, GMimePart *part);

#endif /* CRM_MAIL_ATTACH_H */
