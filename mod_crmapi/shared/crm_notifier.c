/* SPDX-License-Identifier: Apache-2.0 */
/* crm_notifier.c: waking threads that wait for events, across processes */
#include "crm_notifier.h"

#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#endif

/* A place that is still in use this long after UNTIL belongs to a process that
 * was killed. */
#define STALE apr_time_from_sec(60)

/* Polling interval on systems without futexes. */
#define STEP apr_time_from_msec(50)

/* FNV-1a, 64 bits. */
static apr_uint64_t hash_of(const char *name)
{
    apr_uint64_t hash = APR_UINT64_C(14695981039346656037);

    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * APR_UINT64_C(1099511628211);
    }
    return hash;
}

static apr_uint32_t line_of(const char *name)
{
    apr_uint64_t hash = hash_of(name);

    return (apr_uint32_t)(hash ^ hash >> 32) % CRM_NOTIFIER_LINES;
}

/* ---- futexes ------------------------------------------------------------- */

#ifdef __linux__
static void sleep_on(apr_uint32_t *word, apr_interval_time_t timeout)
{
    struct timespec time;

    time.tv_sec = (time_t)apr_time_sec(timeout);
    time.tv_nsec = (long)apr_time_usec(timeout) * 1000;
    syscall(SYS_futex, word, FUTEX_WAIT, 0, &time, NULL, 0);
}

static void wake(crm_waiter_t *waiter)
{
    __atomic_store_n(&waiter->woken, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &waiter->woken, FUTEX_WAKE, 1, NULL, NULL, 0);
}
#else
static void sleep_on(apr_uint32_t *word, apr_interval_time_t timeout)
{
    for (; timeout > 0 && !__atomic_load_n(word, __ATOMIC_SEQ_CST);
         timeout -= STEP) {
        apr_sleep(timeout < STEP ? timeout : STEP);
    }
}

static void wake(crm_waiter_t *waiter)
{
    __atomic_store_n(&waiter->woken, 1, __ATOMIC_SEQ_CST);
}
#endif

/* Members of a place that others read while its owner changes them. */
#define LOAD(member) __atomic_load_n(&(member), __ATOMIC_RELAXED)
#define STORE(member, value) \
    __atomic_store_n(&(member), (value), __ATOMIC_RELAXED)

/* ---- notifying ----------------------------------------------------------- */

static int is_used(const crm_waiter_t *waiter)
{
    return __atomic_load_n(&waiter->used, __ATOMIC_SEQ_CST) != 0;
}

/* Return whether WAITER waits for LINE. If WAITER is changing its lines at this
 * moment, the result may be incorrect. That does no harm, because WAITER then
 * compares the counts itself. */
static int waits_for(const crm_waiter_t *waiter, apr_uint32_t line)
{
    apr_uint32_t count = __atomic_load_n(&waiter->count, __ATOMIC_SEQ_CST);

    for (apr_uint32_t i = 0; i < count && i < CRM_NOTIFIER_NAMES; i++) {
        if (__atomic_load_n(&waiter->lines[i], __ATOMIC_RELAXED) == line) {
            return 1;
        }
    }
    return 0;
}

void crm_notifier_notify(crm_notifier_t *notifier, const char *name)
{
    apr_uint32_t line = line_of(name);

    __atomic_fetch_add(&notifier->lines[line], 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&notifier->waiting, __ATOMIC_SEQ_CST)) {
        return;
    }
    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        crm_waiter_t *waiter = &notifier->waiters[i];

        if (is_used(waiter) && waits_for(waiter, line)) {
            wake(waiter);
        }
    }
}

apr_uint32_t crm_notifier_count(const crm_notifier_t *notifier,
                                const char *name)
{
    return __atomic_load_n(&notifier->lines[line_of(name)], __ATOMIC_SEQ_CST);
}

void crm_notifier_wake_process(crm_notifier_t *notifier)
{
    apr_uint32_t process = (apr_uint32_t)getpid();

    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        crm_waiter_t *waiter = &notifier->waiters[i];

        if (is_used(waiter) && LOAD(waiter->process) == process) {
            wake(waiter);
        }
    }
}

/* ---- waiting ------------------------------------------------------------- */

/* Take the place WAITER if it is free or its process was killed. Return whether
 * this succeeded. */
