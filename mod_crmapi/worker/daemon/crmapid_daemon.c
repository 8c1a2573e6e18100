/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_daemon.c: starting and stopping the daemon's threads, and upkeep */
#include "crmapid_daemon.h"

#include <unistd.h>

#include "apr_network_io.h"
#include "apr_strings.h"

#include "crm_cond.h"
#include "crm_time.h"
#include "crmapid_actor.h"
#include "crmapid_conn.h"
#include "crmapid_ending.h"
#include "crmapid_heartbeat.h"
#include "crmapid_poller.h"
#include "crmapid_pool.h"
#include "crmapid_upkeep.h"
#include "crmapid_worker.h"

/* Timeout of a statement of upkeep, which may count all rows. */
#define UPKEEP_TIME apr_time_from_sec(3600)

/* Lease of a job that crmapid -1 runs: no thread extends it. */
#define ONCE_LEASE apr_time_from_sec(900)

/* Interval at which the thread of upkeep checks whether a task is due, or a table has
 * grown. */
#define UPKEEP_CHECK apr_time_from_sec(8)

/* ---- upkeep -------------------------------------------------------------- */

/* Run what is due. */
static crm_error_t *keep_up(crmd_actor_t *actor)
{
    CRM_ERR(crmd_actor_connect(actor, &actor->daemon->ending));
    return crmd_upkeep_run(actor->conn, actor->daemon->config, NULL,
                           actor->pool);
}

static void *APR_THREAD_FUNC upkeep_main(apr_thread_t *thread, void *data)
{
    crmd_actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    apr_interval_time_t wait = daemon->config->upkeep < UPKEEP_CHECK
                               ? daemon->config->upkeep : UPKEEP_CHECK;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = keep_up(actor);

        apr_interval_time_t next = crmd_actor_note(actor, error, wait);

        apr_pool_clear(actor->pool);
        ending = crmd_actor_wait(daemon, &daemon->ending, &daemon->end,
                                 next);
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
    daemon->checked = crm_time_monotonic();
    daemon->threads = apr_array_make(pool, 16, sizeof(apr_thread_t *));
    daemon->actors = apr_array_make(pool, 16, sizeof(crmd_actor_t *));
    pthread_mutex_init(&daemon->mutex, NULL);
    crm_cond_init(&daemon->end);
    for (int i = 0; i < CRMD_LANES; i++) {
        crm_cond_init(&daemon->wake[i]);
    }
    return daemon;
}

/* Start a thread of DAEMON for LANE that runs MAIN_FUNCTION with an actor whose
 * statements have TIMEOUT. */
static crm_error_t *start(apr_thread_t **thread_p, crmd_daemon_t *daemon,
                          apr_thread_start_t main_function, int lane,
                          apr_interval_time_t timeout)
{
    apr_status_t status;
    crmd_actor_t *actor = crmd_actor_create(daemon, lane, timeout,
                                            crmd_pool_create(daemon->pool, 0));
    char why[128];

    pthread_mutex_lock(&daemon->mutex);
    APR_ARRAY_PUSH(daemon->actors, crmd_actor_t *) = actor;
    pthread_mutex_unlock(&daemon->mutex);
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
    apr_interval_time_t answer = daemon->config->answer_time;

    CRM_ERR(crmd_lmtp_start(&daemon->lmtp, daemon->config, daemon->pool));
    CRM_ERR(start(&daemon->heartbeat, daemon, crmd_heartbeat_main, 0, answer));
    CRM_ERR(start(&daemon->poller, daemon, crmd_poller_main, 0, answer));
    CRM_ERR(start(&daemon->upkeep, daemon, upkeep_main, 0, UPKEEP_TIME));
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        for (int i = 0; i < crmd_lane_threads(daemon->config, lane); i++) {
            apr_thread_t *thread;

            CRM_ERR(start(&thread, daemon, crmd_worker_main, lane, answer));
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
    crmd_ending(1);
    crmd_lmtp_stop(daemon->lmtp);
    pthread_mutex_lock(&daemon->mutex);
    daemon->stopping = 1;
    for (int i = 0; i < CRMD_LANES; i++) {
        pthread_cond_broadcast(&daemon->wake[i]);
    }
    pthread_mutex_unlock(&daemon->mutex);
    for (int i = 0; i < daemon->threads->nelts; i++) {
        join(APR_ARRAY_IDX(daemon->threads, i, apr_thread_t *));
    }
    /* Not before: the heartbeat extends the leases of running jobs. */
    pthread_mutex_lock(&daemon->mutex);
    daemon->ending = 1;
    pthread_cond_broadcast(&daemon->end);
    pthread_mutex_unlock(&daemon->mutex);
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

/* Run the jobs of ACTOR's lane that are due at MOMENT, and those that become due
 * by them. */
static crm_error_t *run_lane(crmd_actor_t *actor, const char *moment)
{
    int done, any;

    do {
        crmd_poll_t due;

        any = 0;
        CRM_ERR(crmd_poll_query(&due, actor->conn, moment, actor->pool));
        do {
            CRM_ERR(crmd_worker_run(&done, actor, moment));
            apr_pool_clear(actor->pool);
            any |= done;
        } while (done);
    } while (any);
    return NULL;
}

crm_error_t *crmd_daemon_once(const crmd_config_t *config, const char *moment,
                              apr_pool_t *pool)
{
    crmd_config_t *own = apr_pmemdup(pool, config, sizeof(*config));
    crmd_daemon_t *daemon = daemon_create(own, pool);
    crmd_actor_t *actor = crmd_actor_create(daemon, 0, UPKEEP_TIME, pool);
    crm_error_t *error;

    own->lease = ONCE_LEASE;
    CRM_ERR(crmd_conn_first(&actor->conn, own, actor->timeout, NULL,
                            actor->conn_pool, actor->pool));
    error = crmd_heartbeat(actor);
    for (int lane = 0; lane < CRMD_LANES && !error; lane++) {
        actor->lane = lane;
        error = run_lane(actor, moment);
    }
    if (!error) {
        error = crmd_upkeep_run(actor->conn, config, moment, actor->pool);
    }
    crmd_heartbeat_end(actor);
    return error;
}
