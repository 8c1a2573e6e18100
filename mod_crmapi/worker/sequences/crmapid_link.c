/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_link.c: links in mails to pages that httpd serves */
#include "crmapid_link.h"

#include "apr_strings.h"

#include "crm_token.h"

/* Return the URL below PATH with the token made of HEAD and MAC, NULL if one of
 * them is NULL. */
static const char *url(const crmd_config_t *config, const char *path,
                       const char *head, const char *mac, apr_pool_t *pool)
{
    const char *token = crm_token_text(head, mac, pool);

    return token ? apr_pstrcat(pool, config->public_url, path, token, NULL)
                 : NULL;
}

const char *crmd_link_unsubscribe_head(const crmd_config_t *config,
                                       const char *workspace_id,
                                       const char *step_id, apr_pool_t *pool)
{
    return *config->public_url
           ? crm_token_unsubscribe(workspace_id, step_id, pool) : NULL;
}

const char *crmd_link_review_head(const crmd_config_t *config,
                                  const char *workspace_id,
                                  const char *enrollment_id,
                                  const char *admin_id, apr_pool_t *pool)
{
    apr_int64_t expires = apr_time_sec(apr_time_now() + config->review_ttl);

    return *config->public_url
           ? crm_token_review(workspace_id, enrollment_id, admin_id, expires,
                              pool) : NULL;
}

const char *crmd_link_unsubscribe(const crmd_config_t *config,
                                  const char *head, const char *mac,
                                  apr_pool_t *pool)
{
    return url(config, config->unsubscribe_path, head, mac, pool);
}

const char *crmd_link_review(const crmd_config_t *config, const char *head,
                             const char *mac, apr_pool_t *pool)
{
    return url(config, config->review_path, head, mac, pool);
}