static int take(crm_notifier_t *notifier, crm_waiter_t *waiter)
{
    apr_uint32_t none = 0, stale = 1;

    if (is_used(waiter)) {
        /* 2: another thread is taking it */
        if (apr_time_now() < LOAD(waiter->until) + STALE
            || !__atomic_compare_exchange_n(&waiter->used, &stale, 2, 0,
                                            __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST)) {
            return 0;
        }
        return 1;
    }
    if (!__atomic_compare_exchange_n(&waiter->used, &none, 2, 0,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return 0;
    }
    __atomic_fetch_add(&notifier->waiting, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* Return whether OWNER waits in another place than WAITER. */
static int waits_elsewhere(const crm_notifier_t *notifier, apr_uint64_t owner,
                           const crm_waiter_t *waiter)
{
    apr_time_t now = apr_time_now();

    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        const crm_waiter_t *other = &notifier->waiters[i];

        if (other != waiter && is_used(other) && LOAD(other->owner) == owner
            && now < LOAD(other->until) + STALE) {
            return 1;
        }
    }
    return 0;
}

/* Return how many threads of this process wait for clients whose network WHICH
 * has the hash NET. */
static int count_of(const crm_notifier_t *notifier, apr_uint64_t net,
                    int which)
{
    apr_uint32_t process = (apr_uint32_t)getpid();
    int count = 0;

    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        const crm_waiter_t *waiter = &notifier->waiters[i];

        count += is_used(waiter) && LOAD(waiter->process) == process
                 && LOAD(waiter->nets[which]) == net;
    }
    return count;
}

/* Return whether a network of CLIENT, which has entered WAITER, has more places
 * than it may have. */
static int is_greedy(const crm_notifier_t *notifier,
                     const crm_notifier_client_t *client,
                     const crm_waiter_t *waiter)
{
    for (int i = 0; i < CRM_NOTIFIER_NETS && client->nets[i]; i++) {
        if (client->most[i]
            && count_of(notifier, waiter->nets[i], i) > client->most[i]) {
            return 1;
        }
    }
    return 0;
}

/* Fill WAITER, which was taken, for the owner with the hash OWNER. */
static void fill(crm_waiter_t *waiter, apr_uint64_t owner,
                 const crm_notifier_client_t *client, apr_time_t until)
{
    STORE(waiter->count, 0);
    STORE(waiter->process, (apr_uint32_t)getpid());
    STORE(waiter->owner, owner);
    STORE(waiter->until, until);
    for (int i = 0; i < CRM_NOTIFIER_NETS; i++) {
        STORE(waiter->nets[i], client->nets[i] ? hash_of(client->nets[i]) : 0);
    }
    __atomic_store_n(&waiter->used, 1, __ATOMIC_SEQ_CST);
}

crm_waiter_t *crm_notifier_enter(crm_notifier_t *notifier, const char *owner,
                                 const crm_notifier_client_t *client,
                                 apr_time_t until)
{
    apr_uint64_t hash = hash_of(owner);

    if (waits_elsewhere(notifier, hash, NULL)) {
        return NULL;
    }
    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        crm_waiter_t *waiter = &notifier->waiters[i];

        if (!take(notifier, waiter)) {
            continue;
        }
        fill(waiter, hash, client, until);
        if (waits_elsewhere(notifier, hash, waiter)
            || is_greedy(notifier, client, waiter)) {
            crm_notifier_leave(notifier, waiter);
            return NULL;
        }
        return waiter;
    }
    return NULL;
}

void crm_notifier_leave(crm_notifier_t *notifier, crm_waiter_t *waiter)
{
    STORE(waiter->owner, 0);
    __atomic_store_n(&waiter->count, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&waiter->used, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&notifier->waiting, 1, __ATOMIC_SEQ_CST);
}

void crm_notifier_wait(crm_notifier_t *notifier, crm_waiter_t *waiter,
                       const char *const *names, const apr_uint32_t *counts,
                       int count, apr_interval_time_t timeout)
{
    __atomic_store_n(&waiter->woken, 0, __ATOMIC_SEQ_CST);
    for (int i = 0; i < count && i < CRM_NOTIFIER_NAMES; i++) {
        __atomic_store_n(&waiter->lines[i], line_of(names[i]),
                         __ATOMIC_RELAXED);
    }
    __atomic_store_n(&waiter->count, (apr_uint32_t)count, __ATOMIC_SEQ_CST);
    /* A notification after this store wakes the waiter. An earlier one shows
     * in the counts. */
    for (int i = 0; i < count; i++) {
        if (crm_notifier_count(notifier, names[i]) != counts[i]) {
            return;
        }
    }
    if (timeout > 0) {
        sleep_on(&waiter->woken, timeout);
    }
}
