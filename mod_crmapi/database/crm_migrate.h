/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.h: applying the migrations in schema/ */
#ifndef CRM_MIGRATE_H
#define CRM_MIGRATE_H

#include "crm_db_conn.h"
#include "crm_log.h"

/* The number of the latest migration in schema/. */
#ifndef CRM_SCHEMA_VERSION
#define CRM_SCHEMA_VERSION 19
#endif

/* The key of the advisory lock of the session that migrates: arbitrary, the
 * same in all versions. */
#define CRM_MIGRATE_LOCK "hashtextextended('crmapi.migration', 0)"

/* Apply the migrations in the folder DIR that the database of CONN lacks, step
 * by step: see crm_migration.h. What an earlier run has left undone is
 * continued. Each step is recorded and each migration logged to LOG. Set
 * *APPLIED_P to the number of migrations that are complete now and were not
 * before. Only one run at a time works, others wait for it. A step that does
 * not get its locks is tried for PATIENCE.
 * Errors, with a message: a changed file that was applied before, a database
 * newer than the files, a statement that fails, no lock; those of
 * crm_migration_read(). */
crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, apr_interval_time_t patience,
                               const crm_log_t *log, apr_pool_t *scratch_pool);

#endif /* CRM_MIGRATE_H */
