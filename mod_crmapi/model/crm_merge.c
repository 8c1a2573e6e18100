/* SPDX-License-Identifier: Apache-2.0 */
/* crm_merge.c: merge fields: {{first_name|there}} */
#include "crm_merge.h"

#include <string.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_buf.h"
#include "crm_pointer.h"
#include "crm_resources.h"
#include "crm_text.h"
#include "crm_value.h"

/* A text whose fields are being replaced. */
typedef struct merging_t {
    const crm_subject_t *subject;
    crm_buf_t buf;
    int one_line;
    int syntax_only;            /* no field is replaced */
    apr_hash_t *shown;          /* of const char *: values by fields' names */
    apr_pool_t *pool;
} merging_t;

/* Return VALUE as text. NULL: it is null, blank, a list or an object. */
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

/* Return MEMBER of the primary entry of OBJECT's list NAME; without a primary
 * entry, of the first. */
static const char *primary(json_object *object, const char *name,
                           const char *member)
{
    json_object *list = json_object_object_get(object, name);
    json_object *best = NULL;

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);

        if (!best || json_object_get_boolean(
                json_object_object_get(entry, "is_primary"))) {
            best = entry;
        }
    }
    return text_of(json_object_object_get(best, member));
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

/* Set *VALUE_P to the contact's field NAME. Return 0 if there is no such
 * field. */
static int contact_value(const char **value_p, const char *name,
                         const crm_subject_t *subject, apr_pool_t *pool)
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

/* Set *VALUE_P to the field NAME of OBJECT, a row of RESOURCE. Return 0 if
 * there is no such field. */
static int object_value(const char **value_p, const char *name,
                        json_object *object, const crm_resource_t *resource)
{
    *value_p = text_of(json_object_object_get(object, name));
    return is_scalar(resource, name);
}

/* Return the custom field that NAME, a field of the contact, names; NULL if it names
 * another one. */
static const char *custom_field(const char *name)
{
    static const char *const prefixes[] = {"custom.", "custom_fields."};

    for (size_t i = 0; i < CRM_NELTS(prefixes); i++) {
        size_t len = strlen(prefixes[i]);

        if (!strncmp(name, prefixes[i], len) && name[len]) {
            return name + len;
        }
    }
    return NULL;
}

/* Set *VALUE_P to the value of the merge field NAME for SUBJECT, NULL if it is
 * empty. Return 0 if there is no such field. */
static int find_value(const char **value_p, const char *name,
                      const crm_subject_t *subject, apr_pool_t *pool)
{
    const char *dot = strchr(name, '.'), *custom;
    int contact = !strncmp(name, "contact.", 8);

    *value_p = NULL;
    custom = custom_field(contact ? name + 8 : name);
    if (custom) {
        *value_p = text_of(json_object_object_get(
                               json_object_object_get(subject->contact,
                                                      "custom_fields"),
                               custom));
        return 1;
    }
    if (!dot || contact) {
        return contact_value(value_p, contact ? name + 8 : name, subject,
                             pool);
    }
    dot++;
    if (!strncmp(name, "company.", 8)) {
        return object_value(value_p, dot, subject->company,
                            &crm_resource_company);
    }
    if (!strncmp(name, "agent.", 6)) {
        return object_value(value_p, dot, subject->agent,
                            &crm_resource_agent);
    }
    *value_p = text_of(json_object_object_get(subject->plan, "name"));
    return !strcmp(name, "template.name");
}

/* Return what a filter has behind its name, in POOL: the text in quotes, or what
 * follows a colon. Return NULL if REST is no such thing. */
static const char *argument_of(const char *rest, apr_pool_t *pool)
{
    size_t span = strspn(rest, " :(=");
    const char *open = rest + span, *close;

    if (*open != '"' && *open != '\'') {
        return *open && memchr(rest, ':', span) ? open : NULL;
    }
    close = strrchr(open + 1, *open);
    return span && close && (!close[1] || !strcmp(close + 1, ")"))
           ? apr_pstrmemdup(pool, open + 1, (apr_size_t)(close - open - 1))
           : NULL;
}

/* Return the fallback that TEXT is, in POOL. Templates of other programs write "x" as
 * a filter: default: "x", default("x"), fallback="x". */
