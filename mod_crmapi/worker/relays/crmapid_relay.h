/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_relay.h: what the relays share */
#ifndef CRMAPID_RELAY_H
#define CRMAPID_RELAY_H

#include "crmapid.h"
#include "crmapid_curl.h"

/* All relays, up to NULL. */
extern const crmd_relay_t *const crmd_relays[];

/* Fill RECEIPT with VERDICT and, unless it is CRMD_SENT, its REASON (kept). */
void crmd_receipt_fill(crmd_receipt_t *receipt, crmd_verdict_t verdict,
                       const char *reason);

/* Return who MESSAGE is from, or who CONFIG says it is from; NULL: nobody. */
const char *crmd_sender_of(const crmd_message_t *message,
                           const crmd_config_t *config);

/* Return, in POOL, the string or number NAME of ANSWER's JSON, NULL if it has
 * none, as one line. */
const char *crmd_answer_id(const crmd_http_answer_t *answer, const char *name,
                           apr_pool_t *pool);

/* Return, in POOL, that WHO answered with the status of ANSWER, a no, and with
 * the number that "code" has in its JSON. Its text is left out: it quotes whom
 * the message was to, and this goes to the log. */
const char *crmd_answer_reason(const char *who,
                               const crmd_http_answer_t *answer,
                               apr_pool_t *pool);

#endif /* CRMAPID_RELAY_H */
