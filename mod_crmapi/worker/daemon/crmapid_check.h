/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.h: whether settings and database can be used */
#ifndef CRMAPID_CHECK_H
#define CRMAPID_CHECK_H

#include "crmapid_config.h"

/* Check that CONFIG has all settings that the database, the selected relays and
 * the selected generator need. Errors: CRM_E_BAD_REQUEST, in POOL, names the
 * setting. */
crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool);

/* Check CONFIG's database, with a connection that is closed again, unless UNWANTED
 * returns nonzero meanwhile. Errors: those of crmd_conn_first(). */
crm_error_t *crmd_check_database(const crmd_config_t *config,
                                 int (*unwanted)(void *baton),
                                 apr_pool_t *scratch_pool);

#endif /* CRMAPID_CHECK_H */
