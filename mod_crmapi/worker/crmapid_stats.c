/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_stats.c: what this process has done since it started, in atomic
 * counters */
#include "crmapid_stats.h"

#include <string.h>

const char *const crmd_step_results[CRMD_STEP_RESULTS] = {
    "sent", "retry", "failed", "unknown"
};

const char *const crmd_webhook_results[CRMD_WEBHOOK_RESULTS] = {
    "delivered", "retry", "failed", "gone"
};

crmd_stats_t crmd_stats;

void crmd_stats_delivery(const char *outcome)
{
    for (int i = 0; i < CRMD_WEBHOOK_RESULTS; i++) {
        if (!strcmp(crmd_webhook_results[i], outcome)) {
            crm_metrics_add(&crmd_stats.deliveries[i], 1);
        }
    }
}
