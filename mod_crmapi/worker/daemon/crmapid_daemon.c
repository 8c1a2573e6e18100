/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_daemon.c: the daemon's threads: jobs, polling, heartbeat, upkeep */
#include "crmapid_daemon.h"

#include <string.h>
#include <unistd.h>

#include "apr_general.h"
#include "apr_network_io.h"
#include "apr_strings.h"
#include "apr_thread_cond.h"
#include "apr_thread_mutex.h"
#include "apr_thread_proc.h"

#include "crm_db_conn.h"
#include "crm_sql.h"
#include "crm_uuid.h"
#include "crmapid_conn.h"
#include "crmapid_kinds.h"
#include "crmapid_lmtp.h"
#include "crmapid_log.h"
#include "crmapid_mark.h"
#include "crmapid_poll.h"
#include "crmapid_stats.h"
#include "crmapid_upkeep.h"

/* Timeout of a statement of upkeep, which may count all rows. */
#define UPKEEP_TIME apr_time_from_sec(3600)

/* Lease of a job with -1, where no thread extends it. */
#define ONCE_LEASE apr_time_from_sec(900)

/* Longest wait of the poller before it checks whether the daemon ends. */
#define LISTEN_TIME apr_time_from_sec(1)

/* Wait before the next attempt to reach the database. */
#define DOWN_TIME apr_time_from_msec(500)

/* Interval at which upkeep checks whether a task is due. */
#define UPKEEP_LOOK apr_time_from_sec(30)

struct crmd_daemon_t {
    const crmd_config_t *config;
    const char *id;             /* the owner of leases */
    const char *host;
    apr_pool_t *pool;
    apr_array_header_t *threads; /* of apr_thread_t *: those that run jobs */
    apr_array_header_t *actors; /* of actor_t *: one for each thread */
    apr_thread_t *heartbeat, *poller, *upkeep;
    crmd_lmtp_t *lmtp;          /* NULL: no LMTP server */
    /* The mutex protects all below. */
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *wake[CRMD_LANES];
    apr_thread_cond_t *end;     /* wakes heartbeat, poller and upkeep */
    unsigned wakes[CRMD_LANES]; /* number of wakes, so that a thread that is
                                   not waiting yet misses none */
    char served[CRMD_LANES][CRM_UUID_LEN + 1]; /* workspace served last, or
                                   "" */
    int stopping;               /* no jobs are claimed any more */
    int ending;                 /* the other threads end, too */
    int down;                   /* the last connection or statement failed */
};

/* A thread with its own connection and pools. */
typedef struct actor_t {
    crmd_daemon_t *daemon;
    int lane;
    apr_interval_time_t timeout; /* of statements */
    apr_pool_t *pool;           /* cleared after each round */
    apr_pool_t *conn_pool;
    crm_conn_t *conn;           /* NULL: not open */
    char job[24];               /* id of the job that it runs, or ""; protected
                                   by the daemon's mutex */
} actor_t;

/* ---- connections --------------------------------------------------------- */

/* Log that the database became unavailable (ERROR) or available (NULL), once
 * for all threads. */
static void note_database(crmd_daemon_t *daemon, const crm_error_t *error)
{
    int down = error != NULL;
    int changed;

    crm_metrics_add(&crmd_stats.db_errors, (apr_uint64_t)down);
    apr_thread_mutex_lock(daemon->mutex);
    changed = daemon->down != down;
    daemon->down = down;
    apr_thread_mutex_unlock(daemon->mutex);
    if (changed && error) {
        crmd_log_error(CRM_LOG_ERR, error);
        crmd_logf(CRM_LOG_WARNING, "CRM3003: the database is unavailable;"
                  " crmapid tries again twice a second");
    }
    else if (changed) {
        crmd_logf(CRM_LOG_NOTICE, "CRM3004: the database is available again");
    }
}

/* Open the connection of ACTOR if it is not open. */
static crm_error_t *connect_actor(actor_t *actor)
{
    return crmd_conn_open(&actor->conn, actor->daemon->config, actor->timeout,
                          actor->conn_pool, actor->pool);
}

