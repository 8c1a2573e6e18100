/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_upkeep.c: periodic tasks of the database */
#include "crmapid_upkeep.h"

#include <stddef.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_schema.h"
#include "crm_sql.h"
#include "crm_text.h"
#include "crmapid_log.h"
#include "crmapid_outbox.h"
#include "crmapid_retention.h"

/* Rows per statement, so that locks are held for a short time. */
#define BATCH 1000
#define BATCH_TEXT "1000"

/* The same of mails with all that they carry. */
#define MAILS 20
#define MAILS_TEXT "20"

typedef struct upkeep_t {
    crm_conn_t *conn;
    const crmd_config_t *config;
    const char *moment;         /* NULL: now */
    apr_pool_t *pool;
} upkeep_t;

/* A task. One daemon at a time runs it. */
typedef struct task_t {
    const char *name;
    size_t every;               /* its interval: offset in crmd_config_t; 0: it
                                   has none, and no row of crmapi.upkeep */
    size_t age;                 /* offset of an age in crmd_config_t; 0: none.
                                   $1 of SQL is the current time minus it. */
    const char *sql;            /* returns the number of changed rows; repeated
                                   while that is BATCH, or "batch" */
    /* Used if SQL is NULL. */
    crm_error_t *(*run)(apr_int64_t *count_p, const upkeep_t *upkeep);
    int batch;                  /* 0: BATCH */
} task_t;

/* Delete at most BATCH rows of TABLE, with the primary key KEY, that meet
 * CONDITION. */
#define TRIM(table, key, condition) \
    "WITH gone AS (DELETE FROM crmapi." table " t WHERE (" key ") IN (" \
    "SELECT " key " FROM crmapi." table " WHERE " condition \
    " LIMIT " BATCH_TEXT ") RETURNING 1)" \
    " SELECT count(*) FROM gone"

/* Correct the totals. Log those that were not correct: rows were written
 * without the triggers. */
static crm_error_t *verify_totals(apr_int64_t *count_p, const upkeep_t *upkeep)
{
    crm_stmt_t stmt = {"SELECT * FROM crmapi.counter_mend()", 0, NULL};
    PGresult *result;

    CRM_ERR(crm_db_query(&result, upkeep->conn, &stmt, upkeep->pool));
    for (int i = 0; i < PQntuples(result); i++) {
        crmd_logf(CRM_LOG_WARNING, "CRM3201: the total of %s in workspace %s"
                  " (agent %s) was %s and is corrected to %s",
                  PQgetvalue(result, i, 1), PQgetvalue(result, i, 0),
                  PQgetvalue(result, i, 2), PQgetvalue(result, i, 3),
                  PQgetvalue(result, i, 4));
    }
    *count_p = PQntuples(result);
    return NULL;
}

/* Log the progress of a migration that has steps to do. */
static crm_error_t *log_migration(apr_int64_t *count_p, const upkeep_t *upkeep)
{
    PGresult *result;
    const char *progress;

    *count_p = 0;
    CRM_ERR(crm_schema_unfinished(&result, upkeep->conn, upkeep->pool));
    if (!PQntuples(result)) {
        return NULL;
    }
    progress = crm_db_value(result, 0, 2);
    crmd_logf(CRM_LOG_NOTICE, "CRM3204: migration %s, step %s%s%s; %s",
              PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1),
              progress ? ": " : "", progress ? progress : "",
              PQgetisnull(result, 0, 3)
              ? "nobody is running it: run crmapictl migrate"
              : "crmapictl migrate is running");
    return NULL;
}

/* Delete messages to people who were erased from the outbox. */
static crm_error_t *forget_sent(apr_int64_t *count_p, const upkeep_t *upkeep)
{
    return crmd_outbox_forget(count_p, upkeep->config->maildir, upkeep->conn,
                              upkeep->pool);
}

/* Delete what workspaces keep for some days only. */
static crm_error_t *keep_less(apr_int64_t *count_p, const upkeep_t *upkeep)
{
    return crmd_retention_run(count_p, upkeep->conn, upkeep->moment,
                              upkeep->pool);
}

/* Return whether ERROR, of a task, is no fault of it: nobody wants it any more, or the
 * database cannot be used. */
static int ends_round(const crm_error_t *error)
{
    return error->code == CRM_E_REQUEST_TIMEOUT
           || error->outage == CRM_OUTAGE_AWAY
           || (error->code == CRM_E_UNAVAILABLE && !error->sqlstate);
}

/* Measure what workspaces have used that were not measured today. One that fails
 * keeps no other from it. */
