/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform_check.c: whether a form's configuration is right (contract 14.2) */
#include "crm_webform_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_json.h"
#include "crm_near.h"
#include "crm_number.h"
#include "crm_origin.h"
#include "crm_pointer.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crm_webform.h"

#define TEXT_MAX_CHARS 1000
#define THANKS_MAX_CHARS 65536
#define NAME_MAX_CHARS 255
#define OPTIONS_MAX 1000
#define DATE_LEN 10

/* Return whether VALUE is a string of 1 to MAX characters. */
static int is_text(json_object *value, apr_size_t max)
{
    const char *text = json_object_get_string(value);
    size_t len = (size_t)json_object_get_string_len(value);

    return json_object_is_type(value, json_type_string) && len
           && strlen(text) == len && crm_text_length(text, len) <= max;
}

static int is_number(json_object *value)
{
    return json_object_is_type(value, json_type_int)
           || json_object_is_type(value, json_type_double);
}

/* ---- the members of a field ---------------------------------------------- */

/* A field that is being checked. */
typedef struct checker_t {
    const crm_webform_kind_t *kind;     /* its type */
    json_object *config;                /* its members */
    const char *where;                  /* the place of what is checked */
    apr_pool_t *pool;
} checker_t;

static const char *check_boolean(checker_t *checker, json_object *value)
{
    (void)checker;
    return json_object_is_type(value, json_type_boolean) ? NULL
           : "must be true or false";
}

static const char *check_label(checker_t *checker, json_object *value)
{
    (void)checker;
    return is_text(value, TEXT_MAX_CHARS) ? NULL
           : "must be a text of 1 to 1,000 characters";
}

static const char *check_type(checker_t *checker, json_object *value)
{
    const char *text = crm_json_text(value);

    (void)checker;
    return text && crm_webform_kind(text) ? NULL
           : "must be text, textarea, number, integer, boolean, checkbox, date,"
             " email, url, phone, tel, select, radio or multiselect";
}

static const char *check_length(checker_t *checker, json_object *value)
{
    apr_int64_t length = json_object_is_type(value, json_type_int)
                         ? json_object_get_int64(value) : 0;

    return length > 0 && length <= (apr_int64_t)checker->kind->max ? NULL
           : apr_psprintf(checker->pool, "must be a number of characters from 1"
                          " to %" APR_SIZE_T_FMT, checker->kind->max);
}

/* Return whether VALUE is a number, or a string that is one in JSON. */
static int is_limit(json_object *value, apr_pool_t *pool)
{
    const char *text = json_object_get_string(value), *number;
    json_object *parsed = value;
    apr_size_t offset;

    return (!json_object_is_type(value, json_type_string)
            || !crm_json_parse(&parsed, &offset, text, strlen(text), pool))
           && is_number(parsed) && !crm_number_parse(&number, text, pool);
}

/* Check a limit: a number, or a date, as the field's type has it. */
static const char *check_limit(checker_t *checker, json_object *value)
{
    const char *text = json_object_get_string(value);
    apr_time_t time;

    if (checker->kind->type == CRM_WEBFORM_DATE) {
        return json_object_is_type(value, json_type_string)
               && strlen(text) == DATE_LEN
               && !crm_time_parse(&time, text, DATE_LEN)
               ? NULL : "must be a date such as 2026-12-31";
    }
    if (checker->kind->type != CRM_WEBFORM_NUMBER
        && checker->kind->type != CRM_WEBFORM_INTEGER) {
        return "belongs to a number, an integer or a date";
    }
    return is_limit(value, checker->pool) ? NULL : "must be a number";
}

/* Return the value of the option ONE, NULL if it has none that an answer can
 * have. */
static const char *option_value(checker_t *checker, json_object *one)
{
    json_object *value = json_object_is_type(one, json_type_object)
                         ? json_object_object_get(one, "value") : one;
    const char *text = is_text(value, TEXT_MAX_CHARS) || is_number(value)
                       ? crm_webform_option_value(one, checker->pool) : NULL;

    return text && crm_text_shows(text) ? text : NULL;
}

/* Check the option ONE. Its value is not among the COUNT of VALUES. */
static const char *check_option(checker_t *checker, json_object *one,
                                const char *const *values, size_t count)
{
    int is_object = json_object_is_type(one, json_type_object);
    json_object *label = is_object ? json_object_object_get(one, "label") : NULL;
    const char *place = checker->where;
    const char *value = option_value(checker, one);

    if (is_object) {
        checker->where = crm_pointer_member(place, "value", checker->pool);
    }
    if (!value) {
        return is_object ? "must be a text of 1 to 1,000 characters, or a number"
               : "must be a text, or an object with value and label";
    }
    if (crm_text_has_control(value, strlen(value))) {
        return "must be one line without control characters";
    }
    if (label && !is_text(label, TEXT_MAX_CHARS)) {
        checker->where = crm_pointer_member(place, "label", checker->pool);
        return "must be a text of 1 to 1,000 characters";
    }
    checker->where = place;
    return crm_words_have(values, count, value) ? "is there twice" : NULL;
}

