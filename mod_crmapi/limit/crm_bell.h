/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bell.h: telling other processes of this host that something is new */
#ifndef CRM_BELL_H
#define CRM_BELL_H

#include "apr.h"

#define CRM_BELL_LINES 4096

/* Counters in shared memory; a name (a conversation's id) is hashed to one of
 * them. They are a hint: several names share a counter, other hosts have their
 * own. All zeros is a new one; any number of processes may use it at once. */
typedef struct crm_bell_t {
    apr_uint32_t rings[CRM_BELL_LINES];
} crm_bell_t;

/* Ring for NAME: after the commit of what is new. */
void crm_bell_ring(crm_bell_t *bell, const char *name);

/* Return how often it has rung for NAME, or for another name; only whether it
 * changed says anything. Read it before looking for what is new. */
apr_uint32_t crm_bell_count(const crm_bell_t *bell, const char *name);

#endif /* CRM_BELL_H */
