/* SPDX-License-Identifier: Apache-2.0 */
/* mail_repair.h: headers that are not where they belong (contract 18.3) */
#ifndef CRM_MAIL_REPAIR_H
#define CRM_MAIL_REPAIR_H

#include "apr_pools.h"

/* Return the *LEN_P BYTES of a mail, changed as follows, and set *LEN_P. The
 * result is in BYTES or in POOL.
 * - A byte order mark, blank lines and the indent of the first line go, if a
 *   header follows.
 * - Blank lines within the header go: those before fields that the header lacks.
 * - Of several Content-Types of a header one is left: a multipart whose boundary
 *   is used, else the first. */
const char *crm_mail_repair(apr_size_t *len_p, const char *bytes,
                            apr_pool_t *pool);

#endif /* CRM_MAIL_REPAIR_H */
