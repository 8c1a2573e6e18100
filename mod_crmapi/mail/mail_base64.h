/* SPDX-License-Identifier: Apache-2.0 */
/* mail_base64.h: what is said to be base64 */
#ifndef CRM_MAIL_BASE64_H
#define CRM_MAIL_BASE64_H

#include "crm_buf.h"

/* Return whether the LEN bytes RAW, a text in CHARSET (NULL: not declared), are
 * base64, as is said of them; otherwise they are the text itself. */
int crm_mail_is_base64(const char *raw, apr_size_t len, const char *charset,
                       apr_pool_t *pool);

/* Return whether the LEN bytes RAW, a text of which base64 is not said, are base64
 * nevertheless: nothing else, and a text of several words in UTF-8. */
int crm_mail_is_bare_base64(const char *raw, apr_size_t len, apr_pool_t *pool);

/* Return how many of the LEN bytes RAW, base64, are before what a server has added:
 * words, behind a blank line. */
apr_size_t crm_mail_base64_end(const char *raw, apr_size_t len);

/* Return how many of the LEN bytes RAW, base64, are its first piece: up to the
 * first padding, if digits go on right behind it or in the next line. */
apr_size_t crm_mail_base64_piece(const char *raw, apr_size_t len);

/* Add the LEN bytes at TEXT, base64, to BUF, decoded. Characters that do not belong
 * there are left out; behind padding it begins anew. */
void crm_mail_base64_add(crm_buf_t *buf, const char *text, apr_size_t len);

/* Count the digits in the LEN bytes RAW, a part of base64: add them to *COUNT_P. Return
 * whether the rest is white space. */
int crm_mail_base64_digits(apr_size_t *count_p, const char *raw,
                           apr_size_t len);

#endif /* CRM_MAIL_BASE64_H */
