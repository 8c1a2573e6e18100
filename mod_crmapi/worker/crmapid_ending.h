/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_ending.h: how long a daemon that ends waits for a silent server */
#ifndef CRMAPID_ENDING_H
#define CRMAPID_ENDING_H

#include "apr_time.h"

/* Note that the daemon begins to end, unless it was noted, or, if ENDS is 0, that it
 * has ended. For any thread. */
void crmd_ending(int ends);

/* Return whether what has last moved at MOVED, on crm_time_monotonic(), is to be given
 * up, because the daemon ends, and nothing moved for two seconds. The caller knows
 * whether it may be. */
int crmd_ending_over(apr_time_t moved);

/* The same for what does not know when it moved: crm_conn_watch(). BATON is not
 * used. */
int crmd_ending_unwanted(void *baton);

#endif /* CRMAPID_ENDING_H */
