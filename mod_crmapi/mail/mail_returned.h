/* SPDX-License-Identifier: Apache-2.0 */
/* mail_returned.h: the mail that a report returns */
#ifndef MAIL_RETURNED_H
#define MAIL_RETURNED_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* Add the Message-ID of each mail that MIME encloses, as a whole or its header,
 * to MAIL's references, and its reply token to MAIL's tokens. Return how many
 * there are. */
int crm_mail_returned_parts(crm_mail_t *mail, GMimeMessage *mime,
                            apr_pool_t *pool);

/* The same for headers within TEXT, which a program has put there, quoted or
 * not. *EXPLAINED_P is the text before the first of them, in POOL. */
int crm_mail_returned_text(const char **explained_p, crm_mail_t *mail,
                           const char *text, apr_pool_t *pool);

#endif /* MAIL_RETURNED_H */
