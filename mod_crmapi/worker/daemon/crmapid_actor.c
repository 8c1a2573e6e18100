/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_actor.c: a daemon's threads: what all of them share */
#include "crmapid_actor.h"

#include "crm_cond.h"
#include "crmapid_conn.h"
#include "crmapid_journal.h"
#include "crmapid_log.h"
#include "crmapid_stats.h"

/* What is said when a cause begins and when it has ended. */
static const struct {
    const char *begins, *ended;
} texts[CRMD_CAUSES] = {
    [CRMD_NO_DATABASE] = {
        "CRM3003: the database is unavailable; crmapid tries again twice a"
        " second", "CRM3004: the database is available again"},
    [CRMD_NO_FOLDER] = {
        "CRM3013: nothing is sent, because run_dir cannot be written; crmapid"
        " tries again twice a second", "CRM3014: run_dir can be written again"},
};

static int cause_of(const crm_error_t *error)
{
    return !error ? CRMD_UP
           : crm_error_is(error, CRMD_RUN_DIR) ? CRMD_NO_FOLDER
           : CRMD_NO_DATABASE;
}

/* Return whether CAUSE, which was said, has ended. Without a database nobody
 * writes to the folder: it may still be away. */
static int has_ended(const crmd_daemon_t *daemon, int cause)
{
    return daemon->said[cause] && !daemon->down[cause]
           && (cause != CRMD_NO_FOLDER || !crmd_journal_failed());
}

void crmd_actor_note(crmd_actor_t *actor, const crm_error_t *error)
{
    crmd_daemon_t *daemon = actor->daemon;
    int cause = cause_of(error), begins;

    crm_metrics_add(&crmd_stats.db_errors, cause == CRMD_NO_DATABASE);
    pthread_mutex_lock(&daemon->mutex);
    daemon->down[actor->down]--;
    daemon->down[cause]++;
    actor->down = cause;
    begins = error && !daemon->said[cause];
    daemon->said[cause] = 1;
    if (begins) {
        crmd_log_error(CRM_LOG_ERR, error);
        crmd_logf(CRM_LOG_WARNING, "%s", texts[cause].begins);
    }
    for (int i = CRMD_UP + 1; i < CRMD_CAUSES; i++) {
        if (has_ended(daemon, i)) {
            daemon->said[i] = 0;
            crmd_logf(CRM_LOG_NOTICE, "%s", texts[i].ended);
        }
    }
    pthread_mutex_unlock(&daemon->mutex);
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
                    pthread_cond_t *cond, apr_interval_time_t timeout)
{
    int set;

    pthread_mutex_lock(&daemon->mutex);
    if (!*flag) {
        crm_cond_wait(cond, &daemon->mutex, timeout);
    }
    set = *flag;
    pthread_mutex_unlock(&daemon->mutex);
    return set;
}
