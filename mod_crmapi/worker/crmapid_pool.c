/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_pool.c: the pool of a thread */
#include "crmapid_pool.h"

#include "apr_allocator.h"

apr_pool_t *crmd_pool_create(apr_pool_t *parent, apr_size_t max_free)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, max_free);
    apr_pool_create_ex(&pool, parent, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    return pool;
}
