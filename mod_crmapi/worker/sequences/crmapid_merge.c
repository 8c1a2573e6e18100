/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_merge.c: merge fields: {{first_name|there}} */
#include "crmapid_merge.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_resources.h"
#include "crm_text.h"

/* A text being filled in. */
typedef struct merging_t {
    const crmd_subject_t *subject;
    crm_buf_t buf;
    int one_line;
    int trying;                 /* values do not matter */
    apr_pool_t *pool;
} merging_t;

/* Return VALUE as text, NULL if it has none: null, "", blanks, a list, an
 * object. */
static const char *text_of(json_object *value)
{
    const char *text;

    switch (json_object_get_type(value)) {
    case json_type_string:
    case json_type_boolean:
    case json_type_int:
    case json_type_double:
        break;
    default:
        return NULL;
    }
    text = json_object_get_string(value);
    return text[strspn(text, " \t\r\n")] ? text : NULL;
}

/* Return the member MEMBER of the primary address of OBJECT's list NAME. */
static const char *primary(json_object *object, const char *name,
                           const char *member)
{
    json_object *list = json_object_object_get(object, name);
    json_object *found = NULL;

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);

        if (!found || json_object_get_boolean(
                json_object_object_get(entry, "is_primary"))) {
            found = entry;
        }
    }
    return text_of(json_object_object_get(found, member));
}

/* Return whether RESOURCE has a field NAME that is a text, a number or a time:
 * only the types of lists and objects have an empty value. */
static int is_scalar(const crm_resource_t *resource, const char *name)
{
    const crm_field_t *field = crm_resource_field(resource, name);

    return field && !field->type->empty;
}

static const char *full_name(json_object *contact, apr_pool_t *pool)
{
    const char *first = text_of(json_object_object_get(contact, "first_name"));
    const char *last = text_of(json_object_object_get(contact, "last_name"));

    return first && last ? apr_pstrcat(pool, first, " ", last, NULL)
           : first ? first : last;
}

/* Set *VALUE_P to what NAME is of the contact. Return 0 if there is no such
 * field. */
static int contact_value(const char **value_p, const char *name,
                         const crmd_subject_t *subject, apr_pool_t *pool)
{
    json_object *contact = subject->contact;

    if (!strcmp(name, "email")) {
        *value_p = primary(contact, "emails", "email");
    }
    else if (!strcmp(name, "phone_number")) {
        *value_p = primary(contact, "phone_numbers", "phone_number");
    }
    else if (!strcmp(name, "full_name")) {
        *value_p = full_name(contact, pool);
    }
    else if (!is_scalar(&crm_resource_contact, name)) {
        return 0;
    }
    else {
        *value_p = text_of(json_object_object_get(contact, name));
        if (!*value_p && !strcmp(name, "company")) {
            *value_p = text_of(json_object_object_get(subject->company,
                                                      "name"));
        }
    }
    return 1;
}

/* Set *VALUE_P to the field NAME of OBJECT, of RESOURCE, likewise. */
static int object_value(const char **value_p, const char *name,
                        json_object *object, const crm_resource_t *resource)
{
    *value_p = text_of(json_object_object_get(object, name));
    return is_scalar(resource, name);
}

/* Set *VALUE_P to what NAME is for SUBJECT, NULL if that is empty. Return 0 if
 * there is no such field. */
static int find_value(const char **value_p, const char *name,
                      const crmd_subject_t *subject, apr_pool_t *pool)
{
    const char *dot = strchr(name, '.');

    *value_p = NULL;
    if (!dot) {
        return contact_value(value_p, name, subject, pool);
    }
    dot++;
    if (!strncmp(name, "contact.", 8)) {
        return contact_value(value_p, dot, subject, pool);
    }
    if (!strncmp(name, "company.", 8)) {
        return object_value(value_p, dot, subject->company,
                            &crm_resource_company);
    }
    if (!strncmp(name, "agent.", 6)) {
        return object_value(value_p, dot, subject->agent,
                            &crm_resource_agent);
    }
    if (!strncmp(name, "custom.", 7)) {
        *value_p = text_of(json_object_object_get(
                               json_object_object_get(subject->contact,
                                                      "custom_fields"), dot));
        return *dot != '\0';
    }
    *value_p = text_of(json_object_object_get(subject->plan, "name"));
    return !strcmp(name, "template.name");
}

