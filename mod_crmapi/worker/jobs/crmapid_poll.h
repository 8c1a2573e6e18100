/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_poll.h: which lanes have jobs that are due, and when others have */
#ifndef CRMAPID_POLL_H
#define CRMAPID_POLL_H

#include "crmapid.h"

/* Which threads serve which jobs: those with the same word before the dot. */
enum { CRMD_LANE_SEQUENCE, CRMD_LANE_WEBHOOK, CRMD_LANES };

extern const char *const crmd_lanes[CRMD_LANES];

/* What was found out. */
typedef struct crmd_poll_t {
    int ready[CRMD_LANES];      /* there is something to claim */
    apr_interval_time_t next;   /* in what time to ask again; -1: it is not
                                   known that there will be more */
} crmd_poll_t;

/* Have the database notice what is due at MOMENT (NULL: now), so that it can be
 * claimed, and fill FOUND. */
crm_error_t *crmd_poll_ask(crmd_poll_t *found, crm_conn_t *conn,
                           const char *moment, apr_pool_t *scratch_pool);

/* Have CONN told of jobs, unless *BACKEND_P says that it is: whose backend
 * listens for it, 0 for none. *NEW_P = whether it was not. */
crm_error_t *crmd_poll_listen(int *new_p, int *backend_p, crm_conn_t *conn,
                              apr_pool_t *scratch_pool);

/* Wait up to TIMEOUT for what CONN is told and fill FOUND. */
crm_error_t *crmd_poll_hear(crmd_poll_t *found, crm_conn_t *conn,
                            apr_interval_time_t timeout,
                            apr_pool_t *scratch_pool);

#endif /* CRMAPID_POLL_H */
