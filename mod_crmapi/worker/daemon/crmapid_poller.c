/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_poller.c: the thread that finds due jobs and wakes their lanes */
#include "crmapid_poller.h"

#include "crm_time.h"
#include "crmapid_worker.h"

/* Longest wait of the poller before it checks whether the daemon ends. */
#define LISTEN_TIME apr_time_from_sec(1)

/* Wake the lanes that have due jobs. Query them at the time *NEXT_P, and set
 * *NEXT_P to the time of the next query; until then wait for notifications.
 * *SESSION_P: see crmd_poll_listen(). */
static crm_error_t *poll_jobs(crmd_actor_t *actor, unsigned *session_p,
                              apr_time_t *next_p)
{
    apr_interval_time_t most = actor->daemon->config->poll;
    crmd_poll_t due;
    apr_time_t now;
    int is_new;

    CRM_ERR(crmd_actor_prepare(actor, &actor->daemon->ending));
    CRM_ERR(crmd_poll_listen(&is_new, session_p, actor->conn, actor->pool));
    now = crm_time_monotonic();
    if (is_new || now >= *next_p) {
        /* A new session has missed earlier notifications. */
        CRM_ERR(crmd_poll_query(&due, actor->conn, NULL, actor->pool));
        *next_p = crm_time_monotonic() + (due.next < 0 || due.next > most
                                    ? most : due.next);
    }
    else {
        CRM_ERR(crmd_poll_wait(&due, actor->conn, *next_p - now < LISTEN_TIME
                               ? *next_p - now : LISTEN_TIME, actor->pool));
        if (!due.next) {
            *next_p = 0;
        }
    }
    pthread_mutex_lock(&actor->daemon->mutex);
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        if (due.ready[lane]) {
            crmd_worker_wake(actor->daemon, lane);
        }
    }
    pthread_mutex_unlock(&actor->daemon->mutex);
    return NULL;
}

void *APR_THREAD_FUNC crmd_poller_main(apr_thread_t *thread, void *data)
{
    crmd_actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    apr_time_t next = 0;
    unsigned session = 0;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = poll_jobs(actor, &session, &next);
        apr_interval_time_t wait = crmd_actor_note(actor, error, 0);

        apr_pool_clear(actor->pool);
        ending = crmd_actor_wait(daemon, &daemon->ending, &daemon->end,
                                 wait);
    }
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}
