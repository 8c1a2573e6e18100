/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_list.c: lists and free-form JSON: e-mails, phones, tags, objects */
#include "crm_type_list.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json_store.h"
#include "crm_phone.h"
#include "crm_sql.h"
#include "crm_text.h"
#include "crm_uuid.h"

/* Limits of contract 6.3. */
#define ADDRESSES_MAX 50
#define TAGS_MAX 100
#define IDS_MAX 100             /* contract 13.5 */
#define TAG_MAX 100
#define FREE_MAX 65536
#define FREE_DEPTH 16

/* ---- e-mail and phone lists (contract 9.2) ---- */

/* What differs between e-mail and phone lists. */
typedef struct kind_t {
    const char *member;         /* the name of the address in an entry */
    int last;                   /* MEMBER follows is_primary, because jsonb
                                   sorts members by length */
    const char *(*check)(const char *text, apr_size_t len);
    const char *(*key)(const char *text, apr_pool_t *pool); /* equal: one */
    const char *rule;           /* error of an entry that is neither a string
                                   nor an object */
} kind_t;

static const kind_t email_kind = {
    "email", 0, crm_text_email, crm_text_fold,
    "must be a string or an object with email"
};
static const kind_t phone_kind = {
    "phone_number", 1, crm_text_phone, crm_phone_key,
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
    json_object_object_foreach(entry, name, value) {
        if (!strcmp(name, kind->member)) {
            *address_p = value;
        }
        else if (!strcmp(name, "is_primary")) {
            read_primary(primary_p, input, path, value);
        }
        else if (!input->lenient) {
            crm_input_error(input, apr_pstrcat(input->pool, path, ".", name,
                                               NULL), "is not a known field");
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
            ? kind->check(text, strlen(text)) : "must not contain U+0000";
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
        crm_buf_json_string(&buf, text, strlen(text));
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

/* Add the entries of JSON, a bind of KIND, to LIST. If PRIMARY, they keep their
 * primary flag. */
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
        add_address(list, kind,
                    apr_pstrdup(pool, json_object_get_string(text)),
                    primary && json_object_get_boolean(is_primary));
    }
    json_object_put(array);
}

void crm_type_merge(const char **merged_p, const crm_field_t *field,
                    const char *have, const char *more, apr_pool_t *pool)
{
    const kind_t *kind = kind_of(field);
    apr_array_header_t *list = apr_array_make(pool, 8, sizeof(address_t));

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

/* ---- text[] ---- */

/* Copy the element at TEXT, in PostgreSQL's output of an array, to OUT,
 * unescaped, and set *LEN_P to its length. Return a pointer to the ',' or '}'
 * after it. */
static const char *next_element(char *out, apr_size_t *len_p,
                                const char *text)
{
    int quoted = *text == '"';
    char *start = out;

    text += quoted;
    while (*text && (quoted ? *text != '"' : *text != ',' && *text != '}')) {
        text += *text == '\\' && text[1];
        *out++ = *text++;
    }
    *len_p = (apr_size_t)(out - start);
    return text + (quoted && *text);
}

apr_array_header_t *crm_type_array_strings(const char *array,
                                           apr_pool_t *pool)
{
    apr_array_header_t *strings = apr_array_make(pool, 8, sizeof(char *));
    char *out = apr_palloc(pool, strlen(array) + 1);
    apr_size_t len;

    while ((*array == '{' || *array == ',') && array[1] != '}') {
        array = next_element(out, &len, array + 1);
        APR_ARRAY_PUSH(strings, const char *) = apr_pstrmemdup(pool, out, len);
    }
    return strings;
}

static void strings_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    char *out = malloc(len + 1);
    apr_size_t element;
    int count = 0;

    crm_buf_putc(buf, '[');
    while (out && (*text == '{' || *text == ',') && text[1] != '}') {
        text = next_element(out, &element, text + 1);
        if (count++) {
            crm_buf_putc(buf, ',');
        }
        crm_buf_json_string(buf, out, element);
    }
    crm_buf_putc(buf, ']');
    free(out);
}

/* Add TEXT to STRINGS unless it is an element already. */
static void add_string(apr_array_header_t *strings, const char *text)
{
    for (int i = 0; i < strings->nelts; i++) {
        if (!strcmp(APR_ARRAY_IDX(strings, i, const char *), text)) {
            return;
        }
    }
    APR_ARRAY_PUSH(strings, const char *) = text;
}

void crm_type_merge_tags(const char **merged_p, const char *have,
                         const char *more, apr_pool_t *pool)
{
    apr_array_header_t *tags = crm_type_array_strings(have, pool);
    apr_array_header_t *added = crm_type_array_strings(more, pool);

    for (int i = 0; i < added->nelts; i++) {
        add_string(tags, APR_ARRAY_IDX(added, i, const char *));
    }
    *merged_p = crm_sql_array(tags, pool);
}

/* Return NULL or the rule that TAG, an element of tags or strings, breaks. */
static const char *string_check(json_object *tag, int is_tag)
{
    const char *text;
    apr_size_t len;

    if (!json_object_is_type(tag, json_type_string)) {
        return "must be a string";
    }
    text = json_object_get_string(tag);
    len = strlen(text);
    if (len != (apr_size_t)json_object_get_string_len(tag)) {
        return "must not contain U+0000";
    }
    if (is_tag && !len) {
        return "must not be empty";
    }
    return is_tag && crm_text_length(text, len) > TAG_MAX
           ? "must have at most 100 characters"
           : len > FREE_MAX ? "is too long" : NULL;
}

static void strings_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    int is_tag = field->type == &crm_type_tags;
    int before = crm_input_errors(input);
    apr_array_header_t *strings;
    int count;

    if (!json_object_is_type(value, json_type_array)) {
        crm_input_error(input, path, "must be an array of strings");
        return;
    }
    count = (int)json_object_array_length(value);
    if (count > (is_tag ? TAGS_MAX : 1000)) {
        crm_input_error(input, path, is_tag ? "must have at most 100 items"
                        : "must have at most 1000 items");
        return;
    }
    strings = apr_array_make(input->pool, count + 1, sizeof(const char *));
    for (int i = 0; i < count; i++) {
        json_object *tag = json_object_array_get_idx(value, (size_t)i);
        const char *rule = string_check(tag, is_tag);

        if (rule) {
            crm_input_error(input, apr_psprintf(input->pool, "%s[%d]", path,
                                                i), rule);
        }
        else if (is_tag) {
            add_string(strings, json_object_get_string(tag));
        }
        else {
            APR_ARRAY_PUSH(strings, const char *) =
                json_object_get_string(tag);
        }
    }
    if (crm_input_errors(input) == before) {
        *bind_p = crm_sql_array(strings, input->pool);
    }
}

