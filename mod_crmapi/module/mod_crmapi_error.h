/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_error.h: httpd's own errors under /api/v1 as JSON (contract
 * 5.5) */
#ifndef MOD_CRMAPI_ERROR_H
#define MOD_CRMAPI_ERROR_H

#include "mod_crmapi.h"

/* Register the hooks and the filter. */
void crmapi_error_register(void);

#endif /* MOD_CRMAPI_ERROR_H */
