/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_path.c: a path finds a route or none; ids are read */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"
#include "apr_strings.h"

#include "crm_query.h"
#include "crm_route.h"
#include "crm_uuid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return an empty pool for one input. */
static apr_pool_t *fresh_pool(void)
{
    static apr_pool_t *root;
    apr_pool_t *pool;

    if (!root) {
        apr_initialize();
        apr_pool_create(&root, NULL);
        crm_route_init(root);
    }
    apr_pool_create(&pool, root);
    return pool;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fresh_pool();
    char *path = apr_pstrmemdup(pool, (const char *)data, size);
    char *query = strchr(path, '?');
    apr_array_header_t *params;
    char id[CRM_UUID_LEN + 1];
    const char *parameter;
    apr_size_t len;

    if (query) {
        *query++ = '\0';
    }
    crm_query_parse(&params, query, pool);
    if (crm_route_find(&parameter, &len, path) && parameter) {
        if (parameter < path || parameter + len > path + strlen(path)) {
            abort();
        }
        crm_uuid_parse(id, parameter, len);
    }
    apr_pool_destroy(pool);
    return 0;
}