static crm_error_t *measure_usage(apr_int64_t *count_p, const upkeep_t *upkeep)
{
    const char *values[2] = {NULL, upkeep->moment};
    crm_stmt_t all = {"SELECT crmapi.usage_due($1::timestamptz)", 1,
                      &values[1]};
    crm_stmt_t stmt = {"SELECT crmapi.usage_measure($1::uuid,"
                       " $2::timestamptz)", 2, values};
    crm_error_t *error = NULL;
    PGresult *workspaces, *result;
    apr_pool_t *pool;

    *count_p = 0;
    CRM_ERR(crm_db_query(&workspaces, upkeep->conn, &all, upkeep->pool));
    apr_pool_create(&pool, upkeep->pool);
    for (int i = 0; !(error && ends_round(error)) && i < PQntuples(workspaces)
         && !crm_conn_unwanted(upkeep->conn); i++) {
        crm_error_t *failed;

        values[0] = PQgetvalue(workspaces, i, 0);
        failed = crm_db_query(&result, upkeep->conn, &stmt, pool);
        error = failed ? failed : error;
        *count_p += !failed && *PQgetvalue(result, 0, 0) == 't';
        if (!error) {
            apr_pool_clear(pool);
        }
    }
    return error;
}

#define AT(member) offsetof(crmd_config_t, member)

static const task_t tasks[] = {
    {"conversations", AT(upkeep), AT(conversation_idle),
     "SELECT crmapi.conversation_idle($1::timestamptz, " BATCH_TEXT ")", NULL,
     0},
    {"jobs", AT(upkeep), AT(keep_jobs),
     TRIM("job", "workspace_id, id", "state IN ('done', 'cancelled')"
          " AND finished_at < $1::timestamptz"), NULL, 0},
    {"deliveries", AT(upkeep), AT(keep_deliveries),
     "SELECT crmapi.event_trim($1::timestamptz, " BATCH_TEXT ")", NULL, 0},
    {"intake events", AT(upkeep), AT(keep_events),
     "SELECT crmapi.intake_trim($1::timestamptz, " BATCH_TEXT ")", NULL, 0},
    {"originals", AT(upkeep), AT(mail_keep_original),
     "SELECT crmapi.original_trim($1::timestamptz, " MAILS_TEXT ")", NULL,
     MAILS},
    {"audit", AT(upkeep), AT(keep_audit),
     "SELECT crmapi.audit_trim($1::timestamptz, " BATCH_TEXT ")", NULL, 0},
    {"old usage", AT(verify_totals), AT(keep_usage),
     "SELECT crmapi.usage_trim($1::timestamptz, " BATCH_TEXT ")", NULL, 0},
    {"idempotency keys", AT(upkeep), 0,
     "SELECT crmapi.idempotency_trim(" BATCH_TEXT ")", NULL, 0},
    {"send counts", AT(verify_totals), AT(keep_jobs),
     TRIM("send_count", "workspace_id, bot_id, day",
          "day < $1::timestamptz::date - 2"), NULL, 0},
    {"workers", AT(upkeep), AT(verify_totals),
     TRIM("worker", "id", "heartbeat_at < $1::timestamptz"), NULL, 0},
    {"totals", AT(verify_totals), 0, NULL, verify_totals, 0},
    {"empty totals", AT(verify_totals), 0,
     "SELECT crmapi.counter_trim()", NULL, 0},
    {"migration", AT(upkeep), 0, NULL, log_migration, 0},
    {"outbox", AT(upkeep), 0, NULL, forget_sent, 0},
    {"retention", AT(upkeep), 0, NULL, keep_less, 0},
    {"usage", AT(upkeep), 0, NULL, measure_usage, 0},
};

#define TASKS CRM_NELTS(tasks)

/* The one that is due each time, and leaves no record. */
static const task_t statistics = {
    "statistics", 0, 0, "SELECT crmapi.analyze_grown()", NULL, 1
};

static apr_interval_time_t interval(const crmd_config_t *config, size_t at)
{
    return *(const apr_interval_time_t *)((const char *)config + at);
}

static const char *microseconds(apr_interval_time_t time, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_TIME_T_FMT " us", time);
}

/* Run the statement of TASK until it changes less than BATCH rows. */
static crm_error_t *run_sql(apr_int64_t *count_p, const upkeep_t *upkeep,
                            const task_t *task)
{
    const char *values[1];
    crm_stmt_t stmt = {task->sql, task->age ? 1 : 0, values};
    PGresult *result;
    apr_int64_t n;

    values[0] = NULL;
    if (task->age) {
        const char *ago[2];
        crm_stmt_t clock = {"SELECT coalesce($1::timestamptz,"
                            " statement_timestamp()) - $2::interval", 2, ago};

        ago[0] = upkeep->moment;
        ago[1] = microseconds(interval(upkeep->config, task->age),
                              upkeep->pool);
        CRM_ERR(crm_db_query(&result, upkeep->conn, &clock, upkeep->pool));
        values[0] = PQgetvalue(result, 0, 0);
    }
    do {
        CRM_ERR(crm_db_query(&result, upkeep->conn, &stmt, upkeep->pool));
        n = apr_atoi64(PQgetvalue(result, 0, 0));
        *count_p += n;
    } while (n == (task->batch ? task->batch : BATCH)
             && !crm_conn_unwanted(upkeep->conn));
    return NULL;
}

