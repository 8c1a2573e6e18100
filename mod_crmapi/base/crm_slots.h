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
    int trying;                 /* threads between crm_slots_try() and _tried() */
    int away;                   /* as the last of them said */
} crm_slots_t;

#define CRM_SLOTS_INITIALIZER \
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0}

/* Take one of the LIMIT slots of SLOTS; wait until one is free, or what they are
 * for is away. A limit below 1 counts as 1. */
void crm_slots_wait(crm_slots_t *slots, int limit);

/* A thread that has a slot is about to use what SLOTS, LIMIT of them, are for.
 * Return whether it may: while that is away one thread at a time tries it, and the
 * others do not wait for it. After 1 it calls crm_slots_tried(). */
int crm_slots_try(crm_slots_t *slots, int limit);

/* Note that the thread has used it. AWAY: it kept the thread waiting in vain. */
void crm_slots_tried(crm_slots_t *slots, int away);

/* Give a slot of SLOTS back. */
void crm_slots_leave(crm_slots_t *slots);

#endif /* CRM_SLOTS_H */
