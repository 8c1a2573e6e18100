/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_worker.c: the threads that run jobs */
#include "crmapid_worker.h"

#include "apr_strings.h"

#include "crmapid_job.h"
#include "crmapid_kinds.h"

void crmd_worker_wake(crmd_daemon_t *daemon, int lane)
{
    daemon->wakes[lane]++;
    pthread_cond_signal(&daemon->wake[lane]);
}

/* Return whether jobs may be claimed; *WAKES_P = the number of wakes of LANE so
 * far. */
static int may_work(unsigned *wakes_p, crmd_daemon_t *daemon, int lane)
{
    int may;

    pthread_mutex_lock(&daemon->mutex);
    may = !daemon->stopping;
    *wakes_p = daemon->wakes[lane];
    pthread_mutex_unlock(&daemon->mutex);
    return may;
}

/* Wait until LANE has been woken more than WAKES times. The poller wakes it
 * again and again while it has a due job. */
static void wait_for_job(crmd_daemon_t *daemon, int lane, unsigned wakes)
{
    pthread_mutex_lock(&daemon->mutex);
    while (!daemon->stopping && daemon->wakes[lane] == wakes) {
        pthread_cond_wait(&daemon->wake[lane], &daemon->mutex);
    }
    pthread_mutex_unlock(&daemon->mutex);
}

/* A claimer's hold(): the actor BATON runs JOB (NULL: no longer). Its workspace
 * was served. There may be more due jobs: wake another thread. */
static void hold(void *baton, const crmd_job_t *job)
{
    crmd_actor_t *actor = baton;
    crmd_daemon_t *daemon = actor->daemon;

    if (job) {
        /* a stop waits for it */
        crm_conn_watch(actor->conn, NULL, NULL);
    }
    pthread_mutex_lock(&daemon->mutex);
    apr_cpystrn(actor->job, job ? job->id : "", sizeof(actor->job));
    if (job) {
        apr_cpystrn(daemon->served[actor->lane], job->workspace_id,
                    sizeof(daemon->served[actor->lane]));
        crmd_worker_wake(daemon, actor->lane);
    }
    pthread_mutex_unlock(&daemon->mutex);
}

crm_error_t *crmd_worker_run(int *done_p, crmd_actor_t *actor,
                             const char *moment)
{
    crmd_daemon_t *daemon = actor->daemon;
    char after[CRM_UUID_LEN + 1];
    crmd_claimer_t claimer = {daemon->config, crmd_kinds, NULL, daemon->id,
                              moment, NULL, hold, actor};

    CRM_ERR(crmd_actor_prepare(actor, &daemon->stopping));
    pthread_mutex_lock(&daemon->mutex);
    apr_cpystrn(after, daemon->served[actor->lane], sizeof(after));
    pthread_mutex_unlock(&daemon->mutex);
    claimer.conn = actor->conn;
    claimer.after = *after ? after : NULL;
    return crmd_job_run(done_p, &claimer, crmd_lanes[actor->lane],
                        actor->pool);
}

void *APR_THREAD_FUNC crmd_worker_main(apr_thread_t *thread, void *data)
{
    crmd_actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    unsigned wakes;

    while (may_work(&wakes, daemon, actor->lane)) {
        int done = 0;
        crm_error_t *error = crmd_worker_run(&done, actor, NULL);
        apr_interval_time_t wait = crmd_actor_note(actor, error, 0);

        apr_pool_clear(actor->pool);
        if (error) {
            crmd_actor_wait(daemon, &daemon->stopping,
                            &daemon->wake[actor->lane], wait);
        }
        else if (!done) {
            wait_for_job(daemon, actor->lane, wakes);
        }
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}
