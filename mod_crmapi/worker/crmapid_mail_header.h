/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_header.h: values that may be put into a mail's headers */
#ifndef CRMAPID_MAIL_HEADER_H
#define CRMAPID_MAIL_HEADER_H

#include "apr_pools.h"

/* Return whether ADDRESS can be put into headers and envelopes unchanged: a
 * dot-atom (RFC 5322, 3.2.3), '@', and a host name, which may contain
 * characters beyond ASCII (RFC 5890). */
int crmd_mail_address(const char *address);

/* Return ADDRESS as it can be put there, in POOL if it is another: addresses such as
 * "a..b@example.org" and "a.@example.org" need quotes. NULL: it cannot. */
const char *crmd_mail_quoted(const char *address, apr_pool_t *pool);

/* As crmd_mail_address() for NUMBER, a phone number or a sender name: letters, digits,
 * "+-.". */
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