static const char *check_options(checker_t *checker, json_object *list)
{
    size_t count = crm_json_count(list);
    const char *place = checker->where;
    const char **values;

    if (!count || count > OPTIONS_MAX) {
        return "must be an array of 1 to 1,000 options";
    }
    values = apr_palloc(checker->pool, count * sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *rule;

        checker->where = crm_pointer_item(place, (int)i, checker->pool);
        rule = check_option(checker, one, values, i);
        if (rule) {
            return rule;
        }
        values[i] = option_value(checker, one);
    }
    return NULL;
}

/* A member of an object, and its check. */
typedef struct member_t {
    const char *name;
    const char *(*check)(checker_t *checker, json_object *value);
} member_t;

static const member_t field_members[] = {
    {"type", check_type},       /* first: others depend on it */
    {"enabled", check_boolean},
    {"required", check_boolean},
    {"label", check_label},
    {"max_length", check_length},
    {"min_length", check_length},
    {"min", check_limit},
    {"max", check_limit},
    {"options", check_options},
    {NULL, NULL}
};

/* Check the members of OBJECT at PLACE that MEMBERS has, and that no other one
 * is nearly one of them; STRICT: that there is no other one. */
static const char *check_members(checker_t *checker, const char *place,
                                 json_object *object, const member_t *members,
                                 int strict)
{
    json_object_object_foreach(object, name, value) {
        const member_t *member = members;
        const char *rule = NULL, *near = NULL;

        checker->where = crm_pointer_member(place, name, checker->pool);
        while (member->name && strcmp(member->name, name)) {
            near = near || !crm_near(member->name, name) ? near : member->name;
            member++;
        }
        if (member->name) {
            rule = value ? member->check(checker, value) : NULL;
        }
        else if (near || strict) {
            rule = crm_near_ask("is not a known member", near, checker->pool);
        }
        if (rule) {
            return rule;
        }
    }
    return NULL;
}

/* Return whether the member LOW of the checked field is above its member HIGH;
 * DEFAULT_HIGH (0: none) is that of a field without one. */
static int is_above(checker_t *checker, const char *low, const char *high,
                    apr_size_t default_high)
{
    json_object *a = json_object_object_get(checker->config, low);
    json_object *b = json_object_object_get(checker->config, high);
    const char *from, *to;

    if (!a || (!b && !default_high)) {
        return 0;
    }
    if (checker->kind->type == CRM_WEBFORM_DATE && b
        && json_object_is_type(a, json_type_string)) {
        return strcmp(json_object_get_string(a), json_object_get_string(b)) > 0;
    }
    to = b ? json_object_get_string(b)
         : apr_psprintf(checker->pool, "%" APR_SIZE_T_FMT, default_high);
    return !crm_number_parse(&from, json_object_get_string(a), checker->pool)
           && !crm_number_parse(&to, to, checker->pool)
           && crm_number_compare(from, to) > 0;
}

/* Check that each option of the field at PLACE may be as long as it is. */
static const char *check_option_lengths(checker_t *checker, const char *place)
{
    json_object *list = json_object_object_get(checker->config, "options");
    apr_size_t most = checker->kind->max;
    apr_size_t max = crm_webform_length(checker->config, "max_length", most, most);
    apr_size_t min = crm_webform_length(checker->config, "min_length", max, 0);
    size_t count = list ? json_object_array_length(list) : 0;

    place = crm_pointer_member(place, "options", checker->pool);
    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *value = option_value(checker, one);
        apr_size_t length = crm_text_length(value, strlen(value));

        if (length < min || length > max) {
            checker->where = crm_pointer_item(place, (int)i, checker->pool);
            return length < min ? "is shorter than min_length"
                   : "is longer than max_length";
        }
    }
    return NULL;
}

/* Check what the members of the field at PLACE say together. */
static const char *check_together(checker_t *checker, const char *place)
{
    crm_webform_type_t type = checker->kind->type;

    if (is_above(checker, "min_length", "max_length", checker->kind->max)) {
        checker->where = crm_pointer_member(place, "min_length",
                                            checker->pool);
        return "must not be above max_length";
    }
    if (is_above(checker, "min", "max", 0)) {
        checker->where = crm_pointer_member(place, "min", checker->pool);
        return "must not be above max";
    }
    if (type != CRM_WEBFORM_SELECT && type != CRM_WEBFORM_MULTISELECT) {
        return NULL;
    }
    if (!json_object_object_get(checker->config, "options")) {
        checker->where = crm_pointer_member(place, "options", checker->pool);
        return "is required";
    }
    return check_option_lengths(checker, place);
}

