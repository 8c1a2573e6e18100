/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_usage.h: requests of workspaces, for crmapictl usage (contract 14.7) */
#ifndef MOD_CRMAPI_USAGE_H
#define MOD_CRMAPI_USAGE_H

#include "crm_usage.h"

#include "mod_crmapi_request.h"

/* Count in USAGE from now on, and write it every EVERY microseconds. Called by the
 * parent for a configuration. */
void crmapi_usage_init(crm_usage_t *usage, apr_interval_time_t every);

/* Count REQUEST, which was answered with STATUS, for its workspace, if that is
 * known. */
void crmapi_usage_count(const crmapi_request_t *request, int status);

/* Let a thread of this process write what all have counted, whenever it is due and
 * no other process does, and once more before POOL is destroyed. Messages are logged
 * for MAIN_SERVER. */
void crmapi_usage_open(server_rec *main_server, apr_pool_t *pool);

#endif /* MOD_CRMAPI_USAGE_H */
