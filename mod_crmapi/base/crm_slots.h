/* SPDX-License-Identifier: Apache-2.0 */
/* crm_slots.h: a limit on the concurrency of a process's threads */
#ifndef CRM_SLOTS_H
#define CRM_SLOTS_H

#include <pthread.h>

/* The number of slots in use. Each call states the limit, so it may change. */
typedef struct crm_slots_t {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int used;
} crm_slots_t;

#define CRM_SLOTS_INITIALIZER \
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}

/* Take one of the LIMIT slots of SLOTS; wait until one is free. A limit below 1
 * counts as 1. */
void crm_slots_wait(crm_slots_t *slots, int limit);

/* Give a slot of SLOTS back. */
void crm_slots_leave(crm_slots_t *slots);

#endif /* CRM_SLOTS_H */