static actor_t *actor_create(crmd_daemon_t *daemon, int lane,
                             apr_interval_time_t timeout, apr_pool_t *pool)
{
    actor_t *actor = apr_pcalloc(pool, sizeof(*actor));

    actor->daemon = daemon;
    actor->lane = lane;
    actor->timeout = timeout;
    apr_pool_create(&actor->pool, pool);
    apr_pool_create(&actor->conn_pool, pool);
    return actor;
}

/* Wait on COND for up to TIMEOUT, unless *FLAG, a member of DAEMON, is set.
 * Return *FLAG. */
static int wait_unless(crmd_daemon_t *daemon, const int *flag,
                       apr_thread_cond_t *cond, apr_interval_time_t timeout)
{
    int set;

    apr_thread_mutex_lock(daemon->mutex);
    if (!*flag) {
        apr_thread_cond_timedwait(cond, daemon->mutex, timeout);
    }
    set = *flag;
    apr_thread_mutex_unlock(daemon->mutex);
    return set;
}

/* ---- running jobs -------------------------------------------------------- */

/* Wake one idle thread of LANE. If it claims a job, it wakes the next one. The
 * caller holds DAEMON's mutex. */
static void wake(crmd_daemon_t *daemon, int lane)
{
    daemon->wakes[lane]++;
    apr_thread_cond_signal(daemon->wake[lane]);
}

/* Return whether jobs may be claimed; *WAKES_P = the number of wakes of LANE so
 * far. */
static int may_work(unsigned *wakes_p, crmd_daemon_t *daemon, int lane)
{
    int may;

    apr_thread_mutex_lock(daemon->mutex);
    may = !daemon->stopping;
    *wakes_p = daemon->wakes[lane];
    apr_thread_mutex_unlock(daemon->mutex);
    return may;
}

/* Wait until LANE has been woken more than WAKES times. The poller wakes it
 * again and again while it has a due job. */
static void wait_for_job(crmd_daemon_t *daemon, int lane, unsigned wakes)
{
    apr_thread_mutex_lock(daemon->mutex);
    while (!daemon->stopping && daemon->wakes[lane] == wakes) {
        apr_thread_cond_wait(daemon->wake[lane], daemon->mutex);
    }
    apr_thread_mutex_unlock(daemon->mutex);
}

/* A claimer's hold(): the actor BATON runs JOB (NULL: no longer). Its workspace
 * was served. There may be more due jobs: wake another thread. */
static void hold(void *baton, const crmd_job_t *job)
{
    actor_t *actor = baton;
    crmd_daemon_t *daemon = actor->daemon;

    apr_thread_mutex_lock(daemon->mutex);
    apr_cpystrn(actor->job, job ? job->id : "", sizeof(actor->job));
    if (job) {
        apr_cpystrn(daemon->served[actor->lane], job->workspace_id,
                    sizeof(daemon->served[actor->lane]));
        wake(daemon, actor->lane);
    }
    apr_thread_mutex_unlock(daemon->mutex);
}

/* Run one job that is due at MOMENT (NULL: now); *DONE_P = whether there was
 * one. */
static crm_error_t *work(int *done_p, actor_t *actor, const char *moment)
{
    crmd_daemon_t *daemon = actor->daemon;
    char after[CRM_UUID_LEN + 1];
    crmd_claimer_t claimer = {daemon->config, crmd_kinds, NULL, daemon->id,
                              moment, NULL, hold, actor};

    CRM_ERR(connect_actor(actor));
    apr_thread_mutex_lock(daemon->mutex);
    apr_cpystrn(after, daemon->served[actor->lane], sizeof(after));
    apr_thread_mutex_unlock(daemon->mutex);
    claimer.conn = actor->conn;
    claimer.after = *after ? after : NULL;
    return crmd_job_run(done_p, &claimer, crmd_lanes[actor->lane],
                        actor->pool);
}

