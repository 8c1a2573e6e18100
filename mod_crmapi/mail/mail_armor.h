/* SPDX-License-Identifier: Apache-2.0 */
/* mail_armor.h: texts with a signature of OpenPGP around them (RFC 9580, 7) */
#ifndef CRM_MAIL_ARMOR_H
#define CRM_MAIL_ARMOR_H

#include "apr_pools.h"

/* Return TEXT without the lines that sign parts of it, in POOL if it has such. No
 * signature is verified. What is not well-formed stays as it is. */
const char *crm_mail_unarmor(const char *text, apr_pool_t *pool);

#endif /* CRM_MAIL_ARMOR_H */
