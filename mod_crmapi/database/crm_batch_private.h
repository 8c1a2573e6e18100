/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_private.h: what the sources crm_batch*.c share */
#ifndef CRM_BATCH_PRIVATE_H
#define CRM_BATCH_PRIVATE_H

#include <pthread.h>

#include "crm_batch.h"

/* The size of the hash table of a batcher's queues. */
#define CRM_BATCH_BUCKETS 512

/* A result that several requests share. */
typedef struct crm_shared_t {
    PGresult *result;
    int users;                  /* reference count, atomic */
} crm_shared_t;

/* What a waiting request must do. Those from CRM_VERDICT_LEADS on are final. */
typedef enum crm_verdict_t {
    CRM_VERDICT_WAIT,
    CRM_VERDICT_CHECK,             /* look whether it can lead, or wait */
    CRM_VERDICT_BUSY,              /* another thread is answering the request */
    CRM_VERDICT_LEADS,             /* be the leader of its queue */
    CRM_VERDICT_SENT,              /* another thread has answered it */
    CRM_VERDICT_ANSWERED,          /* take the rows */
    CRM_VERDICT_LATE,              /* the statement was not answered in time */
    CRM_VERDICT_LOST,              /* it is unknown whether it was executed */
    CRM_VERDICT_ALONE              /* run its statement by itself */
} crm_verdict_t;

/* Added to a waiter's verdict: its thread sleeps until the verdict changes
 * (crm_futex.h), not in poll(). */
#define CRM_VERDICT_ASLEEP 0x100U

typedef struct crm_batch_waiter_t crm_batch_waiter_t;

/* A list of waiters. */
typedef struct crm_batch_waiters_t {
    crm_batch_waiter_t *first;
    crm_batch_waiter_t *last;
} crm_batch_waiters_t;

/* A request that waits, on its thread's stack. Once VERDICT is final, nobody else
 * uses the waiter, and its thread takes the answer without the lock. */
struct crm_batch_waiter_t {
    crm_batch_waiter_t *next, *previous;
    crm_batch_waiters_t *list;  /* the list it is in, or NULL */
    apr_uint32_t verdict;       /* crm_verdict_t, with CRM_VERDICT_ASLEEP. Atomic;
                                   changed with the lock held, or by the thread
                                   that answers the request */
    int bell;                   /* of its thread (crm_bell.h), which sleeps in
                                   poll() on this and on SOURCE->client; -1: it
                                   sleeps on VERDICT */
    int roused;                 /* its client has sent something too early: sleep
                                   on VERDICT from now on */
    apr_interval_time_t patience; /* of its next poll() */
    apr_interval_time_t sent;   /* for CRM_VERDICT_SENT: when that was */
    const crm_conn_source_t *source;
    const crm_sql_t *sql;
    const struct crm_batch_t *batch; /* the batch that it belongs to, or NULL */
    apr_interval_time_t taken;  /* when it was moved to the batch */
    int number;                 /* its number in the batch, from 1 */
    /* For CRM_VERDICT_ANSWERED: */
    crm_shared_t *shared;
    int first, count;
    apr_interval_time_t timeout; /* for CRM_VERDICT_LATE */
};

/* How requests of a kind share statements. */
typedef struct crm_batch_rule_t {
    /* How long later requests wait for a running statement. */
    apr_interval_time_t holds_up;
    /* A batch takes as many requests as were recently answered in TIME, but at
     * least MIN, so that requests share statements also on a busy machine,
     * where each statement is slow. */
    apr_interval_time_t time;
    int min;
    /* If a request takes this long, each gets a statement of its own: sharing
     * saves little then, and no request waits for another. 0: never. */
    apr_interval_time_t slow;
} crm_batch_rule_t;

/* The requests with one text. */
typedef struct crm_queue_t {
    struct crm_queue_t *next;   /* in the same bucket */
    apr_uint64_t hash;          /* of its parts */
    char *text;                 /* from malloc(), as the next */
    char *batch_text;           /* crm_sql_batch() */
    int binds;
    int writes;                 /* the text is a write: it must not be executed
                                   twice */
    const crm_batch_rule_t *rule;
    crm_batch_waiters_t waiting;
    int gathering;              /* a leader waits for a connection, and then
                                   takes them */
    int running;                /* number of statements without an answer */
    unsigned last;              /* number of the last statement */
    int busy;                   /* the last statement has no answer yet */
    apr_interval_time_t sent;   /* when the last statement was sent */
    int limit;                  /* maximum number of requests in a statement;
                                   lower after failures */
    apr_interval_time_t cost;   /* time for a request, a moving average */
    apr_interval_time_t used;   /* when the last request arrived */
} crm_queue_t;

struct crm_batcher_t {
    pthread_mutex_t lock;       /* of all that follows */
    crm_queue_t *buckets[CRM_BATCH_BUCKETS];
    int queues;
    int polling;                /* number of threads that wait in poll(),
                                   atomic */
};

