/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_actor.h: a daemon's threads: what all of them share */
#ifndef CRMAPID_ACTOR_H
#define CRMAPID_ACTOR_H

#include <pthread.h>

#include "apr_tables.h"
#include "apr_thread_proc.h"

#include "crm_db_conn.h"
#include "crm_uuid.h"

#include "crmapid_daemon.h"
#include "crmapid_lmtp.h"
#include "crmapid_poll.h"

/* Why an actor's last round failed. */
enum { CRMD_UP, CRMD_NO_DATABASE, CRMD_NO_FOLDER, CRMD_CAUSES };

struct crmd_daemon_t {
    const crmd_config_t *config;
    const char *id;             /* the owner of leases */
    const char *host;
    apr_pool_t *pool;
    apr_array_header_t *threads; /* of apr_thread_t *: those that run jobs */
    apr_array_header_t *actors; /* of crmd_actor_t *: one for each thread */
    apr_thread_t *heartbeat, *poller, *upkeep;
    crmd_lmtp_t *lmtp;          /* NULL: no LMTP server */
    /* The mutex protects all below. */
    pthread_mutex_t mutex;
    pthread_cond_t wake[CRMD_LANES];
    pthread_cond_t end;     /* wakes heartbeat, poller and upkeep */
    unsigned wakes[CRMD_LANES]; /* number of wakes, so that a thread that is
                                   not waiting yet misses none */
    char served[CRMD_LANES][CRM_UUID_LEN + 1]; /* workspace served last, or
                                   "" */
    int stopping;               /* no jobs are claimed any more */
    int ending;                 /* the other threads end, too */
    int down[CRMD_CAUSES];      /* number of actors that are down by a cause */
    int said[CRMD_CAUSES];      /* the log has that it began, not that it ended */
    char reason[256];           /* the one of the database that was logged last */
    apr_int64_t again;          /* when another one may be logged; monotonic */
    apr_int64_t checked;        /* when a thread saw that it can use the schema, as it
                                   did at the start; 0: it cannot; monotonic */
};

/* A thread with its own connection and pools. */
typedef struct crmd_actor_t {
    crmd_daemon_t *daemon;
    int lane;
    apr_interval_time_t timeout; /* of statements */
    apr_pool_t *pool;           /* cleared after each round */
    apr_pool_t *conn_pool;
    crm_conn_t *conn;           /* NULL: not open */
    const int *over;            /* see crmd_actor_connect() */
    int losses;                 /* its last rounds that only lost a session */
    char job[24];               /* id of the job that it runs, or ""; protected
                                   by the daemon's mutex */
    int down;                   /* why its last round failed; the same */
} crmd_actor_t;

/* Return whether the log has said for some seconds that the database is unavailable.
 * For any thread. */
int crmd_actor_is_away(void);

/* Return a new actor of DAEMON for LANE, in POOL. Its statements have TIMEOUT.
 * Its connection is opened by crmd_actor_connect(). */
crmd_actor_t *crmd_actor_create(crmd_daemon_t *daemon, int lane,
                                apr_interval_time_t timeout, apr_pool_t *pool);

/* Open the connection of ACTOR if it is not open. Its statements, of which nothing is
 * lost, are cancelled when *OVER, a member of the daemon, is set: their error is
 * CRM_E_REQUEST_TIMEOUT. Errors, in ACTOR's pool: those of crmd_conn_open(). */
crm_error_t *crmd_actor_connect(crmd_actor_t *actor, const int *over);

/* The same before ACTOR looks for jobs: now and then it also looks at the schema, which
 * somebody may have migrated to one that this version cannot use. Errors are also those
 * of crmd_conn_check(). */
crm_error_t *crmd_actor_prepare(crmd_actor_t *actor, const int *over);

/* Count that a round of ACTOR failed with ERROR (NULL: it succeeded; one that was
 * cancelled says nothing). For each cause, log when the first thread of the daemon
 * fails by it, and when none does any more. A fault that only one thread meets, such
 * as a full disk, is logged once. Return the time until the next round: WAIT if this
 * one succeeded, none after the loss of a session. A next round then finds out why
 * there is no other; if there is one, nothing is said. */
apr_interval_time_t crmd_actor_note(crmd_actor_t *actor,
                                    const crm_error_t *error,
                                    apr_interval_time_t wait);

/* Wait on COND for up to TIMEOUT, unless *FLAG, a member of DAEMON, is set.
 * Return *FLAG. */
int crmd_actor_wait(crmd_daemon_t *daemon, const int *flag,
                    pthread_cond_t *cond, apr_interval_time_t timeout);

#endif /* CRMAPID_ACTOR_H */