static void *APR_THREAD_FUNC worker_main(apr_thread_t *thread, void *data)
{
    actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    unsigned wakes;

    while (may_work(&wakes, daemon, actor->lane)) {
        int done = 0;
        crm_error_t *error = work(&done, actor, NULL);

        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        if (error) {
            wait_unless(daemon, &daemon->stopping, daemon->wake[actor->lane],
                        DOWN_TIME);
        }
        else if (!done) {
            wait_for_job(daemon, actor->lane, wakes);
        }
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- heartbeat ----------------------------------------------------------- */

/* Return the ids of the jobs that DAEMON runs, as a PostgreSQL array;
 * *COUNT_P = how many. */
static const char *running_jobs(int *count_p, crmd_daemon_t *daemon,
                             apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 8, sizeof(const char *));

    apr_thread_mutex_lock(daemon->mutex);
    for (int i = 0; i < daemon->actors->nelts; i++) {
        const actor_t *actor = APR_ARRAY_IDX(daemon->actors, i, actor_t *);

        if (*actor->job) {
            APR_ARRAY_PUSH(ids, const char *) = apr_pstrdup(pool, actor->job);
        }
    }
    apr_thread_mutex_unlock(daemon->mutex);
    *count_p = ids->nelts;
    return crm_sql_array(ids, pool);
}

/* Record that the daemon of ACTOR is alive, extend the leases of its jobs, and
 * release the jobs of all daemons whose leases have expired. */
static crm_error_t *heartbeat(actor_t *actor)
{
    crmd_daemon_t *daemon = actor->daemon;
    const crmd_config_t *config = daemon->config;
    const char *values[11];
    crm_stmt_t stmt = {"SELECT crmapi.worker_beat($1::text, $2::text,"
                       " $3::text, $4::integer, $5::text, $6::integer,"
                       " $7::integer, $8::boolean, $9::interval,"
                       " $10::bigint[]), crmapi.job_reap(),"
                       " crmapi.mark_next($11::bigint[]), ARRAY(SELECT m.n"
                       " FROM crmapi.send_mark m ORDER BY m.slot)", 11,
                       values};
    crm_error_t *error;
    PGresult *result;
    int busy, stopping;

    CRM_ERR(connect_actor(actor));
    apr_thread_mutex_lock(daemon->mutex);
    stopping = daemon->stopping;
    apr_thread_mutex_unlock(daemon->mutex);
    values[0] = daemon->id;
    values[1] = config->name;
    values[2] = daemon->host;
    values[3] = apr_itoa(actor->pool, (int)getpid());
    values[4] = CRM_VERSION;
    values[5] = apr_itoa(actor->pool,
                         config->threads + config->webhook_threads);
    values[9] = running_jobs(&busy, daemon, actor->pool);
    values[6] = apr_itoa(actor->pool, busy);
    values[7] = stopping ? "t" : "f";
    values[8] = apr_psprintf(actor->pool, "%" APR_TIME_T_FMT " us",
                             config->lease);
    values[10] = crmd_mark_known(actor->pool);
    error = crm_db_query(&result, actor->conn, &stmt, actor->pool);
    if (crm_error_is(error, CRMD_OLDER)) {
        return crmd_mark_check(config, actor->conn, actor->pool);
    }
    CRM_ERR(error);
    if (strcmp(PQgetvalue(result, 0, 1), "0")) {
        crm_metrics_add(&crmd_stats.released,
                        (apr_uint64_t)apr_atoi64(PQgetvalue(result, 0, 1)));
        crmd_logf(CRM_LOG_WARNING, "CRM3005: %s jobs of daemons without a"
                  " heartbeat were released", PQgetvalue(result, 0, 1));
    }
    return crmd_mark_learn(PQgetvalue(result, 0, 2), PQgetvalue(result, 0, 3),
                           actor->pool);
}

/* Delete the daemon of ACTOR from the list of daemons. A failure does not
 * matter: upkeep deletes old entries. */
static void unregister(actor_t *actor)
{
    const char *values[1] = {actor->daemon->id};
    crm_stmt_t stmt = {"DELETE FROM crmapi.worker w WHERE w.id = $1::text", 1,
                       values};
    PGresult *result;

    if (actor->conn) {
        crm_db_query(&result, actor->conn, &stmt, actor->pool);
    }
}

static void *APR_THREAD_FUNC heartbeat_main(apr_thread_t *thread, void *data)
{
    actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = heartbeat(actor);

        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        ending = wait_unless(daemon, &daemon->ending, daemon->end, error
                             ? DOWN_TIME : daemon->config->lease / 3);
    }
    unregister(actor);
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- polling ------------------------------------------------------------- */

/* Wake the lanes that have due jobs: query at the time *NEXT_P, which is moved
 * on, and wait for notifications until then. *SESSION_P: see
 * crmd_poll_listen(). */
static crm_error_t *poll_jobs(actor_t *actor, unsigned *session_p,
                              apr_time_t *next_p)
{
    apr_interval_time_t most = actor->daemon->config->poll;
    crmd_poll_t due;
    apr_time_t now;
    int is_new;

    CRM_ERR(connect_actor(actor));
    CRM_ERR(crmd_poll_listen(&is_new, session_p, actor->conn, actor->pool));
    now = apr_time_now();
    if (is_new || now >= *next_p) {
        /* A new session has missed earlier notifications. */
        CRM_ERR(crmd_poll_query(&due, actor->conn, NULL, actor->pool));
        *next_p = apr_time_now() + (due.next < 0 || due.next > most
                                    ? most : due.next);
    }
    else {
        CRM_ERR(crmd_poll_wait(&due, actor->conn, *next_p - now < LISTEN_TIME
                               ? *next_p - now : LISTEN_TIME, actor->pool));
        if (!due.next) {
            *next_p = 0;
        }
    }
    apr_thread_mutex_lock(actor->daemon->mutex);
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        if (due.ready[lane]) {
            wake(actor->daemon, lane);
        }
    }
    apr_thread_mutex_unlock(actor->daemon->mutex);
    return NULL;
}

