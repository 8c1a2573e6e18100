/* SPDX-License-Identifier: Apache-2.0 */
/* crm_deprecation.h: operations that will be removed (contract 13.7) */
#ifndef CRM_DEPRECATION_H
#define CRM_DEPRECATION_H

#include "apr_pools.h"

/* The dates, "2027-01-31", of an operation's deprecation and removal. SINCE is
 * NULL if it is not deprecated. */
typedef struct crm_deprecation_t {
    const char *since;
    const char *sunset;         /* at least 12 months later */
} crm_deprecation_t;

/* Return NULL, or the rule that DEPRECATION breaks. */
const char *crm_deprecation_rule(const crm_deprecation_t *deprecation);

/* Return in POOL the value of the header Deprecation (RFC 9745) for
 * DEPRECATION, which breaks no rule: "@" and a Unix time in seconds. */
const char *crm_deprecation_since(const crm_deprecation_t *deprecation,
                                  apr_pool_t *pool);

/* Return in POOL the value of the header Sunset (RFC 8594) for DEPRECATION,
 * which breaks no rule: an HTTP date. */
const char *crm_deprecation_sunset(const crm_deprecation_t *deprecation,
                                   apr_pool_t *pool);

#endif /* CRM_DEPRECATION_H */
