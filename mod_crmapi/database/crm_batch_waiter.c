/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_waiter.c: how requests that wait sleep and are woken */
#include "crm_batch_private.h"

#include <poll.h>

#include "crm_bell.h"
#include "crm_futex.h"
#include "crm_time.h"

void crm_waiters_add(crm_batch_waiters_t *list, crm_batch_waiter_t *waiter)
{
    waiter->list = list;
    waiter->next = NULL;
    waiter->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = waiter;
    list->last = waiter;
}

void crm_waiters_remove(crm_batch_waiter_t *waiter)
{
    crm_batch_waiters_t *list = waiter->list;

    *(waiter->previous ? &waiter->previous->next : &list->first) = waiter->next;
    *(waiter->next ? &waiter->next->previous : &list->last) = waiter->previous;
    waiter->list = NULL;
}

/* A thread in poll() need not wake when its answer was sent. */
crm_wake_t crm_waiter_set(crm_batch_waiter_t *waiter, crm_verdict_t verdict)
{
    crm_wake_t wake = {&waiter->verdict, waiter->bell};
    apr_uint32_t was = __atomic_exchange_n(&waiter->verdict, verdict,
                                           __ATOMIC_ACQ_REL);

    if (was & CRM_VERDICT_ASLEEP) {
        wake.bell = -1;
    }
    else {
        wake.word = NULL;
    }
    return wake;
}

crm_wake_t crm_waiter_decide(crm_batch_waiter_t *waiter, crm_verdict_t verdict)
{
    crm_waiters_remove(waiter);
    return crm_waiter_set(waiter, verdict);
}

int crm_waiter_occupy(crm_batch_waiter_t *waiter)
{
    apr_uint32_t verdict = crm_waiter_verdict(waiter);

    return waiter->bell >= 0
           && __atomic_compare_exchange_n(&waiter->verdict, &verdict,
                                          CRM_VERDICT_BUSY, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void crm_waiter_wake(const crm_wake_t *wake)
{
    if (wake->word) {
        crm_futex_wake(wake->word);
    }
    if (wake->bell >= 0) {
        crm_bell_ring(wake->bell);
    }
}

/* Sleep on the verdict of WAITER until END, if it is not final yet. */
static void sleep_on_verdict(crm_batch_waiter_t *waiter,
                             apr_interval_time_t end)
{
    apr_uint32_t verdict = crm_waiter_verdict(waiter);
    apr_uint32_t asleep = verdict | CRM_VERDICT_ASLEEP;

    if ((verdict == CRM_VERDICT_WAIT || verdict == CRM_VERDICT_BUSY)
        && (__atomic_compare_exchange_n(&waiter->verdict, &verdict, asleep, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
            || verdict == asleep)) {
        crm_futex_wait(&waiter->verdict, asleep, end);
    }
}

/* Sleep in poll() until the bell of WAITER rings, its client has sent something,
 * or it is END. */
static void poll_client(crm_batch_waiter_t *waiter, apr_interval_time_t end)
{
    struct pollfd fds[] = {{waiter->source->client, POLLIN, 0},
                           {waiter->bell, POLLIN, 0}};
    apr_interval_time_t left = end - crm_time_monotonic();
    struct timespec time;

    if (left > waiter->patience) {
        left = waiter->patience;
        waiter->patience *= 2;
    }
    left = left < 0 ? 0 : left;
    time.tv_sec = (time_t)(left / APR_USEC_PER_SEC);
    time.tv_nsec = (long)(left % APR_USEC_PER_SEC) * 1000;
    if (ppoll(fds, 2, &time, NULL) <= 0) {
        return;
    }
    if (fds[1].revents) {
        crm_bell_clear(waiter->bell);
    }
    waiter->roused = fds[0].revents != 0;
}

/* A client that sends its next request before it has the answer, or that has
 * gone, is not waited for. */
void crm_waiter_sleep(crm_batch_waiter_t *waiter, apr_interval_time_t end)
{
    if (waiter->bell >= 0 && !waiter->roused) {
        poll_client(waiter, end);
        if (!waiter->roused) {
            return;
        }
    }
    sleep_on_verdict(waiter, end);
}
