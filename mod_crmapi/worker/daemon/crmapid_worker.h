/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_worker.h: the threads that run jobs */
#ifndef CRMAPID_WORKER_H
#define CRMAPID_WORKER_H

#include "crmapid_actor.h"

/* Run one job of ACTOR's lane that is due at MOMENT (NULL: now). *DONE_P =
 * whether there was one. Errors: those of crmd_job_run(). */
crm_error_t *crmd_worker_run(int *done_p, crmd_actor_t *actor,
                             const char *moment);

/* Wake one idle thread of LANE. If it claims a job, it wakes the next one. The
 * caller holds DAEMON's mutex. */
void crmd_worker_wake(crmd_daemon_t *daemon, int lane);

/* A thread's function: run jobs until the daemon stops. DATA is the thread's
 * crmd_actor_t. */
void *APR_THREAD_FUNC crmd_worker_main(apr_thread_t *thread, void *data);

#endif /* CRMAPID_WORKER_H */
