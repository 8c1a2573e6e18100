/* SPDX-License-Identifier: Apache-2.0 */
/* mail_word.h: encoded words in headers (RFC 2047) */
#ifndef CRM_MAIL_WORD_H
#define CRM_MAIL_WORD_H

#include "apr_pools.h"

/* Return RAW, the value of a header, unfolded and as UTF-8 in POOL, without NUL
 * and control characters except tab. Encoded words are decoded, wherever they
 * stand; a character may be split over several. Other bytes that are not ASCII
 * are in HINT, the charset of the mail's text, if they are not valid UTF-8
 * (contract 18.1). At most the first 64 KiB are read. */
const char *crm_mail_decode(const char *raw, const char *hint,
                            apr_pool_t *pool);

/* The same for a header that has a syntax of its own: what was decoded is given
 * as encoded words in UTF-8, so that it is not taken for syntax. */
const char *crm_mail_recode(const char *raw, const char *hint,
                            apr_pool_t *pool);

#endif /* CRM_MAIL_WORD_H */
