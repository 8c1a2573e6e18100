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

/* Quotes that texts may have around them. */
static const struct {
    const char *open;
    const char *close;
} quotes[] = {
    {"\"", "\""}, {"'", "'"}, {"\u201c", "\u201d"}, {"\u2018", "\u2019"},
};

/* Return what is in the quotes that TEXT begins with, in POOL, and set *REST_P to what
 * follows them; NULL if there are none. */
static const char *in_quotes(const char **rest_p, const char *text, apr_pool_t *pool)
{
    for (size_t i = 0; i < CRM_NELTS(quotes); i++) {
        size_t len = strlen(quotes[i].open);
        const char *end = strncmp(text, quotes[i].open, len) ? NULL
                          : strstr(text + len, quotes[i].close);

        if (end) {
            *rest_p = end + strlen(quotes[i].close);
            return apr_pstrmemdup(pool, text + len,
                                  (apr_size_t)(end - text) - len);
        }
    }
    return NULL;
}

/* Return what a filter has behind its name, in POOL: the text in quotes, or what
 * follows a colon or "=". Return NULL if REST is no such thing. */
static const char *argument_of(const char *rest, apr_pool_t *pool)
{
    size_t span = strspn(rest, " :(=");
    const char *behind = NULL, *quoted = in_quotes(&behind, rest + span, pool);

    if (!quoted) {
        return rest[span] && !strchr("\"'", rest[span])
               && (memchr(rest, ':', span) || memchr(rest, '=', span))
               ? rest + span : NULL;
    }
    return span && (!*behind || !strcmp(behind, ")") || *behind == ',')
           ? quoted : NULL;
}

/* Set *ARGUMENT_P to the fallback that the filter PIECE has, in POOL, or to NULL.
 * Return PIECE's name if it is another filter that programs have, else NULL. They
 * write default: "x", default("x"), fallback="x", upcase. */
static const char *read_filter(const char **argument_p, const char *piece,
                               apr_pool_t *pool)
{
    static const char *const defaults[] = {"default", "fallback"};
    static const char *const others[] = {
        "append", "capfirst", "capitalize", "downcase", "escape", "html_escape",
        "lower", "lowercase", "prepend", "replace", "safe", "strip", "strip_html",
        "striptags", "title", "titlecase", "titleize", "trim", "truncate", "upcase",
        "upper", "uppercase", "url_encode", "urlencode"
    };
    size_t len = strcspn(piece, " :(=\"'");
    const char *name = apr_pstrmemdup(pool, piece, len);

    *argument_p = CRM_EQUALS_ONE_OF(name, defaults)
                  ? argument_of(piece + len, pool) : NULL;
    return CRM_IS_ONE_OF(name, others) && strchr(":(", piece[len]) ? name : NULL;
}

/* Return the length of the piece at TEXT, which ends with a '|' outside of quotes or
 * with a NUL. */
static size_t piece_len(const char *text)
{
    const char *end = text;

    while (*end && *end != '|') {
        const char *close = *end == '"' || *end == '\'' ? strchr(end + 1, *end) : NULL;

        end = close ? close + 1 : end + 1;
    }
    return (size_t)(end - text);
}

/* Set *FALLBACK_P to the fallback that TEXT, behind a '|', is, in POOL: what its filter
 * "default" says, or all of it, without quotes around it. Return NULL, or the name of a
 * filter that is not known: it would be said to people. */
static const char *read_fallback(const char **fallback_p, const char *text,
                                 apr_pool_t *pool)
{
    const char *all, *at, *argument, *rest = "";
    int plain = 0;

    text += *text == '|';       /* "a || b" */
    all = crm_text_trimmed(text, strlen(text), pool);
    for (at = text; ; at++) {
        size_t len = piece_len(at);
        const char *other = read_filter(&argument, crm_text_trimmed(at, len, pool),
                                        pool);

        if (other) {
            return other;
        }
        plain |= !argument;
        at += len;
        if (!*at) {
            break;
        }
    }
    *fallback_p = plain ? in_quotes(&rest, all, pool) : argument;
    *fallback_p = *fallback_p && !*rest ? *fallback_p : all;
    return NULL;
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

/* Return the name that FIELD, the text between the braces, has, in POOL, without blanks
 * of any script around it: editors write no-break spaces. */
static const char *name_of(const char *field, apr_pool_t *pool)
{
    apr_size_t len = strcspn(field, "|");

    crm_text_trim_blanks(&field, &len);
    return apr_pstrmemdup(pool, field, len);
}

/* Add the value of FIELD, the text between the braces, or its fallback. Return
 * NULL, or the rule that FIELD breaks. */
static const char *put_field(merging_t *merging, const char *field)
{
    apr_pool_t *pool = merging->pool;
    const char *bar = strchr(field, '|'), *fallback = NULL;
    const char *name = name_of(field, pool);
    const char *filter = bar ? read_fallback(&fallback, bar + 1, pool) : NULL;
    const char *value;

    if (strstr(field, "{{")) {
        return "a {{ is within another field";
    }
    if (!find_value(&value, name, merging->subject, pool)) {
        return apr_psprintf(pool, "{{%s}} is not a known field",
                            crm_name_shown(name));
    }
    if (filter) {
        return apr_psprintf(pool, "{{%s}} has the filter %s, and only default is known",
                            crm_name_shown(name), filter);
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
