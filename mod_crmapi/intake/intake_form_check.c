/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_check.c: checking all answers to a form */
#include "intake_form_check.h"

#include <stddef.h>
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_buf.h"
#include "crm_query.h"
#include "crm_text.h"
#include "crm_type_list.h"
#include "intake_form_rules.h"

#define ANSWERS_MAX 65536       /* bytes of JSON (contract 6.3) */

/* The state of checking a submission. */
typedef struct check_t {
    crm_webform_taken_t *taken;
    const crm_webform_t *form;
    const apr_array_header_t *answers;
    apr_pool_t *pool;
    crm_error_t *error;
    crm_buf_t responses;
    crm_buf_t contact;
    crm_buf_t content;
    const char *first_name;
    const char *last_name;
    int count;                  /* number of fields with an answer */
} check_t;

/* Add the member NAME to the JSON object in BUF: VALUE itself if LITERAL,
 * otherwise as a string. */
static void add_member(crm_buf_t *buf, const char *name, const char *value,
                       int literal)
{
    if (buf->data[buf->len - 1] != '{') {
        crm_buf_putc(buf, ',');
    }
    crm_buf_json_text(buf, name);
    crm_buf_putc(buf, ':');
    if (literal) {
        crm_buf_puts(buf, value);
    }
    else {
        crm_buf_json_text(buf, value);
    }
}

/* Store VALUE of FIELD, which belongs to the contact. */
static void keep_standard(check_t *check, const crm_webform_field_t *field,
                          const char *value)
{
    static const struct {
        const char *name;
        size_t taken;
    } places[] = {
        {"email", offsetof(crm_webform_taken_t, email)},
        {"phone_number", offsetof(crm_webform_taken_t, phone)},
        {"phone", offsetof(crm_webform_taken_t, phone)},
        {"name", offsetof(crm_webform_taken_t, name)},
    };

    for (size_t i = 0; i < CRM_NELTS(places); i++) {
        if (!strcmp(field->name, places[i].name)) {
            *(const char **)(void *)((char *)check->taken + places[i].taken) =
                value;
            return;
        }
    }
    if (!strcmp(field->name, "first_name")) {
        check->first_name = value;
    }
    else if (!strcmp(field->name, "last_name")) {
        check->last_name = value;
    }
    add_member(&check->contact, field->name, value, 0);
}

/* Store VALUES (of const char *), the answer to FIELD. */
static void keep(check_t *check, const crm_webform_field_t *field,
                 const apr_array_header_t *values)
{
    const char *first = APR_ARRAY_IDX(values, 0, const char *);
    crm_buf_t list;

    crm_buf_puts(&check->content, field->label);
    crm_buf_init(&list, 64, check->pool);
    for (int i = 0; i < values->nelts; i++) {
        const char *value = APR_ARRAY_IDX(values, i, const char *);
        const crm_webform_option_t *option = crm_webform_option(field, value);

        crm_buf_puts(&check->content, i ? ", " : ": ");
        crm_buf_puts(&check->content, option ? option->label : value);
        crm_buf_putc(&list, i ? ',' : '[');
        crm_buf_json_text(&list, value);
    }
    crm_buf_putc(&check->content, '\n');
    crm_buf_add(&list, "]", 2);
    check->count++;
    if (field->standard) {
        keep_standard(check, field, first);
    }
    else if (field->type == CRM_WEBFORM_MULTISELECT) {
        add_member(&check->responses, field->name, list.data, 1);
    }
    else {
        add_member(&check->responses, field->name, first,
                   field->type == CRM_WEBFORM_NUMBER
                   || field->type == CRM_WEBFORM_INTEGER
                   || field->type == CRM_WEBFORM_BOOLEAN);
    }
}

/* Add TEXT, an answer to FIELD, to VALUES, unless it is there. Return the rule that it
 * breaks, or NULL. */
