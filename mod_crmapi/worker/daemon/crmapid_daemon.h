/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_daemon.h: threads that work, wake each other, and say they live */
#ifndef CRMAPID_DAEMON_H
#define CRMAPID_DAEMON_H

#include "crmapid.h"

/* A daemon at work. */
typedef struct crmd_daemon_t crmd_daemon_t;

/* Check that the database of CONFIG can be used: it answers, and has this
 * version's schema. Errors: CRM_E_UNAVAILABLE (another time, perhaps),
 * CRM_E_CONFLICT (the schema is another version's). */
crm_error_t *crmd_daemon_check(const crmd_config_t *config,
                               apr_pool_t *scratch_pool);

/* Start the threads of a daemon with CONFIG, which must live as long as it.
 * The memory is POOL's. */
crm_error_t *crmd_daemon_start(crmd_daemon_t **daemon_p,
                               const crmd_config_t *config, apr_pool_t *pool);

/* Let DAEMON finish what it does, take nothing new, and end its threads. */
void crmd_daemon_stop(crmd_daemon_t *daemon);

/* Do all that is due at MOMENT (NULL: now), in this thread, and upkeep. */
crm_error_t *crmd_daemon_once(const crmd_config_t *config, const char *moment,
                              apr_pool_t *pool);

/* crmapid_upkeep.c: do the tasks of upkeep that are due at MOMENT (NULL:
 * now), unless another daemon does. */
crm_error_t *crmd_upkeep_run(crm_conn_t *conn, const crmd_config_t *config,
                             const char *moment, apr_pool_t *scratch_pool);

#endif /* CRMAPID_DAEMON_H */
