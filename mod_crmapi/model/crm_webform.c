/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform.c: the configuration of a form (docs/forms.md) */
#include "crm_webform.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_json.h"
#include "crm_near.h"
#include "crm_text.h"

/* The columns' maximum lengths in characters. The configuration may set lower
 * ones. */
#define LINE_MAX_CHARS 1000
#define PROSE_MAX_CHARS 16384
#define URL_MAX_CHARS 2048
#define EMAIL_MAX_CHARS 254
#define PHONE_MAX_CHARS 64

#define HONEYPOT "website_hp"

/* The names of types in the configuration, and the maximum length of each. */
static const crm_webform_kind_t types[] = {
    {"text", CRM_WEBFORM_TEXT, LINE_MAX_CHARS},
    {"textarea", CRM_WEBFORM_TEXTAREA, PROSE_MAX_CHARS},
    {"number", CRM_WEBFORM_NUMBER, LINE_MAX_CHARS},
    {"integer", CRM_WEBFORM_INTEGER, LINE_MAX_CHARS},
    {"boolean", CRM_WEBFORM_BOOLEAN, LINE_MAX_CHARS},
    {"checkbox", CRM_WEBFORM_BOOLEAN, LINE_MAX_CHARS},
    {"date", CRM_WEBFORM_DATE, LINE_MAX_CHARS},
    {"email", CRM_WEBFORM_EMAIL, EMAIL_MAX_CHARS},
    {"url", CRM_WEBFORM_URL, URL_MAX_CHARS},
    {"phone", CRM_WEBFORM_PHONE, PHONE_MAX_CHARS},
    {"tel", CRM_WEBFORM_PHONE, PHONE_MAX_CHARS},
    {"select", CRM_WEBFORM_SELECT, LINE_MAX_CHARS},
    {"radio", CRM_WEBFORM_SELECT, LINE_MAX_CHARS},
    {"multiselect", CRM_WEBFORM_MULTISELECT, LINE_MAX_CHARS},
};

/* Fields of the contact, and whether a form has them by default. */
static const struct {
    const char *name;
    const char *label;
    const char *type;
    int is_default;
} standards[] = {
    {"email", "E-mail", "email", 1},
    {"phone_number", "Phone", "phone", 1},
    {"phone", "Phone", "phone", 0},     /* as many name it */
    {"name", "Name", "text", 1},
    {"first_name", "First name", "text", 1},
    {"last_name", "Last name", "text", 1},
    {"company", "Company", "text", 1},
    {"job_title", "Job title", "text", 0},
    {"address_line1", "Address", "text", 0},
    {"address_line2", "Address, second line", "text", 0},
    {"city", "City", "text", 0},
    {"state", "State", "text", 0},
    {"postal_code", "Postal code", "text", 0},
    {"country", "Country", "text", 0},
    {"linkedin_url", "LinkedIn", "url", 0},
};

const crm_webform_kind_t *crm_webform_kind(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(types); i++) {
        if (!strcmp(types[i].name, name)) {
            return &types[i];
        }
    }
    return NULL;
}

const crm_webform_kind_t *crm_webform_standard(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(standards); i++) {
        if (!strcmp(standards[i].name, name)) {
            return crm_webform_kind(standards[i].type);
        }
    }
    return NULL;
}

const char *crm_webform_near(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(standards); i++) {
        if (crm_near(standards[i].name, name)) {
            return standards[i].name;
        }
    }
    return NULL;
}

/* ---- reading JSON -------------------------------------------------------- */

/* Return the member NAME of OBJECT (any JSON, or NULL), or NULL. */
static json_object *member(json_object *object, const char *name)
{
    json_object *value = NULL;

    return json_object_is_type(object, json_type_object)
           && json_object_object_get_ex(object, name, &value) ? value : NULL;
}

/* Return VALUE as text in POOL if it is a number or a string that is not empty,
 * or NULL. */
static const char *text_of(json_object *value, apr_pool_t *pool)
{
    const char *text = NULL;

    if (json_object_is_type(value, json_type_string)
        || json_object_is_type(value, json_type_int)
        || json_object_is_type(value, json_type_double)) {
        text = json_object_get_string(value);
    }
    return text && *text ? apr_pstrdup(pool, text) : NULL;
}

apr_size_t crm_webform_length(json_object *config, const char *name,
                              apr_size_t max, apr_size_t default_length)
{
    json_object *value = member(config, name);
    apr_int64_t length = json_object_is_type(value, json_type_int)
                         ? json_object_get_int64(value) : 0;

    return length > 0 && (apr_uint64_t)length <= max ? (apr_size_t)length
                                                     : default_length;
}

const char *crm_webform_option_value(json_object *one, apr_pool_t *result_pool)
{
    const char *value = text_of(json_object_is_type(one, json_type_object)
                                ? member(one, "value") : one, result_pool);
    apr_size_t len;

    if (!value) {
        return NULL;
    }
    len = strlen(value);
    crm_text_trim_blanks(&value, &len);
    return len ? apr_pstrmemdup(result_pool, value, len) : NULL;
}

/* Return the options in LIST: strings, or objects {value, label}. */
static const apr_array_header_t *options_of(json_object *list,
                                            apr_pool_t *pool)
{
    apr_array_header_t *options =
        apr_array_make(pool, 8, sizeof(crm_webform_option_t));
    size_t count = crm_json_count(list);

    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *value = crm_webform_option_value(one, pool);
        const char *label = text_of(member(one, "label"), pool);

        if (value) {
            crm_webform_option_t *option = apr_array_push(options);

            option->value = value;
            option->label = label ? label : value;
        }
    }
    return options;
}

