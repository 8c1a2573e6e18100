/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_body.c: reading the body of a form as names and texts */
#include "intake_form_body.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_form.h"
#include "crm_json.h"
#include "crm_media.h"
#include "crm_query.h"

/* ---- JSON ---------------------------------------------------------------- */

/* Add VALUE, a scalar, to ANSWERS. Return the rule that it breaks, or NULL. */
static const char *take_value(apr_array_header_t *answers, const char *name,
                              json_object *value, apr_pool_t *pool)
{
    const char *text;
    apr_size_t len;

    if (!value) {
        return NULL;
    }
    if (json_object_is_type(value, json_type_object)
        || json_object_is_type(value, json_type_array)) {
        return "must be a string, a number, true or false, or an array of "
               "these";
    }
    text = json_object_get_string(value);
    len = json_object_is_type(value, json_type_string)
          ? (apr_size_t)json_object_get_string_len(value) : strlen(text);
    if (memchr(text, '\0', len)) {
        return "must not contain U+0000";
    }
    crm_form_add(answers, name, apr_pstrmemdup(pool, text, len), len);
    return NULL;
}

/* Add the members of BODY (LEN bytes), a JSON object, to ANSWERS. */
static crm_error_t *read_json(apr_array_header_t *answers, const char *body,
                              apr_size_t len, apr_pool_t *pool)
{
    crm_error_t *error = NULL;
    const char *rule;
    json_object *all;

    CRM_ERR(crm_json_body(&all, body, len, pool));
    if (!json_object_is_type(all, json_type_object)) {
        return crm_error_create(CRM_E_VALIDATION, "The body must be an "
                                "object", pool);
    }
    json_object_object_foreach(all, key, value) {
        int many = json_object_is_type(value, json_type_array);
        size_t count = many ? json_object_array_length(value) : 1;
        const char *name = apr_pstrdup(pool, key);

        rule = NULL;
        for (size_t i = 0; i < count && !rule; i++) {
            rule = answers->nelts == CRM_ACCESS_FIELDS_MAX
                ? "must not come after so many answers"
                : take_value(answers, name, many
                             ? json_object_array_get_idx(value, i) : value,
                             pool);
        }
        if (rule) {
            crm_error_detail(&error, name, rule, pool);
        }
    }
    return error;
}

/* ---- all formats --------------------------------------------------------- */

int crm_webform_is_json(const crm_call_t *call)
{
    return crm_media_is_json(crm_request_header(call->request, "Content-Type"));
}

int crm_webform_wants_json(const crm_call_t *call)
{
    const char *accept = crm_request_header(call->request, "Accept");

    return crm_webform_is_json(call)
           || (accept && strcasestr(accept, "application/json")
               && !strcasestr(accept, "text/html"));
}

crm_error_t *crm_webform_read(apr_array_header_t **answers_p,
                              const char *body, apr_size_t len,
                              const char *content_type,
                              apr_pool_t *result_pool)
{
    crm_error_t *error;

    if (crm_media_is_json(content_type)) {
        *answers_p = apr_array_make(result_pool, 16,
                                    sizeof(crm_query_param_t));
        return read_json(*answers_p, body, len, result_pool);
    }
    error = crm_form_parse(answers_p, body, len, content_type,
                           CRM_ACCESS_FIELDS_MAX, result_pool);
    if (error && error->code == CRM_E_UNSUPPORTED_MEDIA_TYPE) {
        error->message = "The form must be sent as "
                         "application/x-www-form-urlencoded, "
                         "multipart/form-data or application/json";
    }
    return error;
}
