/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_shm.h: shared memory that survives restarts */
#ifndef MOD_CRMAPI_SHM_H
#define MOD_CRMAPI_SHM_H

#include "crm_limit.h"
#include "crm_places.h"
#include "crm_request.h"
#include "crm_store.h"
#include "crm_usage.h"

#include "mod_crmapi.h"

typedef struct crmapi_shm_t {
    crm_limit_t *limit;         /* for keys and intake tokens */
    crm_limit_t *addresses;     /* NULL if no server limits addresses */
    crm_store_shared_t *store;  /* state of the store, also without one */
    crm_keys_t keys;            /* without STATE, which each database has */
    crm_places_t *places;       /* NULL if no server has intake */
    crm_usage_t *usage;         /* requests of workspaces */
} crmapi_shm_t;

/* Create the shared memory for the servers from MAIN_SERVER on, or reuse it
 * after a restart. Return NULL or an error. */
const char *crmapi_shm_create(crmapi_shm_t *shm, server_rec *main_server,
                              apr_pool_t *ptemp);

/* Set *MEMORY_P to SIZE bytes of shared memory for WHAT ("chats"), zeroed, for
 * the life of POOL. Return NULL, or an error allocated in PTEMP. */
const char *crmapi_shm_make(void **memory_p, apr_size_t size, const char *what,
                            apr_pool_t *pool, apr_pool_t *ptemp);

#endif /* MOD_CRMAPI_SHM_H */
