/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_store.h: the store of budgets that several hosts share */
#ifndef MOD_CRMAPI_STORE_H
#define MOD_CRMAPI_STORE_H

#include "crm_redis.h"
#include "crm_store.h"

#include "mod_crmapi.h"

/* The store of CrmApiRateLimitStore. */
typedef struct crmapi_store_t {
    crm_redis_config_t redis;
    apr_interval_time_t timeout;
} crmapi_store_t;

/* CrmApiRateLimitStore */
const char *crmapi_set_store(cmd_parms *cmd, void *dir, int argc,
                             char *const argv[]);

/* Return NULL if the certificates of MAIN_SERVER's store can be used, or if it has
 * none. Otherwise return a message, in P. */
const char *crmapi_store_check(const server_rec *main_server, apr_pool_t *p);

/* Set *STORE_P to the store of MAIN_SERVER's configuration, allocated in PCONF,
 * or to NULL if it has none. Children connect it by crm_store_open(). Return
 * NULL or an error. */
const char *crmapi_store_create(crm_store_t **store_p,
                                server_rec *main_server,
                                crm_store_shared_t *shared, apr_pool_t *pconf);

#endif /* MOD_CRMAPI_STORE_H */
