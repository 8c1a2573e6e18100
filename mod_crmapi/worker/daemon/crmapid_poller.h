/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_poller.h: the thread that finds due jobs and wakes their lanes */
#ifndef CRMAPID_POLLER_H
#define CRMAPID_POLLER_H

#include "crmapid_actor.h"

/* A thread's function: poll for due jobs until the daemon ends. DATA is the
 * thread's crmd_actor_t. */
void *APR_THREAD_FUNC crmd_poller_main(apr_thread_t *thread, void *data);

#endif /* CRMAPID_POLLER_H */