static const char *add_answer(apr_array_header_t *values, const check_t *check,
                              const crm_webform_field_t *field, const char *text)
{
    const char *value, *rule = crm_webform_rule(&value, field, text, check->pool);

    if (rule) {
        return rule;
    }
    if (field->type == CRM_WEBFORM_BOOLEAN) {
        values->nelts = 0;      /* the hidden "false" before a checkbox */
    }
    if (!crm_array_has(values, value)) {
        APR_ARRAY_PUSH(values, const char *) = value;
    }
    return NULL;
}

/* As add_answer(), for TEXT that breaks RULE: scripts join the answers of a
 * multiselect with commas. */
static const char *add_joined(apr_array_header_t *values, const check_t *check,
                              const crm_webform_field_t *field, const char *text,
                              const char *rule)
{
    apr_array_header_t *parts;

    if (field->type != CRM_WEBFORM_MULTISELECT || !strchr(text, ',')) {
        return rule;
    }
    parts = crm_type_parts(text, check->pool);
    if (!parts->nelts || parts->nelts > field->options->nelts) {
        return rule;
    }
    rule = NULL;
    for (int i = 0; !rule && i < parts->nelts; i++) {
        rule = add_answer(values, check, field,
                          APR_ARRAY_IDX(parts, i, const char *));
    }
    return rule;
}

/* Return the rule of FIELD that its answers break, or NULL. *VALUES_P (of const
 * char *) = its answers, trimmed, without empty ones and duplicates. */
static const char *gather(apr_array_header_t **values_p, const check_t *check,
                          const crm_webform_field_t *field)
{
    apr_array_header_t *values = apr_array_make(check->pool, 1,
                                                sizeof(const char *));

    *values_p = values;
    for (int i = 0; i < check->answers->nelts; i++) {
        const crm_query_param_t *one =
            &APR_ARRAY_IDX(check->answers, i, crm_query_param_t);
        const char *text = one->value, *rule;
        apr_size_t len = one->value_len;

        if (strcmp(one->name, field->name) || !crm_text_shows(text)) {
            continue;
        }
        crm_text_trim_blanks(&text, &len);
        text = apr_pstrmemdup(check->pool, text, len);
        rule = add_answer(values, check, field, text);
        if (rule) {
            rule = add_joined(values, check, field, text, rule);
        }
        if (rule) {
            return rule;
        }
    }
    if (field->required && field->type == CRM_WEBFORM_BOOLEAN
        && !crm_array_has(values, "true")) {
        return "must be ticked";
    }
    if (!values->nelts) {
        return field->required ? "is required" : NULL;
    }
    return values->nelts > 1 && field->type != CRM_WEBFORM_MULTISELECT
           ? "must be one answer" : NULL;
}

/* Return whether answer I is the first with its name. */
static int is_first(const check_t *check, int i)
{
    const char *name = APR_ARRAY_IDX(check->answers, i,
                                     crm_query_param_t).name;

    for (int j = 0; j < i; j++) {
        if (!strcmp(APR_ARRAY_IDX(check->answers, j, crm_query_param_t).name,
                    name)) {
            return 0;
        }
    }
    return 1;
}

/* Return the length of NAME without "[]", or a number in brackets, at its end. */
static apr_size_t bare_length(const char *name)
{
    apr_size_t len = strlen(name);

    if (!len || name[len - 1] != ']') {
        return len;
    }
    for (apr_size_t i = len - 1; i > 0; i--) {
        if (name[i - 1] == '[') {
            return i - 1;
        }
        if (!apr_isdigit(name[i - 1])) {
            break;
        }
    }
    return len;
}

/* Leave brackets out at the end of ANSWER's name, unless FORM has a field of that name.
 * Pages that PHP makes, jQuery and axios add "[]" to names with several answers, PHP's
 * http_build_query() and qs "[0]", "[1]" ... */
