/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.c: applying the migrations in schema/ */
#include "crm_migrate.h"

#include <stdlib.h>
#include <string.h>

#include "apr_file_io.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_db.h"
#include "crm_key.h"

/* A migration file. */
typedef struct migration_t {
    int number;
    const char *name;           /* file name */
    const char *sql;
    char sha256[2 * CRM_KEY_HASH_LEN + 1];
} migration_t;

/* The key of the advisory lock: arbitrary, the same in all versions. */
#define LOCK "hashtextextended('crmapi.migration', 0)"

/* Advice for a database of an unreleased version, whose migrations may have
 * changed since. */
#define MAKE_ANEW "a database made by an unreleased version must be made anew" \
    " (docs/operations.md)"

static crm_error_t *fault(apr_pool_t *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Return an error for the operator with a message made from FORMAT. */
static crm_error_t *fault(apr_pool_t *pool, const char *format, ...)
{
    crm_error_t *error = crm_error_create(CRM_E_INTERNAL, NULL, pool);
    va_list args;

    va_start(args, format);
    error->message = error->log = apr_pvsprintf(pool, format, args);
    va_end(args);
    return error;
}

/* Return the number in NAME, NNNN-name.sql, or 0 if NAME has another form. */
static int number_of(const char *name)
{
    apr_size_t len = strlen(name);

    for (int i = 0; i < 4; i++) {
        if (!apr_isdigit(name[i])) {
            return 0;
        }
    }
    return name[4] == '-' && len > 9 && !strcmp(name + len - 4, ".sql")
           ? atoi(name) : 0;
}

static crm_error_t *read_file(migration_t *migration, const char *dir,
                              apr_pool_t *pool)
{
    const char *path = apr_pstrcat(pool, dir, "/", migration->name, NULL);
    unsigned char hash[CRM_KEY_HASH_LEN];
    apr_finfo_t info;
    apr_file_t *file;
    apr_status_t status;
    apr_size_t len;
    char *sql;

    status = apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT,
                           pool);
    if (!status) {
        status = apr_file_info_get(&info, APR_FINFO_SIZE, file);
    }
    if (status) {
        return fault(pool, "CRM2101: cannot read %s: %pm", path, &status);
    }
    len = (apr_size_t)info.size;
    sql = apr_palloc(pool, len + 1);
    status = apr_file_read_full(file, sql, len, &len);
    apr_file_close(file);
    if (status) {
        return fault(pool, "CRM2101: cannot read %s: %pm", path, &status);
    }
    sql[len] = '\0';
    migration->sql = sql;
    crm_key_hash(hash, sql, len);
    crm_key_hash_hex(migration->sha256, hash);
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    return ((const migration_t *)a)->number - ((const migration_t *)b)->number;
}

/* Set *MIGRATIONS_P to the migrations in DIR in order, an array of
 * migration_t. */
static crm_error_t *read_dir(apr_array_header_t **migrations_p,
                             const char *dir, apr_pool_t *pool)
{
    apr_array_header_t *migrations = apr_array_make(pool, 8,
                                                    sizeof(migration_t));
    apr_finfo_t entry;
    apr_dir_t *handle;
    apr_status_t status = apr_dir_open(&handle, dir, pool);

    if (status) {
        return fault(pool, "CRM2102: cannot read the folder %s: %pm", dir,
                     &status);
    }
    while (!apr_dir_read(&entry, APR_FINFO_NAME, handle)) {
        if (number_of(entry.name)) {
            migration_t *migration = apr_array_push(migrations);

            migration->number = number_of(entry.name);
            migration->name = apr_pstrdup(pool, entry.name);
        }
    }
    apr_dir_close(handle);
    qsort(migrations->elts, (size_t)migrations->nelts, sizeof(migration_t),
          by_number);
    for (int i = 0; i < migrations->nelts; i++) {
        migration_t *migration = &APR_ARRAY_IDX(migrations, i, migration_t);

        if (migration->number != i + 1) {
            return fault(pool, "CRM2103: %s: %04d comes next in %s",
                         migration->name, i + 1, dir);
        }
        CRM_ERR(read_file(migration, dir, pool));
    }
    *migrations_p = migrations;
    return migrations->nelts ? NULL
           : fault(pool, "CRM2104: no migrations in %s", dir);
}

/* Return an error unless ROW of RESULT, an applied migration, is MIGRATION. */
static crm_error_t *compare(const PGresult *result, int row,
                            const migration_t *migration, apr_pool_t *pool)
{
    if (strcmp(PQgetvalue(result, row, 1), migration->sha256)) {
        return fault(pool, "CRM2105: %s was changed after it had been "
                     "applied: use the release's files; " MAKE_ANEW,
                     migration->name);
    }
    return NULL;
}

