/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook.h: what the files of webhooks share (contract 12) */
#ifndef CRMAPID_WEBHOOK_H
#define CRMAPID_WEBHOOK_H

#include "apr_pools.h"
#include "apr_time.h"

/* Bytes of an endpoint's answer that are kept. */
#define CRMD_WEBHOOK_ANSWER 1024

/* Return the wait for the next attempt when MADE (at least 1) have failed, a
 * random tenth longer than contract 12.3 has it, and at least RETRY_AFTER (0:
 * no wish), which counts for no more than a day. -1: there is no next one. */
apr_interval_time_t crmd_webhook_delay(int made,
                                       apr_interval_time_t retry_after);

/* Return, in RESULT_POOL, the LEN bytes at TEXT, what a stranger answered, as
 * UTF-8 without control characters but line feeds and tabs. A character that
 * is cut off at the end is left out. */
const char *crmd_webhook_text(const char *text, apr_size_t len,
                              apr_pool_t *result_pool);

/* Take one of the LIMIT places for deliveries to ENDPOINT (a UUID) at the same
 * time in this process. Return 1: it must be given back, by
 * crmd_webhook_leave(). 0: all are taken, and *WAIT_P is how long it should be
 * waited for one, as fast or slow as the endpoint has been, and with so many
 * waiting: from 0.2 s to 5 min. For any thread. */
int crmd_webhook_enter(apr_interval_time_t *wait_p, const char *endpoint,
                       int limit);

/* Give the place for ENDPOINT back; it was taken for as long as TOOK. */
void crmd_webhook_leave(const char *endpoint, apr_interval_time_t took);

#endif /* CRMAPID_WEBHOOK_H */
