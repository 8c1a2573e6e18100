/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_query.c: query strings, and the types' readers behind them */
/* libFuzzer: -max_len=8190 */

#include "fuzz.h"

#include "crm_query.h"
#include "crm_resources.h"
#include "crm_text.h"

/* Read the value of PARAM as every filter of every operation would. */
static void read_as_filters(const crm_query_param_t *param, apr_pool_t *pool)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_operation_t *operation = crm_resources[i]->operations;

        for (; operation && operation->id; operation++) {
            const crm_filter_t *filter = operation->filters;

            for (; filter && filter->field.name; filter++) {
                const crm_field_t *field = &filter->field;
                const char *bind = NULL, *wrong;

                if (!field->type->parse_query) {
                    continue;
                }
                wrong = field->type->parse_query(&bind, field, param->value,
                                                 pool);
                must(wrong || !bind
                     || crm_text_valid_utf8(bind, strlen(bind)));
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    apr_array_header_t *params;
    char *query = fuzz_text(data, size);

    crm_query_parse(&params, query, pool);
    for (int i = 0; i < params->nelts; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);

        /* a name can always be shown */
        must(crm_text_valid_utf8(param->name, strlen(param->name)));
        must(param->value[param->value_len] == '\0');
        if (!param->bad) {
            must(strlen(param->value) == param->value_len);
            must(crm_text_valid_utf8(param->value, param->value_len));
            if (param->value_len && i < 8) {
                read_as_filters(param, pool);
            }
        }
    }
    free(query);
    apr_pool_destroy(pool);
    return 0;
}
