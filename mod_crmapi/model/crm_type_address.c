/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_address.c: lists of e-mails and of phone numbers (contract 9.2) */
#include "crm_type_address.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_email.h"
#include "crm_json.h"
#include "crm_phone.h"
#include "crm_text.h"

#define ADDRESSES_MAX 50        /* contract 6.3 */

/* What differs between e-mail and phone lists. */
typedef struct kind_t {
    const char *member;         /* the name of the address in an entry */
    int last;                   /* MEMBER follows is_primary, because jsonb
                                   sorts members by length */
    const char *(*check)(const char *text, apr_size_t len, apr_pool_t *pool);
    const char *(*key)(const char *text, apr_pool_t *pool); /* equal: one */
    const char *rule;           /* error of an entry that is neither a string
                                   nor an object */
} kind_t;

static const char *phone_check(const char *text, apr_size_t len,
                               apr_pool_t *pool)
{
    (void)pool;
    return crm_text_phone(text, len);
}

static const kind_t email_kind = {
    "email", 0, crm_email_check, crm_email_key,
    "must be a string or an object with email"
};
static const kind_t phone_kind = {
    "phone_number", 1, phone_check, crm_phone_key,
    "must be a string or an object with phone_number"
};

/* An entry of an e-mail or phone list. */
typedef struct address_t {
    const char *text;
    const char *key;            /* equal keys are one address */
    int primary;
} address_t;

static const kind_t *kind_of(const crm_field_t *field)
{
    return field->type == &crm_type_emails ? &email_kind : &phone_kind;
}

