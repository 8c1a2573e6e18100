/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_watch.c: a thread that looks at the database: whether it can be used,
 * and how many jobs there are */
#include "crmapid_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_thread_proc.h"

#include "crm_db.h"
#include "crm_schema.h"
#include "crm_sql.h"
#include "crm_sql_print.h"
#include "crm_time.h"
#include "crmapid_actor.h"
#include "crmapid_conn.h"
#include "crmapid_journal.h"
#include "crmapid_pool.h"

/* Interval of checks, and the time within which the database must answer. */
#define CHECK_EVERY apr_time_from_msec(900)
#define ANSWER apr_time_from_sec(1)

/* Jobs are counted at this interval, or at COST times the time that a count
 * takes, if that is longer. */
#define COUNT_EVERY apr_time_from_sec(5)
#define COST 100

struct crmd_watch_t {
    const crmd_config_t *config;
    apr_thread_t *thread;
    int stop[2];                /* a pipe: closing stop[1] ends the thread */
    apr_pool_t *pool;           /* cleared after each check */
    apr_pool_t *conn_pool;
    crm_conn_t *conn;           /* NULL: not open */
    apr_time_t count_at;        /* time of the next count */
    int distributed;            /* the database is: crm_schema_t */
    pthread_mutex_t mutex;      /* protects all below */
    const char *fault;          /* of the last check */
    apr_time_t checking;        /* when the current check began; 0: none */
    int counted;                /* whether COUNTS are known */
    crmd_counts_t counts[CRMD_LANES];
};

/* Columns of the statement, from the second one on CRMD_JOBS_*. */
enum { LANE, FIRST_STATE, OLDEST = FIRST_STATE + CRMD_JOBS_STATES };

#define DUE "j.state = 'ready' AND j.is_due AND j.lane = l.lane"
#define DUE_ORDER " ORDER BY j.workspace_id, j.run_at, j.id LIMIT "

/* Whether the workspace of the row ALIAS is held, or the database. */
#define HELD(alias) "(held.whole OR " alias ".workspace_id IN" \
    " (SELECT h.workspace_id FROM crmapi.workspace_hold h))"

/* The statement's form for PostgreSQL. Due and waiting jobs are counted in the
 * indexes job_due and job_waiting alone, up to 25,000 of each lane; those that are
 * leased or dead by their indexes, up to 10,000. The index job_due is in the order
 * of workspaces, so the oldest job is the oldest of the first of each workspace, of
 * up to 10,000 workspaces. A complete order with LIMIT keeps the planner on these
 * indexes (crmapi.job_poll()).
 * Its form for Citus counts on all servers. Citus has no recursion over them: all
 * jobs are counted. */
