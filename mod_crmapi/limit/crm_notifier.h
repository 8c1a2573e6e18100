/* SPDX-License-Identifier: Apache-2.0 */
/* crm_notifier.h: waking those who wait for news, in any process of a host */
#ifndef CRM_NOTIFIER_H
#define CRM_NOTIFIER_H

#include "apr_time.h"

#define CRM_NOTIFIER_LINES 4096
#define CRM_NOTIFIER_WAITERS 1024
#define CRM_NOTIFIER_NAMES 9

/* A thread that waits. */
typedef struct crm_waiter_t {
    apr_uint32_t used;          /* the place is taken */
    apr_uint32_t woken;         /* a futex; not 0: look again */
    apr_uint32_t process;       /* whose thread it is */
    apr_uint32_t count;         /* of lines */
    apr_uint32_t lines[CRM_NOTIFIER_NAMES]; /* that it waits for */
    apr_uint64_t owner;         /* hash of the owner's name */
    apr_time_t until;           /* when it will have left */
} crm_waiter_t;

/* Lies in memory that all processes of the host share; all zeros at first. A
 * name (a conversation's or visitor's id) is hashed to one of the lines, which
 * counts its notifications. That is a hint: names may share a line, and other
 * hosts have their own. Any number of threads and processes may use it at
 * once; one that is killed does no harm. */
typedef struct crm_notifier_t {
    apr_uint32_t lines[CRM_NOTIFIER_LINES];
    apr_uint32_t waiting;       /* places taken, roughly */
    crm_waiter_t waiters[CRM_NOTIFIER_WAITERS];
} crm_notifier_t;

/* Notify those who wait for NAME, after what is new was committed. */
void crm_notifier_notify(crm_notifier_t *notifier, const char *name);

/* Return the number of notifications of NAME's line so far. Only a change says
 * anything. Read it before you look for what is new. */
apr_uint32_t crm_notifier_count(const crm_notifier_t *notifier,
                                const char *name);

/* Return a place to wait for OWNER, who may have one at a time, until UNTIL;
 * NULL if OWNER waits already or all places are taken. */
crm_waiter_t *crm_notifier_enter(crm_notifier_t *notifier, const char *owner,
                                 apr_time_t until);

/* Give the place WAITER back. */
void crm_notifier_leave(crm_notifier_t *notifier, crm_waiter_t *waiter);

/* Let WAITER wait for the COUNT NAMES (at most CRM_NOTIFIER_NAMES) until one of
 * their counts is another than in COUNTS, crm_notifier_wake_process() is
 * called, or TIMEOUT has passed. The thread sleeps meanwhile. */
void crm_notifier_wait(crm_notifier_t *notifier, crm_waiter_t *waiter,
                       const char *const *names, const apr_uint32_t *counts,
                       int count, apr_interval_time_t timeout);

/* Wake all threads of this process that wait. */
void crm_notifier_wake_process(crm_notifier_t *notifier);

#endif /* CRM_NOTIFIER_H */
