/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_keepalive.h: a short wait for the next request of a connection */
#ifndef MOD_CRMAPI_KEEPALIVE_H
#define MOD_CRMAPI_KEEPALIVE_H

#include "mod_crmapi.h"

/* Register the filter. */
void crmapi_keepalive_register(void);

/* Let the thread that serves R wait up to WAIT microseconds for the next
 * request of the connection before an asynchronous MPM gets the connection
 * back. */
void crmapi_keepalive(request_rec *r, apr_interval_time_t wait);

#endif /* MOD_CRMAPI_KEEPALIVE_H */