static const char count_sql[] = CRM_SQL_PLAIN
    "WITH few AS MATERIALIZED ("
    "(SELECT j.lane, j.state FROM crmapi.job j WHERE j.state = 'leased'"
    " ORDER BY j.leased_until LIMIT 10000) UNION ALL "
    "(SELECT j.lane, j.state FROM crmapi.job j WHERE j.state = 'dead'"
    " ORDER BY j.finished_at LIMIT 10000))"
    " SELECT l.lane, due.n - due.held,"
    " (SELECT count(*) FROM (SELECT FROM crmapi.job j"
    " WHERE j.state = 'ready' AND NOT j.is_due AND j.lane = l.lane"
    " ORDER BY j.run_at, j.id LIMIT 25000) w),"
    " (SELECT count(*) FROM few f WHERE f.lane = l.lane"
    " AND f.state = 'leased'),"
    " (SELECT count(*) FROM few f WHERE f.lane = l.lane"
    " AND f.state = 'dead'),"
    " due.held,"
    " (WITH RECURSIVE first AS ("
    "(SELECT j.workspace_id, j.run_at FROM crmapi.job j WHERE " DUE
    DUE_ORDER "1) UNION ALL SELECT n.workspace_id, n.run_at FROM first"
    " CROSS JOIN LATERAL (SELECT j.workspace_id, j.run_at"
    " FROM crmapi.job j WHERE " DUE " AND j.workspace_id > first.workspace_id"
    DUE_ORDER "1) n)"
    " SELECT (greatest(extract(epoch FROM statement_timestamp()"
    " - min(s.run_at)), 0) * 1000000)::bigint"
    " FROM (SELECT first.* FROM first LIMIT 10000) s WHERE NOT " HELD("s") ")"
    " FROM unnest($1::text[]) l(lane)"
    " CROSS JOIN (SELECT EXISTS (SELECT FROM crmapi.instance i"
    " WHERE i.held_at IS NOT NULL) AS whole) held"
    " CROSS JOIN LATERAL (SELECT count(*) AS n,"
    " count(*) FILTER (WHERE " HELD("d") ") AS held"
    " FROM (SELECT j.workspace_id FROM crmapi.job j WHERE " DUE
    DUE_ORDER "25000) d) due"
    CRM_SQL_CITUS
    "SELECT j.lane, count(*) FILTER (WHERE j.due AND NOT j.held),"
    " count(*) FILTER (WHERE j.state = 'ready' AND NOT j.is_due),"
    " count(*) FILTER (WHERE j.state = 'leased'),"
    " count(*) FILTER (WHERE j.state = 'dead'),"
    " count(*) FILTER (WHERE j.due AND j.held),"
    " (greatest(extract(epoch FROM statement_timestamp()"
    " - min(j.run_at) FILTER (WHERE j.due AND NOT j.held)), 0)"
    " * 1000000)::bigint"
    " FROM (SELECT j.lane, j.state, j.is_due, j.run_at,"
    " j.state = 'ready' AND j.is_due AS due,"
    " i.held_at IS NOT NULL OR h.workspace_id IS NOT NULL AS held"
    " FROM crmapi.job j CROSS JOIN crmapi.instance i"
    " LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = j.workspace_id"
    " WHERE j.state IN ('ready', 'leased', 'dead')"
    " AND j.lane = ANY ($1::text[])) j GROUP BY j.lane";

