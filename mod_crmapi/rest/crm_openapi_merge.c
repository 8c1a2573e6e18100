/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_merge.c: merging the parts of the OpenAPI document */
#include "crm_openapi_merge.h"

#include "crm_json.h"

/* Add the members of FROM that INTO lacks, recursively for objects. */
static void merge(json_object *into, json_object *from)
{
    json_object_object_foreach(from, name, value) {
        json_object *have;

        if (!json_object_object_get_ex(into, name, &have)) {
            json_object_object_add(into, name, json_object_get(value));
        }
        else if (json_object_is_type(have, json_type_object)) {
            merge(have, value);
        }
    }
}

crm_error_t *crm_openapi_parse(json_object **part_p, const char *text,
                               apr_size_t len, apr_pool_t *pool)
{
    apr_size_t offset;
    const char *rule = crm_json_parse(part_p, &offset, text, len, pool);

    return !rule ? NULL
           : crm_error_logf(CRM_E_INTERNAL, pool, "CRM1004: a part of the "
                            "OpenAPI document is not valid JSON: %s at byte "
                            "%" APR_SIZE_T_FMT, rule, offset);
}

crm_error_t *crm_openapi_merge(json_object *into, const char *text,
                               apr_size_t len, apr_pool_t *pool)
{
    json_object *part;

    CRM_ERR(crm_openapi_parse(&part, text, len, pool));
    merge(into, part);
    return NULL;
}
