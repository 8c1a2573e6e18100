/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.c: applying the migrations in schema/ */
#include "crm_migrate.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_db.h"
#include "crm_migrate_step.h"
#include "crm_migration.h"
#include "crm_schema.h"

/* Advice for a database of an unreleased version, whose migrations may have
 * changed since. */
#define CREATE_AGAIN "a database of an unreleased version must be created" \
    " again (docs/operations.md)"

/* Pause between attempts to get the advisory lock. */
#define LOCK_PAUSE apr_time_from_msec(200)

/* Settings of the session. Only a step limits its own locks and time: a role's or
 * a database's default is for others. Statements of batches are planned for their
 * values. NOTICE_END: the server ends a statement soon after its client was
 * killed. */
#define SESSION \
    "SET lock_timeout = 0; SET statement_timeout = 0;" \
    "SET idle_in_transaction_session_timeout = 0;" \
    "SET plan_cache_mode = force_custom_plan;" \
    "SET client_min_messages = warning"
#define NOTICE_END "SET client_connection_check_interval = '1s'"

/* In a distributed database Citus runs the DDL of a transaction on one connection
 * for each server, so that a function can be created after a column. */
#define DISTRIBUTED "SET citus.multi_shard_modify_mode = 'sequential'"

/* Create the schema, which needs a right on the database, and the table, which
 * crm_schema.c reads, or add the columns that an older version of the program
 * did not know. A null min_module stands for the migration's own number. The
 * columns from steps on are the progress. */
#define PREPARE \
    "DO $$ BEGIN IF to_regnamespace('crmapi') IS NULL THEN" \
    " CREATE SCHEMA crmapi; END IF; END $$;" \
    "CREATE TABLE IF NOT EXISTS crmapi.migration (" \
    " number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL," \
    " applied_at timestamptz NOT NULL DEFAULT now());" \
    "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid =" \
    " 'crmapi.migration'::regclass AND attname = 'min_module') THEN" \
    " ALTER TABLE crmapi.migration ADD COLUMN min_module integer," \
    " ADD COLUMN steps integer NOT NULL DEFAULT 1," \
    " ADD COLUMN steps_done integer NOT NULL DEFAULT 1," \
    " ADD COLUMN step text, ADD COLUMN rows_done bigint," \
    " ADD COLUMN rows_expected bigint, ADD COLUMN position text[];" \
    "END IF; END $$"

/* The programs compare the schema's version with their own. The first migration
 * makes the roles. */
#define PUBLISH \
    "DO $$ DECLARE role name; BEGIN" \
    " FOR role IN SELECT rolname FROM pg_roles" \
    "  WHERE rolname IN ('crmapi_api', 'crmapi_worker') AND NOT" \
    "  has_column_privilege(oid, 'crmapi.migration', 'min_module', 'SELECT')" \
    " LOOP EXECUTE format('GRANT SELECT (number, name, min_module, steps," \
    "  steps_done, step, rows_done, rows_expected) ON crmapi.migration" \
    "  TO %I', role); END LOOP; END $$"

/* A run of crm_migrate_apply(). */
typedef struct run_t {
    crm_conn_t *conn;
    const apr_array_header_t *migrations;
    const crm_log_t *log;
    apr_pool_t *pool;
} run_t;

/* Log once that another run has the advisory lock. */
static void tell_wait(const run_t *run)
{
    static const crm_stmt_t holder = {
        "SELECT string_agg(pid::text, ', ') FROM pg_locks"
        " WHERE locktype = 'advisory' AND granted AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND (classid::bigint << 32) | objid::bigint = " CRM_MIGRATE_LOCK,
        0, NULL
    };
    PGresult *result;

    if (!crm_db_query(&result, run->conn, &holder, run->pool)) {
        run->log->write(run->log->baton, CRM_LOG_NOTICE,
                        apr_pstrcat(run->pool, "CRM2110: waiting for another"
                                    " crmapictl migrate (backend ",
                                    PQgetvalue(result, 0, 0), ")", NULL));
    }
}

/* Take the advisory lock, and keep the session that has it. Do not wait for the
 * lock in the server: such a statement has a snapshot, and a CREATE INDEX
 * CONCURRENTLY of the other run would wait for the end of it. */
static crm_error_t *take_lock(run_t *run)
{
    static const crm_stmt_t try_lock = {
        "SELECT pg_try_advisory_lock(" CRM_MIGRATE_LOCK ")", 0, NULL
    };
    PGresult *result;
    int told = 0;

    for (;;) {
        CRM_ERR(crm_db_query(&result, run->conn, &try_lock, run->pool));
        if (*PQgetvalue(result, 0, 0) == 't') {
            crm_conn_keep(run->conn, 1);
            return NULL;
        }
        crm_db_clear(result, run->pool);
        if (!told++) {
            tell_wait(run);
        }
        apr_sleep(LOCK_PAUSE);
    }
}

/* Set *DONE_P to the number of applied steps of MIGRATION, from ROW of RESULT.
 * Return an error if its file has changed since. */
static crm_error_t *compare(int *done_p, const PGresult *result, int row,
                            const crm_migration_t *migration, apr_pool_t *pool)
{
    *done_p = atoi(PQgetvalue(result, row, 2));
    if (*done_p && strcmp(PQgetvalue(result, row, 1), migration->sha256)) {
        return crm_migration_fault(pool, "CRM2105: %s was changed after it had"
                                   " been applied: use the release's files; "
                                   CREATE_AGAIN, migration->name);
    }
    return NULL;
}

/* Compare the applied migrations with the files. Set *MIGRATION_P to the first
 * one that is not complete, NULL if there is none, and *DONE_P to the number of
 * its applied steps. */