static crm_error_t *count_jobs(crmd_watch_t *watch)
{
    const char *values[1] = {crm_sql_words(crmd_lanes, CRMD_LANES,
                                           watch->pool)};
    crm_stmt_t stmt = {crm_sql_form(count_sql, watch->distributed, watch->pool),
                       1, values};
    crmd_counts_t counts[CRMD_LANES];
    apr_time_t begun = crm_time_monotonic();
    apr_interval_time_t took;
    PGresult *result;

    CRM_ERR(crm_db_query(&result, watch->conn, &stmt, watch->pool));
    memset(counts, 0, sizeof(counts));
    for (int i = 0; i < PQntuples(result); i++) {
        int lane = crmd_lane_of(PQgetvalue(result, i, LANE));
        const char *oldest = crm_db_value(result, i, OLDEST);

        for (int state = 0; lane >= 0 && state < CRMD_JOBS_STATES; state++) {
            counts[lane].jobs[state] = (apr_uint64_t)apr_atoi64(
                PQgetvalue(result, i, FIRST_STATE + state));
        }
        if (lane >= 0 && oldest) {
            counts[lane].oldest_us = (apr_uint64_t)apr_atoi64(oldest);
        }
    }
    took = crm_time_monotonic() - begun;
    watch->count_at = begun + (took * COST > COUNT_EVERY ? took * COST
                                                         : COUNT_EVERY);
    pthread_mutex_lock(&watch->mutex);
    memcpy(watch->counts, counts, sizeof(counts));
    watch->counted = 1;
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

/* Set *FAULT_P to NULL if the database can be used, otherwise to the reason in
 * a word. */
static crm_error_t *check(const char **fault_p, crmd_watch_t *watch)
{
    crm_schema_t schema;
    crm_error_t *error = crmd_conn_open(&watch->conn, watch->config, ANSWER,
                                        watch->conn_pool, watch->pool);

    *fault_p = crm_error_is(error, CRMD_RUN_DIR) ? "run_dir" : "database";
    CRM_ERR(error);
    CRM_ERR(crm_schema_read(&schema, watch->conn, watch->pool));
    watch->distributed = schema.distributed;
    *fault_p = crm_schema_fault(&schema, "crmapid", watch->pool) ? "schema"
                                                                 : NULL;
    return NULL;
}

/* Check once, and count the jobs if it is time. Errors are not logged here: the
 * daemon's threads log that the database is unavailable. */
static void check_once(crmd_watch_t *watch)
{
    const char *fault;
    crm_error_t *error;

    pthread_mutex_lock(&watch->mutex);
    watch->checking = crm_time_monotonic();
    pthread_mutex_unlock(&watch->mutex);
    error = check(&fault, watch);
    pthread_mutex_lock(&watch->mutex);
    watch->fault = fault;
    watch->checking = 0;
    watch->counted = watch->counted && !fault;
    pthread_mutex_unlock(&watch->mutex);
    if (fault) {
        watch->count_at = 0;    /* count at once when it is back */
    }
    else if (crm_time_monotonic() >= watch->count_at) {
        /* kept if the count fails */
        watch->count_at = crm_time_monotonic() + COST * ANSWER;
        error = count_jobs(watch);
    }
    if (error) {
        apr_pool_clear(watch->conn_pool);
        watch->conn = NULL;
    }
    apr_pool_clear(watch->pool);
}

/* Wait for the next check. If the server ends its sessions, check at once.
 * Return 0 when the thread ends. */
static int wait_check(const crmd_watch_t *watch)
{
    struct pollfd pollers[2] = {
        {watch->stop[0], POLLIN, 0},
        {watch->conn ? PQsocket(crm_conn_pg(watch->conn)) : -1, POLLIN, 0}
    };

    poll(pollers, 2, (int)apr_time_as_msec(CHECK_EVERY));
    return !pollers[0].revents;
}

static void *APR_THREAD_FUNC watch_main(apr_thread_t *thread, void *data)
{
    crmd_watch_t *watch = data;

    do {
        check_once(watch);
    } while (wait_check(watch));
    apr_pool_clear(watch->conn_pool);
    (void)thread;
    return NULL;
}

const char *crmd_watch_fault(crmd_watch_t *watch)
{
    const char *fault;

    pthread_mutex_lock(&watch->mutex);
    fault = watch->checking && crm_time_monotonic() - watch->checking > ANSWER
            ? "database" : watch->fault;
    pthread_mutex_unlock(&watch->mutex);
    /* This thread's connection may be good for its own statements only. */
    if (!fault && crmd_actor_is_away()) {
        fault = "database";
    }
    return fault || !crmd_journal_failed() ? fault : "run_dir";
}

int crmd_watch_counts(crmd_counts_t counts[CRMD_LANES], crmd_watch_t *watch)
{
    int counted;

    pthread_mutex_lock(&watch->mutex);
    counted = watch->counted;
    memcpy(counts, watch->counts, sizeof(watch->counts));
    pthread_mutex_unlock(&watch->mutex);
    return counted;
}

crm_error_t *crmd_watch_start(crmd_watch_t **watch_p,
                              const crmd_config_t *config, apr_pool_t *pool)
{
    crmd_watch_t *watch = apr_pcalloc(pool, sizeof(*watch));
    apr_pool_t *own = crmd_pool_create(pool, 0);

    *watch_p = NULL;
    apr_pool_create(&watch->pool, own);
    apr_pool_create(&watch->conn_pool, own);
    watch->config = config;
    watch->fault = "database";
    pthread_mutex_init(&watch->mutex, NULL);
    if (pipe2(watch->stop, O_CLOEXEC)
        || apr_thread_create(&watch->thread, NULL, watch_main, watch, pool)
           != APR_SUCCESS) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "a thread for"
                              " status_listen cannot be started");
    }
    *watch_p = watch;
    return NULL;
}

void crmd_watch_stop(crmd_watch_t *watch)
{
    apr_status_t status;

    if (watch) {
        close(watch->stop[1]);
        apr_thread_join(&status, watch->thread);
        close(watch->stop[0]);
        pthread_mutex_destroy(&watch->mutex);
    }
}
