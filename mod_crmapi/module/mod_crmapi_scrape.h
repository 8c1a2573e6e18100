/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_scrape.h: the handler crmapi-metrics */
#ifndef MOD_CRMAPI_SCRAPE_H
#define MOD_CRMAPI_SCRAPE_H

#include "mod_crmapi.h"

/* The handler "crmapi-metrics" (contract 15.1). */
int crmapi_metrics_handler(request_rec *r);

#endif /* MOD_CRMAPI_SCRAPE_H */
