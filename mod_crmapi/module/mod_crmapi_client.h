/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_client.h: a response that another thread sends */
#ifndef MOD_CRMAPI_CLIENT_H
#define MOD_CRMAPI_CLIENT_H

#include "mod_crmapi_request.h"

/* Learn which output filters there are. Called once in each process, before its
 * threads start. */
void crmapi_client_init(void);

/* Return how many threads of this process may wait for their client while
 * another thread answers for them. */
int crmapi_clients_max(void);

/* The implementations of crm_service_t's client and send. */
int crmapi_client(void *baton);
crm_answered_t crmapi_send(void *baton);

#endif /* MOD_CRMAPI_CLIENT_H */
