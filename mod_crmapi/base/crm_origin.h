/* SPDX-License-Identifier: Apache-2.0 */
/* crm_origin.h: origins of web pages */
#ifndef CRM_ORIGIN_H
#define CRM_ORIGIN_H

/* Return whether TEXT is "https://" or "http://", a host, and a port or none. */
int crm_origin_is_one(const char *text);

/* Return NULL if TEXT is an origin as browsers send it (RFC 6454, 6.2):
 * also without the port of the scheme. Otherwise return the rule that it breaks. */
const char *crm_origin_rule(const char *text);

#endif /* CRM_ORIGIN_H */
