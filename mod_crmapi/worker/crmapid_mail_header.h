/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_header.h: values that may be put into a mail's headers */
#ifndef CRMAPID_MAIL_HEADER_H
#define CRMAPID_MAIL_HEADER_H

#include "apr_pools.h"

/* Return whether NUMBER, a phone number or a sender name, can be put into headers
 * unchanged: letters, digits, "+-.". */
int crmd_mail_number(const char *number);

/* Return TEXT (NULL: "") as one line of valid UTF-8 of at most MAX bytes, in
 * POOL: it cannot begin another header. */
const char *crmd_mail_line(const char *text, apr_size_t max, apr_pool_t *pool);

/* Return whether TEXT, one line, can be in a header only as encoded words: it is not
 * ASCII, cannot be folded, or has "=?", which a reader would decode (RFC 2047). */
int crmd_mail_needs_words(const char *text);

/* Return the value of the header NAME, folded, in POOL: TEXT, one line of valid
 * UTF-8, as encoded words (RFC 2047), and ADDRESS (may be NULL) behind it. A word has
 * whole characters and at most 75 bytes, a line at most 76. */
const char *crmd_mail_words(const char *name, const char *text,
                            const char *address, apr_pool_t *pool);

#endif /* CRMAPID_MAIL_HEADER_H */
