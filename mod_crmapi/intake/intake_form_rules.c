/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_rules.c: the rules of a field, checked for one answer */
#include "intake_form_rules.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_email.h"
#include "crm_form.h"
#include "crm_number.h"
#include "crm_text.h"
#include "crm_time.h"

#define DATE_LEN 10

/* What checkboxes and programs send for true and false. */
static const struct {
    const char *word;
    const char *means;
} boolean_words[] = {
    {"true", "true"}, {"on", "true"}, {"yes", "true"}, {"1", "true"},
    {"false", "false"}, {"off", "false"}, {"no", "false"}, {"0", "false"},
};

/* Return whether TEXT has a control character. Newlines and tabs are allowed if
 * MULTILINE. */
static int has_control(const char *text, int multiline)
{
    for (const char *c = text; *c; c++) {
        if (((unsigned char)*c < ' ' && !(multiline && strchr("\n\t", *c)))
            || *c == 0x7f) {
            return 1;
        }
    }
    return 0;
}

/* Return TEXT, a number in HTML's syntax ('-', digits, fraction, exponent), in
 * JSON's syntax, in POOL: "007.5" becomes "7.5". NULL if it is not a number. */
static const char *json_number(const char *text, apr_pool_t *pool)
{
    static const char digits[] = "0123456789";
    const char *sign = *text == '-' ? "-" : "";
    const char *whole = text + (*sign == '-');
    size_t zeros = strspn(whole, "0"), len = strspn(whole, digits);
    const char *rest = whole + len, *end = rest;
    size_t fraction = *end == '.' ? strspn(end + 1, digits) : 0;

    end += fraction ? fraction + 1 : 0;
    if (!len && !fraction) {
        return NULL;
    }
    if (*end == 'e' || *end == 'E') {
        end++;
        end += *end == '-' || *end == '+';
        if (!*end || strspn(end, digits) != strlen(end)) {
            return NULL;
        }
        end += strlen(end);
    }
    return *end ? NULL
           : apr_pstrcat(pool, sign, zeros == len ? "0" : "", whole + zeros,
                         NULL);
}

/* Return whether NUMBER, canonical, is greater (SIGN 1) or less (SIGN -1) than
 * LIMIT. A LIMIT that is NULL or not a number is ignored. */
static int exceeds(const char *number, int sign, const char *limit,
                   apr_pool_t *pool)
{
    const char *text = limit ? json_number(limit, pool) : NULL;
    const char *canonical;

    return text && !crm_number_parse(&canonical, text, pool)
           && sign * crm_number_compare(number, canonical) > 0;
}

static const char *number_rule(const char **canonical_p,
                               const crm_webform_field_t *field,
                               const char *value, apr_pool_t *pool)
{
    const char *text = json_number(value, pool);
    const char *rule = text ? crm_number_parse(canonical_p, text, pool)
                             : "must be a number";

    if (rule) {
        return rule;
    }
    if (field->type == CRM_WEBFORM_INTEGER && strchr(*canonical_p, '.')) {
        return "must be a whole number";
    }
    if (exceeds(*canonical_p, -1, field->min, pool)) {
        return apr_psprintf(pool, "must be at least %s", field->min);
    }
    return exceeds(*canonical_p, 1, field->max, pool)
           ? apr_psprintf(pool, "must be at most %s", field->max) : NULL;
}

static const char *date_rule(const crm_webform_field_t *field,
                             const char *value, apr_pool_t *pool)
{
    apr_time_t time;

    if (strlen(value) != DATE_LEN
        || crm_time_parse(&time, value, DATE_LEN)) {
        return "must be a date, for example 2026-12-31";
    }
    if (field->min && strcmp(value, field->min) < 0) {
        return apr_psprintf(pool, "must not be before %s", field->min);
    }
    return field->max && strcmp(value, field->max) > 0
           ? apr_psprintf(pool, "must not be after %s", field->max) : NULL;
}

static const char *url_rule(const char *value)
{
    size_t scheme = !strncasecmp(value, "https://", 8) ? 8
                    : !strncasecmp(value, "http://", 7) ? 7 : 0;

    return !scheme || !value[scheme] || strpbrk(value, " \"<>")
           ? "must be an address that begins with https:// or http://" : NULL;
}

static const char *boolean_rule(const char **canonical_p, const char *value)
{
    for (size_t i = 0; i < CRM_NELTS(boolean_words); i++) {
        if (!apr_cstr_casecmp(value, boolean_words[i].word)) {
            *canonical_p = boolean_words[i].means;
            return NULL;
        }
    }
    return "must be true or false";
}

const crm_webform_option_t *crm_webform_option(
    const crm_webform_field_t *field, const char *value)
{
    for (int i = 0; i < field->options->nelts; i++) {
        const crm_webform_option_t *option =
            &APR_ARRAY_IDX(field->options, i, crm_webform_option_t);

        if (!strcmp(option->value, value)) {
            return option;
        }
    }
    return NULL;
}

/* Return the length rule of FIELD that VALUE breaks, or NULL. */
static const char *length_rule(const crm_webform_field_t *field,
                               const char *value, apr_pool_t *pool)
{
    apr_size_t length = crm_text_length(value, strlen(value));

    if (length > field->max_length) {
        return apr_psprintf(pool, "must have at most %" APR_SIZE_T_FMT
                            " characters", field->max_length);
    }
    return length < field->min_length
           ? apr_psprintf(pool, "must have at least %" APR_SIZE_T_FMT
                          " characters", field->min_length) : NULL;
}

/* Return TEXT as it was meant, in POOL. In one line a tab is a blank: it is left by
 * the cells of a table. In a text of several lines the vertical tab and the form feed
 * are line ends: word processors break lines and pages by them. */
static const char *meant(const char *text, int multiline, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, crm_form_lines(text, pool));

    for (char *c = copy; *c; c++) {
        if (multiline && (*c == '\v' || *c == '\f')) {
            *c = '\n';
        }
        else if (!multiline && *c == '\t') {
            *c = ' ';
        }
    }
    return copy;
}

const char *crm_webform_rule(const char **canonical_p,
                             const crm_webform_field_t *field,
                             const char *value, apr_pool_t *pool)
{
    int multiline = field->type == CRM_WEBFORM_TEXTAREA;
    const char *rule;

    value = meant(value, multiline, pool);
    *canonical_p = value;
    rule = length_rule(field, value, pool);
    if (rule) {
        return rule;
    }
    if (has_control(value, multiline)) {
        return multiline ? "must not contain control characters"
                         : "must be one line without control characters";
    }
    switch (field->type) {
    case CRM_WEBFORM_NUMBER:
    case CRM_WEBFORM_INTEGER:
        return number_rule(canonical_p, field, value, pool);
    case CRM_WEBFORM_BOOLEAN:
        return boolean_rule(canonical_p, value);
    case CRM_WEBFORM_DATE:
        return date_rule(field, value, pool);
    case CRM_WEBFORM_EMAIL:
        return crm_email_check(value, strlen(value), pool);
    case CRM_WEBFORM_URL:
        return url_rule(value);
    case CRM_WEBFORM_PHONE:
        return crm_text_phone(value, strlen(value));
    case CRM_WEBFORM_SELECT:
    case CRM_WEBFORM_MULTISELECT:
        return crm_webform_option(field, value) ? NULL
                                         : "must be one of the options";
    default:
        return NULL;
    }
}