/* Check CONFIG, the field at CHECKER's place. FIXED: its type, if it has no
 * choice. */
static const char *check_field(checker_t *checker, json_object *config,
                               const crm_webform_kind_t *fixed)
{
    const char *place = checker->where, *rule;
    json_object *type;

    if (json_object_is_type(config, json_type_string)) {
        return check_label(checker, config);
    }
    if (!json_object_is_type(config, json_type_object)) {
        return NULL;            /* true; of other programs anything else */
    }
    type = json_object_object_get(config, "type");
    checker->config = config;
    checker->kind = fixed;
    if (!fixed && crm_json_text(type)) {
        checker->kind = crm_webform_kind(crm_json_text(type));
    }
    if (!checker->kind) {
        checker->where = crm_pointer_member(place, "type", checker->pool);
        rule = type ? check_type(checker, type) : NULL;
        if (rule) {
            return rule;
        }
        checker->kind = crm_webform_kind("text");
    }
    rule = check_members(checker, place, config, field_members, 0);
    return rule ? rule : check_together(checker, place);
}

/* ---- settings ------------------------------------------------------------ */

static const char *check_url(checker_t *checker, json_object *value)
{
    const char *text = crm_json_text(value);

    (void)checker;
    return text && crm_webform_url_ok(text) ? NULL
           : "must be an absolute http or https URL";
}

static const char *check_thanks(checker_t *checker, json_object *value)
{
    (void)checker;
    return is_text(value, THANKS_MAX_CHARS) ? NULL
           : "must be a text of 1 to 65,536 characters";
}

static const char *check_origins(checker_t *checker, json_object *list)
{
    const char *place = checker->where;

    if (!json_object_is_type(list, json_type_array)) {
        return "must be an array of origins";
    }
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *one = crm_json_text(json_object_array_get_idx(list, i));
        const char *rule;

        checker->where = crm_pointer_item(place, (int)i, checker->pool);
        rule = crm_origin_rule(one ? one : "");
        if (rule) {
            return rule;
        }
    }
    return NULL;
}

static const member_t settings_members[] = {
    {"redirect_url", check_url},
    {"thank_you", check_thanks},
    {"honeypot", check_label},
    {"allowed_origins", check_origins},
    {"lead_source", check_label},
    {NULL, NULL}
};

/* ---- a form -------------------------------------------------------------- */

/* Return whether CONFIG says whether there is a field. What says neither would be none:
 * its answers would be lost. */
static int can_be_field(json_object *config)
{
    return !config || json_object_is_type(config, json_type_object)
           || json_object_is_type(config, json_type_string)
           || json_object_is_type(config, json_type_boolean);
}

/* Check CONFIG, the member NAME of standard_fields, at CHECKER's place. */
static const char *check_standard(checker_t *checker, const char *name,
                                  json_object *config)
{
    const crm_webform_kind_t *kind = crm_webform_standard(name);
    const char *near;

    if (!strcmp(name, CRM_WEBFORM_SETTINGS)) {
        return json_object_is_type(config, json_type_object)
               ? check_members(checker, checker->where, config,
                               settings_members, 1)
               : "must be an object";
    }
    if (kind) {
        return can_be_field(config) ? check_field(checker, config, kind)
               : "must be an object, a label, true or false";
    }
    near = crm_webform_near(name);
    return near ? apr_pstrcat(checker->pool, "is not a field of contacts; did"
                              " you mean ", near, "?", NULL) : NULL;
}

const char *crm_webform_config_rule(const char **where_p,
                                    json_object *config,
                                    crm_webform_part_t part, apr_pool_t *pool)
{
    checker_t checker = {.where = "", .pool = pool};
    const char *rule = NULL;

    *where_p = "";
    if (!json_object_is_type(config, json_type_object)) {
        return "must be an object";
    }
    json_object_object_foreach(config, name, own) {
        size_t len = strlen(name);

        checker.where = crm_pointer_member("", name, pool);
        rule = !len || crm_text_length(name, len) > NAME_MAX_CHARS
               ? "must have a name of 1 to 255 characters"
               : part == CRM_WEBFORM_STANDARD
                 ? check_standard(&checker, name, own)
                 : check_field(&checker, own, NULL);
        if (rule) {
            break;
        }
    }
    *where_p = checker.where;
    return rule;
}
