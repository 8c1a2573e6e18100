/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_status.h: the HTTP server for status_listen: /live, /ready and
 * /metrics (contract 15.3) */
#ifndef CRMAPID_STATUS_H
#define CRMAPID_STATUS_H

#include "apr_pools.h"

#include "crm_error.h"

#include "crmapid_config.h"

/* A running server. */
typedef struct crmd_status_t crmd_status_t;

/* Serve /live, /ready and /metrics at CONFIG's status_listen, and set
 * *STATUS_P, in POOL; NULL: it is not set. Errors: CRM_E_CONFLICT names the
 * setting. */
crm_error_t *crmd_status_start(crmd_status_t **status_p,
                               const crmd_config_t *config, apr_pool_t *pool);

/* From now on /ready of STATUS (may be NULL) answers that the daemon is
 * stopping. */
void crmd_status_stopping(crmd_status_t *status);

/* End the server. STATUS may be NULL. */
void crmd_status_stop(crmd_status_t *status);

#endif /* CRMAPID_STATUS_H */
