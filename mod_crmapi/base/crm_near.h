/* SPDX-License-Identifier: Apache-2.0 */
/* crm_near.h: words that were mistyped */
#ifndef CRM_NEAR_H
#define CRM_NEAR_H

/* Return whether WORD is TRIED, a name of at most 32 bytes, with one mistake: a
 * letter left out, added, replaced, doubled or exchanged with its neighbour; or
 * with two, if both have at least 8 letters. Case is ignored. */
int crm_near(const char *word, const char *tried);

#endif /* CRM_NEAR_H */
