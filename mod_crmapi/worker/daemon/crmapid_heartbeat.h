/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_heartbeat.h: the daemon's heartbeat, which extends its leases */
#ifndef CRMAPID_HEARTBEAT_H
#define CRMAPID_HEARTBEAT_H

#include "crmapid_actor.h"

/* Record that the daemon of ACTOR is alive, extend the leases of its jobs, and
 * release the jobs of all daemons whose leases have expired. Errors, in ACTOR's
 * pool: those of the database; run_dir cannot be used. */
crm_error_t *crmd_heartbeat(crmd_actor_t *actor);

/* Delete the daemon of ACTOR from the list of daemons. A failure does not
 * matter: upkeep deletes old entries. */
void crmd_heartbeat_end(crmd_actor_t *actor);

/* A thread's function: send heartbeats until the daemon ends. DATA is the
 * thread's crmd_actor_t. */
void *APR_THREAD_FUNC crmd_heartbeat_main(apr_thread_t *thread, void *data);

#endif /* CRMAPID_HEARTBEAT_H */
