/* SPDX-License-Identifier: Apache-2.0 */
/* mail_id.h: what a mail answers: Message-IDs and reply tokens */
#ifndef CRM_MAIL_ID_H
#define CRM_MAIL_ID_H

#include <gmime/gmime.h>

#include "apr_tables.h"

/* Add the Message-IDs in all headers NAME of MIME to LIST. */
void crm_mail_ids(apr_array_header_t *list, GMimeMessage *mime,
                  const char *name, apr_pool_t *pool);

/* Add the Message-IDs in VALUE, the text of a header, to LIST. */
void crm_mail_add_ids(apr_array_header_t *list, const char *value);

/* Add the reply token that TEXT begins with, after blanks, to LIST (of const
 * char *). Return whether there is one. */
int crm_mail_add_token(apr_array_header_t *list, const char *text);

/* Add the reply token in ADDRESS, after the last '+' of its local part, to
 * LIST, if there is one. */
void crm_mail_address_token(apr_array_header_t *list, const char *address);

#endif /* CRM_MAIL_ID_H */
