/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_wait.h: requests that wait for something to happen (contract
 * 19.4) */
#ifndef MOD_CRMAPI_WAIT_H
#define MOD_CRMAPI_WAIT_H

#include "mod_crmapi_request.h"

/* What becomes of a request. */
typedef enum crmapi_wait_t {
    CRMAPI_WAIT_OVER,           /* respond now: it may not wait, its client has
                                   gone, or the process is stopping */
    CRMAPI_WAIT_AGAIN,          /* serve it again */
    CRMAPI_WAIT_SUSPENDED       /* this thread is done with it: the RESUME of
                                   crmapi_waits_create() is called later, by any
                                   thread */
} crmapi_wait_t;

/* Let this process have requests that wait. RESUME is called for each that was
 * suspended, when it must be served again. Its result is what to do with the
 * connection: CRMAPI_WAIT_SUSPENDED if the request waits again, otherwise the
 * request is over, and the connection is closed. */
apr_status_t crmapi_waits_create(crmapi_wait_t (*resume)(crmapi_request_t *),
                                 apr_pool_t *pchild);

/* A crm_service_t.watch() and threads(). */
int crmapi_watch(const char *workspace_id, const char *visitor, void *baton);
int crmapi_wait_threads(int most, void *baton);

/* Let REQUEST, whose response waits, wait. */
crmapi_wait_t crmapi_wait(crmapi_request_t *request);

/* End what crmapi_watch() began for REQUEST. */
void crmapi_wait_end(crmapi_request_t *request);

/* The hook suspend_connection. */
void crmapi_suspended(conn_rec *c, request_rec *r);

/* Let all requests of this process that wait respond, and no other wait. */
void crmapi_waits_stop(void);

#endif /* MOD_CRMAPI_WAIT_H */
