/* SPDX-License-Identifier: Apache-2.0 */
/* crm_cond.h: conditions of threads, with waits that end although the system's
 * clock is set meanwhile */
#ifndef CRM_COND_H
#define CRM_COND_H

#include <pthread.h>

#include "apr_time.h"

/* Make COND a condition for crm_cond_wait(). */
void crm_cond_init(pthread_cond_t *cond);

/* Wait for COND, up to TIMEOUT microseconds. The caller has locked MUTEX. It may
 * end earlier without a signal. */
void crm_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                   apr_interval_time_t timeout);

#endif /* CRM_COND_H */
