/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_body.h: reading a request's body within limits (contract 5.3) */
#ifndef MOD_CRMAPI_BODY_H
#define MOD_CRMAPI_BODY_H

#include "crm_error.h"

#include "mod_crmapi_request.h"

/* Register the filter that catches httpd's error responses. */
void crmapi_body_register(void);

/* The implementation of crm_service_t's read_body: read the body of the request
 * BATON, at most MAX bytes (0: only the server's limits apply). */
crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool);

/* The implementation of crm_service_t's decodes. */
int crmapi_decodes(void *baton);

/* If the unread rest of REQUEST's body is long, make httpd close the connection
 * after the response. Return whether a short rest must still be read. */
int crmapi_spare_body(const crmapi_request_t *request);

#endif /* MOD_CRMAPI_BODY_H */
