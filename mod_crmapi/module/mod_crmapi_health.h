/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_health.h: the handler crmapi-health */
#ifndef MOD_CRMAPI_HEALTH_H
#define MOD_CRMAPI_HEALTH_H

#include "mod_crmapi.h"

/* The handler "crmapi-health" (contract 15.2). */
int crmapi_health_handler(request_rec *r);

#endif /* MOD_CRMAPI_HEALTH_H */