static void *APR_THREAD_FUNC poller_main(apr_thread_t *thread, void *data)
{
    actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    apr_time_t next = 0;
    unsigned session = 0;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = poll_jobs(actor, &session, &next);

        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        ending = wait_unless(daemon, &daemon->ending, daemon->end,
                             error ? DOWN_TIME : 0);
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- upkeep -------------------------------------------------------------- */

static void *APR_THREAD_FUNC upkeep_main(apr_thread_t *thread, void *data)
{
    actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    apr_interval_time_t look = daemon->config->upkeep < UPKEEP_LOOK
                               ? daemon->config->upkeep : UPKEEP_LOOK;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = connect_actor(actor);

        if (!error) {
            error = crmd_upkeep_run(actor->conn, daemon->config, NULL,
                                    actor->pool);
        }
        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        ending = wait_unless(daemon, &daemon->ending, daemon->end,
                             error ? DOWN_TIME : look);
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- start and stop ------------------------------------------------------ */

/* Return a unique id for a daemon. */
static const char *make_id(const char *host, apr_pool_t *pool)
{
    char uuid[CRM_UUID_LEN + 1];

    crm_uuid_v7(uuid);
    return apr_psprintf(pool, "%s:%d:%s", host, (int)getpid(), uuid);
}

static crmd_daemon_t *daemon_create(const crmd_config_t *config,
                                    apr_pool_t *pool)
{
    crmd_daemon_t *daemon = apr_pcalloc(pool, sizeof(*daemon));
    char host[APRMAXHOSTLEN + 1] = "";

    apr_gethostname(host, sizeof(host), pool);
    daemon->config = config;
    daemon->pool = pool;
    daemon->host = apr_pstrdup(pool, host);
    daemon->id = make_id(daemon->host, pool);
    daemon->threads = apr_array_make(pool, 16, sizeof(apr_thread_t *));
    daemon->actors = apr_array_make(pool, 16, sizeof(actor_t *));
    apr_thread_mutex_create(&daemon->mutex, APR_THREAD_MUTEX_DEFAULT, pool);
    apr_thread_cond_create(&daemon->end, pool);
    for (int i = 0; i < CRMD_LANES; i++) {
        apr_thread_cond_create(&daemon->wake[i], pool);
    }
    return daemon;
}

/* Start a thread of DAEMON for LANE that runs MAIN_FUNCTION with an actor whose
 * statements have TIMEOUT. */
static crm_error_t *start(apr_thread_t **thread_p, crmd_daemon_t *daemon,
                          apr_thread_start_t main_function, int lane,
                          apr_interval_time_t timeout)
{
    apr_allocator_t *allocator;
    apr_status_t status;
    apr_pool_t *pool;
    actor_t *actor;
    char why[128];

    /* With its own allocator threads do not compete for a lock. */
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&pool, daemon->pool, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    actor = actor_create(daemon, lane, timeout, pool);
    apr_thread_mutex_lock(daemon->mutex);
    APR_ARRAY_PUSH(daemon->actors, actor_t *) = actor;
    apr_thread_mutex_unlock(daemon->mutex);
    status = apr_thread_create(thread_p, NULL, main_function, actor,
                               daemon->pool);
    if (status == APR_SUCCESS) {
        return NULL;
    }
    *thread_p = NULL;
    return crm_error_logf(CRM_E_INTERNAL, daemon->pool, "a thread cannot be"
                          " started: %s", apr_strerror(status, why,
                                                       sizeof(why)));
}

static crm_error_t *start_all(crmd_daemon_t *daemon)
{
    const int counts[CRMD_LANES] = {daemon->config->threads,
                                    daemon->config->webhook_threads};
    apr_interval_time_t answer = daemon->config->answer_time;

    CRM_ERR(crmd_lmtp_start(&daemon->lmtp, daemon->config, daemon->pool));
    CRM_ERR(start(&daemon->heartbeat, daemon, heartbeat_main, 0, answer));
    CRM_ERR(start(&daemon->poller, daemon, poller_main, 0, answer));
    CRM_ERR(start(&daemon->upkeep, daemon, upkeep_main, 0, UPKEEP_TIME));
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        for (int i = 0; i < counts[lane]; i++) {
            apr_thread_t *thread;

            CRM_ERR(start(&thread, daemon, worker_main, lane, answer));
            APR_ARRAY_PUSH(daemon->threads, apr_thread_t *) = thread;
        }
    }
    return NULL;
}

static void join(apr_thread_t *thread)
{
    apr_status_t status;

    if (thread) {
        apr_thread_join(&status, thread);
    }
}

void crmd_daemon_stop(crmd_daemon_t *daemon)
{
    crmd_lmtp_stop(daemon->lmtp);
    apr_thread_mutex_lock(daemon->mutex);
    daemon->stopping = 1;
    for (int i = 0; i < CRMD_LANES; i++) {
        apr_thread_cond_broadcast(daemon->wake[i]);
    }
    apr_thread_mutex_unlock(daemon->mutex);
    for (int i = 0; i < daemon->threads->nelts; i++) {
        join(APR_ARRAY_IDX(daemon->threads, i, apr_thread_t *));
    }
    /* Not before: the heartbeat extends the leases of running jobs. */
    apr_thread_mutex_lock(daemon->mutex);
    daemon->ending = 1;
    apr_thread_cond_broadcast(daemon->end);
    apr_thread_mutex_unlock(daemon->mutex);
    join(daemon->poller);
    join(daemon->upkeep);
    join(daemon->heartbeat);
}

crm_error_t *crmd_daemon_start(crmd_daemon_t **daemon_p,
                               const crmd_config_t *config, apr_pool_t *pool)
{
    crmd_daemon_t *daemon = daemon_create(config, pool);
    crm_error_t *error = start_all(daemon);

    if (error) {
        crmd_daemon_stop(daemon);
        return error;
    }
    *daemon_p = daemon;
    return NULL;
}

crm_error_t *crmd_daemon_once(const crmd_config_t *config, const char *moment,
                              apr_pool_t *pool)
{
    crmd_config_t *own = apr_pmemdup(pool, config, sizeof(*config));
    crmd_daemon_t *daemon = daemon_create(own, pool);
    actor_t *actor = actor_create(daemon, 0, UPKEEP_TIME, pool);
    crm_error_t *error;

    own->lease = ONCE_LEASE;
    error = heartbeat(actor);
    for (int lane = 0; lane < CRMD_LANES && !error; lane++) {
        int done = 1;

        actor->lane = lane;
        while (done && !error) {
            crmd_poll_t due;

            error = crmd_poll_query(&due, actor->conn, moment, actor->pool);
            if (!error) {
                error = work(&done, actor, moment);
            }
            if (!error) {
                apr_pool_clear(actor->pool);
            }
        }
    }
    if (!error) {
        error = crmd_upkeep_run(actor->conn, config, moment, actor->pool);
    }
    unregister(actor);
    return error;
}
