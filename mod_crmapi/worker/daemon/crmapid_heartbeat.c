/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_heartbeat.c: the daemon's heartbeat, which extends its leases */
#include "crmapid_heartbeat.h"

#include <unistd.h>

#include "apr_strings.h"

#include "crm_sql.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crmapid_log.h"
#include "crmapid_mark.h"
#include "crmapid_notice.h"
#include "crmapid_poll.h"
#include "crmapid_stats.h"

/* How long the last statement of a daemon may take. */
#define END_TIME apr_time_from_sec(2)

/* Return the ids of the jobs that DAEMON runs, as a PostgreSQL array; *COUNT_P
 * = their number. */
static const char *running_jobs(int *count_p, crmd_daemon_t *daemon,
                                apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 8, sizeof(const char *));

    pthread_mutex_lock(&daemon->mutex);
    for (int i = 0; i < daemon->actors->nelts; i++) {
        const crmd_actor_t *actor = APR_ARRAY_IDX(daemon->actors, i,
                                                  crmd_actor_t *);

        if (*actor->job) {
            APR_ARRAY_PUSH(ids, const char *) = apr_pstrdup(pool, actor->job);
        }
    }
    pthread_mutex_unlock(&daemon->mutex);
    *count_p = ids->nelts;
    return crm_sql_array(ids, pool);
}

static const char beat_sql[] =
    "SELECT crmapi.worker_beat($1::text, $2::text, $3::text, $4::integer,"
    " $5::text, $6::integer, $7::integer, $8::boolean, $9::interval,"
    " $10::bigint[]), crmapi.job_reap(), crmapi.mark_next($11::bigint[]),"
    " ARRAY(SELECT m.n FROM crmapi.send_mark m ORDER BY m.slot)";

/* Log and count the COUNT jobs that were taken from daemons. */
static void tell_released(apr_int64_t count)
{
    if (count) {
        crm_metrics_add(&crmd_stats.released, (apr_uint64_t)count);
        crmd_logf(CRM_LOG_WARNING, "CRM3005: %" APR_INT64_T_FMT " job%s of"
                  " daemons without a heartbeat %s released", count,
                  CRM_TEXT_S(count), count == 1 ? "was" : "were");
    }
}

crm_error_t *crmd_heartbeat(crmd_actor_t *actor)
{
    crmd_daemon_t *daemon = actor->daemon;
    const crmd_config_t *config = daemon->config;
    const char *values[11];
    crm_stmt_t stmt = {beat_sql, 11, values};
    crm_error_t *error;
    PGresult *result;
    int busy, stopping;
    unsigned session;

    CRM_ERR(crmd_actor_connect(actor, &daemon->ending));
    session = crm_conn_session(actor->conn);
    pthread_mutex_lock(&daemon->mutex);
    stopping = daemon->stopping;
    pthread_mutex_unlock(&daemon->mutex);
    values[0] = daemon->id;
    values[1] = config->name;
    values[2] = daemon->host;
    values[3] = apr_itoa(actor->pool, (int)getpid());
    values[4] = CRM_VERSION;
    values[5] = apr_itoa(actor->pool, crmd_job_threads(config));
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
    tell_released(apr_atoi64(PQgetvalue(result, 0, 1)));
    CRM_ERR(crmd_mark_learn(PQgetvalue(result, 0, 2), PQgetvalue(result, 0, 3),
                            actor->pool));
    /* A session that was lost may have been opened again in another copy. */
    return crm_conn_session(actor->conn) == session ? NULL
           : crmd_mark_check(config, actor->conn, actor->pool);
}

/* Return whether the time BATON has passed. */
static int is_late(void *baton)
{
    const apr_int64_t *until = baton;

    return crm_time_monotonic() >= *until;
}

void crmd_heartbeat_end(crmd_actor_t *actor)
{
    apr_int64_t until = crm_time_monotonic() + END_TIME;
    const char *values[1] = {actor->daemon->id};
    crm_stmt_t stmt = {"DELETE FROM crmapi.worker w WHERE w.id = $1::text", 1,
                       values};
    PGresult *result;

    crmd_notice_flush(1);
    if (actor->conn) {
        crm_conn_watch(actor->conn, is_late, &until);
        crm_db_query(&result, actor->conn, &stmt, actor->pool);
        crm_conn_watch(actor->conn, NULL, NULL);
    }
}

void *APR_THREAD_FUNC crmd_heartbeat_main(apr_thread_t *thread, void *data)
{
    crmd_actor_t *actor = data;
    crmd_daemon_t *daemon = actor->daemon;
    int ending = 0;

    while (!ending) {
        crm_error_t *error = crmd_heartbeat(actor);
        apr_interval_time_t wait = crmd_actor_note(actor, error,
                                                   daemon->config->lease / 3);

        crmd_notice_flush(0);
        apr_pool_clear(actor->pool);
        ending = crmd_actor_wait(daemon, &daemon->ending, &daemon->end,
                                 wait);
    }
    crmd_heartbeat_end(actor);
    apr_pool_clear(actor->conn_pool);
    (void)thread;
    return NULL;
}
