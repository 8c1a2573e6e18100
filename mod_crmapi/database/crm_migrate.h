/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate.h: bringing a database to the schema that this version expects */
#ifndef CRM_MIGRATE_H
#define CRM_MIGRATE_H

#include "crm_db.h"
#include "crm_log.h"

/* The number of the last migration in schema/. */
#define CRM_SCHEMA_VERSION 10

/* Apply the migrations in the folder DIR, files NNNN-name.sql numbered from
 * 0001 without a gap, that the database of CONN lacks, each in a transaction
 * and recorded with the SHA-256 of its file; *APPLIED_P = how many. An advisory
 * lock keeps others out meanwhile. Each is told to LOG.
 * Errors, with a message: a file that was changed after it had been applied, a
 * gap, a number twice, a database that is newer than the files; what the
 * database says of a statement. */
crm_error_t *crm_migrate_apply(int *applied_p, crm_conn_t *conn,
                               const char *dir, const crm_log_t *log,
                               apr_pool_t *scratch_pool);

/* Set *VERSION_P to the number of the last migration applied to the database
 * of CONN, 0 if there is none. */
crm_error_t *crm_migrate_version(int *version_p, crm_conn_t *conn,
                                 apr_pool_t *scratch_pool);

#endif /* CRM_MIGRATE_H */
