/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_database.c: migrate and status */
#include "crmapictl_database.h"

#include <stdio.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_migrate.h"
#include "crm_schema.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_rights.h"
#include "crmapictl_role.h"
#include "crmapictl_shown.h"

/* The default and the maximum of --lock-wait, in seconds. */
#define LOCK_WAIT_DEFAULT 600
#define LOCK_WAIT_MAX 86400

/* Log TEXT to stderr. stdout is for results. */
static void tell(void *baton, crm_level_t level, const char *text)
{
    (void)baton;
    (void)level;
    fprintf(stderr, "crmapictl: %s\n", text);
}

crm_error_t *ctl_migrate(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"version", 'n'}, {"applied", 'n'}, {NULL, 0}
    };
    const crm_log_t log = {tell, NULL};
    long lock_wait = LOCK_WAIT_DEFAULT;
    crm_schema_t schema;
    const char *values[2];
    PGresult *result;
    int applied;

    CRM_ERR(ctl_number(&lock_wait, ctl, CTL_LOCK_WAIT, LOCK_WAIT_MAX));
    CRM_ERR(ctl_shown_tell(ctl));
    CRM_ERR(crm_migrate_apply(&applied, ctl->conn, ctl_schema_dir(ctl),
                              apr_time_from_sec(lock_wait), &log, ctl->pool));
    CRM_ERR(crm_schema_read(&schema, ctl->conn, ctl->pool));
    values[0] = apr_itoa(ctl->pool, schema.number);
    values[1] = apr_itoa(ctl->pool, applied);
    CRM_ERR(ctl_query(&result, ctl, "SELECT $1::integer, $2::integer", 2,
                      values));
    ctl_print_one(ctl, apr_pstrcat(ctl->pool, "schema version ", values[0],
                                   NULL), result, columns);
    return ctl_rights_tell(ctl);
}

/* The columns of "status". Those up to migration_pid are about the schema. */
static const ctl_column_t status_columns[] = {
    {"schema_version", 'n'}, {"schema_expected", 'n'}, {"schema_oldest", 'n'},
    {"migration", 's'}, {"migration_step", 's'}, {"migration_progress", 's'},
    {"migration_pid", 'n'},
    {"workspaces", 'n'}, {"live_keys", 'n'}, {"workers", 'n'},
    {"heartbeat_seconds", 'n'}, {"jobs_ready", 'n'}, {"jobs_due", 'n'},
    {"jobs_leased", 'n'}, {"oldest_job_seconds", 'n'},
    {"generate_jobs_due", 'n'}, {"sequence_jobs_due", 'n'},
    {"answer_jobs_due", 'n'}, {"webhook_jobs_due", 'n'},
    {"jobs_dead", 'n'}, {"jobs_held", 'n'}, {"held_at", 't'},
    {"held_reason", 's'}, {"workspaces_held", 'n'}, {"connections", 'n'},
    {"database_bytes", 'n'}, {"server_version", 's'}, {NULL, 0}
};
#define SCHEMA_COLUMNS 7
#define SCHEMA_VALUES "SELECT $1::integer, $2::integer, $3::integer," \
    " $4::text, $5::text, $6::text, $7::integer"

/* Print the columns about the schema, which are VALUES. */
static crm_error_t *print_schema(ctl_t *ctl, const char *const *values)
{
    ctl_column_t columns[SCHEMA_COLUMNS + 1] = {{NULL, 0}};
    PGresult *result;

    memcpy(columns, status_columns, SCHEMA_COLUMNS * sizeof(*columns));
    CRM_ERR(ctl_query(&result, ctl, SCHEMA_VALUES, SCHEMA_COLUMNS, values));
    ctl_print(ctl, result, columns, 1);
    return NULL;
}

