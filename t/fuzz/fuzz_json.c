/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c: what the check accepts json-c reads, and can be stored or not */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"
#include "apr_strings.h"

#include "crm_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return an empty pool for one input. */
static apr_pool_t *fresh_pool(void)
{
    static apr_pool_t *root;
    apr_pool_t *pool;

    if (!root) {
        apr_initialize();
        apr_pool_create(&root, NULL);
    }
    apr_pool_create(&pool, root);
    return pool;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fresh_pool();
    const char *text, *path;
    json_object *value;
    apr_size_t offset;

    if (crm_json_parse(&value, &offset, (const char *)data, size, pool)) {
        if (offset > size) {
            abort();
        }
    }
    else if (!crm_json_storable(&text, &path, value, 65536, 16, pool)) {
        /* what is stored is JSON again */
        if (crm_json_check(&offset, text, strlen(text), pool)) {
            abort();
        }
    }
    apr_pool_destroy(pool);
    return 0;
}