/* Return the entry of LIST with KEY, or NULL. */
static address_t *find_address(const apr_array_header_t *list,
                               const char *key)
{
    for (int i = 0; i < list->nelts; i++) {
        address_t *entry = &APR_ARRAY_IDX(list, i, address_t);

        if (!strcmp(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

/* Add TEXT to LIST, a list of KIND. If it has an equal entry, only set that
 * entry's primary flag if PRIMARY. */
static void add_address(apr_array_header_t *list, const kind_t *kind,
                        const char *text, int primary)
{
    const char *key = kind->key(text, list->pool);
    address_t *entry = find_address(list, key);

    if (!entry) {
        entry = apr_array_push(list);
        entry->text = text;
        entry->key = key;
        entry->primary = 0;
    }
    entry->primary |= primary;
}

/* Read VALUE, the member "is_primary" of the entry at PATH, into *PRIMARY_P. */
static void read_primary(int *primary_p, crm_input_t *input, const char *path,
                         json_object *value)
{
    if (!value) {
        return;
    }
    if (!json_object_is_type(value, json_type_boolean)) {
        crm_input_error(input, apr_pstrcat(input->pool, path, ".is_primary",
                                           NULL), "must be true or false");
        return;
    }
    *primary_p = json_object_get_boolean(value);
}

/* Read the members of ENTRY, an object at PATH, into *ADDRESS_P and
 * *PRIMARY_P. */
static void read_object(json_object **address_p, int *primary_p,
                        crm_input_t *input, const kind_t *kind,
                        const char *path, json_object *entry)
{
    const char *const names[] = {kind->member, "is_primary", NULL};

    json_object_object_foreach(entry, name, value) {
        if (!strcmp(name, kind->member)) {
            *address_p = value;
        }
        else if (!strcmp(name, "is_primary")) {
            read_primary(primary_p, input, path, value);
        }
        else {
            crm_input_unknown(input, apr_pstrcat(input->pool, path, ".", name,
                                                 NULL), name, NULL, names);
        }
    }
}

/* Read ENTRY at PATH into LIST, a list of KIND. Return whether it is marked as
 * primary. */
static int read_entry(apr_array_header_t *list, crm_input_t *input,
                      const kind_t *kind, const char *path,
                      json_object *entry)
{
    json_object *address = entry;
    const char *text, *rule;
    int primary = 0;

    if (json_object_is_type(entry, json_type_object)) {
        address = NULL;
        read_object(&address, &primary, input, kind, path, entry);
        path = apr_pstrcat(input->pool, path, ".", kind->member, NULL);
        if (!address) {
            crm_input_error(input, path, "is required");
            return primary;
        }
    }
    if (!json_object_is_type(address, json_type_string)) {
        crm_input_error(input, path, address == entry ? kind->rule
                        : "must be a string");
        return primary;
    }
    text = json_object_get_string(address);
    rule = strlen(text) == (apr_size_t)json_object_get_string_len(address)
            ? kind->check(text, strlen(text), input->pool)
            : "must not contain U+0000";
    if (rule) {
        crm_input_error(input, path, rule);
    }
    else {
        add_address(list, kind, text, primary);
    }
    return primary;
}

/* Return LIST as JSON in POOL. If no entry is primary, the first one is. */
static const char *list_json(apr_array_header_t *list, const kind_t *kind,
                             apr_pool_t *pool)
{
    crm_buf_t buf;
    int primary = 0;

    for (int i = 0; i < list->nelts; i++) {
        if (APR_ARRAY_IDX(list, i, address_t).primary) {
            primary = i;
        }
    }
    crm_buf_init(&buf, 64, pool);
    crm_buf_putc(&buf, '[');
    for (int i = 0; i < list->nelts; i++) {
        const char *text = APR_ARRAY_IDX(list, i, address_t).text;
        const char *is_primary = i == primary ? "\"is_primary\":true"
                                 : "\"is_primary\":false";

        crm_buf_printf(&buf, "%s{%s%s\"%s\":", i ? "," : "",
                       kind->last ? is_primary : "", kind->last ? "," : "",
                       kind->member);
        crm_buf_json_text(&buf, text);
        crm_buf_printf(&buf, "%s%s}", kind->last ? "" : ",",
                       kind->last ? "" : is_primary);
    }
    crm_buf_putc(&buf, ']');
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

static void addresses_parse(const char **bind_p, crm_input_t *input,
                            const crm_field_t *field, const char *path,
                            json_object *value)
{
    const kind_t *kind = kind_of(field);
    int before = crm_input_errors(input);
    apr_array_header_t *list;
    int count, primaries = 0;

    if (!json_object_is_type(value, json_type_array)) {
        crm_input_error(input, path, "must be an array");
        return;
    }
    count = (int)json_object_array_length(value);
    if (count > ADDRESSES_MAX) {
        crm_input_error(input, path, "must have at most 50 items");
        return;
    }
    list = apr_array_make(input->pool, count + 1, sizeof(address_t));
    for (int i = 0; i < count; i++) {
        primaries += read_entry(list, input, kind,
                                apr_psprintf(input->pool, "%s[%d]", path, i),
                                json_object_array_get_idx(value, (size_t)i));
    }
    if (primaries > 1) {
        crm_input_error(input, path,
                        "must not have more than one is_primary");
    }
    if (crm_input_errors(input) == before) {
        *bind_p = list_json(list, kind, input->pool);
    }
}

/* Add the entries of JSON, a bind of KIND or a value of the database, to LIST. If
 * PRIMARY, they keep their primary flag. An entry without an address is left out: a
 * forged dump may have one. */
static void read_bind(apr_array_header_t *list, const kind_t *kind,
                      const char *json, int primary, apr_pool_t *pool)
{
    json_object *array = json_tokener_parse(json);
    size_t count = array ? json_object_array_length(array) : 0;

    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(array, i);
        json_object *text, *is_primary;

        json_object_object_get_ex(entry, kind->member, &text);
        json_object_object_get_ex(entry, "is_primary", &is_primary);
        if (crm_json_text(text)) {
            add_address(list, kind, apr_pstrdup(pool, crm_json_text(text)),
                        primary && json_object_get_boolean(is_primary));
        }
    }
    json_object_put(array);
}

void crm_type_merge(const char **merged_p, const crm_field_t *field,
                    const char *have, const char *more, apr_pool_t *pool)
{
    const kind_t *kind = kind_of(field);
    apr_array_header_t *list = apr_array_make(pool, 8, sizeof(address_t));

    if (!strcmp(crm_type_json(field, have, pool), more)) {
        *merged_p = more;
        return;
    }
    read_bind(list, kind, have, 1, pool);
    read_bind(list, kind, more, list->nelts == 0, pool);
    *merged_p = list_json(list, kind, pool);
}

static void addresses_schema(crm_buf_t *buf, const crm_field_t *field,
                             crm_side_t side)
{
    int email = kind_of(field) == &email_kind;
    const char *title = email ? "Email" : "Phone";

    crm_type_schema(buf, "array", field, side);
    if (side == CRM_SIDE_OUTPUT) {
        crm_buf_printf(buf, ",\"items\":{\"$ref\":\"#/components/schemas/"
                       "%s\"}", title);
    }
    else {
        crm_buf_printf(buf, ",\"maxItems\":50,\"items\":{\"anyOf\":["
                       "{\"$ref\":\"#/components/schemas/%s\"},{\"$ref\":"
                       "\"#/components/schemas/%sInput\"}]}",
                       email ? "EmailAddress" : "PhoneNumber", title);
    }
}

const crm_type_t crm_type_emails = {
    .name = "emails", .cast = "jsonb", .empty = "[]",
    .parse = addresses_parse, .write = crm_buf_json_compact,
    .schema = addresses_schema,
};

const crm_type_t crm_type_phones = {
    .name = "phones", .cast = "jsonb", .empty = "[]",
    .parse = addresses_parse, .write = crm_buf_json_compact,
    .schema = addresses_schema,
};

/* ---- an address that a filter asks for ------------------------------------ */

#define EMAIL_MAX 254           /* contract 6.3 */

static const char *email_asked(const char **bind_p, const crm_field_t *field,
                               const char *text, apr_pool_t *pool)
{
    return crm_text_length(text, strlen(text)) > EMAIL_MAX
           ? "must have at most 254 characters"
           : crm_type_email.parse_query(bind_p, field, text, pool);
}

static void email_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    crm_type_email.schema(buf, field, side);
}

const crm_type_t crm_type_email_asked = {
    .name = "email", .cast = "text", .parse_query = email_asked,
    .schema = email_schema,
};

/* A '+' that arrived as a space is repaired. */
static const char *phone_asked(const char **bind_p, const crm_field_t *field,
                               const char *text, apr_pool_t *pool)
{
    apr_size_t len = strlen(text);

    if (len > field->max) {
        return "must have at most 100 characters";
    }
    *bind_p = *text == ' ' ? apr_pstrcat(pool, "+", text + 1, NULL) : text;
    return NULL;
}

static void phone_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    (void)side;
    crm_buf_printf(buf, "\"type\":\"string\",\"minLength\":1,"
                   "\"maxLength\":%d", (int)field->max);
}

const crm_type_t crm_type_phone_asked = {
    .name = "phone", .cast = "text", .parse_query = phone_asked,
    .schema = phone_schema,
};
