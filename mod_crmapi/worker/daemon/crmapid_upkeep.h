/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_upkeep.h: periodic tasks of the database */
#ifndef CRMAPID_UPKEEP_H
#define CRMAPID_UPKEEP_H

#include "apr_pools.h"

#include "crm_db_conn.h"
#include "crm_error.h"

#include "crmapid_config.h"

/* Run the tasks that are due at MOMENT (NULL: now) and that no other daemon
 * runs. If CONN is watched (crm_conn_watch()), the tasks end when they are
 * unwanted. Errors: the database is unavailable; CRM_E_REQUEST_TIMEOUT if a
 * statement was cancelled. Those of a task are logged and recorded. */
crm_error_t *crmd_upkeep_run(crm_conn_t *conn, const crmd_config_t *config,
                             const char *moment, apr_pool_t *scratch_pool);

#endif /* CRMAPID_UPKEEP_H */
