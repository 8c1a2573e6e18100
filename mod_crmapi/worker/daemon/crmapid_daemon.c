/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_daemon.c: threads that work, wake each other, and say they live */
#include "crmapid_daemon.h"

#include <string.h>
#include <unistd.h>

#include "apr_general.h"
#include "apr_network_io.h"
#include "apr_strings.h"
#include "apr_thread_cond.h"
#include "apr_thread_mutex.h"
#include "apr_thread_proc.h"

#include "crm_migrate.h"
#include "crm_uuid.h"
#include "crmapid_kinds.h"
#include "crmapid_lmtp.h"
#include "crmapid_log.h"
#include "crmapid_poll.h"
#include "crmapid_upkeep.h"

/* How long a server may take to answer a statement of upkeep, which may count
 * everything there is. */
#define UPKEEP_TIME apr_time_from_sec(3600)

/* The lease of one that works alone, and has nobody to lengthen it. */
#define LONE_LEASE apr_time_from_sec(900)

/* How long the poller hears no call to end. */
#define HEAR_TIME apr_time_from_sec(1)

/* The wait before the database is tried again. */
#define DOWN_TIME apr_time_from_msec(500)

/* How often upkeep looks whether something is due. */
#define UPKEEP_LOOK apr_time_from_sec(30)

struct crmd_daemon_t {
    const crmd_config_t *config;
    const char *id;             /* what leases name */
    const char *host;
    apr_pool_t *pool;
    apr_array_header_t *threads; /* of apr_thread_t *: those that do jobs */
    apr_array_header_t *actors; /* of actor_t *: all of them */
    apr_thread_t *beat, *poller, *upkeep;
    crmd_lmtp_t *lmtp;          /* NULL: no mails are taken */
    /* All below belongs to who holds the mutex. */
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *wake[CRMD_LANES];
    apr_thread_cond_t *end;     /* of beat, poller, upkeep */
    unsigned calls[CRMD_LANES]; /* counts wakes, so that none is missed */
    char turns[CRMD_LANES][CRM_UUID_LEN + 1]; /* the workspace whose turn was
                                   the last; "": nobody's */
    int stopping;               /* jobs are no longer taken */
    int ending;                 /* the others end, too */
    int down;                   /* the database was away when last asked */
};

/* A thread with a connection and a pool of its own. */
typedef struct actor_t {
    crmd_daemon_t *daemon;
    int lane;
    apr_interval_time_t timeout; /* of its connection's answers */
    apr_pool_t *pool;           /* for a run, cleared after each */
    apr_pool_t *conn_pool;
    crm_conn_t *conn;           /* NULL: not open */
    char job[24];               /* whose lease it holds; belongs to who holds
                                   the daemon's mutex */
} actor_t;

/* ---- the database comes and goes ----------------------------------------- */

/* Log it when the database goes away (ERROR) or is back (NULL), once for all
 * threads. */
static void note_database(crmd_daemon_t *daemon, const crm_error_t *error)
{
    int down = error != NULL;
    int news;

    apr_thread_mutex_lock(daemon->mutex);
    news = daemon->down != down;
    daemon->down = down;
    apr_thread_mutex_unlock(daemon->mutex);
    if (news && error) {
        crmd_log_error(CRM_LOG_ERR, error);
        crmd_logf(CRM_LOG_WARNING, "CRM3003: the database cannot be used: it"
                  " is tried again twice a second");
    }
    else if (news) {
        crmd_logf(CRM_LOG_NOTICE, "CRM3004: the database is back");
    }
}