/* Set *DUE_P to whether any task is due, by one statement: the condition is that of
 * upkeep_begin(). */
static crm_error_t *any_due(int *due_p, const upkeep_t *upkeep)
{
    const char *values[3];
    crm_stmt_t stmt = {"SELECT EXISTS (SELECT FROM unnest($1::text[],"
                       " $2::interval[]) t (task, every)"
                       " LEFT JOIN crmapi.upkeep u ON u.task = t.task"
                       " CROSS JOIN coalesce($3::timestamptz,"
                       " statement_timestamp()) n (at)"
                       " WHERE u.begun_at IS NULL OR u.begun_at > n.at"
                       " OR u.begun_at <= n.at - t.every)", 3, values};
    apr_pool_t *pool = upkeep->pool;
    apr_array_header_t *names = apr_array_make(pool, (int)TASKS,
                                               sizeof(char *));
    apr_array_header_t *periods = apr_array_make(pool, (int)TASKS,
                                                 sizeof(char *));
    PGresult *result;

    for (size_t i = 0; i < TASKS; i++) {
        APR_ARRAY_PUSH(names, const char *) = tasks[i].name;
        APR_ARRAY_PUSH(periods, const char *) = microseconds(
            interval(upkeep->config, tasks[i].every), pool);
    }
    values[0] = crm_sql_array(names, pool);
    values[1] = crm_sql_array(periods, pool);
    values[2] = upkeep->moment;
    CRM_ERR(crm_db_query(&result, upkeep->conn, &stmt, pool));
    *due_p = *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* If TASK is due, set *DUE_P and record that it begins now, so that no other
 * daemon runs it. */
static crm_error_t *begin(int *due_p, const upkeep_t *upkeep,
                          const task_t *task)
{
    const char *values[3];
    crm_stmt_t stmt = {"SELECT crmapi.upkeep_begin($1::text, $2::interval,"
                       " $3::timestamptz)", 3, values};
    PGresult *result;

    values[0] = task->name;
    values[1] = microseconds(interval(upkeep->config, task->every),
                             upkeep->pool);
    values[2] = upkeep->moment;
    CRM_ERR(crm_db_query(&result, upkeep->conn, &stmt, upkeep->pool));
    *due_p = *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* Record that TASK has ended with the result TEXT. */
static crm_error_t *end(const upkeep_t *upkeep, const task_t *task,
                        const char *text)
{
    const char *values[2];
    crm_stmt_t stmt = {"UPDATE crmapi.upkeep u SET ended_at ="
                       " crmapi.now_ms(), result = $2::text"
                       " WHERE u.task = $1::text", 2, values};
    PGresult *result;

    values[0] = task->name;
    values[1] = text;
    return task->every
           ? crm_db_query(&result, upkeep->conn, &stmt, upkeep->pool) : NULL;
}

static crm_error_t *run_task(const upkeep_t *upkeep, const task_t *task)
{
    const char *rows;
    crm_error_t *error;
    apr_int64_t count = 0;

    error = task->run ? task->run(&count, upkeep)
                      : run_sql(&count, upkeep, task);
    if (error && ends_round(error)) {
        return error;
    }
    if (error) {
        crmd_logf(CRM_LOG_ERR, "CRM3203: upkeep of %s: %s", task->name,
                  error->log ? error->log : error->message);
        return end(upkeep, task, error->log ? error->log : error->message);
    }
    rows = apr_psprintf(upkeep->pool, "%" APR_INT64_T_FMT " row%s", count,
                        CRM_TEXT_S(count));
    crmd_logf(count ? CRM_LOG_INFO : CRM_LOG_DEBUG, "CRM3202: upkeep of %s: %s",
              task->name, rows);
    return end(upkeep, task, rows);
}

crm_error_t *crmd_upkeep_run(crm_conn_t *conn, const crmd_config_t *config,
                             const char *moment, apr_pool_t *scratch_pool)
{
    upkeep_t upkeep = {conn, config, moment, scratch_pool};
    int due;

    CRM_ERR(run_task(&upkeep, &statistics));
    CRM_ERR(any_due(&due, &upkeep));
    if (!due) {
        return NULL;
    }
    for (size_t i = 0; i < TASKS && !crm_conn_unwanted(conn); i++) {
        CRM_ERR(begin(&due, &upkeep, &tasks[i]));
        if (due) {
            CRM_ERR(run_task(&upkeep, &tasks[i]));
        }
    }
    return NULL;
}
