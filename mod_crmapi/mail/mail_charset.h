/* SPDX-License-Identifier: Apache-2.0 */
/* mail_charset.h: converting text of any charset to UTF-8 */
#ifndef CRM_MAIL_CHARSET_H
#define CRM_MAIL_CHARSET_H

#include "apr_pools.h"

#include "mail_label.h"

/* What a detector has said of the texts of a value, COUNT of them. A detector
 * costs as much as a thousand bytes, so it is asked a few times for a value, and
 * its last word holds for the others. */
typedef struct crm_mail_guess_t {
    crm_mail_charset_t charset;
    int count;
} crm_mail_guess_t;

/* Return the LEN BYTES as UTF-8 in POOL, without NUL and control characters
 * except tab and line feed; all lines end with LF. CHARSET is the declared
 * charset (NULL: none). It is corrected if the bytes are certainly in another
 * one. If it says nothing (contract 18.1): UTF-8 if the bytes are valid, else
 * HINT, a charset too (NULL: none), else what a detector says, or has said of
 * GUESS. Invalid bytes become U+FFFD. */
const char *crm_mail_utf8_or(const char *bytes, apr_size_t len,
                             const char *charset, const char *hint,
                             crm_mail_guess_t *guess, apr_pool_t *pool);

/* The same for a text alone, without a hint. */
const char *crm_mail_utf8(const char *bytes, apr_size_t len,
                          const char *charset, apr_pool_t *pool);

/* Return TEXT, which may be invalid UTF-8, as one line of at most MAX
 * characters in POOL, without white space at both ends; NULL if nothing is
 * left. */
const char *crm_mail_line(const char *text, apr_size_t max, apr_pool_t *pool);

/* Return the first MAX characters of TEXT, in POOL; *CUT_P = the number of
 * characters cut off. */
const char *crm_mail_cut(apr_size_t *cut_p, const char *text, apr_size_t max,
                         apr_pool_t *pool);

#endif /* CRM_MAIL_CHARSET_H */
