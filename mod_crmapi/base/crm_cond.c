/* SPDX-License-Identifier: Apache-2.0 */
/* crm_cond.c: conditions that go by CLOCK_MONOTONIC. APR's go by the system's
 * clock: when that is set back an hour, a wait of a second takes an hour. */
#include "crm_cond.h"

#include <time.h>

#include "crm_time.h"

void crm_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

void crm_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                   apr_interval_time_t timeout)
{
    apr_int64_t end = crm_time_monotonic() + timeout;
    struct timespec at;

    at.tv_sec = (time_t)(end / APR_USEC_PER_SEC);
    at.tv_nsec = (long)(end % APR_USEC_PER_SEC) * 1000;
    pthread_cond_timedwait(cond, mutex, &at);
}