/* ---- fields -------------------------------------------------------------- */

const crm_webform_field_t *crm_webform_field(const crm_webform_t *form,
                                             const char *name)
{
    for (int i = 0; i < form->fields->nelts; i++) {
        const crm_webform_field_t *field =
            &APR_ARRAY_IDX(form->fields, i, crm_webform_field_t);

        if (!strcmp(field->name, name)) {
            return field;
        }
    }
    return NULL;
}

/* Return whether CONFIG enables its field: it is an object, true, or a
 * label. */
static int is_enabled(json_object *config)
{
    json_object *enabled = member(config, "enabled");

    return json_object_is_type(config, json_type_object)
           ? !json_object_is_type(enabled, json_type_boolean)
             || json_object_get_boolean(enabled)
           : json_object_is_type(config, json_type_string)
             || (json_object_is_type(config, json_type_boolean)
                 && json_object_get_boolean(config));
}

/* Add the field NAME of TYPE to FORM as CONFIG describes it. LABEL is the
 * default label. */
static void add_field(crm_webform_t *form, const char *name,
                      const char *label, const char *type,
                      json_object *config, apr_pool_t *pool)
{
    json_object *required = member(config, "required");
    const char *own = text_of(member(config, "label"), pool);
    const crm_webform_kind_t *kind = type ? crm_webform_kind(type) : NULL;
    crm_webform_field_t *field;

    if (crm_webform_field(form, name)) {
        return;
    }
    kind = kind ? kind : &types[0];
    field = apr_array_push(form->fields);
    memset(field, 0, sizeof(*field));
    field->name = apr_pstrdup(pool, name);
    field->label = own ? own : apr_pstrdup(pool, label);
    if (json_object_is_type(config, json_type_string)
        && text_of(config, pool)) {
        field->label = text_of(config, pool);
    }
    field->type = kind->type;
    field->required = json_object_is_type(required, json_type_boolean)
                      && json_object_get_boolean(required);
    field->max_length = crm_webform_length(config, "max_length", kind->max,
                                           kind->max);
    field->min_length = crm_webform_length(config, "min_length",
                                           field->max_length, 0);
    field->min = text_of(member(config, "min"), pool);
    field->max = text_of(member(config, "max"), pool);
    field->options = options_of(member(config, "options"), pool);
}

/* Add the fields of the contact in CONFIG, or the default ones if it has
 * none. */
static void add_standard(crm_webform_t *form, json_object *config,
                         apr_pool_t *pool)
{
    int named = 0;

    for (size_t i = 0; i < CRM_NELTS(standards); i++) {
        named |= json_object_is_type(config, json_type_object)
                 && json_object_object_get_ex(config, standards[i].name, NULL);
    }
    for (size_t i = 0; i < CRM_NELTS(standards); i++) {
        json_object *own = member(config, standards[i].name);

        if (named ? is_enabled(own) : standards[i].is_default) {
            add_field(form, standards[i].name, standards[i].label,
                      standards[i].type, own, pool);
        }
    }
    for (int i = 0; i < form->fields->nelts; i++) {
        APR_ARRAY_IDX(form->fields, i, crm_webform_field_t).standard = 1;
    }
}

/* Add the fields in CONFIG, the custom fields or a survey. */
static void add_own(crm_webform_t *form, json_object *config,
                    apr_pool_t *pool)
{
    if (!json_object_is_type(config, json_type_object)) {
        return;
    }
    json_object_object_foreach(config, name, own) {
        if (is_enabled(own)) {
            add_field(form, name, name, text_of(member(own, "type"), pool),
                      own, pool);
        }
    }
}

/* ---- settings ------------------------------------------------------------ */

int crm_webform_url_ok(const char *url)
{
    size_t scheme = !strncasecmp(url, "https://", 8) ? 8
                    : !strncasecmp(url, "http://", 7) ? 7 : 0;

    if (!scheme || !url[scheme] || strlen(url) > URL_MAX_CHARS) {
        return 0;
    }
    for (const char *c = url; *c; c++) {
        if (*c <= ' ' || *c >= 0x7f) {
            return 0;
        }
    }
    return 1;
}

/* Set FORM's settings from CONFIG. */
static void read_settings(crm_webform_t *form, json_object *config,
                          apr_pool_t *pool)
{
    json_object *list = member(config, "allowed_origins");
    const char *honeypot = text_of(member(config, "honeypot"), pool);
    const char *url = text_of(member(config, "redirect_url"), pool);
    apr_array_header_t *origins;

    form->redirect_url = url && crm_webform_url_ok(url) ? url : NULL;
    form->thank_you = text_of(member(config, "thank_you"), pool);
    form->lead_source = text_of(member(config, "lead_source"), pool);
    form->honeypot = honeypot ? honeypot : HONEYPOT;
    form->origins = NULL;
    if (!json_object_is_type(list, json_type_array)) {
        return;
    }
    origins = apr_array_make(pool, 4, sizeof(const char *));
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *one = text_of(json_object_array_get_idx(list, i), pool);

        if (one) {
            APR_ARRAY_PUSH(origins, const char *) = one;
        }
    }
    form->origins = origins->nelts ? origins : NULL;
}

void crm_webform_configure(crm_webform_t *form, json_object *standard,
                           json_object *custom, json_object *survey,
                           apr_pool_t *result_pool)
{
    form->fields = apr_array_make(result_pool, 16,
                                  sizeof(crm_webform_field_t));
    add_standard(form, standard, result_pool);
    add_own(form, custom, result_pool);
    add_own(form, survey, result_pool);
    read_settings(form, member(standard, CRM_WEBFORM_SETTINGS), result_pool);
}
