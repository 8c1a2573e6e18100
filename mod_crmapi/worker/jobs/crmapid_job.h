/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_job.h: claiming a job, running its handler, recording the outcome */
#ifndef CRMAPID_JOB_H
#define CRMAPID_JOB_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_db_conn.h"
#include "crm_error.h"
#include "crm_log.h"
#include "crm_resource.h"

#include "crmapid_config.h"
#include "crmapid_stats.h"

/* ---- what a handler gets, and what it returns ---------------------------- */

/* A claimed job (schema/README, Jobs). Strings live as long as the work's
 * pool. */
typedef struct crmd_job_t {
    const char *workspace_id;
    const char *id;
    const char *kind;           /* "sequence.step": the word before the dot is
                                   the lane */
    json_object *payload;       /* an object; freed by the claimer */
    int attempts;               /* number of this attempt, from 1 */
    const char *owner;          /* the daemon that holds the lease */
    const char *now;            /* current time for this job: a timestamptz as
                                   text. All scheduling uses it. */
} crmd_job_t;

/* How a job ends. */
typedef enum crmd_end_t {
    CRMD_DONE,                  /* record it as done */
    CRMD_ENDED,                 /* a transaction of the handler recorded it */
    CRMD_RETRY,                 /* run it again after DELAY */
    CRMD_DEAD                   /* never run it again; keep it for the
                                   operator */
} crmd_end_t;

/* A job that is being run, by one thread with its own connection. */
typedef struct crmd_work_t {
    const crmd_config_t *config;
    const crmd_job_t *job;
    crm_conn_t *conn;           /* outside a transaction, before and after the
                                   handler */
    const char *moment;         /* current time as text; NULL: the database's
                                   clock */
    crm_log_t log;
    crmd_lane_stats_t *stats;   /* of its lane */
    apr_pool_t *pool;           /* cleared after the job */
    /* Set by the handler, which then returns NULL: */
    crmd_end_t end;             /* CRMD_DONE unless changed */
    apr_interval_time_t delay;  /* of CRMD_RETRY */
    const char *reason;         /* of CRMD_RETRY and CRMD_DEAD: for the job's
                                   last_error and the log; no secrets */
} crmd_work_t;

/* Run the job of WORK. An error means that the handler could not decide how the
 * job ends, for example because the database is unavailable: the job is retried
 * with backoff. */
typedef crm_error_t *(*crmd_handler_fn)(crmd_work_t *work);

/* A kind of job. */
typedef struct crmd_kind_t {
    const char *name;
    crmd_handler_fn run;
    /* Called after the last attempt has failed, with WORK's reason set: ends
     * what the job was for. NULL: only the job itself ends. */
    crmd_handler_fn give_up;
} crmd_kind_t;

/* ---- functions for handlers ---------------------------------------------- */

/* Set how WORK's job ends, and REASON (kept, not copied). */
void crmd_work_retry(crmd_work_t *work, apr_interval_time_t delay,
                     const char *reason);
void crmd_work_dead(crmd_work_t *work, const char *reason);

/* Give WORK's job back as it was before it was claimed: its workspace is held,
 * so nothing is sent before it is released (contract 14.2). Errors: those of
 * the database; the lease was lost. */
crm_error_t *crmd_work_return(crmd_work_t *work);

/* Make sure that WORK's job is still its own, before its message is handed over. The
 * statement that permitted the message began at SINCE (crm_time_monotonic()). If the
 * process has stood still since, the lease may have expired, and what the message is
 * about may be stopped or erased. Errors: the lease was lost; those of the
 * database. */
crm_error_t *crmd_work_still(crmd_work_t *work, apr_time_t since);

/* Log that WORK's job was given back because its workspace is held. */
void crmd_log_held(const crmd_work_t *work);

/* Return the string member NAME of WORK's payload, NULL if it has none. */
const char *crmd_payload(const crmd_work_t *work, const char *name);

/* Run SQL with its COUNT VALUES on WORK's connection; *RESULT_P lives as long
 * as WORK's pool. */
crm_error_t *crmd_query(PGresult **result_p, crmd_work_t *work,
                        const char *sql, int count,
                        const char *const *values);

/* Set VALUES[0..3] to the lease of WORK: workspace, job, owner, attempt. These
 * are the first parameters of crmapi.job_hold() and of all functions that call
 * it. */
void crmd_lease_values(const char **values, const crmd_work_t *work);

/* Set *OBJECT_P to the row ID of RESOURCE in WORK's workspace as the API shows
 * it, NULL if it does not exist. It is freed with WORK's pool. */
crm_error_t *crmd_object(json_object **object_p, crmd_work_t *work,
                         const crm_resource_t *resource, const char *id);

/* Return the wait before attempt N + 1: FIRST, doubled N - 1 times, at most
 * LAST, plus or minus up to a tenth at random. */
apr_interval_time_t crmd_backoff(int n, apr_interval_time_t first,
                                 apr_interval_time_t last);

/* ---- claiming ------------------------------------------------------------ */

/* Who claims jobs, and how. */
typedef struct crmd_claimer_t {
    const crmd_config_t *config;
    const crmd_kind_t *kinds;   /* the last has no name */
    crm_conn_t *conn;
    const char *owner;          /* the daemon's id, which leases name */
    const char *moment;         /* see crmd_work_t */
    const char *after;          /* workspace served last in this lane, or
                                   NULL */
    /* Called with BATON and the job whose lease must be extended from now on,
     * and with NULL when it ends. It is never called for a claim whose answer
     * was lost: that lease expires. */
    void (*hold)(void *baton, const crmd_job_t *job);
    void *baton;
} crmd_claimer_t;

/* Claim the first due job of LANE, of the next workspace in turn, and run it;
 * *DONE_P = whether there was one. The outcome is recorded in the database, or
 * the lease expires. Errors: the database is unavailable. */
crm_error_t *crmd_job_run(int *done_p, const crmd_claimer_t *claimer,
                          const char *lane, apr_pool_t *scratch_pool);

#endif /* CRMAPID_JOB_H */
