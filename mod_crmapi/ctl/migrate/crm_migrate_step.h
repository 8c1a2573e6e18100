/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate_step.h: running a step of a migration */
#ifndef CRM_MIGRATE_STEP_H
#define CRM_MIGRATE_STEP_H

#include "crm_db_conn.h"
#include "crm_log.h"
#include "crm_migration.h"

/* A step to be run. */
typedef struct crm_migrate_step_t {
    crm_conn_t *conn;           /* its session is kept: crm_conn_keep() */
    const crm_log_t *log;
    apr_interval_time_t patience;       /* see crm_migrate_apply() */
    const crm_migration_t *migration;
    int done;                   /* number of applied steps */
    apr_pool_t *pool;           /* scratch */
} crm_migrate_step_t;

/* Run the next step of RUN's migration, from where an earlier run has stopped,
 * and record it. Errors: those of the statement, no lock, the session has
 * ended. */
crm_error_t *crm_migrate_step(const crm_migrate_step_t *run);

#endif /* CRM_MIGRATE_STEP_H */
