/* SPDX-License-Identifier: Apache-2.0 */
/* mail_smime.h: signed messages that enclose what was signed (RFC 8551) */
#ifndef CRM_MAIL_SMIME_H
#define CRM_MAIL_SMIME_H

#include <gmime/gmime.h>

#include "apr_pools.h"

/* Return what PART, an application/pkcs7-mime, encloses as signed: a MIME entity,
 * *LEN_P bytes in POOL; NULL if it is none, or encrypted. The signature is not
 * verified. */
const char *crm_mail_signed(apr_size_t *len_p, GMimePart *part,
                            apr_pool_t *pool);

#endif /* CRM_MAIL_SMIME_H */
