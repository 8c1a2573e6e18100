/* SPDX-License-Identifier: Apache-2.0 */
/* crm_hash.h: a fast hash that tells texts apart; it is not cryptographic */
#ifndef CRM_HASH_H
#define CRM_HASH_H

#include "apr.h"

/* The initial value of a hash. */
#define CRM_HASH_START APR_UINT64_C(0x9e3779b97f4a7c15)

/* Return the hash of the LEN bytes at DATA, continued from HASH
 * (CRM_HASH_START, or the hash of what precedes). Two texts collide with a
 * probability of 2^-64. An attacker can construct texts that collide, so do not
 * use it to protect anything. A byte costs half an instruction. */
apr_uint64_t crm_hash(apr_uint64_t hash, const void *data, apr_size_t len);

#endif /* CRM_HASH_H */
