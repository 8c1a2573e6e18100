/* SPDX-License-Identifier: Apache-2.0 */
/* crm_notifier.h: waking threads that wait for events, across processes */
#ifndef CRM_NOTIFIER_H
#define CRM_NOTIFIER_H

#include "apr_time.h"

#define CRM_NOTIFIER_LINES 4096
#define CRM_NOTIFIER_WAITERS 1024
#define CRM_NOTIFIER_NAMES 9
#define CRM_NOTIFIER_NETS 2

/* A thread that waits. */
typedef struct crm_waiter_t {
    apr_uint32_t used;          /* 0: this place is free */
    apr_uint32_t woken;         /* a futex; not 0: the thread checks again */
    apr_uint32_t process;       /* the thread's process id */
    apr_uint32_t count;         /* number of LINES */
    apr_uint32_t lines[CRM_NOTIFIER_NAMES]; /* that it waits for */
    apr_uint64_t owner;         /* hash of the owner's name */
    apr_uint64_t nets[CRM_NOTIFIER_NETS]; /* of the client's networks; 0:
                                             none */
    apr_time_t until;           /* the latest time at which it stops waiting */
} crm_waiter_t;

/* A notifier, in shared memory of all processes of the host, initially zero. A
 * name (a conversation's or visitor's id) is hashed to a line, which counts its
 * notifications. The count is a hint: names may share a line, and other hosts
 * have their own notifiers. Any number of threads and processes may use it at
 * the same time. Killing one does no harm to others. */
typedef struct crm_notifier_t {
    apr_uint32_t lines[CRM_NOTIFIER_LINES];
    apr_uint32_t waiting;       /* approximate number of places in use */
    crm_waiter_t waiters[CRM_NOTIFIER_WAITERS];
} crm_notifier_t;

/* Wake the threads that wait for NAME. Call this after the commit of what they
 * wait for. */
void crm_notifier_notify(crm_notifier_t *notifier, const char *name);

/* Return the number of notifications of NAME's line so far. It means something
 * only in comparison with a later one. Call this before you query for news. */
apr_uint32_t crm_notifier_count(const crm_notifier_t *notifier,
                                const char *name);

/* The client of a place: the names of its networks, the narrowest first (NULL:
 * there are no more), and how many places of this process each may have (0: any
 * number). */
typedef struct crm_notifier_client_t {
    const char *nets[CRM_NOTIFIER_NETS];
    int most[CRM_NOTIFIER_NETS];
} crm_notifier_client_t;

/* Return a place in which OWNER, a CLIENT, may wait until UNTIL. An owner has
 * one place at a time. NULL: OWNER waits already, a network of CLIENT has the
 * most places that it may have, or all places are in use. */
crm_waiter_t *crm_notifier_enter(crm_notifier_t *notifier, const char *owner,
                                 const crm_notifier_client_t *client,
                                 apr_time_t until);

/* Release the place WAITER. */
void crm_notifier_leave(crm_notifier_t *notifier, crm_waiter_t *waiter);

/* Sleep in WAITER until the count of one of the COUNT NAMES (at most
 * CRM_NOTIFIER_NAMES) differs from COUNTS, crm_notifier_wake_process() is
 * called, or TIMEOUT has passed. */
void crm_notifier_wait(crm_notifier_t *notifier, crm_waiter_t *waiter,
                       const char *const *names, const apr_uint32_t *counts,
                       int count, apr_interval_time_t timeout);

/* Wake all threads of this process that wait. */
void crm_notifier_wake_process(crm_notifier_t *notifier);

#endif /* CRM_NOTIFIER_H */