/* What "status" shows of a database whose schema this crmapictl knows. */
static const char status_sql[] =
    "WITH s AS MATERIALIZED (SELECT count(*) AS n FROM crmapi.workspace),"
    " k AS MATERIALIZED (SELECT count(*) AS n FROM crmapi.live_key),"
    " h AS MATERIALIZED (SELECT count(*) AS n FROM crmapi.workspace_hold),"
    " l AS MATERIALIZED (SELECT count(*) AS n"
    "  FROM crmapi.job WHERE state = 'leased'),"
    " d AS MATERIALIZED (SELECT count(*) AS n"
    "  FROM crmapi.job WHERE state = 'dead'),"
    " w AS MATERIALIZED (SELECT count(*) FILTER (WHERE"
    "   heartbeat_at > now() - interval '1 minute')"
    "   AS alive, max(heartbeat_at) AS last FROM crmapi.worker),"
    " i AS MATERIALIZED (SELECT held_at, held_reason FROM crmapi.instance),"
    " j AS MATERIALIZED (SELECT count(*) AS ready,"
    "  count(*) FILTER (WHERE x.due AND NOT x.held) AS due,"
    "  min(x.run_at) FILTER (WHERE NOT x.held) AS first,"
    "  count(*) FILTER (WHERE x.due AND NOT x.held"
    "   AND x.lane = 'generate') AS generate,"
    "  count(*) FILTER (WHERE x.due AND NOT x.held"
    "   AND x.lane = 'sequence') AS sequence,"
    "  count(*) FILTER (WHERE x.due AND NOT x.held"
    "   AND x.lane = 'answer') AS answer,"
    "  count(*) FILTER (WHERE x.due AND NOT x.held"
    "   AND x.lane = 'webhook') AS webhook,"
    "  count(*) FILTER (WHERE x.due AND x.held) AS held"
    "  FROM (SELECT j.lane, j.run_at,"
    "   j.run_at <= now() AS due, h.workspace_id IS NOT NULL"
    "    OR i.held_at IS NOT NULL AS held"
    "   FROM crmapi.job j CROSS JOIN crmapi.instance i"
    "   LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = j.workspace_id"
    "   WHERE j.state = 'ready') x) "
    SCHEMA_VALUES ", s.n, k.n, w.alive,"
    " round(extract(epoch FROM now() - w.last)),"
    " j.ready, j.due, l.n, greatest(round("
    "  extract(epoch FROM now() - j.first)), 0),"
    " j.generate, j.sequence, j.answer, j.webhook, d.n, j.held, i.held_at,"
    " i.held_reason, h.n, (SELECT numbackends FROM pg_stat_database"
    "  WHERE datname = current_database()),"
    " pg_database_size(current_database()),"
    " current_setting('server_version') FROM s, k, h, l, d, w, i, j";

/* Print the columns about the schema, which are VALUES, and the figures of the
 * database, such as live workers and due jobs. Citus counts the rows of each
 * table on all servers at once. */
static crm_error_t *print_all(ctl_t *ctl, const char *const *values)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, status_sql, SCHEMA_COLUMNS, values));
    ctl_print(ctl, result, status_columns, 1);
    CRM_ERR(ctl_role_tell(ctl));
    return ctl_rights_tell(ctl);
}

/* If this program cannot use the schema, print only the columns about it. */
crm_error_t *ctl_status(ctl_t *ctl)
{
    const char *values[SCHEMA_COLUMNS] = {NULL};
    crm_schema_t schema;
    const char *fault;
    PGresult *result;

    CRM_ERR(crm_schema_read(&schema, ctl->conn, ctl->pool));
    fault = crm_schema_fault(&schema, "crmapictl", ctl->pool);
    if (!schema.number) {
        return ctl_fault(ctl, "%s", fault);
    }
    CRM_ERR(crm_schema_unfinished(&result, ctl->conn, ctl->pool));
    values[0] = apr_itoa(ctl->pool, schema.number);
    values[1] = apr_itoa(ctl->pool, CRM_SCHEMA_VERSION);
    values[2] = apr_itoa(ctl->pool, schema.oldest);
    for (int i = 3; PQntuples(result) && i < SCHEMA_COLUMNS; i++) {
        values[i] = crm_db_value(result, 0, i - 3);
    }
    if (!fault) {
        return print_all(ctl, values);
    }
    CRM_ERR(print_schema(ctl, values));
    return ctl_fault(ctl, "%s", fault);
}

crm_error_t *ctl_worker_list(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"id", 's'}, {"name", 's'}, {"host", 's'}, {"pid", 'n'},
        {"version", 's'}, {"threads", 'n'}, {"busy", 'n'},
        {"stopping", 's'}, {"leases", 'n'}, {"started_at", 't'},
        {"heartbeat_at", 't'}, {NULL, 0}
    };
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT w.id, w.name, w.host, w.pid,"
                      " w.version, w.threads, w.busy,"
                      " CASE WHEN w.stopping THEN 'yes' ELSE 'no' END,"
                      " coalesce(j.n, 0), w.started_at, w.heartbeat_at"
                      " FROM crmapi.worker w LEFT JOIN (SELECT j.leased_by,"
                      "  count(*) AS n FROM crmapi.job j"
                      "  WHERE j.state = 'leased' GROUP BY 1 OFFSET 0) j"
                      " ON j.leased_by = w.id"
                      " ORDER BY w.started_at, w.id", 0, NULL));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}
