/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_relay.h: what the relays share */
#ifndef CRMAPID_RELAY_H
#define CRMAPID_RELAY_H

#include "crmapid.h"

/* All relays, up to NULL. */
extern const crmd_relay_t *const crmd_relays[];

/* Fill RECEIPT with VERDICT and, unless it is CRMD_SENT, its REASON (kept). */
void crmd_receipt_fill(crmd_receipt_t *receipt, crmd_verdict_t verdict,
                       const char *reason);

/* Return who MESSAGE is from, or who CONFIG says it is from; NULL: nobody. */
const char *crmd_sender_of(const crmd_message_t *message,
                           const crmd_config_t *config);

#endif /* CRMAPID_RELAY_H */
