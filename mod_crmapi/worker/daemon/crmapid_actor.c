/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_actor.c: a daemon's threads: what all of them share */
#include "crmapid_actor.h"

#include "crmapid_conn.h"
#include "crmapid_journal.h"
#include "crmapid_log.h"
#include "crmapid_stats.h"

/* What is said when a daemon cannot work, and when it can again: of the
 * database, of the folder run_dir. */
static const char *const down_text[2] = {
    "CRM3003: the database is unavailable; crmapid tries again twice a second",
    "CRM3013: nothing is sent, because run_dir cannot be written; crmapid"
    " tries again twice a second"
};
static const char *const up_text[2] = {
    "CRM3004: the database is available again",
    "CRM3014: run_dir can be written again"
};

void crmd_actor_note(crmd_actor_t *actor, const crm_error_t *error)
{
    crmd_daemon_t *daemon = actor->daemon;
    int down = error != NULL;
    int folder = down && crmd_journal_failed();
    int before, after;

    crm_metrics_add(&crmd_stats.db_errors, (apr_uint64_t)(down && !folder));
    apr_thread_mutex_lock(daemon->mutex);
    before = daemon->down;
    if (!before) {
        daemon->folder_down = folder;
    }
    folder = daemon->folder_down;
    after = daemon->down += down - actor->down;
    actor->down = down;
    apr_thread_mutex_unlock(daemon->mutex);
    if (error && !before) {
        crmd_log_error(CRM_LOG_ERR, error);
        crmd_logf(CRM_LOG_WARNING, "%s", down_text[folder]);
    }
    else if (before && !after) {
        crmd_logf(CRM_LOG_NOTICE, "%s", up_text[folder]);
    }
}

crm_error_t *crmd_actor_connect(crmd_actor_t *actor)
{
    return crmd_conn_open(&actor->conn, actor->daemon->config, actor->timeout,
                          actor->conn_pool, actor->pool);
}

crmd_actor_t *crmd_actor_create(crmd_daemon_t *daemon, int lane,
                                apr_interval_time_t timeout, apr_pool_t *pool)
{
    crmd_actor_t *actor = apr_pcalloc(pool, sizeof(*actor));

    actor->daemon = daemon;
    actor->lane = lane;
    actor->timeout = timeout;
    apr_pool_create(&actor->pool, pool);
    apr_pool_create(&actor->conn_pool, pool);
    return actor;
}

int crmd_actor_wait(crmd_daemon_t *daemon, const int *flag,
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
