/* SPDX-License-Identifier: Apache-2.0 */
/* mail_person.h: who a mail is from (contract 18.2) */
#ifndef CRM_MAIL_PERSON_H
#define CRM_MAIL_PERSON_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* Return whether the Precedence, or X-Precedence, of MIME begins with WORD ("bulk"),
 * without case. */
int crm_mail_precedence(GMimeMessage *mime, const char *word,
                        apr_pool_t *pool);

/* Return whether MIME was sent by a mailing list. */
int crm_mail_is_list(GMimeMessage *mime, apr_pool_t *pool);

/* Read who MIME is from into MAIL, in POOL: its members from, from_name,
 * reply_to, original_sender and people. */
void crm_mail_people(crm_mail_t *mail, GMimeMessage *mime,
                     const crm_mail_options_t *options, apr_pool_t *pool);

#endif /* CRM_MAIL_PERSON_H */