/* Compare the applied migrations with MIGRATIONS. Set *COUNT_P to their
 * number. */
static crm_error_t *check_applied(int *count_p, crm_conn_t *conn,
                                  const apr_array_header_t *migrations,
                                  apr_pool_t *pool)
{
    static const crm_stmt_t stmt = {
        "SELECT number, sha256 FROM crmapi.migration ORDER BY number", 0, NULL
    };
    PGresult *result;

    CRM_ERR(crm_db_query(&result, conn, &stmt, pool));
    *count_p = PQntuples(result);
    if (*count_p > migrations->nelts) {
        return fault(pool, "CRM2106: the database has migration %d, newer "
                     "than the last file %04d: use the newer crmapictl; "
                     MAKE_ANEW, *count_p, migrations->nelts);
    }
    for (int i = 0; i < *count_p; i++) {
        CRM_ERR(compare(result, i, &APR_ARRAY_IDX(migrations, i, migration_t),
                        pool));
    }
    return NULL;
}

/* Apply and record MIGRATION in one transaction. */
static crm_error_t *apply(crm_conn_t *conn, const migration_t *migration,
                          const crm_log_t *log, apr_pool_t *pool)
{
    const char *values[] = {apr_itoa(pool, migration->number),
                            migration->name, migration->sha256};
    const crm_stmt_t record = {
        "INSERT INTO crmapi.migration (number, name, sha256)"
        " VALUES ($1::integer, $2::text, $3::text)", 3, values
    };
    crm_error_t *error = crm_db_exec(conn, "BEGIN", pool);
    PGresult *result;

    if (!error) {
        error = crm_db_exec(conn, migration->sql, pool);
    }
    if (!error) {
        error = crm_db_query(&result, conn, &record, pool);
    }
    if (!error) {
        error = crm_db_exec(conn, "COMMIT", pool);
    }
    if (error) {
        crm_db_rollback(conn);
        return fault(pool, "CRM2107: %s: %s", migration->name,
                     error->log ? error->log : error->message);
    }
    log->write(log->baton, CRM_LOG_NOTICE,
               apr_pstrcat(pool, "CRM2108: applied ", migration->name, NULL));
    return NULL;
}

static crm_error_t *apply_missing(int *applied_p, crm_conn_t *conn,
                                  const apr_array_header_t *migrations,
                                  const crm_log_t *log, apr_pool_t *pool)
{
    int count;

    CRM_ERR(crm_db_exec(conn, "CREATE SCHEMA IF NOT EXISTS crmapi;"
                        "CREATE TABLE IF NOT EXISTS crmapi.migration ("
                        " number integer PRIMARY KEY, name text NOT NULL,"
                        " sha256 text NOT NULL, applied_at timestamptz"
                        " NOT NULL DEFAULT now())", pool));
    CRM_ERR(check_applied(&count, conn, migrations, pool));
    for (int i = count; i < migrations->nelts; i++) {
        CRM_ERR(apply(conn, &APR_ARRAY_IDX(migrations, i, migration_t), log,
                      pool));
        ++*applied_p;
    }
    return NULL;
}

crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, const crm_log_t *log,
                               apr_pool_t *scratch_pool)
{
    apr_array_header_t *migrations;
    crm_error_t *error;

    *applied_p = 0;
    CRM_ERR(read_dir(&migrations, dir, scratch_pool));
    CRM_ERR(crm_db_exec(conn, "SELECT pg_advisory_lock(" LOCK ")",
                        scratch_pool));
    error = apply_missing(applied_p, conn, migrations, log, scratch_pool);
    crm_db_exec(conn, "SELECT pg_advisory_unlock(" LOCK ")", scratch_pool);
    return error;
}

crm_error_t *crm_migrate_version(int *version_p, crm_conn_t *conn,
                                 apr_pool_t *scratch_pool)
{
    static const crm_stmt_t exists = {
        "SELECT to_regclass('crmapi.migration') IS NOT NULL", 0, NULL
    };
    static const crm_stmt_t last = {
        "SELECT coalesce(max(number), 0) FROM crmapi.migration", 0, NULL
    };
    PGresult *result;

    *version_p = 0;
    CRM_ERR(crm_db_query(&result, conn, &exists, scratch_pool));
    if (*PQgetvalue(result, 0, 0) != 't') {
        return NULL;
    }
    CRM_ERR(crm_db_query(&result, conn, &last, scratch_pool));
    *version_p = atoi(PQgetvalue(result, 0, 0));
    return NULL;
}
