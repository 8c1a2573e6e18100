/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_merge.c: merge fields: {{first_name|there}} */
#include "crmapid_merge.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_resources.h"
#include "crm_text.h"

/* Return VALUE as text, NULL if it has none: null, "", a list, an object. */
static const char *text_of(json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_string:
    case json_type_boolean:
    case json_type_int:
    case json_type_double:
        break;
    default:
        return NULL;
    }
    return *json_object_get_string(value) ? json_object_get_string(value)
                                          : NULL;
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

/* Return whether RESOURCE has a field NAME that is a text, a number or a time;
 * lists and objects have names of their own here. */
static int is_scalar(const crm_resource_t *resource, const char *name)
{
    const crm_field_t *field = crm_resource_field(resource, name);

    return field && field->type != &crm_type_object
           && field->type != &crm_type_tags && field->type != &crm_type_emails
           && field->type != &crm_type_phones
           && field->type != &crm_type_strings;
}

static const char *full_name(json_object *contact, apr_pool_t *pool)
{
    const char *first = text_of(json_object_object_get(contact, "first_name"));
    const char *last = text_of(json_object_object_get(contact, "last_name"));

    return first && last ? apr_pstrcat(pool, first, " ", last, NULL)
           : first ? first : last;
}

/* Objects whose fields are named with a prefix. */
static json_object *object_of(const char *prefix, size_t len,
                              const crmd_subject_t *subject,
                              const crm_resource_t **resource_p)
{
    if (len == 7 && !strncmp(prefix, "contact", len)) {
        *resource_p = &crm_resource_contact;
        return subject->contact;
    }
    if (len == 7 && !strncmp(prefix, "company", len)) {
        *resource_p = &crm_resource_company;
        return subject->company;
    }
    if (len == 5 && !strncmp(prefix, "agent", len)) {
        *resource_p = &crm_resource_agent;
        return subject->agent;
    }
    *resource_p = NULL;
    return NULL;
}

/* Set *VALUE_P to what NAME is for SUBJECT, NULL if that is empty. Return 0 if
 * there is no such field. */
static int find_value(const char **value_p, const char *name,
                      const crmd_subject_t *subject, apr_pool_t *pool)
{
    json_object *contact = subject->contact;
    const crm_resource_t *resource;
    const char *dot = strchr(name, '.');
    json_object *object;

    *value_p = NULL;
    if (!strcmp(name, "email")) {
        *value_p = primary(contact, "emails", "email");
        return 1;
    }
    if (!strcmp(name, "phone_number")) {
        *value_p = primary(contact, "phone_numbers", "phone_number");
        return 1;
    }
    if (!strcmp(name, "full_name")) {
        *value_p = full_name(contact, pool);
        return 1;
    }
    if (!strcmp(name, "company")) {
        *value_p = text_of(json_object_object_get(contact, name));
        if (!*value_p) {
            *value_p = text_of(json_object_object_get(subject->company,
                                                      "name"));
        }
        return 1;
    }
    if (!strcmp(name, "template.name")) {
        *value_p = text_of(json_object_object_get(subject->plan, "name"));
        return 1;
    }
    if (!strncmp(name, "custom.", 7) && name[7]) {
        object = json_object_object_get(contact, "custom_fields");
        *value_p = text_of(json_object_object_get(object, name + 7));
        return 1;
    }
    if (!dot) {
        *value_p = text_of(json_object_object_get(contact, name));
        return is_scalar(&crm_resource_contact, name);
    }
    object = object_of(name, (size_t)(dot - name), subject, &resource);
    if (!resource || !is_scalar(resource, dot + 1)) {
        return 0;
    }
    *value_p = text_of(json_object_object_get(object, dot + 1));
    return 1;
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

/* Add to BUF what the field FIELD, without its braces, is. Return NULL or what
 * is wrong. */
static const char *put_field(crm_buf_t *buf, char *field,
                             const crmd_subject_t *subject, int one_line,
                             apr_pool_t *pool)
{
    char *bar = strchr(field, '|');
    const char *fallback = bar ? trimmed(bar + 1, strlen(bar + 1), pool) : NULL;
    const char *name, *value;

    name = trimmed(field, bar ? (size_t)(bar - field) : strlen(field), pool);
    if (!find_value(&value, name, subject, pool)) {
        return apr_psprintf(pool, "{{%s}} is not a known field", name);
    }
    if (!value) {
        value = fallback;
    }
    if (!value) {
        return apr_psprintf(pool, "{{%s}} is empty here, and there is no"
                            " fallback", name);
    }
    for (; *value; value++) {
        crm_buf_putc(buf, one_line && strchr("\r\n", *value) ? ' ' : *value);
    }
    return NULL;
}

const char *crmd_merge(const char **out_p, const char *text,
                       const crmd_subject_t *subject, int one_line, int max,
                       apr_pool_t *pool)
{
    const char *wrong, *open, *close;
    crm_buf_t buf;

    crm_buf_init(&buf, strlen(text) + 256, pool);
    while ((open = strstr(text, "{{"))) {
        crm_buf_add(&buf, text, (apr_size_t)(open - text));
        close = strstr(open, "}}");
        if (!close) {
            return "a {{ is not closed";
        }
        wrong = put_field(&buf, apr_pstrmemdup(pool, open + 2, (apr_size_t)(
                                                   close - open - 2)),
                          subject, one_line, pool);
        if (wrong) {
            return wrong;
        }
        text = close + 2;
    }
    crm_buf_puts(&buf, text);
    if (crm_text_length(buf.data, buf.len) > (apr_size_t)max) {
        return apr_psprintf(pool, "must have at most %d characters, with its"
                            " fields filled in", max);
    }
    crm_buf_putc(&buf, '\0');
    *out_p = buf.data;
    return NULL;
}
