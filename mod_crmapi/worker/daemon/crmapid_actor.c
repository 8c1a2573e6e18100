/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_actor.c: a daemon's threads: what all of them share */
#include "crmapid_actor.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_cond.h"
#include "crm_hosts.h"
#include "crm_time.h"
#include "crmapid_conn.h"
#include "crmapid_journal.h"
#include "crmapid_log.h"
#include "crmapid_stats.h"

/* Wait before the next attempt to reach the database. */
#define DOWN_TIME apr_time_from_msec(500)

/* For how many polls a schema is trusted. */
#define SCHEMA_POLLS 60

/* How many times in a row the loss of a session is none of the database. */
#define LOSSES 2

/* How long the database must be unavailable until crmapid is not ready. One
 * connection may be lost. */
#define AWAY_TIME apr_time_from_sec(2)

/* How long after the first reason another one is logged, and how long after that. */
#define NEXT_REASON apr_time_from_sec(5)
#define LATER_REASON apr_time_from_sec(60)

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

/* When the log said that the database is unavailable; 0: it is not. Atomic. */
static apr_int64_t away;

int crmd_actor_is_away(void)
{
    apr_int64_t since = __atomic_load_n(&away, __ATOMIC_RELAXED);

    return since && crm_time_monotonic() - since > AWAY_TIME;
}

/* Log ERROR of DAEMON's database, unless the same was logged last, or anything a short
 * time ago. FIRST: always. */
static void tell_reason(crmd_daemon_t *daemon, const crm_error_t *error,
                        int first, apr_pool_t *pool)
{
    const char *text = error->log ? error->log : error->message;
    apr_int64_t now = crm_time_monotonic();
    char reason[sizeof(daemon->reason)];

    apr_cpystrn(reason, text, sizeof(reason));
    if (!first && (now < daemon->again || !strcmp(reason, daemon->reason))) {
        return;
    }
    crmd_logf(CRM_LOG_ERR, "%s%s", text, crmd_conn_label(daemon->config, pool));
    memcpy(daemon->reason, reason, sizeof(reason));
    daemon->again = now + (first ? NEXT_REASON : LATER_REASON);
}

/* Return whether nobody wants the statement of the actor BATON any more. */
static int is_over(void *baton)
{
    const crmd_actor_t *actor = baton;
    int over;

    pthread_mutex_lock(&actor->daemon->mutex);
    over = *actor->over;
    pthread_mutex_unlock(&actor->daemon->mutex);
    return over;
}

/* Return whether ERROR is of a statement of ACTOR, or of its connection, that nobody
 * wanted any more. The server may not even have confirmed that it was cancelled. */
static int was_cancelled(crmd_actor_t *actor, const crm_error_t *error)
{
    return error->code == CRM_E_REQUEST_TIMEOUT
           || (actor->conn ? crm_conn_unwanted(actor->conn)
               : actor->over && is_over(actor));
}

/* Return whether ERROR only says that a session of ACTOR ended, or the next one as it
 * began. It is not yet known whether there can be another, or why not. */
static int is_loss(crmd_actor_t *actor, const crm_error_t *error)
{
    int lost = error && error->outage == CRM_OUTAGE_AWAY
               && !crm_hosts_tells(error->log);

    actor->losses = lost ? actor->losses + 1 : 0;
    return lost && actor->losses <= LOSSES;
}

/* Count and log, as crmd_actor_note() says, that a round of ACTOR failed with ERROR
 * (NULL: it succeeded). */
static void note(crmd_actor_t *actor, const crm_error_t *error)
{
    crmd_daemon_t *daemon = actor->daemon;
    int cause = cause_of(error), begins;

    pthread_mutex_lock(&daemon->mutex);
    daemon->down[actor->down]--;
    daemon->down[cause]++;
    actor->down = cause;
    begins = error && !daemon->said[cause];
    daemon->said[cause] = 1;
    if (cause == CRMD_NO_DATABASE) {
        tell_reason(daemon, error, begins, actor->pool);
    }
    else if (begins) {
        crmd_log_error(CRM_LOG_ERR, error);
    }
    if (begins) {
        crmd_logf(CRM_LOG_WARNING, "%s", texts[cause].begins);
    }
    for (int i = CRMD_UP + 1; i < CRMD_CAUSES; i++) {
        if (has_ended(daemon, i)) {
            daemon->said[i] = 0;
            crmd_logf(CRM_LOG_NOTICE, "%s", texts[i].ended);
        }
    }
    if (!daemon->said[CRMD_NO_DATABASE]) {
        __atomic_store_n(&away, 0, __ATOMIC_RELAXED);
    }
    else if (begins && cause == CRMD_NO_DATABASE) {
        __atomic_store_n(&away, crm_time_monotonic(), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&daemon->mutex);
}

apr_interval_time_t crmd_actor_note(crmd_actor_t *actor,
                                    const crm_error_t *error,
                                    apr_interval_time_t wait)
{
    if (error && was_cancelled(actor, error)) {
        return DOWN_TIME;
    }
    crm_metrics_add(&crmd_stats.db_errors, cause_of(error) == CRMD_NO_DATABASE);
    if (is_loss(actor, error)) {
        crmd_log_error(CRM_LOG_INFO, error);
        return actor->losses == 1 ? 0 : DOWN_TIME;
    }
    note(actor, error);
    return error ? DOWN_TIME : wait;
}

crm_error_t *crmd_actor_connect(crmd_actor_t *actor, const int *over)
{
    actor->over = over;
    CRM_ERR(crmd_conn_open(&actor->conn, actor->daemon->config, actor->timeout,
                           actor->conn_pool, actor->pool));
    crm_conn_watch(actor->conn, is_over, actor);
    return NULL;
}

/* Return whether a schema that DAEMON could use has not been looked at for long. */
static int is_stale(crmd_daemon_t *daemon, apr_int64_t now)
{
    int stale;

    pthread_mutex_lock(&daemon->mutex);
    stale = !daemon->checked
            || now - daemon->checked > SCHEMA_POLLS * daemon->config->poll;
    pthread_mutex_unlock(&daemon->mutex);
    return stale;
}

crm_error_t *crmd_actor_prepare(crmd_actor_t *actor, const int *over)
{
    crmd_daemon_t *daemon = actor->daemon;
    apr_int64_t now = crm_time_monotonic();
    crm_error_t *error;

    CRM_ERR(crmd_actor_connect(actor, over));
    if (!is_stale(daemon, now)) {
        return NULL;
    }
    error = crmd_conn_check(actor->conn, actor->pool);
    pthread_mutex_lock(&daemon->mutex);
    daemon->checked = error ? 0 : now;
    pthread_mutex_unlock(&daemon->mutex);
    return error;
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
