/* SPDX-License-Identifier: Apache-2.0 */
/* crm_redis_url.h: the URL of a Redis server */
#ifndef CRM_REDIS_URL_H
#define CRM_REDIS_URL_H

#include "crm_redis.h"

#define CRM_REDIS_PORT "6379"   /* if the URL has none */
#define CRM_REDIS_DATABASE_MAX 9999

/* Set *CONFIG to the parts of URL, allocated in POOL:
 *   redis://[user:password-file@]host[:port][/database]
 *   rediss://... (with TLS)
 *   unix:[user:password-file@]path
 * An IPv6 address is in brackets. Return NULL, or the rule that URL breaks. */
const char *crm_redis_parse(crm_redis_config_t *config, const char *url,
                            apr_pool_t *pool);

#endif /* CRM_REDIS_URL_H */
