/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_link.h: links in mails to pages that httpd serves */
#ifndef CRMAPID_LINK_H
#define CRMAPID_LINK_H

#include "crmapid_config.h"

/* Return the head (crm_token.h) of the token that unsubscribes the address of
 * the step STEP_ID of WORKSPACE_ID (RFC 8058), in POOL; NULL if CONFIG has no
 * public_url. */
const char *crmd_link_unsubscribe_head(const crmd_config_t *config,
                                       const char *workspace_id,
                                       const char *step_id, apr_pool_t *pool);

/* The same for the token with which ADMIN_ID may review ENROLLMENT_ID. It
 * expires after CONFIG's review_ttl. */
const char *crmd_link_review_head(const crmd_config_t *config,
                                  const char *workspace_id,
                                  const char *enrollment_id,
                                  const char *admin_id, apr_pool_t *pool);

/* Return the URL of a link, in POOL, from its HEAD and from MAC, the
 * signature that the database made of it; NULL if one of them is NULL. */
const char *crmd_link_unsubscribe(const crmd_config_t *config,
                                  const char *head, const char *mac,
                                  apr_pool_t *pool);
const char *crmd_link_review(const crmd_config_t *config, const char *head,
                             const char *mac, apr_pool_t *pool);

#endif /* CRMAPID_LINK_H */
