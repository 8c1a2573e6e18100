/* SPDX-License-Identifier: Apache-2.0 */
/* mail_jis.h: Japanese text with escape sequences (ISO-2022-JP) */
#ifndef CRM_MAIL_JIS_H
#define CRM_MAIL_JIS_H

#include "apr_pools.h"

/* Return the LEN BYTES of ISO-2022-JP (RFC 1468, RFC 2237, and what mail
 * programs add: half-width kana, NEC's and IBM's characters) as EUC-JP, *LEN_P
 * bytes, in POOL. NULL: they have characters of ISO-2022-JP-2 (RFC 1554). */
const char *crm_mail_jis(apr_size_t *len_p, const char *bytes, apr_size_t len,
                         apr_pool_t *pool);

/* Return whether the LEN BYTES have an escape sequence of ISO-2022-JP. */
int crm_mail_has_jis(const char *bytes, apr_size_t len);

#endif /* CRM_MAIL_JIS_H */
