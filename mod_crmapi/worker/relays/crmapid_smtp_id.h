/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_smtp_id.h: the Message-ID that a mail server gives a mail */
#ifndef CRMAPID_SMTP_ID_H
#define CRMAPID_SMTP_ID_H

#include "apr_pools.h"

/* Return the id in LINE, the reply of the server at URL to a mail that it has
 * accepted for TO, in POOL: with brackets if it is a whole Message-ID, else
 * what is before its "@". Return NULL if there is none, or an id of the server's
 * queue, which is in no header: "queued as 4FwX2h5Kz". Amazon SES says "250 Ok
 * ID", and the mail gets the Message-ID ID@REGION.amazonses.com. */
const char *crmd_smtp_id(const char *line, const char *url, const char *to,
                         apr_pool_t *pool);

#endif /* CRMAPID_SMTP_ID_H */
