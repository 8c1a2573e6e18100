/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_conn.h: connections of the worker's threads */
#ifndef CRMAPID_CONN_H
#define CRMAPID_CONN_H

#include "crm_db_conn.h"

#include "crmapid_config.h"

/* If *CONN_P is NULL, set it to a connection to CONFIG's database, in
 * CONN_POOL, whose statements have TIMEOUT. If that fails, it stays NULL and
 * CONN_POOL is cleared. A new connection begins with crmd_mark_check(). It is given up,
 * and its statements are cancelled (crm_conn_watch()), two seconds after the daemon
 * began to end. Errors, in SCRATCH_POOL: those of crm_conn_open() and of that. */
crm_error_t *crmd_conn_open(crm_conn_t **conn_p, const crmd_config_t *config,
                            apr_interval_time_t timeout, apr_pool_t *conn_pool,
                            apr_pool_t *scratch_pool);

/* The same for the first connection of a process, which begins with a look at
 * the schema. It is given up when UNWANTED (NULL: never) returns nonzero. Errors name
 * the database: those of crmd_conn_open(), and
 * CRM_E_CONFLICT if the schema is another version's. */
crm_error_t *crmd_conn_first(crm_conn_t **conn_p, const crmd_config_t *config,
                             apr_interval_time_t timeout,
                             int (*unwanted)(void *baton), apr_pool_t *conn_pool,
                             apr_pool_t *scratch_pool);

/* Return an error if this program can no longer use the version of the schema of
 * CONN's database. Errors, in SCRATCH_POOL: CRM_E_CONFLICT then, and those of
 * crm_db_query(). */
crm_error_t *crmd_conn_check(crm_conn_t *conn, apr_pool_t *scratch_pool);

/* Return which database CONFIG names, and who uses it, for the end of a log line:
 * " (host=... user=...)", in RESULT_POOL. */
const char *crmd_conn_label(const crmd_config_t *config,
                            apr_pool_t *result_pool);

#endif /* CRMAPID_CONN_H */