/* Make sure that ACTOR has a connection. */
static crm_error_t *connect_actor(actor_t *actor)
{
    crm_error_t *error;

    if (actor->conn) {
        return NULL;
    }
    error = crm_conn_open(&actor->conn, actor->daemon->config->database,
                          actor->timeout, actor->conn_pool, actor->pool);
    if (error) {
        actor->conn = NULL;
        apr_pool_clear(actor->conn_pool);
    }
    return error;
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

/* Wait on COND for TIMEOUT, unless WHAT of DAEMON is set. Return WHAT. */
static int wait_unless(crmd_daemon_t *daemon, const int *what,
                       apr_thread_cond_t *cond, apr_interval_time_t timeout)
{
    int set;

    apr_thread_mutex_lock(daemon->mutex);
    if (!*what) {
        apr_thread_cond_timedwait(cond, daemon->mutex, timeout);
    }
    set = *what;
    apr_thread_mutex_unlock(daemon->mutex);
    return set;
}

/* ---- doing jobs ---------------------------------------------------------- */

/* Wake one thread of LANE that has nothing to do; if it finds something, it
 * wakes the next. The caller holds DAEMON's mutex. */
static void wake(crmd_daemon_t *daemon, int lane)
{
    daemon->calls[lane]++;
    apr_thread_cond_signal(daemon->wake[lane]);
}

/* Return whether jobs may be taken; *CALLS_P = how often LANE was woken so
 * far. */
static int may_work(unsigned *calls_p, crmd_daemon_t *daemon, int lane)
{
    int may;

    apr_thread_mutex_lock(daemon->mutex);
    may = !daemon->stopping;
    *calls_p = daemon->calls[lane];
    apr_thread_mutex_unlock(daemon->mutex);
    return may;
}

/* Wait until there may be a job for LANE: somebody has called since CALLS. The
 * poller calls again while there is one. */
static void wait_for_job(crmd_daemon_t *daemon, int lane, unsigned calls)
{
    apr_thread_mutex_lock(daemon->mutex);
    while (!daemon->stopping && daemon->calls[lane] == calls) {
        apr_thread_cond_wait(daemon->wake[lane], daemon->mutex);
    }
    apr_thread_mutex_unlock(daemon->mutex);
}

/* A claimer's hold(): note that the actor BATON works at JOB, and that its
 * workspace had its turn. Where one was, more may be. */
static void hold(void *baton, const crmd_job_t *job)
{
    actor_t *actor = baton;
    crmd_daemon_t *daemon = actor->daemon;

    apr_thread_mutex_lock(daemon->mutex);
    apr_cpystrn(actor->job, job ? job->id : "", sizeof(actor->job));
    if (job) {
        apr_cpystrn(daemon->turns[actor->lane], job->workspace_id,
                    sizeof(daemon->turns[actor->lane]));
        wake(daemon, actor->lane);
    }
    apr_thread_mutex_unlock(daemon->mutex);
}

/* Do one job that is due at MOMENT (NULL: now), if there is one. *DONE_P =
 * whether. */
static crm_error_t *work(int *done_p, actor_t *actor, const char *moment)
{
    crmd_daemon_t *daemon = actor->daemon;
    char after[CRM_UUID_LEN + 1];
    crmd_claimer_t claimer = {daemon->config, crmd_kinds, NULL, daemon->id,
                              moment, NULL, hold, actor};

    CRM_ERR(connect_actor(actor));
    apr_thread_mutex_lock(daemon->mutex);
    apr_cpystrn(after, daemon->turns[actor->lane], sizeof(after));
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
    unsigned calls;

    while (may_work(&calls, daemon, actor->lane)) {
        int done = 0;
        crm_error_t *error = work(&done, actor, NULL);

        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        if (error) {
            wait_unless(daemon, &daemon->stopping, daemon->wake[actor->lane],
                        DOWN_TIME);
        }
        else if (!done) {
            wait_for_job(daemon, actor->lane, calls);
        }
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- saying that it lives ------------------------------------------------ */

/* Return the ids of the jobs that DAEMON works at, as an array of PostgreSQL;
 * *COUNT_P = how many. */
static const char *held_jobs(int *count_p, crmd_daemon_t *daemon,
                             apr_pool_t *pool)
{
    const char *list = "{";

    *count_p = 0;
    apr_thread_mutex_lock(daemon->mutex);
    for (int i = 0; i < daemon->actors->nelts; i++) {
        const actor_t *actor = APR_ARRAY_IDX(daemon->actors, i, actor_t *);

        if (*actor->job) {
            list = apr_pstrcat(pool, list, list[1] ? "," : "", actor->job,
                               NULL);
            ++*count_p;
        }
    }
    apr_thread_mutex_unlock(daemon->mutex);
    return apr_pstrcat(pool, list, "}", NULL);
}

/* Say that the daemon of ACTOR lives, and look after those that do not. */
static crm_error_t *beat(actor_t *actor)
{
    crmd_daemon_t *daemon = actor->daemon;
    const crmd_config_t *config = daemon->config;
    const char *values[10];
    crm_stmt_t stmt = {"SELECT crmapi.worker_beat($1::text, $2::text,"
                       " $3::text, $4::integer, $5::text, $6::integer,"
                       " $7::integer, $8::boolean, $9::interval,"
                       " $10::bigint[]), crmapi.job_reap()", 10, values};
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
    values[9] = held_jobs(&busy, daemon, actor->pool);
    values[6] = apr_itoa(actor->pool, busy);
    values[7] = stopping ? "t" : "f";
    values[8] = apr_psprintf(actor->pool, "%" APR_TIME_T_FMT " us",
                             config->lease);
    CRM_ERR(crm_db_query(&result, actor->conn, &stmt, actor->pool));
    if (strcmp(PQgetvalue(result, 0, 1), "0")) {
        crmd_logf(CRM_LOG_WARNING, "CRM3005: %s jobs of daemons that fell"
                  " silent are given to others", PQgetvalue(result, 0, 1));
    }
    return NULL;
}

/* Take the daemon of ACTOR off the list; it does not matter if that fails. */
static void say_farewell(actor_t *actor)
{
    const char *values[1] = {actor->daemon->id};
    crm_stmt_t stmt = {"DELETE FROM crmapi.worker w WHERE w.id = $1::text", 1,
                       values};
    PGresult *result;

    if (actor->conn) {
        crm_db_query(&result, actor->conn, &stmt, actor->pool);
    }
}

static void *APR_THREAD_FUNC beat_main(apr_thread_t *thread, void *data)
{
    actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = beat(actor);

        note_database(daemon, error);
        apr_pool_clear(actor->pool);
        ending = wait_unless(daemon, &daemon->ending, daemon->end, error
                             ? DOWN_TIME : daemon->config->lease / 3);
    }
    say_farewell(actor);
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}

/* ---- looking for what is due --------------------------------------------- */

/* Wake who has something to do, with the connection of ACTOR: ask at *NEXT_P,
 * which is moved on, and hear until then what BACKEND is told. */
static crm_error_t *look(actor_t *actor, int *backend, apr_time_t *next_p)
{
    apr_interval_time_t most = actor->daemon->config->poll;
    crmd_poll_t found;
    apr_time_t now;
    int unheard;

    CRM_ERR(connect_actor(actor));
    CRM_ERR(crmd_poll_listen(&unheard, backend, actor->conn, actor->pool));
    now = apr_time_now();
    if (unheard || now >= *next_p) {
        CRM_ERR(crmd_poll_query(&found, actor->conn, NULL, actor->pool));
        *next_p = apr_time_now() + (found.next < 0 || found.next > most
                                    ? most : found.next);
    }
    else {
        CRM_ERR(crmd_poll_wait(&found, actor->conn, *next_p - now < HEAR_TIME
                               ? *next_p - now : HEAR_TIME, actor->pool));
        if (!found.next) {
            *next_p = 0;
        }
    }
    apr_thread_mutex_lock(actor->daemon->mutex);
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        if (found.ready[lane]) {
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
    int backend = 0, ending = 0;

    while (!ending) {
        crm_error_t *error = look(actor, &backend, &next);

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

/* ---- beginning and end --------------------------------------------------- */

crm_error_t *crmd_daemon_check(const crmd_config_t *config,
                               apr_pool_t *scratch_pool)
{
    apr_pool_t *pool;
    crm_error_t *error;
    crm_conn_t *conn;
    int version = 0;

    apr_pool_create(&pool, scratch_pool);
    error = crm_conn_open(&conn, config->database, config->answer_time, pool,
                          scratch_pool);
    if (!error) {
        error = crm_migrate_version(&version, conn, scratch_pool);
    }
    apr_pool_destroy(pool);
    if (!error && version != CRM_SCHEMA_VERSION) {
        error = crm_error_logf(CRM_E_CONFLICT, scratch_pool, "CRM3002: the"
                               " database has schema version %d, this is for"
                               " %d: %s", version, CRM_SCHEMA_VERSION,
                               version < CRM_SCHEMA_VERSION
                               ? "run crmapictl migrate"
                               : "a newer crmapid is needed");
    }
    return error;
}

/* Return an id that no other daemon has. */
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

/* Start a thread of DAEMON that runs MAIN_FUNCTION with a connection of its
 * own, which gives up after TIMEOUT. */
static crm_error_t *start(apr_thread_t **thread_p, crmd_daemon_t *daemon,
                          apr_thread_start_t main_function, int lane,
                          apr_interval_time_t timeout)
{
    apr_allocator_t *allocator;
    apr_status_t status;
    apr_pool_t *pool;
    actor_t *actor;
    char why[128];

    /* Its own allocator: threads do not wait for each other's memory. */
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
    CRM_ERR(start(&daemon->beat, daemon, beat_main, 0, answer));
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
    /* Only now: leases are lengthened while anything is being done. */
    apr_thread_mutex_lock(daemon->mutex);
    daemon->ending = 1;
    apr_thread_cond_broadcast(daemon->end);
    apr_thread_mutex_unlock(daemon->mutex);
    join(daemon->poller);
    join(daemon->upkeep);
    join(daemon->beat);
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
    crmd_config_t *lone = apr_pmemdup(pool, config, sizeof(*config));
    crmd_daemon_t *daemon = daemon_create(lone, pool);
    actor_t *actor = actor_create(daemon, 0, UPKEEP_TIME, pool);
    crm_error_t *error;

    lone->lease = LONE_LEASE;
    error = beat(actor);

    for (int lane = 0; lane < CRMD_LANES && !error; lane++) {
        int done = 1;

        actor->lane = lane;
        while (done && !error) {
            crmd_poll_t found;

            error = crmd_poll_query(&found, actor->conn, moment, actor->pool);
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
    say_farewell(actor);
    return error;
}
