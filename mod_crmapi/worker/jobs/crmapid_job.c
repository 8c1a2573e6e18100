/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_job.c: claiming a job, running its handler, recording the outcome */
#include "crmapid_job.h"

#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_json.h"
#include "crm_shape.h"
#include "crm_sql_print.h"
#include "crm_time.h"
#include "crmapid_log.h"
#include "crmapid_mark.h"
#include "crmapid_poll.h"

/* Maximum attempts of a job that fails because of an internal error or the
 * database, or that crashes the daemon each time. Handlers limit other
 * failures. */
#define MAX_ATTEMPTS 60

/* Backoff between these attempts. */
#define FIRST_WAIT apr_time_from_sec(1)
#define LAST_WAIT apr_time_from_sec(300)

/* Columns of crmapi.job_claim(). */
enum { WORKSPACE, ID, KIND, PAYLOAD, ATTEMPTS, TAKEN_AT };

/* ---- functions for handlers ---------------------------------------------- */

const char *crmd_payload(const crmd_work_t *work, const char *name)
{
    return crm_json_text(json_object_object_get(work->job->payload, name));
}

crm_error_t *crmd_query(PGresult **result_p, crmd_work_t *work,
                        const char *sql, int count,
                        const char *const *values)
{
    crm_stmt_t stmt = {sql, count, values};

    return crm_db_query(result_p, work->conn, &stmt, work->pool);
}

void crmd_lease_values(const char **values, const crmd_work_t *work)
{
    values[0] = work->job->workspace_id;
    values[1] = work->job->id;
    values[2] = work->job->owner;
    values[3] = apr_itoa(work->pool, work->job->attempts);
}

void crmd_log_held(const crmd_work_t *work)
{
    crmd_logf(CRM_LOG_INFO, "CRM3105: job %s (%s) was given back: its"
              " workspace is held", work->job->id, work->job->kind);
}

void crmd_work_retry(crmd_work_t *work, apr_interval_time_t delay,
                     const char *reason)
{
    work->end = CRMD_RETRY;
    work->delay = delay;
    work->reason = reason;
}

void crmd_work_dead(crmd_work_t *work, const char *reason)
{
    work->end = CRMD_DEAD;
    work->reason = reason;
}

crm_error_t *crmd_work_return(crmd_work_t *work)
{
    const char *values[4];
    PGresult *result;

    crmd_lease_values(values, work);
    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.job_return($1::uuid,"
                       " $2::bigint, $3::text, $4::integer)", 4, values));
    crmd_log_held(work);
    work->end = CRMD_ENDED;
    return NULL;
}

crm_error_t *crmd_work_still(crmd_work_t *work, apr_time_t since)
{
    const char *values[4];
    PGresult *result;

    crmd_lease_values(values, work);
    /* a heartbeat comes each third of the lease */
    while (crm_time_monotonic() - since > work->config->lease / 2) {
        since = crm_time_monotonic();
        CRM_ERR(crmd_query(&result, work, "SELECT crmapi.job_hold($1::uuid,"
                           " $2::bigint, $3::text, $4::integer)", 4, values));
    }
    return NULL;
}

apr_interval_time_t crmd_backoff(int n, apr_interval_time_t first,
                                 apr_interval_time_t last)
{
    apr_interval_time_t wait = first;
    apr_uint32_t random = 0;

    while (--n > 0 && wait < last) {
        wait *= 2;
    }
    if (wait > last) {
        wait = last;
    }
    apr_generate_random_bytes((unsigned char *)&random, sizeof(random));
    return wait + wait / 10 * ((apr_interval_time_t)(random % 2001) - 1000)
           / 1000;
}

/* A pool cleanup: free the json_object DATA. */
static apr_status_t put_cleanup(void *data)
{
    json_object_put(data);
    return APR_SUCCESS;
}

/* Return the object at TEXT, freed with POOL. */
static json_object *parse_json(const char *json, apr_pool_t *pool)
{
    json_object *object = crm_json_object(json);

    apr_pool_cleanup_register(pool, object, put_cleanup,
                              apr_pool_cleanup_null);
    return object;
}