/* Return the parts of TEXT, "a,b", an array of const char * in POOL. They are
 * trimmed, and empty ones are left out (contract 7.4). */
static apr_array_header_t *split(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 4, sizeof(const char *));
    char *last, *copy = apr_pstrdup(pool, text);

    for (char *part = apr_strtok(copy, ",", &last); part;
         part = apr_strtok(NULL, ",", &last)) {
        const char *trimmed = part;
        apr_size_t len = strlen(part);

        crm_text_trim(&trimmed, &len);
        if (len) {
            APR_ARRAY_PUSH(parts, const char *) =
                apr_pstrmemdup(pool, trimmed, len);
        }
    }
    return parts;
}

static const char *tags_parse_query(const char **bind_p,
                                    const crm_field_t *field,
                                    const char *text, apr_pool_t *pool)
{
    apr_array_header_t *tags = split(text, pool);

    (void)field;
    if (tags->nelts > TAGS_MAX) {
        return "must have at most 100 tags";
    }
    *bind_p = tags->nelts ? crm_sql_array(tags, pool) : "";
    return NULL;
}

static void strings_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    int is_tag = field->type == &crm_type_tags;

    if (side == CRM_SIDE_QUERY) {
        crm_buf_puts(buf, "\"type\":\"string\"");
        return;
    }
    crm_type_schema(buf, "array", field, side);
    crm_buf_puts(buf, side == CRM_SIDE_INPUT && is_tag
                 ? ",\"maxItems\":100,\"items\":{\"type\":\"string\","
                   "\"minLength\":1,\"maxLength\":100}"
                 : ",\"items\":{\"type\":\"string\"}");
}

