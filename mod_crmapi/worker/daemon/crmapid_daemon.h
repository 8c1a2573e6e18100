/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_daemon.h: starting and stopping the daemon's threads, and upkeep */
#ifndef CRMAPID_DAEMON_H
#define CRMAPID_DAEMON_H

#include "apr_pools.h"

#include "crm_error.h"

#include "crmapid_config.h"

/* A running daemon. */
typedef struct crmd_daemon_t crmd_daemon_t;

/* Start the threads of a daemon with CONFIG, which must live until
 * crmd_daemon_stop(), and set *DAEMON_P, in POOL. Errors: the LMTP server or a
 * thread cannot be started; then none runs. */
crm_error_t *crmd_daemon_start(crmd_daemon_t **daemon_p,
                               const crmd_config_t *config, apr_pool_t *pool);

/* Let DAEMON finish its current jobs, claim no new ones, and end its
 * threads. */
void crmd_daemon_stop(crmd_daemon_t *daemon);

/* Run all jobs that are due at MOMENT (NULL: now), and upkeep, in this thread.
 * Errors: those of the database; run_dir cannot be used. */
crm_error_t *crmd_daemon_once(const crmd_config_t *config, const char *moment,
                              apr_pool_t *pool);

#endif /* CRMAPID_DAEMON_H */
