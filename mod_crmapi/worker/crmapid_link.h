/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_link.h: links in mails, to pages that httpd serves */
#ifndef CRMAPID_LINK_H
#define CRMAPID_LINK_H

#include "crmapid_config.h"

/* Return the URL that takes the address of the step STEP_ID of WORKSPACE_ID
 * off all lists (RFC 8058), in POOL; NULL if CONFIG has no public_url. KEY is
 * the workspace's, as the database shows it. */
const char *crmd_link_unsubscribe(const crmd_config_t *config,
                                  const char *workspace_id,
                                  const char *step_id, const char *key,
                                  apr_pool_t *pool);

/* Return the URL at which ADMIN_ID may review ENROLLMENT_ID for as long as
 * CONFIG says; the rest as above. */
const char *crmd_link_review(const crmd_config_t *config,
                             const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             const char *key, apr_pool_t *pool);

#endif /* CRMAPID_LINK_H */
