/* SPDX-License-Identifier: Apache-2.0 */
/* crm_near.h: names that were mistyped */
#ifndef CRM_NEAR_H
#define CRM_NEAR_H

#include "apr_pools.h"

/* Return whether WORD is TRIED, a name of at most 32 bytes, with one mistake: a
 * letter left out, added, replaced, doubled or exchanged with its neighbour; or
 * with two, if both have at least 8 letters. Case is ignored. */
int crm_near(const char *word, const char *tried);

/* Return whether TRIED, of three letters or more, is some of the words of WORD, with
 * '_' between them or without: "stageId" of "pipeline_stage_id". Case is ignored. */
int crm_near_part(const char *word, const char *tried);

/* Return whether other APIs call TRIED what WORD is here: "limit" is "page_size". Case,
 * '_' and '-' are ignored. */
int crm_near_other(const char *word, const char *tried);

/* One of the three. */
typedef int crm_near_fn(const char *word, const char *tried);

/* All of them, ended by NULL: what is more certain goes before the others. */
extern crm_near_fn *const crm_near_ways[];

/* Return the first of NAMES (ended by NULL; or NULL) for which IS_NEAR says that TRIED
 * is near, or NULL. */
const char *crm_near_of(const char *const *names, const char *tried,
                        crm_near_fn *is_near);

/* Return RULE, in POOL, with the question whether NEAR was meant; RULE if NEAR is
 * NULL. */
const char *crm_near_ask(const char *rule, const char *near, apr_pool_t *pool);

#endif /* CRM_NEAR_H */
