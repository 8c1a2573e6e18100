/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_retry.h: the retry schedule of webhooks, and the part of an
 * answer that is kept (contract 12.3) */
#ifndef CRMAPID_WEBHOOK_RETRY_H
#define CRMAPID_WEBHOOK_RETRY_H

#include "apr_pools.h"
#include "apr_time.h"

/* Bytes of an endpoint's answer that are kept. */
#define CRMD_WEBHOOK_ANSWER 1024

/* Return the wait before the next attempt after MADE attempts (at least 1)
 * have failed: the delay of contract 12.3 or RETRY_AFTER (0: none; at most a
 * day), whichever is longer, plus a random part of up to a tenth. -1: there is
 * no next attempt. */
apr_interval_time_t crmd_webhook_delay(int made,
                                       apr_interval_time_t retry_after);

/* Return the LEN bytes at TEXT, an endpoint's answer, in RESULT_POOL as UTF-8
 * without control characters except line feeds and tabs. A character that is
 * incomplete at the end is left out. */
const char *crmd_webhook_text(const char *text, apr_size_t len,
                              apr_pool_t *result_pool);

#endif /* CRMAPID_WEBHOOK_RETRY_H */
