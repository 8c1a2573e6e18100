/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_scrape.h: the metrics of the worker (contract 15.3) */
#ifndef CRMAPID_SCRAPE_H
#define CRMAPID_SCRAPE_H

#include "crm_metrics.h"

#include "crmapid_config.h"
#include "crmapid_watch.h"

/* Write all metrics to METRICS: the counters of this process, its settings in
 * CONFIG, and what WATCH has counted. The labels are in POOL. */
void crmd_scrape(crm_metrics_t *metrics, const crmd_config_t *config,
                 crmd_watch_t *watch, apr_pool_t *pool);

#endif /* CRMAPID_SCRAPE_H */
