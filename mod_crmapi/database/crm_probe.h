/* SPDX-License-Identifier: Apache-2.0 */
/* crm_probe.h: whether a database can be reached, within a time limit */
#ifndef CRM_PROBE_H
#define CRM_PROBE_H

#include <libpq-fe.h>

#include "apr_pools.h"
#include "apr_time.h"

/* What a probe has found. */
typedef struct crm_probe_t {
    PGconn *pg;                 /* idle, for PQfinish(); NULL: no host answers */
    const char *cause;          /* if so, why, in one line, without passwords */
    int full;                   /* a host refused, because it has too many
                                   connections */
} crm_probe_t;

/* Connect to the first host of CONNINFO (libpq's syntax) that answers a
 * statement, and set *PROBE to the result, in RESULT_POOL. That takes at most
 * TIME, after the hosts' names were looked up, which also takes at most TIME. Each
 * address of each host gets an equal share of it, so that a silent one does not hide
 * the next. NAME is the session's application_name. */
void crm_probe_open(crm_probe_t *probe, const char *conninfo,
                    const char *name, apr_interval_time_t time,
                    apr_pool_t *result_pool);

#endif /* CRM_PROBE_H */