static void leave_brackets_out(crm_query_param_t *answer,
                               const crm_webform_t *form, apr_pool_t *pool)
{
    apr_size_t len = bare_length(answer->name);
    const crm_webform_field_t *field;
    const char *name;

    if (!answer->name[len] || crm_webform_field(form, answer->name)) {
        return;
    }
    name = apr_pstrmemdup(pool, answer->name, len);
    field = crm_webform_field(form, name);
    if (field && field->type == CRM_WEBFORM_MULTISELECT) {
        answer->name = name;
    }
}

/* Store the answers in the order in which they were sent. */
static void take(check_t *check, int strict)
{
    for (int i = 0; i < check->answers->nelts; i++) {
        const char *name = APR_ARRAY_IDX(check->answers, i,
                                         crm_query_param_t).name;
        const crm_webform_field_t *field = crm_webform_field(check->form,
                                                             name);
        apr_array_header_t *values;

        if (!field && strict && strcmp(name, check->form->honeypot)
            && strcmp(name, "submission_id")) {
            crm_error_detail(&check->error, name, "is not a known field",
                             check->pool);
        }
        if (field && is_first(check, i) && !gather(&values, check, field)
            && values->nelts) {
            keep(check, field, values);
        }
    }
}

/* Add the errors, in the order of the form's fields. */
static void find_errors(check_t *check)
{
    for (int i = 0; i < check->form->fields->nelts; i++) {
        const crm_webform_field_t *field =
            &APR_ARRAY_IDX(check->form->fields, i, crm_webform_field_t);
        apr_array_header_t *values;
        const char *rule = gather(&values, check, field);

        if (rule) {
            crm_error_detail(&check->error, field->name, rule, check->pool);
        }
    }
}

/* Return the content of BUF as a string. */
static const char *get_string(crm_buf_t *buf)
{
    crm_buf_putc(buf, '\0');
    return buf->data;
}

/* Set the results that depend on several answers. */
static void finish(check_t *check)
{
    crm_webform_taken_t *taken = check->taken;

    if (check->form->lead_source) {
        add_member(&check->contact, "lead_source", check->form->lead_source,
                   0);
    }
    crm_buf_putc(&check->contact, '}');
    crm_buf_putc(&check->responses, '}');
    if (!taken->name && (check->first_name || check->last_name)) {
        taken->name = check->first_name && check->last_name
            ? apr_pstrcat(check->pool, check->first_name, " ",
                          check->last_name, NULL)
            : check->first_name ? check->first_name : check->last_name;
    }
    if (check->content.len) {
        check->content.len--;   /* remove the last newline */
    }
    taken->contact = get_string(&check->contact);
    taken->responses = get_string(&check->responses);
    taken->content = get_string(&check->content);
}

crm_error_t *crm_webform_check(crm_webform_taken_t *taken,
                               const crm_webform_t *form,
                               const apr_array_header_t *answers, int strict,
                               apr_pool_t *result_pool)
{
    check_t check = {.taken = taken, .form = form, .answers = answers,
                     .pool = result_pool};

    memset(taken, 0, sizeof(*taken));
    crm_buf_init(&check.responses, 256, result_pool);
    crm_buf_init(&check.contact, 256, result_pool);
    crm_buf_init(&check.content, 256, result_pool);
    crm_buf_putc(&check.responses, '{');
    crm_buf_putc(&check.contact, '{');
    for (int i = 0; i < answers->nelts; i++) {
        leave_brackets_out(&APR_ARRAY_IDX(answers, i, crm_query_param_t), form,
                           result_pool);
    }
    take(&check, strict);
    find_errors(&check);
    CRM_ERR(check.error);
    if (!check.count) {
        return crm_error_create(CRM_E_VALIDATION, "The form is empty",
                                result_pool);
    }
    if (check.responses.len >= ANSWERS_MAX
        || check.content.len >= ANSWERS_MAX) {
        return crm_error_create(CRM_E_VALIDATION, "The answers are longer "
                                "than 64 KiB in all", result_pool);
    }
    finish(&check);
    return NULL;
}