crm_error_t *crmd_object(json_object **object_p, crmd_work_t *work,
                         const crm_resource_t *resource, const char *id)
{
    const crm_shape_t *shape = crm_shape_of(resource);
    PGresult *result;
    crm_stmt_t stmt;
    crm_sql_t sql;
    crm_buf_t text;

    *object_p = NULL;
    if (!id) {
        return NULL;
    }
    crm_sql_init(&sql, work->pool);
    crm_sql_value(&sql, work->job->workspace_id, "uuid");
    crm_sql_adds(&sql, "SELECT ", shape->columns, " FROM crmapi.",
                 resource->name, " t WHERE " CRM_SQL_OWN("t") " AND t.id = ",
                 NULL);
    crm_sql_bind(&sql, id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    CRM_ERR(crmd_query(&result, work, stmt.sql, stmt.count, stmt.values));
    if (PQntuples(result)) {
        crm_buf_init(&text, 4096, work->pool);
        crm_shape_write(&text, shape, result, 0, 0);
        crm_buf_putc(&text, '\0');
        *object_p = parse_json(text.data, work->pool);
    }
    return NULL;
}

/* ---- running ------------------------------------------------------------- */

static void lost_lease(const crmd_work_t *work)
{
    crm_metrics_add(&work->stats->lost, 1);
    crmd_logf(CRM_LOG_NOTICE, "CRM3104: job %s (%s): the lease was lost",
              work->job->id, work->job->kind);
}

/* Return the kind NAME of KINDS, NULL if it is not among them. */
static const crmd_kind_t *find_kind(const crmd_kind_t *kinds,
                                    const char *name)
{
    for (; kinds->name; kinds++) {
        if (!strcmp(kinds->name, name)) {
            return kinds;
        }
    }
    return NULL;
}

/* Claim the first due job of LANE into JOB; *DONE_P = whether there was one. */
static crm_error_t *claim(int *done_p, crmd_job_t *job,
                          const crmd_claimer_t *claimer, const char *lane,
                          apr_pool_t *pool)
{
    const char *values[5];
    crm_stmt_t stmt = {"SELECT c.* FROM crmapi.job_claim($1::text, $2::text,"
                       " $3::interval, $4::timestamptz, $5::uuid) c", 5,
                       values};
    PGresult *result;

    values[0] = lane;
    values[1] = claimer->owner;
    values[2] = apr_psprintf(pool, "%" APR_TIME_T_FMT " us",
                             claimer->config->lease);
    values[3] = claimer->moment;
    values[4] = claimer->after;
    CRM_ERR(crm_db_query(&result, claimer->conn, &stmt, pool));
    *done_p = PQntuples(result) > 0;
    if (*done_p) {
        job->workspace_id = PQgetvalue(result, 0, WORKSPACE);
        job->id = PQgetvalue(result, 0, ID);
        job->kind = PQgetvalue(result, 0, KIND);
        job->payload = parse_json(PQgetvalue(result, 0, PAYLOAD), pool);
        job->attempts = atoi(PQgetvalue(result, 0, ATTEMPTS));
        job->owner = claimer->owner;
        job->now = PQgetvalue(result, 0, TAKEN_AT);
    }
    return NULL;
}

/* Record that WORK's job ends this attempt in STATE. */
static crm_error_t *record(crmd_work_t *work, const char *state)
{
    const char *values[7];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = state;
    values[5] = work->reason;
    values[6] = apr_psprintf(work->pool, "%" APR_TIME_T_FMT " us",
                             work->delay);
    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.job_end($1::uuid,"
                       " $2::bigint, $3::text, $4::integer, $5::text,"
                       " $6::text, $7::interval)", 7, values));
    if (*PQgetvalue(result, 0, 0) != 't') {
        lost_lease(work);
    }
    return NULL;
}

/* The handler of WORK, of KIND, returned ERROR: retry the job, or give it up
 * after the last attempt. */
