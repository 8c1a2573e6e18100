/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mime.h: a message as a mail (RFC 5322, MIME) */
#ifndef CRMAPID_MIME_H
#define CRMAPID_MIME_H

#include "crmapid_relay.h"

/* A mail, in the pool that it was made in. */
typedef struct crmd_mail_t {
    const char *text;           /* headers and body, LEN bytes, 7 bit but for
                                   addresses of recipients */
    apr_size_t len;
    const char *from;           /* the envelope's sender */
    const char *to;             /* the envelope's recipient */
    const char *const *copies;  /* further ones, ended by NULL; or NULL */
    const char *message_id;     /* "<ID@DOMAIN>", the same for the same
                                   message */
} crmd_mail_t;

/* Make MAIL from MESSAGE in RESULT_POOL, with lines that end with CR LF if
 * CRLF, else with LF. A message of channel "email" has a text and an HTML
 * part. One of another channel has a text part, and its channel in
 * X-Crmapi-Channel. Errors: an address, id or setting cannot be used in a
 * header. For any thread. */
crm_error_t *crmd_mail_make(crmd_mail_t *mail, const crmd_message_t *message,
                            const crmd_config_t *config, int crlf,
                            apr_pool_t *result_pool);

#endif /* CRMAPID_MIME_H */
