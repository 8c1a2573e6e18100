/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_time.c: a time that is read can be written and read again */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_pools.h"
#include "apr_strings.h"

#include "crm_time.h"

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
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    char out[CRM_TIME_SIZE];
    apr_time_t time, again;

    crm_time_from_pg(out, text);
    crm_time_parse_query(&time, text, strlen(text));
    if (!crm_time_parse(&time, (const char *)data, size)) {
        crm_time_format_us(out, time);
        if (crm_time_parse(&again, out, strlen(out)) || again != time) {
            abort();
        }
    }
    apr_pool_destroy(pool);
    return 0;
}
