/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_status.h: the section of mod_status, and what was logged last */
#ifndef MOD_CRMAPI_STATUS_H
#define MOD_CRMAPI_STATUS_H

#include "crm_limit.h"
#include "crm_store.h"

#include "mod_crmapi_shm.h"

/* The state that was logged last for a subject. In shared memory, initially
 * zero. */
typedef struct crmapi_news_t {
    apr_uint32_t state;
    apr_int64_t at;             /* time of the log message; 0: never */
} crmapi_news_t;

/* Return whether to log STATE for the subject of NEWS. One of all processes
 * logs it when it differs from the previous state (initially 0), and again
 * every AGAIN microseconds (0: never). */
int crmapi_status_news(crmapi_news_t *news, apr_uint32_t state,
                       apr_interval_time_t again);

/* Return whether crmapi_status_news() would return true now. */
int crmapi_status_is_news(const crmapi_news_t *news, apr_uint32_t state,
                          apr_interval_time_t again);

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
