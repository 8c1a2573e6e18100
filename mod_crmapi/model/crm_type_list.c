/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_list.c: lists of texts and free-form JSON: tags, ids, objects */
#include "crm_type_list.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_json_store.h"
#include "crm_sql.h"
#include "crm_text.h"
#include "crm_uuid.h"

/* Limits of contract 6.3. */
#define TAGS_MAX 100
#define IDS_MAX 100             /* contract 13.5 */
#define TAG_MAX 100
#define FREE_MAX 65536
#define FREE_DEPTH 16

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
    if (!crm_array_has(strings, text)) {
        APR_ARRAY_PUSH(strings, const char *) = text;
    }
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

/* Return NULL or the rule that STRING, an element of an array of strings,
 * breaks. */
static const char *string_check(json_object *string)
{
    const char *text;
    apr_size_t len;

    if (!json_object_is_type(string, json_type_string)) {
        return "must be a string";
    }
    text = json_object_get_string(string);
    len = strlen(text);
    return len != (apr_size_t)json_object_get_string_len(string)
           ? "must not contain U+0000" : len > FREE_MAX ? "is too long" : NULL;
}

/* Add TEXT, a tag, to TAGS: trimmed, and not if it is empty then (contract
 * 7.4). Return NULL or the rule that it breaks. */
static const char *add_tag(apr_array_header_t *tags, const char *text)
{
    apr_size_t len = strlen(text);

    crm_text_trim_blanks(&text, &len);
    if (crm_text_length(text, len) > TAG_MAX) {
        return "must have at most 100 characters";
    }
    if (len) {
        add_string(tags, apr_pstrmemdup(tags->pool, text, len));
    }
    return NULL;
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
        json_object *string = json_object_array_get_idx(value, (size_t)i);
        const char *rule = string_check(string);

        if (!rule && is_tag) {
            rule = add_tag(strings, json_object_get_string(string));
        }
        else if (!rule) {
            APR_ARRAY_PUSH(strings, const char *) =
                json_object_get_string(string);
        }
        if (rule) {
            crm_input_error(input, apr_psprintf(input->pool, "%s[%d]", path,
                                                i), rule);
        }
    }
    if (crm_input_errors(input) == before) {
        *bind_p = crm_sql_array(strings, input->pool);
    }
}

/* Copy the quoted text at TEXT, which begins with '"', to OUT; two quotes in it
 * are one. Return a pointer to the ',' or NUL after it. NULL: it does not end,
 * or text follows it. */
static const char *unquote(char *out, const char *text)
{
    for (text++; *text && (*text != '"' || text[1] == '"'); text++) {
        text += *text == '"';
        *out++ = *text;
    }
    *out = '\0';
    if (*text) {
        text++;
        text += strspn(text, " \t");
        return !*text || *text == ',' ? text : NULL;
    }
    return NULL;
}

/* Copy the part of a list that begins at TEXT to OUT, without the quotes around
 * it. Return a pointer to the ',' or NUL after it. */
static const char *next_part(char *out, const char *text)
{
    const char *start = text + strspn(text, " \t");
    const char *end = *start == '"' ? unquote(out, start) : NULL;

    if (!end) {
        end = text + strcspn(text, ",");
        memcpy(out, text, (size_t)(end - text));
        out[end - text] = '\0';
    }
    return end;
}

apr_array_header_t *crm_type_parts(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 4, sizeof(const char *));
    char *out = apr_palloc(pool, strlen(text) + 1);

    while (*text) {
        const char *trimmed = out;
        apr_size_t len;

        text = next_part(out, text);
        text += *text == ',';
        len = strlen(out);
        crm_text_trim_blanks(&trimmed, &len);
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
    apr_array_header_t *tags = crm_type_parts(text, pool);

    (void)field;
    if (tags->nelts > TAGS_MAX) {
        return "must have at most 100 tags";
    }
    *bind_p = tags->nelts ? crm_sql_array(tags, pool) : "";
    return NULL;
}

/* TAG_MAX characters, without the blanks around them, as ECMA 262 has them in
 * JSON; its \s lacks U+0085. */
#define TAG_PATTERN "^[\\\\s\\\\u0085]*[\\\\s\\\\S]{0,100}[\\\\s\\\\u0085]*$"

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
                   "\"examples\":[\"vip\"],\"pattern\":\"" TAG_PATTERN "\"}"
                 : ",\"items\":{\"type\":\"string\"}");
}

