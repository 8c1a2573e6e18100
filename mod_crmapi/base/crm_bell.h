/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bell.h: waking a thread that sleeps in poll() */
#ifndef CRM_BELL_H
#define CRM_BELL_H

/* Return the bell of the calling thread, a descriptor that is readable once it
 * was rung (eventfd(2)), or -1 if the process has no descriptor left. It is never
 * closed: a thread that ends leaves it to one that begins, so that a ring that
 * comes late only wakes somebody for nothing. */
int crm_bell(void);

/* Ring BELL: poll() of its thread returns, now or when it is called next. */
void crm_bell_ring(int bell);

/* Make BELL silent, which was rung. */
void crm_bell_clear(int bell);

#endif /* CRM_BELL_H */