static const char *fallback_of(const char *text, apr_pool_t *pool)
{
    static const char *const filters[] = {"default", "fallback"};
    const char *fallback = crm_text_trimmed(text, strlen(text), pool);

    for (size_t i = 0; i < CRM_NELTS(filters); i++) {
        size_t len = strlen(filters[i]);
        const char *argument = strncmp(fallback, filters[i], len) ? NULL
                               : argument_of(fallback + len, pool);

        if (argument) {
            return argument;
        }
    }
    return fallback;
}

/* Return whether the field NAME is the workspace's own. Other values may be what
 * a stranger wrote. */
static int is_own(const char *name)
{
    return !strncmp(name, "agent.", 6) || !strcmp(name, "template.name");
}

/* Return VALUE, that of the field NAME, as it is shown. */
static const char *shown(merging_t *merging, const char *name,
                         const char *value)
{
    const char *made = apr_hash_get(merging->shown, name,
                                    APR_HASH_KEY_STRING);

    if (!made) {
        made = is_own(name) ? crm_value_line(value, merging->pool)
                            : crm_value_show(value, merging->pool);
        apr_hash_set(merging->shown, name, APR_HASH_KEY_STRING, made);
    }
    return made;
}

/* Add the value of FIELD, the text between the braces, or its fallback. Return
 * NULL, or the rule that FIELD breaks. */
static const char *put_field(merging_t *merging, const char *field)
{
    apr_pool_t *pool = merging->pool;
    const char *bar = strchr(field, '|');
    const char *fallback = bar ? fallback_of(bar + 1, pool) : NULL;
    const char *name = crm_text_trimmed(field, strcspn(field, "|"), pool);
    const char *value;

    if (strstr(field, "{{")) {
        return "a {{ is within another field";
    }
    if (!find_value(&value, name, merging->subject, pool)) {
        return apr_psprintf(pool, "{{%s}} is not a known field",
                            crm_name_shown(name));
    }
    value = value ? shown(merging, name, value) : "";
    if (merging->syntax_only) {
        return NULL;
    }
    value = *value ? value : fallback;
    if (!value) {
        return apr_psprintf(pool, "{{%s}} is empty here, and there is no"
                            " fallback", crm_name_shown(name));
    }
    for (; value && *value; value++) {
        crm_buf_putc(&merging->buf, merging->one_line
                     && (*value == '\r' || *value == '\n') ? ' ' : *value);
    }
    return NULL;
}

/* Add the field at *TEXT_P, which begins with "{{", and move *TEXT_P behind it.
 * "{{{{" is an escaped "{{". Return NULL, or the rule that is broken. */
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

/* Return the rule about a text of at most MAX characters, which HOW has more. */
static const char *too_long(int max, const char *how, apr_pool_t *pool)
{
    return apr_psprintf(pool, "must have at most %d characters, %s", max, how);
}

/* Check the result of MERGING. Return NULL, or the rule that it breaks. */
static const char *check_result(const merging_t *merging, int max)
{
    const char *text = merging->buf.data;
    apr_size_t len = merging->buf.len;

    if (crm_text_length(text, len) > (apr_size_t)max) {
        return too_long(max, "with its fields filled in", merging->pool);
    }
    return crm_text_shows(apr_pstrmemdup(merging->pool, text, len)) ? NULL
           : "is empty with its fields filled in";
}

const char *crm_merge(const char **out_p, const char *text,
                      const crm_subject_t *subject, int one_line, int max,
                      apr_pool_t *pool)
{
    merging_t merging = {.subject = subject, .one_line = one_line,
                         .syntax_only = !out_p,
                         .shown = apr_hash_make(pool), .pool = pool};
    const char *fault = NULL, *open;

    crm_buf_init(&merging.buf, strlen(text) + 256, pool);
    /* Stop once the result must be too long: many fields with long values could
     * use up the memory. */
    while (!fault && merging.buf.len <= (apr_size_t)max * 4
           && (open = strstr(text, "{{"))) {
        crm_buf_add(&merging.buf, text, (apr_size_t)(open - text));
        text = open;
        fault = put_braces(&merging, &text);
    }
    if (fault) {
        return fault;
    }
    crm_buf_puts(&merging.buf, text);
    if (!out_p) {
        return crm_text_length(merging.buf.data, merging.buf.len)
               > (apr_size_t)max ? too_long(max, "without its fields", pool)
               : NULL;
    }
    fault = check_result(&merging, max);
    crm_buf_putc(&merging.buf, '\0');
    *out_p = merging.buf.data;
    return fault;
}
