/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_slot.h: concurrent deliveries to one endpoint, and to all that
 * are slow */
#ifndef CRMAPID_WEBHOOK_SLOT_H
#define CRMAPID_WEBHOOK_SLOT_H

#include "apr_time.h"

/* Take one of this process's LIMIT slots for deliveries to ENDPOINT of WORKSPACE
 * (UUIDs). Return 1 if one was free: the caller returns it by crmd_webhook_leave().
 * Return 0 if none was. Return 0, too, if the endpoint is slow, or not yet known not to
 * be, and deliveries to such endpoints, of all or of WORKSPACE, have all of the THREADS
 * that they may have. After 0, *WAIT_P is
 * the time until the next attempt, from 0.2 s to 5 min: it is estimated from the
 * endpoint's recent response times and the number of waiting deliveries. For any
 * thread. */
int crmd_webhook_enter(apr_interval_time_t *wait_p, const char *workspace,
                       const char *endpoint, int limit, int threads);

/* Return a slot of ENDPOINT that was held for TOOK. */
void crmd_webhook_leave(const char *endpoint, apr_interval_time_t took);

#endif /* CRMAPID_WEBHOOK_SLOT_H */
