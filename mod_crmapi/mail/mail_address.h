/* SPDX-License-Identifier: Apache-2.0 */
/* mail_address.h: addresses and Message-IDs in headers */
#ifndef CRM_MAIL_ADDRESS_H
#define CRM_MAIL_ADDRESS_H

#include <gmime/gmime.h>

#include "apr_tables.h"

/* Set *ADDRESS_P and *NAME_P to the first mailbox with a valid address in the
 * headers NAME of MIME. Return whether there is one. */
int crm_mail_mailbox(const char **address_p, const char **name_p,
                     GMimeMessage *mime, const char *name, apr_pool_t *pool);

/* Add the addresses in all headers NAME of MIME to LIST (of const char *),
 * each once. */
void crm_mail_addresses(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool);

/* Add the Message-IDs in all headers NAME of MIME to LIST. */
void crm_mail_ids(apr_array_header_t *list, GMimeMessage *mime,
                  const char *name, apr_pool_t *pool);

/* Return the step id in ID, a Message-ID, in POOL; NULL if ID does not have
 * the form of crmapid's Message-IDs. */
const char *crm_mail_step(const char *id, apr_pool_t *pool);

#endif /* CRM_MAIL_ADDRESS_H */
