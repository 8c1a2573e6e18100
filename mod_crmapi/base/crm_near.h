/* SPDX-License-Identifier: Apache-2.0 */
/* crm_near.h: words that were mistyped */
#ifndef CRM_NEAR_H
#define CRM_NEAR_H

#include "apr_pools.h"

/* Return whether WORD is TRIED, a name of at most 32 bytes, with one mistake: a
 * letter left out, added, replaced, doubled or exchanged with its neighbour; or
 * with two, if both have at least 8 letters. Case is ignored. */
int crm_near(const char *word, const char *tried);

/* Return the first of NAMES (ended by NULL; or NULL) that TRIED nearly is, or
 * NULL. */
const char *crm_near_of(const char *const *names, const char *tried);

/* Return RULE, in POOL, with the question whether NEAR was meant; RULE if NEAR is
 * NULL. */
const char *crm_near_ask(const char *rule, const char *near, apr_pool_t *pool);

#endif /* CRM_NEAR_H */
