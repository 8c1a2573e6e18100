/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mime.h: a message as a mail (RFC 5322, MIME) */
#ifndef CRMAPID_MIME_H
#define CRMAPID_MIME_H

#include "crm_buf.h"

#include "crmapid.h"

/* A mail, in the pool that it was made in. */
typedef struct crmd_mail_t {
    const char *text;           /* the whole of it, LEN bytes, 7 bit */
    apr_size_t len;
    const char *from;           /* who the envelope says it is from */
    const char *to;
    const char *message_id;     /* "<ID@DOMAIN>", the same for the same
                                   message */
} crmd_mail_t;

/* Make MAIL of MESSAGE in RESULT_POOL, lines ended by CR LF if CRLF, else by
 * LF. A message of "email" has a text and an HTML part; one of another channel
 * its text, and the channel in X-Crmapi-Channel. Return NULL or why there can
 * be no such mail: one line. For any thread. */
const char *crmd_mail_make(crmd_mail_t *mail, const crmd_message_t *message,
                           const crmd_config_t *config, int crlf,
                           apr_pool_t *result_pool);

/* Return whether ADDRESS may be put into headers and envelopes as it is: one
 * '@' between a dot-atom (RFC 5322, 3.2.3) and a host name, which may have
 * characters beyond ASCII (RFC 5890). */
int crmd_mail_address(const char *address);

/* The same for NUMBER, a phone's or a sender's name: letters, digits, "+-.". */
int crmd_mail_number(const char *number);

/* Return TEXT (NULL: "") as one line of valid UTF-8 of at most MAX bytes:
 * nothing in a header may begin another one. What looks like an encoded word
 * (RFC 2047) is spoiled: it would be decoded at the other end. In POOL. */
const char *crmd_mail_line(const char *text, apr_size_t max, apr_pool_t *pool);

/* Add TEXT, in paragraphs, to BUF as HTML: lines stay lines, http(s) URLs
 * become links. */
void crmd_mail_html(crm_buf_t *buf, const char *text);

#endif /* CRMAPID_MIME_H */
