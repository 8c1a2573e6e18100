/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_key.h: adding keys to a block of crm_limit.h, and removing them */
#ifndef CRM_LIMIT_KEY_H
#define CRM_LIMIT_KEY_H

#include "crm_limit.h"

/* Return values of crm_limit_add(). */
#define CRM_LIMIT_ADDED 0
#define CRM_LIMIT_FULL 1

/* Add KEY, which exists in the database, with its NETWORKS, KEY->networks of
 * them (NULL: none). If it is known already, replace its networks, limits and
 * terms. Return CRM_LIMIT_ADDED, or CRM_LIMIT_FULL if there is no memory for
 * it: all slots were used in the last 60 s (contract 4.5) and eviction is
 * off. */
int crm_limit_add(crm_limit_t *block, const crm_limit_key_t *key,
                  const crm_network_t *networks);

/* Let the ring for requests of CLASS by the key of HASH in REALM grow, up to
 * what LIMIT needs. Return 0 if BLOCK has no memory left (contract 4.5). For
 * crm_limit_admit(). */
int crm_limit_grow(crm_limit_t *block, const unsigned char hash[32],
                   apr_uint32_t realm, crm_limit_class_t class,
                   apr_uint32_t limit);

/* Copy the networks of the key of HASH in REALM to NETWORKS, which has room for
 * CRM_NETWORKS_MAX. Return their number, or -1 if the key is unknown. */
int crm_limit_networks(crm_network_t *networks, crm_limit_t *block,
                       const unsigned char hash[32], apr_uint32_t realm);

/* Return whether the caller should query the database about the key of HASH in
 * REALM. That is so for one caller in INTERVAL microseconds, if the key is
 * known. */
int crm_limit_ask(crm_limit_t *block, const unsigned char hash[32],
                  apr_uint32_t realm, apr_int64_t interval);

/* Remove the key of HASH in REALM, which was revoked or deleted. Its slot is
 * free immediately. */
void crm_limit_forget(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm);

/* Copy the keys of OLD with their counted requests to BLOCK, which is new and
 * not used by others yet, so that a changed configuration does not reset
 * budgets (contract 4.4). Idle keys are left out. If BLOCK has too little
 * memory, the oldest requests of a key are left out as well. Processes still
 * attached to OLD count separately. Return the number of keys without a
 * slot. */
apr_uint32_t crm_limit_inherit(crm_limit_t *block, crm_limit_t *old);

#endif /* CRM_LIMIT_KEY_H */
