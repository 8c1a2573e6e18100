/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.h: the section of mod_status */
#ifndef MOD_CRMAPI_STATUS_H
#define MOD_CRMAPI_STATUS_H

#include "crm_limit.h"
#include "crm_store.h"

#include "mod_crmapi_shm.h"

/* Register the section, if mod_status is loaded. */
void crmapi_status_register(void);

/* Let the section of mod_status and the metrics read SHM. */
void crmapi_status_init(const crmapi_shm_t *shm);

/* Set *KEYS and *ADDRESSES to the statistics of the rate limits. */
void crmapi_status_limits(crm_limit_stats_t *keys,
                          crm_limit_stats_t *addresses);

/* Return the state of the store. */
const crm_store_shared_t *crmapi_status_store(void);

#endif /* MOD_CRMAPI_STATUS_H */
