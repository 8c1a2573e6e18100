/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_job.h: claiming a job, doing it, recording what became of it */
#ifndef CRMAPID_JOB_H
#define CRMAPID_JOB_H

#include "crmapid.h"

/* Who claims jobs, and how. */
typedef struct crmd_claimer_t {
    const crmd_config_t *config;
    const crmd_kind_t *kinds;   /* the kinds of jobs, up to one without a
                                   name */
    crm_conn_t *conn;
    const char *owner;          /* the daemon's id, which leases name */
    const char *moment;         /* see crmd_work_t */
    const char *after;          /* whose workspace's turn was the last; NULL:
                                   nobody's */
    /* Told, with BATON, the job whose lease is to be lengthened from now on,
     * NULL when there is none any more. A claim whose answer was lost is never
     * told: its lease runs out. */
    void (*hold)(void *baton, const crmd_job_t *job);
    void *baton;
} crmd_claimer_t;

/* Claim the first job of LANE that is due, of the workspace whose turn it is,
 * and do it; *DONE_P = whether there was one. Whatever becomes of the job is
 * recorded in the database, or its lease runs out. Errors: the database cannot
 * be asked. */
crm_error_t *crmd_job_run(int *done_p, const crmd_claimer_t *claimer,
                          const char *lane, apr_pool_t *scratch_pool);

#endif /* CRMAPID_JOB_H */
