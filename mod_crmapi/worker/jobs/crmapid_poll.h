/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_poll.h: which lanes have due jobs, by polling and by NOTIFY */
#ifndef CRMAPID_POLL_H
#define CRMAPID_POLL_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_db_conn.h"
#include "crm_error.h"

#include "crmapid_config.h"

/* A lane is the word before the dot of a job's kind. Each has its own
 * threads: a person's answer waits for no steps that are due, and these for no
 * generator. A lane comes before those that have jobs because of its own. */
enum {
    CRMD_LANE_GENERATE, CRMD_LANE_SEQUENCE, CRMD_LANE_ANSWER, CRMD_LANE_WEBHOOK,
    CRMD_LANES
};

extern const char *const crmd_lanes[CRMD_LANES];

/* Return the lane NAME, -1 if it is unknown. */
int crmd_lane_of(const char *name);

/* Return how many threads a daemon with CONFIG has for LANE. */
int crmd_lane_threads(const crmd_config_t *config, int lane);

/* Return how many it has for jobs. */
int crmd_job_threads(const crmd_config_t *config);

/* The result of a poll. */
typedef struct crmd_poll_t {
    int ready[CRMD_LANES];      /* whether the lane has a job to claim */
    apr_interval_time_t next;   /* time until the next poll; -1: no future job
                                   is known */
} crmd_poll_t;

/* Make the jobs that are due at MOMENT (NULL: now) claimable, and fill
 * DUE. */
crm_error_t *crmd_poll_query(crmd_poll_t *due, crm_conn_t *conn,
                             const char *moment, apr_pool_t *scratch_pool);

/* LISTEN for jobs on CONN, unless its session is *SESSION_P, which listens
 * already (0: none does). *NEW_P = whether a new session listens now. */
crm_error_t *crmd_poll_listen(int *new_p, unsigned *session_p,
                              crm_conn_t *conn, apr_pool_t *scratch_pool);

/* Wait up to TIMEOUT for notifications on CONN, and fill DUE from them. */
crm_error_t *crmd_poll_wait(crmd_poll_t *due, crm_conn_t *conn,
                            apr_interval_time_t timeout,
                            apr_pool_t *scratch_pool);

#endif /* CRMAPID_POLL_H */
