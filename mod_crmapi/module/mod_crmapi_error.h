/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_error.h: httpd's own errors under /api/v1 as JSON (contract
 * 5.5) */
#ifndef MOD_CRMAPI_ERROR_H
#define MOD_CRMAPI_ERROR_H

#include "mod_crmapi.h"

/* Register the hooks and the filter. */
void crmapi_error_register(void);

/* Disable (ON 1) or restore (ON 0) the site's ErrorDocuments for R, whose
 * errors are JSON. */
void crmapi_error_shield(request_rec *r, int on);

#endif /* MOD_CRMAPI_ERROR_H */
