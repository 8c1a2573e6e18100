/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.h: applying the migrations in schema/ */
#ifndef CRM_MIGRATE_H
#define CRM_MIGRATE_H

#include "crm_db_conn.h"
#include "crm_log.h"

/* The number of the latest migration in schema/. */
#define CRM_SCHEMA_VERSION 11

/* Apply the migrations in the folder DIR that the database of CONN lacks: files
 * NNNN-name.sql, numbered from 0001 without gaps. Each is applied in a
 * transaction of its own, recorded with the SHA-256 of its file, and logged to
 * LOG. Set *APPLIED_P to their number. An advisory lock prevents concurrent
 * runs.
 * Errors, with a message: a changed file that was applied before, a gap, a
 * duplicate number, a database newer than the files, a statement that fails. */
crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, const crm_log_t *log,
                               apr_pool_t *scratch_pool);

/* Set *VERSION_P to the number of the latest migration applied to the database
 * of CONN, or 0. */
crm_error_t *crm_migrate_version(int *version_p, crm_conn_t *conn,
                                 apr_pool_t *scratch_pool);

#endif /* CRM_MIGRATE_H */
