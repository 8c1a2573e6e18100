/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_bearer.c: an Authorization header is a key or is refused */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"
#include "apr_strings.h"

#include "crm_key.h"
#include "crm_prefer.h"

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
    const char *header = apr_pstrmemdup(pool, (const char *)data, size);
    char shown[CRM_KEY_SIZE];
    const char *key;
    apr_size_t len;

    if (crm_key_from_bearer(&key, &len, header, CRM_KEY_PREFIX)) {
        if (!crm_key_valid(key, len, CRM_KEY_PREFIX)) {
            abort();
        }
        crm_key_display(shown, key, CRM_KEY_PREFIX);
    }
    crm_prefer_has(header, "handling", "strict");
    apr_pool_destroy(pool);
    return 0;
}
