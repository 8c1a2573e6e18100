/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: what fuzz targets have in common */
#ifndef CRM_FUZZ_H
#define CRM_FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"

/* Try the SIZE bytes at DATA. The fuzzer, or replay.c, calls it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort unless IS, which the fuzzer reports with the input. */
static inline void must(int is)
{
    if (!is) {
        abort();
    }
}

/* Return a new pool for one input; the caller destroys it. The first call runs INIT
 * (NULL: nothing) with a pool that stays. */
static inline apr_pool_t *fuzz_pool(void (*init)(apr_pool_t *pool))
{
    static apr_pool_t *root;
    apr_pool_t *pool;

    if (!root) {
        apr_initialize();
        apr_pool_create(&root, NULL);
        if (init) {
            init(root);
        }
    }
    apr_pool_create(&pool, root);
    return pool;
}

/* Return the SIZE bytes at DATA as a string in a block of its own, so that a
 * sanitizer sees every byte read beyond it. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    must(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