/* A statement that a leader sends for several requests. */
typedef struct crm_batch_t {
    crm_queue_t *queue;
    unsigned number;            /* of the queue's statements */
    crm_batch_waiters_t waiters; /* requests that still wait for it, without
                                    the leader */
    int count;                  /* requests, with the leader */
    const crm_sql_t *sqls[CRM_BATCH_MAX];
    int built;                  /* the text is complete: SQLS are no longer
                                   needed, and a waiter may go with its own */
    /* Of writes: copies of the workspace and id of each row. */
    const char *workspaces[CRM_BATCH_MAX], *ids[CRM_BATCH_MAX];
    apr_interval_time_t began;
    /* Its result: rows of each request. NULL: it failed. */
    crm_shared_t *shared;
    int first[CRM_BATCH_MAX], rows[CRM_BATCH_MAX];
    apr_interval_time_t timeout; /* if it had no answer in time: the timeout;
                                   else 0 */
    int lost;                   /* it is unknown whether it was executed */
} crm_batch_t;

/* A call of crm_batch_run(). */
typedef struct crm_batch_call_t {
    crm_batcher_t *batcher;
    crm_queue_t *queue;
    crm_stmt_t stmt;
    const crm_sql_t *sql;
    const crm_conn_source_t *source;
    crm_rows_t *rows;
    crm_batch_part_t *part;
    apr_interval_time_t came;
    apr_pool_t *pool;
} crm_batch_call_t;

/* Add WAITER at the end of LIST. */
void crm_waiters_add(crm_batch_waiters_t *list, crm_batch_waiter_t *waiter);

/* Remove WAITER from its list. */
void crm_waiters_remove(crm_batch_waiter_t *waiter);

/* How to wake the thread of a waiter that may be gone. */
typedef struct crm_wake_t {
    const apr_uint32_t *word;   /* it sleeps on this word, or NULL */
    int bell;                   /* it sleeps in poll(), or -1 */
} crm_wake_t;

/* Return the verdict of WAITER. */
static inline crm_verdict_t crm_waiter_verdict(const crm_batch_waiter_t *waiter)
{
    return (crm_verdict_t)(__atomic_load_n(&waiter->verdict, __ATOMIC_ACQUIRE)
                           & ~CRM_VERDICT_ASLEEP);
}

/* Set the VERDICT of WAITER and return how to wake its thread. */
crm_wake_t crm_waiter_set(crm_batch_waiter_t *waiter, crm_verdict_t verdict);

/* Remove WAITER from its list, and then do as crm_waiter_set(). */
crm_wake_t crm_waiter_decide(crm_batch_waiter_t *waiter, crm_verdict_t verdict);

/* Let the calling thread answer WAITER's request, and return 1; or return 0 if
 * only its own thread can. */
int crm_waiter_occupy(crm_batch_waiter_t *waiter);

/* Wake a thread by WAKE. */
void crm_waiter_wake(const crm_wake_t *wake);

/* Sleep as the thread of WAITER, which was looked at, until its verdict changes
 * or crm_time_monotonic() is END. It may return earlier. */
void crm_waiter_sleep(crm_batch_waiter_t *waiter, apr_interval_time_t end);

/* If QUEUE has no leader, let the first request that waits in it look whether it
 * can lead, when the caller wakes it. The lock is held. */
crm_wake_t crm_queue_next(crm_queue_t *queue);

/* Free QUEUE, which is no longer in use. */
void crm_queue_free(crm_queue_t *queue);

/* Let the requests that wait in QUEUE run by themselves, because its leader got
 * no connection. */
void crm_queue_disband(crm_queue_t *queue, crm_batcher_t *batcher);

/* Find CALL's queue, and become its leader or wait in it as WAITER for a
 * verdict. Return the verdict. CALL->queue is NULL if there are too many
 * texts. */
crm_verdict_t crm_batch_enter(crm_batch_call_t *call,
                              crm_batch_waiter_t *waiter);

/* Take requests that wait in the queue of CALL, a leader, into BATCH, which is
 * empty. */
void crm_batch_take(crm_batch_t *batch, const crm_batch_call_t *call);

/* Run the statement of BATCH, which has several requests, on CONN. Two errors
 * are returned: there was no answer in time, or it is unknown whether a write
 * was executed. After any other error each request runs its own statement. */
crm_error_t *crm_batch_send(crm_batch_t *batch, const crm_batch_call_t *call,
                            crm_conn_t *conn);

/* End BATCH of BATCHER: answer and wake its requests, and wake the first
 * request that waits for the next batch. */
void crm_batch_finish(crm_batch_t *batch, crm_batcher_t *batcher);

#endif /* CRM_BATCH_PRIVATE_H */
