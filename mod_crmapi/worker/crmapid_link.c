/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_link.c: links in mails, to pages that httpd serves */
#include "crmapid_link.h"

#include "apr_strings.h"

#include "crm_token.h"

/* Return the URL of TOKEN (NULL: there is none) below PATH. */
static const char *url(const crmd_config_t *config, const char *path,
                       const char *token, apr_pool_t *pool)
{
    return token ? apr_pstrcat(pool, config->public_url, path, token, NULL)
                 : NULL;
}

const char *crmd_link_unsubscribe(const crmd_config_t *config,
                                  const char *workspace_id,
                                  const char *step_id, const char *key,
                                  apr_pool_t *pool)
{
    unsigned char bytes[CRM_TOKEN_KEY_LEN];

    if (!*config->public_url || !crm_token_key(bytes, key)) {
        return NULL;
    }
    return url(config, config->unsubscribe_path,
               crm_token_unsubscribe(workspace_id, step_id, bytes, pool),
               pool);
}

const char *crmd_link_review(const crmd_config_t *config,
                             const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             const char *key, apr_pool_t *pool)
{
    unsigned char bytes[CRM_TOKEN_KEY_LEN];
    apr_int64_t expires = apr_time_sec(apr_time_now() + config->review_ttl);

    if (!*config->public_url || !crm_token_key(bytes, key)) {
        return NULL;
    }
    return url(config, config->review_path,
               crm_token_review(workspace_id, enrollment_id, admin_id,
                                expires, bytes, pool), pool);
}
