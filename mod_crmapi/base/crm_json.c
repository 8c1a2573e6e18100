/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json.c: JSON in and out of json-c, and its values */
#include "crm_json.h"

#include "apr_strings.h"

#include "crm_json_big.h"
#include "crm_json_check.h"

static apr_status_t put_value(void *value)
{
    json_object_put(value);
    return APR_SUCCESS;
}

const char *crm_json_tree(json_object **value_p, const char *text,
                          apr_size_t len, apr_pool_t *result_pool)
{
    json_tokener *tokener = json_tokener_new_ex(CRM_JSON_DEPTH + 1);
    const char *rule = NULL, *marked = crm_json_big_mark(&len, text,
                                                         result_pool);

    /* Not strict, since crm_json_check() is: json-c 0.18 then refuses each byte
     * from 0x80 on in a string. */
    *value_p = json_tokener_parse_ex(tokener, marked, (int)len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        /* json-c needs a NUL to know that a number at the end is complete */
        *value_p = json_tokener_parse_ex(tokener, "", 1);
    }
    if (json_tokener_get_error(tokener) != json_tokener_success) {
        rule = json_tokener_error_desc(json_tokener_get_error(tokener));
    }
    json_tokener_free(tokener);
    if (marked != text) {
        crm_json_big_restore(*value_p);
    }
    apr_pool_cleanup_register(result_pool, *value_p, put_value,
                              apr_pool_cleanup_null);
    return rule;
}

const char *crm_json_parse(json_object **value_p, apr_size_t *offset_p,
                           const char *text, apr_size_t len,
                           apr_pool_t *result_pool)
{
    const char *rule = crm_json_check(offset_p, text, len, result_pool);

    return rule ? rule : crm_json_tree(value_p, text, len, result_pool);
}

crm_error_t *crm_json_body(json_object **value_p, const char *body,
                           apr_size_t len, apr_pool_t *result_pool)
{
    apr_size_t offset;
    const char *rule = crm_json_parse(value_p, &offset, body, len,
                                      result_pool);

    return rule ? crm_error_create(CRM_E_BAD_REQUEST,
                                   crm_json_problem(rule, offset, result_pool),
                                   result_pool)
           : NULL;
}

json_object *crm_json_object(const char *text)
{
    json_object *value = json_tokener_parse(text);

    if (json_object_is_type(value, json_type_object)) {
        return value;
    }
    json_object_put(value);
    return json_object_new_object();
}

void crm_json_merge(json_object *target, json_object *patch)
{
    json_object_object_foreach(patch, name, value) {
        json_object *below;

        if (!value) {
            json_object_object_del(target, name);
            continue;
        }
        if (!json_object_is_type(value, json_type_object)) {
            json_object_object_add(target, name, json_object_get(value));
            continue;
        }
        if (!json_object_object_get_ex(target, name, &below)
            || !json_object_is_type(below, json_type_object)) {
            below = json_object_new_object();
            json_object_object_add(target, name, below);
        }
        crm_json_merge(below, value);
    }
}

const char *crm_json_text(json_object *value)
{
    return json_object_is_type(value, json_type_string)
           ? json_object_get_string(value) : NULL;
}

size_t crm_json_count(json_object *value)
{
    return json_object_is_type(value, json_type_array)
           ? json_object_array_length(value) : 0;
}

void crm_json_add_text(json_object *object, const char *name,
                       const char *text)
{
    if (text) {
        json_object_object_add(object, name, json_object_new_string(text));
    }
}

const char *crm_json_end(json_object *value, apr_pool_t *result_pool)
{
    const char *text = apr_pstrdup(result_pool, json_object_to_json_string_ext(
                                       value, JSON_C_TO_STRING_PLAIN
                                       | JSON_C_TO_STRING_NOSLASHESCAPE));

    json_object_put(value);
    return text;
}
