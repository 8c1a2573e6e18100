/* SPDX-License-Identifier: Apache-2.0 */
/* mail_rtf.h: the text of RTF, in which Outlook keeps mails */
#ifndef CRM_MAIL_RTF_H
#define CRM_MAIL_RTF_H

#include "apr_pools.h"

/* The maximum bytes of RTF that are read. */
#define CRM_MAIL_RTF_BYTES (256 * 1024)

/* Return the RTF in the LEN BYTES of a property of Outlook's, compressed or not
 * (MS-OXRTFCP), *LEN_P bytes in POOL: CRM_MAIL_RTF_BYTES and a few more at most, and
 * as many as there are before something is broken. */
const char *crm_mail_rtf_unpack(apr_size_t *len_p, const char *bytes,
                                apr_size_t len, apr_pool_t *pool);

/* Return what the LEN bytes of RTF show as text, UTF-8 in POOL. Pictures, headers
 * and what is hidden are left out; "" if it is something else. */
const char *crm_mail_rtf(const char *rtf, apr_size_t len, apr_pool_t *pool);

#endif /* CRM_MAIL_RTF_H */
