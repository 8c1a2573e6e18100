/* SPDX-License-Identifier: Apache-2.0 */
/* crm_slots.c: a limit on the concurrency of a process's threads */
#include "crm_slots.h"

void crm_slots_wait(crm_slots_t *slots, int limit)
{
    pthread_mutex_lock(&slots->mutex);
    while (slots->used > 0 && slots->used >= limit && !slots->away) {
        pthread_cond_wait(&slots->freed, &slots->mutex);
    }
    slots->used++;
    pthread_mutex_unlock(&slots->mutex);
}

int crm_slots_try(crm_slots_t *slots, int limit)
{
    int may;

    pthread_mutex_lock(&slots->mutex);
    may = !slots->trying || (!slots->away && slots->trying < limit);
    slots->trying += may;
    pthread_mutex_unlock(&slots->mutex);
    return may;
}

void crm_slots_tried(crm_slots_t *slots, int away)
{
    pthread_mutex_lock(&slots->mutex);
    slots->trying--;
    slots->away = away;
    pthread_cond_broadcast(&slots->freed);
    pthread_mutex_unlock(&slots->mutex);
}

void crm_slots_leave(crm_slots_t *slots)
{
    pthread_mutex_lock(&slots->mutex);
    slots->used--;
    pthread_cond_broadcast(&slots->freed);
    pthread_mutex_unlock(&slots->mutex);
}
