/* SPDX-License-Identifier: Apache-2.0 */
/* crm_futex.h: sleeping until a word of memory changes (futex(2)) */
#ifndef CRM_FUTEX_H
#define CRM_FUTEX_H

#include "apr_time.h"

/* Sleep while *WORD is VALUE, but at most until crm_time_monotonic() is END (in
 * microseconds). It may return earlier. What the thread that changed *WORD by
 * an atomic store with release semantics wrote before is visible if the caller
 * reads *WORD with acquire semantics. */
void crm_futex_wait(const apr_uint32_t *word, apr_uint32_t value,
                    apr_interval_time_t end);

/* Wake the thread that sleeps on WORD, if there is one. Call this after *WORD
 * was changed. WORD is not read, so it may be gone: then a thread that sleeps
 * on what is there now returns early. */
void crm_futex_wake(const apr_uint32_t *word);

#endif /* CRM_FUTEX_H */
