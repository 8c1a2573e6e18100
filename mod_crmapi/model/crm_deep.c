/* SPDX-License-Identifier: Apache-2.0 */
/* crm_deep.c: what checks of resources need that look into values */
#include "crm_deep.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_pointer.h"
#include "crm_type_list.h"

const char *crm_deep_text(const crm_deep_t *deep, const char *name)
{
    return deep->binds[crm_resource_field(deep->resource, name)
                       - deep->resource->fields];
}

json_object *crm_deep_json(const crm_deep_t *deep, const char *name)
{
    const char *text = crm_deep_text(deep, name);
    json_object *value = NULL;
    apr_size_t offset;

    if (text) {
        crm_json_parse(&value, &offset, text, strlen(text),
                       deep->input->pool);
    }
    return value;
}

void crm_deep_error(const crm_deep_t *deep, const char *name,
                    const char *where, const char *rule)
{
    if (rule) {
        crm_input_error(deep->input, apr_pstrcat(deep->input->pool, "/", name,
                                                 where, NULL), rule);
    }
}

void crm_deep_strings(const crm_deep_t *deep, const char *name,
                      const char *(*rule_of)(const char *text))
{
    apr_pool_t *pool = deep->input->pool;
    const char *array = crm_deep_text(deep, name);
    const apr_array_header_t *items;

    if (!array) {
        return;
    }
    items = crm_type_array_strings(array, pool);
    for (int i = 0; i < items->nelts; i++) {
        crm_deep_error(deep, name, crm_pointer_item("", i, pool),
                       rule_of(APR_ARRAY_IDX(items, i, const char *)));
    }
}
