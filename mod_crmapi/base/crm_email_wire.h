/* SPDX-License-Identifier: Apache-2.0 */
/* crm_email_wire.h: e-mail addresses as they are in envelopes and headers */
#ifndef CRM_EMAIL_WIRE_H
#define CRM_EMAIL_WIRE_H

#include "apr_pools.h"

/* Return whether ADDRESS can be put into headers and envelopes unchanged: a
 * dot-atom (RFC 5322, 3.2.3), '@', and a host name, which may contain
 * characters beyond ASCII (RFC 5890). */
int crm_email_wire(const char *address);

/* Return ADDRESS as it can be put there, in POOL if it is another: addresses such as
 * "a..b@example.org" and "a.@example.org" need quotes. NULL: it cannot. One that is not
 * crm_email_wire_is_ascii() needs a server with SMTPUTF8 (RFC 6531). */
const char *crm_email_wire_quoted(const char *address, apr_pool_t *pool);

/* Return whether ADDRESS is ASCII before its '@'. */
int crm_email_wire_is_ascii(const char *address);

/* Return NULL if mails can be sent from ADDRESS, valid UTF-8, else the error as a
 * constant text. */
const char *crm_email_wire_from(const char *address, apr_pool_t *scratch_pool);

/* The same of an ADDRESS that mails are sent to. */
const char *crm_email_wire_to(const char *address, apr_pool_t *scratch_pool);

#endif /* CRM_EMAIL_WIRE_H */
