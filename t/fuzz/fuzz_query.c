/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_query.c: a query string comes apart without harm, into valid UTF-8 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"
#include "apr_strings.h"

#include "crm_query.h"
#include "crm_text.h"

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
    apr_array_header_t *params;

    crm_query_parse(&params, apr_pstrmemdup(pool, (const char *)data, size),
                    pool);
    for (int i = 0; i < params->nelts; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);

        if (!crm_text_valid_utf8(param->name, strlen(param->name))
            || (!param->bad && (strlen(param->value) != param->value_len
                                || !crm_text_valid_utf8(param->value,
                                                        param->value_len)))) {
            abort();
        }
    }
    apr_pool_destroy(pool);
    return 0;
}