const char *const crm_tags_matches[] = {"any", "all", NULL};

const crm_type_t crm_type_tags = {
    .name = "tags", .cast = "text[]", .empty = "{}", .parse = strings_parse,
    .parse_query = tags_parse_query, .write = strings_write,
    .schema = strings_schema,
};

const crm_type_t crm_type_strings = {
    .name = "strings", .cast = "text[]", .empty = "{}",
    .parse = strings_parse, .write = strings_write, .schema = strings_schema,
};

/* ---- several names (query only) ---- */

/* Return whether NAME is one of FIELD's values. */
static int is_value(const crm_field_t *field, const char *name)
{
    for (const char *const *value = field->values; *value; value++) {
        if (!strcmp(*value, name)) {
            return 1;
        }
    }
    return 0;
}

static const char *names_parse_query(const char **bind_p,
                                     const crm_field_t *field,
                                     const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = crm_type_parts(text, pool);
    const char *list = NULL;

    *bind_p = apr_array_pstrcat(pool, parts, ',');
    if (!parts->nelts) {
        return "must not be empty";
    }
    for (int i = 0; i < parts->nelts; i++) {
        if (!is_value(field, APR_ARRAY_IDX(parts, i, const char *))) {
            for (const char *const *value = field->values; *value; value++) {
                list = crm_text_listed(list, *value, pool);
            }
            return apr_pstrcat(pool, "must be of ", list,
                               ", separated by commas", NULL);
        }
    }
    return NULL;
}

/* A string: a list would be an array with a style of its own. */
static void names_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    (void)side;
    crm_buf_puts(buf, "\"type\":\"string\",\"pattern\":\"^"
                 CRM_PARTS_AROUND "(?:");
    for (int again = 0; again < 2; again++) {
        crm_buf_puts(buf, again ? ")(?:" CRM_PARTS_BETWEEN "(?:" : "");
        for (const char *const *value = field->values; *value; value++) {
            crm_buf_puts(buf, value == field->values ? "" : "|");
            crm_buf_puts(buf, *value);
        }
    }
    crm_buf_puts(buf, "))*" CRM_PARTS_AROUND "$\"");
}

const crm_type_t crm_type_names = {
    .name = "names", .cast = "text", .parse_query = names_parse_query,
    .schema = names_schema,
};

/* ---- several ids (query only) ---- */

/* Malformed ids are left out (contract 13.5). */
static const char *ids_parse_query(const char **bind_p,
                                   const crm_field_t *field,
                                   const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = crm_type_parts(text, pool);
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

const crm_type_t crm_type_ids = {
    .name = "ids", .cast = "uuid[]", .parse_query = ids_parse_query,
    .fixed_schema = "\"type\":\"string\"",
};

/* ---- free-form JSON ---- */

static void free_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    int is_array = field->type == &crm_type_array;
    apr_size_t max = field->max ? field->max : FREE_MAX;
    apr_array_header_t *faults;

    if (!json_object_is_type(value, is_array ? json_type_array
                             : json_type_object)) {
        crm_input_error(input, path, is_array ? "must be an array"
                        : "must be an object");
        return;
    }
    *bind_p = NULL;
    faults = crm_json_storable(bind_p, value, max, FREE_DEPTH, input->pool);
    for (int i = 0; faults && i < faults->nelts; i++) {
        const crm_json_fault_t *fault = &APR_ARRAY_IDX(faults, i,
                                                       crm_json_fault_t);

        crm_input_error(input, apr_pstrcat(input->pool, path, fault->path,
                                           NULL), fault->rule);
    }
}

static void free_schema(crm_buf_t *buf, const crm_field_t *field,
                        crm_side_t side)
{
    int is_array = field->type == &crm_type_array;

    crm_type_schema(buf, is_array ? "array" : "object", field, side);
    crm_buf_puts(buf, is_array ? ",\"items\":{}"
                 : ",\"additionalProperties\":true");
}

const crm_type_t crm_type_object = {
    .name = "object", .cast = "jsonb", .empty = "{}", .parse = free_parse,
    .write = crm_buf_json_compact, .schema = free_schema,
};

const crm_type_t crm_type_array = {
    .name = "array", .cast = "jsonb", .empty = "[]", .parse = free_parse,
    .write = crm_buf_json_compact, .schema = free_schema,
};
