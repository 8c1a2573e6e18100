/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_handler.h: between httpd's request_rec and the pipeline */
#ifndef MOD_CRMAPI_HANDLER_H
#define MOD_CRMAPI_HANDLER_H

#include "mod_crmapi_request.h"
#include "mod_crmapi_wait.h"

/* The handler hook: serve R if it was claimed, otherwise decline. */
int crmapi_handler(request_rec *r);

/* Serve REQUEST again, which was suspended, and respond unless it waits on: see
 * crmapi_waits_create(). */
crmapi_wait_t crmapi_resume(crmapi_request_t *request);

/* The log_transaction hook, after the response of R was sent: log and count it,
 * and record the key's last use if a connection is free. */
int crmapi_log_transaction(request_rec *r);

/* Set the headers common to all responses (contract 5.4) and those of REQUEST's
 * response, for a body of LEN bytes. */
void crmapi_set_headers(crmapi_request_t *request, apr_off_t len);

/* Send the response of REQUEST. With FLUSH, nothing of it stays in a buffer.
 * Return OK or AP_FILTER_ERROR. */
int crmapi_send_answer(crmapi_request_t *request, int flush);

/* A crm_service_t.aborted(). */
int crmapi_aborted(void *baton);

#endif /* MOD_CRMAPI_HANDLER_H */