const crm_type_t crm_type_tags = {
    .name = "tags", .cast = "text[]", .empty = "{}", .parse = strings_parse,
    .parse_query = tags_parse_query, .write = strings_write,
    .schema = strings_schema,
};

const crm_type_t crm_type_strings = {
    .name = "strings", .cast = "text[]", .empty = "{}",
    .parse = strings_parse, .write = strings_write, .schema = strings_schema,
};

/* ---- several ids (query only) ---- */

/* Malformed ids are left out (contract 13.5). */
static const char *ids_parse_query(const char **bind_p,
                                   const crm_field_t *field,
                                   const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = split(text, pool);
    apr_array_header_t *ids = apr_array_make(pool, parts->nelts,
                                             sizeof(const char *));

    (void)field;
    if (parts->nelts > IDS_MAX) {
        return "must have at most 100 ids";
    }
    for (int i = 0; i < parts->nelts; i++) {
        const char *part = APR_ARRAY_IDX(parts, i, const char *);
        char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

        if (crm_uuid_parse(id, part, strlen(part))) {
            APR_ARRAY_PUSH(ids, const char *) = id;
        }
    }
    *bind_p = crm_sql_array(ids, pool);
    return NULL;
}

static void ids_schema(crm_buf_t *buf, const crm_field_t *field,
                       crm_side_t side)
{
    (void)field;
    (void)side;
    crm_buf_puts(buf, "\"type\":\"string\"");
}

const crm_type_t crm_type_ids = {
    .name = "ids", .cast = "uuid[]", .parse_query = ids_parse_query,
    .schema = ids_schema,
};

/* ---- free-form JSON ---- */

/* Read VALUE, whose JSON type the caller has checked. */
static void free_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    apr_size_t max = field->max ? field->max : FREE_MAX;
    const char *inner, *rule;

    rule = crm_json_storable(bind_p, &inner, value, max, FREE_DEPTH,
                             input->pool);
    if (rule) {
        *bind_p = NULL;
        crm_input_error(input, apr_pstrcat(input->pool, path, inner, NULL),
                        rule);
    }
}

static void object_parse(const char **bind_p, crm_input_t *input,
                         const crm_field_t *field, const char *path,
                         json_object *value)
{
    if (json_object_is_type(value, json_type_object)) {
        free_parse(bind_p, input, field, path, value);
    }
    else {
        crm_input_error(input, path, "must be an object");
    }
}

static void object_schema(crm_buf_t *buf, const crm_field_t *field,
                          crm_side_t side)
{
    crm_type_schema(buf, "object", field, side);
    crm_buf_puts(buf, ",\"additionalProperties\":true");
}

const crm_type_t crm_type_object = {
    .name = "object", .cast = "jsonb", .empty = "{}", .parse = object_parse,
    .write = crm_buf_json_compact, .schema = object_schema,
};

static void array_parse(const char **bind_p, crm_input_t *input,
                        const crm_field_t *field, const char *path,
                        json_object *value)
{
    if (json_object_is_type(value, json_type_array)) {
        free_parse(bind_p, input, field, path, value);
    }
    else {
        crm_input_error(input, path, "must be an array");
    }
}

static void array_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    crm_type_schema(buf, "array", field, side);
    crm_buf_puts(buf, ",\"items\":{}");
}

const crm_type_t crm_type_array = {
    .name = "array", .cast = "jsonb", .empty = "[]", .parse = array_parse,
    .write = crm_buf_json_compact, .schema = array_schema,
};
