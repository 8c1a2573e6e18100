/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.h: whether settings and database can be used */
#ifndef CRMAPID_CHECK_H
#define CRMAPID_CHECK_H

#include "crm_db_conn.h"

#include "crmapid_config.h"

/* Check that CONFIG has all settings that the database, the selected relays and
 * the selected generator need. Errors: CRM_E_BAD_REQUEST, in POOL, names the
 * setting. */
crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool);

/* As crmd_conn_first(): set *CONN_P, which must be NULL, to the first connection
 * to CONFIG's database. The database is held if it was restored
 * (crmd_mark_check()). Errors name the database: CRM_E_UNAVAILABLE (may be
 * temporary), CRM_E_CONFLICT (another schema version), CRM_E_BAD_REQUEST
 * (run_dir cannot be used). */
crm_error_t *crmd_check_conn(crm_conn_t **conn_p, const crmd_config_t *config,
                             apr_interval_time_t timeout, apr_pool_t *conn_pool,
                             apr_pool_t *scratch_pool);

/* The same with a connection that is closed again. */
crm_error_t *crmd_check_database(const crmd_config_t *config,
                                 apr_pool_t *scratch_pool);

#endif /* CRMAPID_CHECK_H */