static crm_error_t *set_back(crmd_work_t *work, const crmd_kind_t *kind,
                             const crm_error_t *error)
{
    const char *reason = error->log ? error->log : error->message;

    crm_db_rollback(work->conn);
    crm_metrics_add(&work->stats->failed, 1);
    crmd_logf(error->code == CRM_E_UNAVAILABLE ? CRM_LOG_WARNING : CRM_LOG_ERR,
              "CRM3101: job %s (%s), attempt %d: %s", work->job->id,
              work->job->kind, work->job->attempts, reason);
    crmd_work_retry(work, crmd_backoff(work->job->attempts, FIRST_WAIT,
                                       LAST_WAIT), reason);
    if (work->job->attempts >= MAX_ATTEMPTS) {
        crmd_work_dead(work, reason);
        if (kind->give_up) {
            crm_metrics_add(&work->stats->dead, 1);
            work->end = CRMD_ENDED;
            return kind->give_up(work);
        }
    }
    return NULL;
}

static crm_error_t *finish(crmd_work_t *work)
{
    switch (work->end) {
    case CRMD_DONE:
        return record(work, "done");
    case CRMD_RETRY:
        return record(work, "ready");
    case CRMD_DEAD:
        crm_metrics_add(&work->stats->dead, 1);
        crmd_logf(CRM_LOG_WARNING, "CRM3102: job %s (%s) failed for good: %s",
                  work->job->id, work->job->kind, work->reason);
        return record(work, "dead");
    case CRMD_ENDED:
        break;
    }
    return NULL;
}

/* Run the job of WORK. Errors: CRM01 of crmapi.job_hold(), those of the database. */
static crm_error_t *run(crmd_work_t *work, const crmd_kind_t *kinds)
{
    const crmd_kind_t *kind = find_kind(kinds, work->job->kind);
    crm_error_t *error;

    if (!kind) {
        crmd_work_dead(work, "this version does not know this kind of job");
        return finish(work);
    }
    if (work->job->attempts > MAX_ATTEMPTS) {
        error = crm_error_logf(CRM_E_INTERNAL, work->pool, "too many"
                               " attempts: %d", work->job->attempts);
    }
    else {
        error = kind->run(work);
    }
    if (crm_error_is(error, CRMD_OLDER)) {
        CRM_ERR(crmd_mark_check(work->config, work->conn, work->pool));
        return crmd_work_return(work);
    }
    if (error && !crm_error_is(error, "CRM01")) {
        error = set_back(work, kind, error);
    }
    return error ? error : finish(work);
}

/* Run and count the job of WORK. */
static crm_error_t *run_counted(crmd_work_t *work,
                                const crmd_claimer_t *claimer)
{
    apr_time_t begun = crm_time_monotonic();
    crm_error_t *error;

    crm_metrics_add(&work->stats->busy, 1);
    claimer->hold(claimer->baton, work->job);
    error = run(work, claimer->kinds);
    if (crm_error_is(error, "CRM01")) {
        crm_db_rollback(work->conn);
        lost_lease(work);
        error = NULL;
    }
    claimer->hold(claimer->baton, NULL);
    crmd_stats_less(&work->stats->busy);
    crm_metrics_observe(&work->stats->times, crm_time_monotonic() - begun);
    return error;
}

crm_error_t *crmd_job_run(int *done_p, const crmd_claimer_t *claimer,
                          const char *lane, apr_pool_t *scratch_pool)
{
    crm_error_t *error;
    crmd_work_t work;
    crmd_job_t job;

    memset(&work, 0, sizeof(work));
    work.config = claimer->config;
    work.job = &job;
    work.conn = claimer->conn;
    work.moment = claimer->moment;
    work.log = crmd_log;
    work.stats = &crmd_stats.lanes[crmd_lane_of(lane)];
    work.pool = scratch_pool;
    CRM_ERR(claim(done_p, &job, claimer, lane, scratch_pool));
    if (*done_p) {
        crmd_log_job(&(crmd_log_job_t){job.workspace_id, job.id, job.kind});
        crmd_logf(CRM_LOG_DEBUG, "CRM3103: job %s (%s), attempt %d", job.id,
                  job.kind, job.attempts);
        error = run_counted(&work, claimer);
        crmd_log_job(NULL);
        if (error) {
            /* The lease expires, and the job is claimed again. */
            crm_db_rollback(work.conn);
            return error;
        }
    }
    return NULL;
}