static crm_error_t *find_next(const crm_migration_t **migration_p, int *done_p,
                              const run_t *run)
{
    static const crm_stmt_t stmt = {
        "SELECT number, sha256, steps_done FROM crmapi.migration"
        " WHERE steps_done > 0 ORDER BY number", 0, NULL
    };
    PGresult *result;
    int count;

    *migration_p = NULL;
    CRM_ERR(crm_db_query(&result, run->conn, &stmt, run->pool));
    count = PQntuples(result);
    if (count > run->migrations->nelts) {
        return crm_migration_fault(run->pool, "CRM2106: the database has"
                                   " migration %d, newer than the last file"
                                   " %04d: use the newer crmapictl; "
                                   CREATE_AGAIN, count,
                                   run->migrations->nelts);
    }
    for (int i = 0; i < run->migrations->nelts; i++) {
        const crm_migration_t *migration = &APR_ARRAY_IDX(run->migrations, i,
                                                          crm_migration_t);
        int done = 0;

        if (i < count) {
            CRM_ERR(compare(&done, result, i, migration, run->pool));
        }
        if (!*migration_p && done < migration->steps->nelts) {
            *migration_p = migration;
            *done_p = done;
        }
    }
    return NULL;
}

/* Run the next step. Set *MIGRATION_P to its migration, NULL if no step was
 * left, and *LAST_P to whether the migration is complete now. */
static crm_error_t *run_next(const crm_migration_t **migration_p, int *last_p,
                             const run_t *run, apr_interval_time_t patience)
{
    crm_migrate_step_t step = {.conn = run->conn, .log = run->log,
                               .patience = patience, .pool = run->pool};

    CRM_ERR(find_next(migration_p, &step.done, run));
    if (!*migration_p) {
        return NULL;
    }
    step.migration = *migration_p;
    CRM_ERR(crm_migrate_step(&step));
    *last_p = step.done + 1 == (*migration_p)->steps->nelts;
    return NULL;
}

/* Prepare the table and run all missing steps. */
static crm_error_t *apply_missing(int *applied_p, run_t *run,
                                  apr_interval_time_t patience)
{
    const crm_migration_t *migration;
    crm_error_t *error;
    apr_pool_t *pool = run->pool;
    int last;

    CRM_ERR(crm_db_exec(run->conn, PREPARE, pool));
    CRM_ERR(crm_db_exec(run->conn, PUBLISH, pool));
    apr_pool_create(&run->pool, pool);
    do {
        apr_pool_clear(run->pool);
        last = 0;
        error = run_next(&migration, &last, run, patience);
        if (!error && last) {
            ++*applied_p;
            run->log->write(run->log->baton, CRM_LOG_NOTICE,
                            apr_pstrcat(run->pool, "CRM2108: applied ",
                                        migration->name, NULL));
        }
    } while (!error && migration);
    run->pool = pool;
    return error ? error : crm_db_exec(run->conn, PUBLISH, pool);
}

crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, apr_interval_time_t patience,
                               const crm_log_t *log, apr_pool_t *scratch_pool)
{
    apr_array_header_t *migrations;
    run_t run = {conn, NULL, log, scratch_pool};
    crm_schema_t schema;
    crm_error_t *error;

    *applied_p = 0;
    CRM_ERR(crm_migration_read(&migrations, dir, scratch_pool));
    CRM_ERR(crm_schema_read(&schema, conn, scratch_pool));
    run.migrations = migrations;
    CRM_ERR(crm_db_exec(conn, SESSION, scratch_pool));
    if (schema.distributed) {
        CRM_ERR(crm_migration_replace(migrations,
                                      apr_pstrcat(scratch_pool, dir,
                                                  "/citus/later", NULL),
                                      scratch_pool));
        CRM_ERR(crm_db_exec(conn, DISTRIBUTED, scratch_pool));
    }
    /* Fails on systems that cannot check a socket; that does no harm. */
    crm_db_exec(conn, NOTICE_END, scratch_pool);
    CRM_ERR(take_lock(&run));
    error = apply_missing(applied_p, &run, patience);
    if (!error) {
        error = crm_migrate_repeat(conn, dir, schema.distributed,
                                   scratch_pool);
    }
    crm_db_exec(conn, "SELECT pg_advisory_unlock(" CRM_MIGRATE_LOCK ")",
                scratch_pool);
    crm_conn_keep(conn, 0);
    return error;
}

crm_error_t *crm_migrate_repeat(crm_conn_t *conn, const char *dir,
                                int distributed, apr_pool_t *scratch_pool)
{
    if (distributed) {
        CRM_ERR(crm_migrate_run(conn, apr_pstrcat(scratch_pool, dir,
                                                  "/citus/repeat", NULL),
                                scratch_pool));
    }
    return crm_migrate_run(conn, apr_pstrcat(scratch_pool, dir, "/repeat",
                                             NULL), scratch_pool);
}

crm_error_t *crm_migrate_run(crm_conn_t *conn, const char *dir,
                             apr_pool_t *scratch_pool)
{
    apr_array_header_t *files;

    CRM_ERR(crm_migration_read(&files, dir, scratch_pool));
    for (int i = 0; i < files->nelts; i++) {
        const apr_array_header_t *steps = APR_ARRAY_IDX(files, i,
                                                        crm_migration_t).steps;

        for (int j = 0; j < steps->nelts; j++) {
            CRM_ERR(crm_db_exec(conn, APR_ARRAY_IDX(steps, j,
                                crm_migration_step_t).sql, scratch_pool));
        }
    }
    return NULL;
}
