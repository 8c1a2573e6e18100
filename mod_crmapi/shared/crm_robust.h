/* SPDX-License-Identifier: Apache-2.0 */
/* crm_robust.h: mutexes that processes share, and that survive their owner */
#ifndef CRM_ROBUST_H
#define CRM_ROBUST_H

#include <errno.h>
#include <pthread.h>

#include "apr.h"

/* Initialise LOCK, which is in shared memory, as a robust mutex shared by
 * processes: if its owner is killed, the kernel hands it to the next process.
 * Return 0 on failure. */
int crm_robust_init(pthread_mutex_t *lock);

/* Lock LOCK. What it protects needs no repair if its owner was killed: only add 1
 * to *RECOVERED then (NULL: it is not counted). Return 0 if it is broken. */
static inline int crm_robust_lock(pthread_mutex_t *lock,
                                  apr_uint64_t *recovered)
{
    int error = pthread_mutex_lock(lock);

    if (error == EOWNERDEAD) {
        if (recovered) {
            __atomic_fetch_add(recovered, 1, __ATOMIC_RELAXED);
        }
        error = pthread_mutex_consistent(lock);
    }
    return !error;
}

#endif /* CRM_ROBUST_H */
