/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_pool.h: the pool of a thread */
#ifndef CRMAPID_POOL_H
#define CRMAPID_POOL_H

#include "apr_pools.h"

/* Return a new pool for a thread, released with PARENT. It has an allocator of
 * its own, so threads do not compete for a lock. MAX_FREE: bytes of free memory
 * that the allocator keeps; 0: all. */
apr_pool_t *crmd_pool_create(apr_pool_t *parent, apr_size_t max_free);

#endif /* CRMAPID_POOL_H */
