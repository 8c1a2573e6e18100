/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_link.h: links in mails, to pages that httpd serves */
#ifndef CRMAPID_LINK_H
#define CRMAPID_LINK_H

#include "crmapid_config.h"

/* Return the head (crm_token.h) of the token of the link that takes the address
 * of the step STEP_ID of WORKSPACE_ID off all lists (RFC 8058), in POOL; NULL
 * if CONFIG has no public_url. */
const char *crmd_link_unsubscribe_head(const crmd_config_t *config,
                                       const char *workspace_id,
                                       const char *step_id, apr_pool_t *pool);

/* The same of the link at which ADMIN_ID may review ENROLLMENT_ID for as long
 * as CONFIG says. */
const char *crmd_link_review_head(const crmd_config_t *config,
                                  const char *workspace_id,
                                  const char *enrollment_id,
                                  const char *admin_id, apr_pool_t *pool);

/* Return the URL of these links, in POOL, whose HEAD the database has signed
 * with MAC; NULL if one of them is NULL. */
const char *crmd_link_unsubscribe(const crmd_config_t *config,
                                  const char *head, const char *mac,
                                  apr_pool_t *pool);
const char *crmd_link_review(const crmd_config_t *config, const char *head,
                             const char *mac, apr_pool_t *pool);

#endif /* CRMAPID_LINK_H */
