/* SPDX-License-Identifier: Apache-2.0 */
/* crm_prefer.h: the header Prefer (RFC 7240) */
#ifndef CRM_PREFER_H
#define CRM_PREFER_H

/* Return whether HEADER, the value of a Prefer header (NULL: none), has the
 * preference NAME with VALUE. If it has NAME several times, the first one
 * counts. Names and values are compared without case, values may be quoted, and
 * parameters are ignored. */
int crm_prefer_has(const char *header, const char *name, const char *value);

#endif /* CRM_PREFER_H */
