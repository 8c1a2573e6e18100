/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_watch.h: a thread that looks at the database: whether it can be used,
 * and how many jobs there are */
#ifndef CRMAPID_WATCH_H
#define CRMAPID_WATCH_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_error.h"

#include "crmapid_config.h"
#include "crmapid_poll.h"

/* The states of jobs that are counted: due, waiting for their time, being run,
 * given up, due but held. */
enum {
    CRMD_JOBS_DUE, CRMD_JOBS_WAITING, CRMD_JOBS_LEASED, CRMD_JOBS_DEAD,
    CRMD_JOBS_HELD, CRMD_JOBS_STATES
};

/* The jobs of a lane. */
typedef struct crmd_counts_t {
    apr_uint64_t jobs[CRMD_JOBS_STATES];
    apr_uint64_t oldest_us;     /* how long the oldest due job has been due */
} crmd_counts_t;

/* A running thread. */
typedef struct crmd_watch_t crmd_watch_t;

/* Start a thread that checks CONFIG's database about once a second, and set
 * *WATCH_P, in POOL. Errors: the thread cannot be started. */
crm_error_t *crmd_watch_start(crmd_watch_t **watch_p,
                              const crmd_config_t *config, apr_pool_t *pool);

/* End the thread of WATCH, which may be NULL. */
void crmd_watch_stop(crmd_watch_t *watch);

/* Return NULL if the database of WATCH answers within a second and has a schema
 * that this version can use, and run_dir can be written; otherwise the reason in
 * one word, "database", "schema" or "run_dir". Does not wait for the
 * database. */
const char *crmd_watch_fault(crmd_watch_t *watch);

/* Copy the last counts of each lane to COUNTS. Return 0 if there are none, or
 * if the database does not answer. */
int crmd_watch_counts(crmd_counts_t counts[CRMD_LANES], crmd_watch_t *watch);

#endif /* CRMAPID_WATCH_H */
