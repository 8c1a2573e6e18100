/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_key.h: adding keys to a block of crm_limit.h, and removing them */
#ifndef CRM_LIMIT_KEY_H
#define CRM_LIMIT_KEY_H

#include "crm_limit.h"

/* Return values of crm_limit_add(). */
#define CRM_LIMIT_ADDED 0
#define CRM_LIMIT_FULL 1

/* Add KEY, which exists in the database. Return CRM_LIMIT_ADDED, also if it is
 * known already, or CRM_LIMIT_FULL if all slots were used in the last 60 s
 * (contract 4.5) and eviction is off. */
int crm_limit_add(crm_limit_t *block, const crm_limit_key_t *key);

/* Remove the key of HASH in REALM, which was revoked or deleted. Its slot is
 * free immediately. */
void crm_limit_forget(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm);

/* Copy the keys of OLD with their counted requests to BLOCK, which is new and
 * not used by others yet, so that a changed configuration does not reset
 * budgets (contract 4.4). If BLOCK is smaller, idle keys and the oldest
 * requests are left out. Processes still attached to OLD count separately.
 * Return the number of keys without a slot. */
apr_uint32_t crm_limit_inherit(crm_limit_t *block, crm_limit_t *old);

/* Check the consistency of BLOCK: chains, free list, counts, windows. Return
 * NULL, or the first inconsistency as a constant string. Slow; for tests. */
const char *crm_limit_validate(crm_limit_t *block);

#endif /* CRM_LIMIT_KEY_H */