/* Return the LEN characters at TEXT without blanks at their ends. */
static char *trimmed(const char *text, size_t len, apr_pool_t *pool)
{
    while (len && strchr(" \t\r\n", *text)) {
        text++;
        len--;
    }
    while (len && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    return apr_pstrmemdup(pool, text, len);
}

/* Add what the field FIELD, without its braces, is. Return NULL or what is
 * wrong. */
static const char *put_field(merging_t *merging, const char *field)
{
    apr_pool_t *pool = merging->pool;
    const char *bar = strchr(field, '|');
    const char *fallback = bar ? trimmed(bar + 1, strlen(bar + 1), pool) : NULL;
    const char *name, *value;

    name = trimmed(field, bar ? (size_t)(bar - field) : strlen(field), pool);
    if (strstr(field, "{{")) {
        return "a {{ is in another";
    }
    if (!find_value(&value, name, merging->subject, pool)) {
        return apr_psprintf(pool, "{{%s}} is not a known field",
                            crmd_name_shown(name));
    }
    if (!value) {
        value = fallback;
    }
    if (!value && !merging->trying) {
        return apr_psprintf(pool, "{{%s}} is empty here, and there is no"
                            " fallback", crmd_name_shown(name));
    }
    for (; value && *value; value++) {
        crm_buf_putc(&merging->buf, merging->one_line
                     && (*value == '\r' || *value == '\n') ? ' ' : *value);
    }
    return NULL;
}

/* Add what comes at *TEXT_P, which begins with "{{", and move that behind
 * it. */
static const char *put_braces(merging_t *merging, const char **text_p)
{
    const char *begin = *text_p + 2;
    const char *end;

    if (!strncmp(begin, "{{", 2)) {
        crm_buf_puts(&merging->buf, "{{");
        *text_p = begin + 2;
        return NULL;
    }
    end = strstr(begin, "}}");
    if (!end) {
        return "a {{ is not closed";
    }
    *text_p = end + 2;
    return put_field(merging, apr_pstrmemdup(merging->pool, begin,
                                             (apr_size_t)(end - begin)));
}

/* Return NULL or what is wrong with what MERGING has made. */
static const char *judge(const merging_t *merging, int max)
{
    const char *text = merging->buf.data;
    apr_size_t len = merging->buf.len;

    if (crm_text_length(text, len) > (apr_size_t)max) {
        return apr_psprintf(merging->pool, "must have at most %d characters,"
                            " with its fields filled in", max);
    }
    crm_text_trim(&text, &len);
    return len ? NULL : "is empty with its fields filled in";
}

const char *crmd_merge(const char **out_p, const char *text,
                       const crmd_subject_t *subject, int one_line, int max,
                       apr_pool_t *pool)
{
    merging_t merging = {.subject = subject, .one_line = one_line,
                         .trying = !out_p, .pool = pool};
    const char *wrong = NULL, *open;

    crm_buf_init(&merging.buf, strlen(text) + 256, pool);
    /* What is too long in bytes, too, ends this early: many fields of long
     * values could fill the memory. */
    while (!wrong && merging.buf.len <= (apr_size_t)max * 4
           && (open = strstr(text, "{{"))) {
        crm_buf_add(&merging.buf, text, (apr_size_t)(open - text));
        text = open;
        wrong = put_braces(&merging, &text);
    }
    if (wrong || !out_p) {
        return wrong;
    }
    crm_buf_puts(&merging.buf, text);
    wrong = judge(&merging, max);
    crm_buf_putc(&merging.buf, '\0');
    *out_p = merging.buf.data;
    return wrong;
}
