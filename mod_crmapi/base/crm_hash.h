/* SPDX-License-Identifier: Apache-2.0 */
/* crm_hash.h: a fast hash that tells texts apart, not a secret's keeper */
#ifndef CRM_HASH_H
#define CRM_HASH_H

#include "apr.h"

/* Where a hash begins. */
#define CRM_HASH_START APR_UINT64_C(0x9e3779b97f4a7c15)

/* Return the hash of the LEN bytes at DATA, continued from HASH
 * (CRM_HASH_START, or the hash of what precedes). Two texts that nobody chose
 * for it have the same with a probability of 2^-64. Whoever wants can make such
 * texts, so it protects nothing. It takes half an instruction for a byte. */
apr_uint64_t crm_hash(apr_uint64_t hash, const void *data, apr_size_t len);

#endif /* CRM_HASH_H */
