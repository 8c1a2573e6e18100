/* SPDX-License-Identifier: Apache-2.0 */
/* mail_address.h: addresses in headers */
#ifndef CRM_MAIL_ADDRESS_H
#define CRM_MAIL_ADDRESS_H

#include <gmime/gmime.h>

#include "apr_tables.h"

/* Set *ADDRESS_P and *NAME_P to the first mailbox with a valid address in the
 * headers NAME of MIME. Return whether there is one. */
int crm_mail_mailbox(const char **address_p, const char **name_p,
                     GMimeMessage *mime, const char *name, apr_pool_t *pool);

/* Add the mailboxes with a valid address in all headers NAME of MIME to LIST (of
 * crm_mail_person_t). */
void crm_mail_mailboxes(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool);

/* Add the addresses in all headers NAME of MIME to LIST (of const char *),
 * each once. */
void crm_mail_addresses(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool);

/* Return VALUE, a header, as it was before some programs escaped its brackets and
 * quotes for HTML; in POOL if it is another. With a quote that is not escaped nothing
 * is: "&quot; &lt;"@example.org is an address (RFC 5322, 3.4.1). */
const char *crm_mail_unescape(const char *value, apr_pool_t *pool);

#endif /* CRM_MAIL_ADDRESS_H */
