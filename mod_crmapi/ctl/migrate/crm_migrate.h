/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.h: applying the migrations in schema/ */
#ifndef CRM_MIGRATE_H
#define CRM_MIGRATE_H

#include "crm_db_conn.h"
#include "crm_log.h"

/* Apply the migrations in the folder DIR that the database of CONN lacks, step
 * by step (crm_migration.h), from where an earlier run has stopped. A distributed
 * database gets the steps in DIR/citus/later of those that have a file there. In
 * the end crm_migrate_repeat() runs. Each step is recorded, and each migration is
 * logged to LOG. Set *APPLIED_P to the number of migrations that this run has
 * completed.
 * Runs wait for each other. A step that does not get its locks is retried for
 * PATIENCE, in microseconds. Errors, with a message for the operator: a file has
 * changed after it was applied, the database is newer than the files, a statement
 * fails, no lock, the session ends; those of crm_migration_read(). */
crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, apr_interval_time_t patience,
                               const crm_log_t *log, apr_pool_t *scratch_pool);

/* Run what is in DIR/repeat, such as the rights of roles; if the database is
 * DISTRIBUTED, DIR/citus/repeat before. Errors: as above. */
crm_error_t *crm_migrate_repeat(crm_conn_t *conn, const char *dir,
                                int distributed, apr_pool_t *scratch_pool);

/* Run all steps of the files in the folder DIR, without recording them. Errors:
 * as above. */
crm_error_t *crm_migrate_run(crm_conn_t *conn, const char *dir,
                             apr_pool_t *scratch_pool);

#endif /* CRM_MIGRATE_H */
