/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_batch.h: which servers' requests may share statements */
#ifndef MOD_CRMAPI_BATCH_H
#define MOD_CRMAPI_BATCH_H

#include "mod_crmapi.h"

/* Set the batchers of the servers from MAIN_SERVER on, allocated in PCHILD. */
void crmapi_batches_create(server_rec *main_server, apr_pool_t *pchild);

#endif /* MOD_CRMAPI_BATCH_H */
