/* SPDX-License-Identifier: Apache-2.0 */
/* crm_robust.c: mutexes that processes share, and that survive their owner */
#include "crm_robust.h"

int crm_robust_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int ok;

    if (pthread_mutexattr_init(&attributes)) {
        return 0;
    }
    ok = !pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED)
         && !pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST)
         && !pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return ok;
}
