/* SPDX-License-Identifier: Apache-2.0 */
/* mail_auth.h: whether a trusted host has verified the sender (RFC 8601) */
#ifndef CRM_MAIL_AUTH_H
#define CRM_MAIL_AUTH_H

#include <gmime/gmime.h>

#include "crm_mail.h"

/* The result of a header Authentication-Results for a mail's sender. Of several
 * results the greatest counts. */
typedef enum crm_mail_auth_t {
    CRM_MAIL_AUTH_UNTRUSTED,    /* its authserv-id is not trusted */
    CRM_MAIL_AUTH_NONE,         /* none of the other results */
    CRM_MAIL_AUTH_PASS,         /* DMARC passed, or a signature (DKIM) of the
                                   sender's domain or one above it */
    CRM_MAIL_AUTH_FAIL          /* DMARC failed, or the header is malformed or
                                   contradicts itself */
} crm_mail_auth_t;

/* Return the result of VALUE, the value of such a header, for a mail from
 * DOMAIN. IDS: the authserv_ids of crm_mail_options_t. */
crm_mail_auth_t crm_mail_results(const char *value, const char *ids,
                                 const char *domain, apr_pool_t *pool);

/* Return whether a host of IDS has verified MAIL's sender in the headers of
 * MIME, above the topmost Received of such a host. If there is none: above the
 * first Received that names the host it had the mail from. A mail without
 * Received comes from no other host (RFC 5321, 4.4): the first header of a host
 * of IDS above From counts. The mail must name no other sender. */
int crm_mail_verified(const crm_mail_t *mail, GMimeMessage *mime,
                      const char *ids, apr_pool_t *pool);

#endif /* CRM_MAIL_AUTH_H */
