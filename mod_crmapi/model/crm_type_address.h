/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_address.h: types of lists of e-mails and of phone numbers, and of
 * filters by one of them */
#ifndef CRM_TYPE_ADDRESS_H
#define CRM_TYPE_ADDRESS_H

#include "crm_type.h"

extern const crm_type_t crm_type_emails;    /* contract 9.2 */
extern const crm_type_t crm_type_phones;    /* contract 9.2 */

/* What a filter asks for: a bind of the first is an address in its canonical form
 * (contract 17.2), of the second a number as it was sent, for crmapi.phone_key(). */
extern const crm_type_t crm_type_email_asked;
extern const crm_type_t crm_type_phone_asked;

/* Set *MERGED_P to the e-mail or phone list HAVE followed by those entries of
 * MORE that it lacks, with HAVE's primary entry (contract 10.3). All are binds
 * of FIELD, whose type is crm_type_emails or crm_type_phones. */
void crm_type_merge(const char **merged_p, const crm_field_t *field,
                    const char *have, const char *more, apr_pool_t *pool);

#endif /* CRM_TYPE_ADDRESS_H */
