/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_stats.h: what this process has done since it started, in atomic
 * counters */
#ifndef CRMAPID_STATS_H
#define CRMAPID_STATS_H

#include "crm_metrics.h"

/* The numbers of lanes (crmapid_poll.h) and of relays (crmapid_relay.h). */
#define CRMD_STATS_LANES 4
#define CRMD_STATS_RELAYS 4

/* How an attempt to send a step ended. */
enum {
    CRMD_STEP_SENT, CRMD_STEP_RETRY, CRMD_STEP_FAILED, CRMD_STEP_UNKNOWN,
    CRMD_STEP_RESULTS
};
extern const char *const crmd_step_results[CRMD_STEP_RESULTS];

/* How an attempt to deliver a webhook ended: the outcomes of
 * crmapi.webhook_attempted(). */
#define CRMD_WEBHOOK_RESULTS 4
extern const char *const crmd_webhook_results[CRMD_WEBHOOK_RESULTS];

/* Jobs of one lane. */
typedef struct crmd_lane_stats_t {
    crm_histogram_t times;      /* durations of attempts */
    apr_uint64_t failed;        /* attempts that ended with an error */
    apr_uint64_t dead;          /* jobs that were given up */
    apr_uint64_t lost;          /* leases that were lost */
    apr_uint64_t busy;          /* a gauge: threads that run a job */
} crmd_lane_stats_t;

/* The counts of this process. All members are atomic. Only gauges decrease. */
typedef struct crmd_stats_t {
    crmd_lane_stats_t lanes[CRMD_STATS_LANES];
    crm_histogram_t relays[CRMD_STATS_RELAYS]; /* durations of handing over a
                                                  message */
    apr_uint64_t steps[CRMD_STATS_RELAYS][CRMD_STEP_RESULTS];
    crm_histogram_t webhooks;   /* durations of requests */
    apr_uint64_t deliveries[CRMD_WEBHOOK_RESULTS];
    apr_uint64_t released;      /* jobs of daemons without a heartbeat */
    apr_uint64_t connections;   /* a gauge: open ones to the database */
    apr_uint64_t connects;      /* connections that were opened */
    apr_uint64_t db_errors;     /* statements and connections that failed */
    apr_uint64_t log_lost;      /* lines of the log that could not be written */
} crmd_stats_t;

extern crmd_stats_t crmd_stats;

/* Subtract 1 from the gauge GAUGE. */
static inline void crmd_stats_less(apr_uint64_t *gauge)
{
    __atomic_fetch_sub(gauge, 1, __ATOMIC_RELAXED);
}

/* Count a delivery that ended with OUTCOME, one of crmd_webhook_results. */
void crmd_stats_delivery(const char *outcome);

#endif /* CRMAPID_STATS_H */
