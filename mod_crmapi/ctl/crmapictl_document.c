/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_document.c: reading the documents of apply (contract 14.1) */
#include "crmapictl_document.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "crm_json.h"
#include "crm_json_check.h"
#include "crm_json_slice.h"
#include "crm_pointer.h"
#include "crm_text.h"
#include "crmapictl_lines.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_" \
    "0123456789"

/* The state of reading. */
typedef struct reader_t {
    ctl_t *ctl;
    apr_array_header_t *items;
    apr_hash_t *variables;      /* text by name */
    ctl_item_t at;              /* the text that is being read, without a kind */
} reader_t;

/* ---- where something is --------------------------------------------------- */

/* Return whether NAME, a member's with its quotes, is the LEN bytes at TOKEN of a
 * JSON pointer. */
static int is_token(crm_slice_t name, const char *token, size_t len,
                    apr_pool_t *pool)
{
    const char *text = crm_slice_text(name, NULL, pool);
    const char *pointer = crm_pointer_member("", text, pool) + 1;

    return strlen(pointer) == len && !memcmp(pointer, token, len);
}

/* Set *VALUE_P to the value at the LEN bytes of TOKEN in it. Return 0 if there is
 * none. */
static int descend(crm_slice_t *value_p, const char *token, size_t len,
                   apr_pool_t *pool)
{
    apr_int64_t index = apr_atoi64(token);
    crm_slice_t name, value;
    crm_json_walk_t walk;

    if (crm_json_walk(&walk, *value_p, '{')) {
        while (crm_json_member(&name, &value, &walk)) {
            if (is_token(name, token, len, pool)) {
                *value_p = value;
                return 1;
            }
        }
    }
    else if (crm_json_walk(&walk, *value_p, '[')) {
        while (crm_json_item(&value, &walk)) {
            if (!index--) {
                *value_p = value;
                return 1;
            }
        }
    }
    return 0;
}

/* Return the line on which the LEN bytes at START end, where a text of ITEM
 * begins at START. */
static apr_int64_t line_at(const ctl_item_t *item, const char *start,
                           apr_size_t len)
{
    apr_int64_t line = item->line;

    for (apr_size_t i = 0; i < len; i++) {
        line += start[i] == '\n';
    }
    return line;
}

/* Return the line of ITEM's text on which the value at POINTER begins, or the
 * innermost one around it. */
static apr_int64_t line_of(const ctl_item_t *item, const char *pointer,
                           apr_pool_t *pool)
{
    crm_slice_t value = crm_json_slice(item->text, item->len);

    while (*pointer == '/') {
        size_t len = strcspn(pointer + 1, "/");

        if (!descend(&value, pointer + 1, len, pool)) {
            break;
        }
        pointer += len + 1;
    }
    return line_at(item, item->text, (apr_size_t)(value.text - item->text));
}

crm_error_t *ctl_item_refuse(ctl_t *ctl, const ctl_item_t *item,
                             const char *field, const char *rule)
{
    const char *pointer = apr_pstrcat(ctl->pool, item->base, field
                                      ? crm_pointer_path(field, ctl->pool) : "",
                                      NULL);

    return ctl_fault(ctl, "%s: line %" APR_INT64_T_FMT ": %s%s%s", item->file,
                     line_of(item, pointer, ctl->pool), pointer,
                     *pointer ? ": " : "", rule);
}

/* ---- variables ------------------------------------------------------------ */

/* Set *TEXT_P to the text of the file PATH, "-": stdin, and *NAME_P to its name in
 * messages. A byte order mark is left out. */
static crm_error_t *read_file(const char **text_p, apr_size_t *len_p,
                              const char **name_p, ctl_t *ctl,
                              const char *path)
{
    crm_error_t *error = NULL;
    apr_size_t bom;
    crm_buf_t buf;
    ssize_t n = 1;
    int fd;

    CRM_ERR(ctl_open(&fd, name_p, ctl, path));
    crm_buf_init(&buf, 65536, ctl->pool);
    while (n > 0 && buf.len <= CTL_DOCUMENT_MAX) {
        n = read(fd, crm_buf_reserve(&buf, 65536), 65536);
        buf.len += n > 0 ? (apr_size_t)n : 0;
    }
    if (n < 0) {
        error = ctl_fault(ctl, "cannot read %s: %s", *name_p, strerror(errno));
    }
    ctl_close(fd);
    CRM_ERR(error);
    bom = crm_text_mark(buf.data, buf.len);
    *len_p = buf.len - bom;
    crm_buf_putc(&buf, '\0');
    *text_p = buf.data + bom;
    return *len_p > CTL_DOCUMENT_MAX
           ? ctl_fault(ctl, "%s is longer than 16 MiB", *name_p) : NULL;
}

/* The same of a file with values of variables. */
static crm_error_t *read_values(const char **text_p, apr_size_t *len_p,
                                ctl_t *ctl, const char *path)
{
    const char *name;

    CRM_ERR(read_file(text_p, len_p, &name, ctl, path));
    return !memchr(*text_p, '\0', *len_p) ? NULL
           : ctl_fault(ctl, "--set-file: %s must not contain U+0000", name);
}

/* Set the variable in the LEN bytes at TEXT, NAME=VALUE. OPTION gave it. With
 * FROM_FILE VALUE is the name of a file with the value. */
static crm_error_t *set_variable(reader_t *reader, const char *text,
                                 apr_size_t len, const char *option,
                                 int from_file)
{
    apr_pool_t *pool = reader->ctl->pool;
    const char *copy = apr_pstrmemdup(pool, text, len);
    size_t name = strspn(copy, NAME_CHARS);
    const char *value = copy + name + 1;

    if (!name || copy[name] != '=' || isdigit((unsigned char)*copy)) {
        return ctl_misuse(reader->ctl, "--%s must be NAME=VALUE, with a name of"
                          " A-Z, a-z, 0-9 and _", option);
    }
    if (from_file) {
        CRM_ERR(read_values(&value, &len, reader->ctl, value));
        while (len && strchr("\r\n", value[len - 1])) {
            len--;
        }
        value = apr_pstrmemdup(pool, value, len);
    }
    if (!crm_text_valid_utf8(value, strlen(value))) {
        return ctl_fault(reader->ctl, "--%s: the value of %.*s must be UTF-8",
                         option, (int)name, copy);
    }
    apr_hash_set(reader->variables, apr_pstrmemdup(pool, copy, name),
                 APR_HASH_KEY_STRING, value);
    return NULL;
}

/* Set the variables in the file PATH, a line NAME=VALUE for each. */
static crm_error_t *set_from_file(reader_t *reader, const char *path)
{
    const char *text, *end;
    apr_size_t len;

    CRM_ERR(read_values(&text, &len, reader->ctl, path));
    for (; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        len = (apr_size_t)(end - text) - (end > text && end[-1] == '\r');
        if (len && *text != '#') {
            CRM_ERR(set_variable(reader, text, len, "set-file", 0));
        }
    }
    return NULL;
}

/* Read the values of --set and --set-file; a later one wins. */
static crm_error_t *read_variables(reader_t *reader)
{
    const apr_array_header_t *given = reader->ctl->given;

    for (int i = 0; i < given->nelts; i++) {
        const ctl_given_t *one = &APR_ARRAY_IDX(given, i, ctl_given_t);
        size_t name = strspn(one->value, NAME_CHARS);

        if (one->option == CTL_SET) {
            CRM_ERR(set_variable(reader, one->value, strlen(one->value),
                                 "set", 0));
        }
        else if (one->option == CTL_SET_FILE && one->value[name] == '=') {
            CRM_ERR(set_variable(reader, one->value, strlen(one->value),
                                 "set-file", 1));
        }
        else if (one->option == CTL_SET_FILE) {
            CRM_ERR(set_from_file(reader, one->value));
        }
    }
    return NULL;
}

/* Return TEXT with the values of its variables, in the command's pool; *RULE_P:
 * the rule that it breaks, or NULL. */
static const char *replace(const char **rule_p, reader_t *reader,
                           const char *text)
{
    apr_pool_t *pool = reader->ctl->pool;
    crm_buf_t buf;

    *rule_p = NULL;
    crm_buf_init(&buf, strlen(text) + 64, pool);
    while (*text) {
        size_t name = strncmp(text, "${", 2) ? 0
                      : strspn(text + 2, NAME_CHARS);

        if (!strncmp(text, "$${", 3)) {
            crm_buf_puts(&buf, "${");
            text += 3;
        }
        else if (strncmp(text, "${", 2)) {
            crm_buf_putc(&buf, *text++);
        }
        else if (!name || text[2 + name] != '}') {
            *rule_p = "has ${ that is not ${NAME}; $${ stands for it";
            return NULL;
        }
        else {
            const char *shown = apr_pstrmemdup(pool, text + 2, name);
            const char *value = apr_hash_get(reader->variables, shown,
                                             APR_HASH_KEY_STRING);

            if (!value) {
                *rule_p = apr_psprintf(pool, "${%s} has no value: --set %s="
                                       "VALUE", crm_name_shown(shown),
                                       crm_name_shown(shown));
                return NULL;
            }
            crm_buf_puts(&buf, value);
            text += name + 3;
        }
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* Return whether TEXT is one variable and no more. */
static int is_variable(const char *text)
{
    return !strncmp(text, "${", 2)
           && text[2 + strspn(text + 2, NAME_CHARS)] == '}'
           && !text[3 + strspn(text + 2, NAME_CHARS)];
}

/* Where a value is in what is around it. Its pointer is made for an error only:
 * those of all values would be as long as their number times the names above
 * them. */
typedef struct place_t {
    const struct place_t *around;       /* NULL: an item itself */
    const char *name;           /* of a member; NULL: INDEX of an array */
    int index;
} place_t;

/* Return the pointer to PLACE, in POOL. NULL: the item itself. */
static const char *pointer_to(const place_t *place, apr_pool_t *pool)
{
    const char *around;

    if (!place) {
        return "";
    }
    around = pointer_to(place->around, pool);
    return place->name ? crm_pointer_member(around, place->name, pool)
           : crm_pointer_item(around, place->index, pool);
}

/* Return the names of the members of OBJECT that have a variable, in POOL. */
static apr_array_header_t *names_to_replace(json_object *object,
                                            apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 1, sizeof(const char *));

    json_object_object_foreach(object, name, value) {
        if (strstr(name, "${")) {
            APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(pool, name);
        }
        (void)value;
    }
    return names;
}

/* Replace the variables in the names of the members of OBJECT, which is at PLACE in
 * ITEM. */
static crm_error_t *replace_names(reader_t *reader, const ctl_item_t *item,
                                  json_object *object, const place_t *place)
{
    apr_pool_t *pool = reader->ctl->pool;
    apr_array_header_t *names = names_to_replace(object, pool);

    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *), *rule;
        const char *other = replace(&rule, reader, name);
        place_t at = {place, name, 0};

        if (other && json_object_object_get_ex(object, other, NULL)) {
            rule = "has the name of another member";
        }
        if (rule) {
            return ctl_item_refuse(reader->ctl, item, pointer_to(&at, pool),
                                   rule);
        }
        json_object_object_add(object, other, json_object_get(
                                   json_object_object_get(object, name)));
        json_object_object_del(object, name);
    }
    return NULL;
}

/* Replace the variables in VALUE, which is at PLACE in ITEM. */
static crm_error_t *replace_all(reader_t *reader, const ctl_item_t *item,
                                json_object *value, const place_t *place)
{
    place_t inner = {place, NULL, 0};
    apr_pool_t *pool = reader->ctl->pool;
    const char *rule, *text;

    if (json_object_is_type(value, json_type_string)) {
        text = json_object_get_string(value);
        if (strlen(text) != (size_t)json_object_get_string_len(value)
            || !strstr(text, "${")) {
            return NULL;
        }
        text = replace(&rule, reader, text);
        if (!text) {
            return ctl_item_refuse(reader->ctl, item, pointer_to(place, pool),
                                   rule);
        }
        json_object_set_string(value, text);
    }
    else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            inner.index = (int)i;
            CRM_ERR(replace_all(reader, item,
                                json_object_array_get_idx(value, i), &inner));
        }
    }
    else if (json_object_is_type(value, json_type_object)) {
        CRM_ERR(replace_names(reader, item, value, place));
        json_object_object_foreach(value, name, member) {
            inner.name = name;
            CRM_ERR(replace_all(reader, item, member, &inner));
        }
    }
    return NULL;
}

/* ---- objects -------------------------------------------------------------- */

/* Add OBJECT, which is at BASE, as an item of the kind NAME. */
static crm_error_t *add_item(reader_t *reader, json_object *object,
                             const char *base, const char *name)
{
    ctl_item_t *item = apr_pmemdup(reader->ctl->pool, &reader->at,
                                   sizeof(*item));
    json_object *kind;

    item->base = base;
    if (!json_object_is_type(object, json_type_object)) {
        return ctl_item_refuse(reader->ctl, item, NULL,
                               "is not a JSON object");
    }
    item->kind = name ? ctl_kind_find(name) : NULL;
    if (!item->kind) {
        return ctl_item_refuse(reader->ctl, item, "object", "must be workspace,"
                               " agent, pipeline, pipeline_stage, form,"
                               " sequence_template, webhook_endpoint, admin or"
                               " intake_token");
    }
    if (json_object_object_get_ex(object, "object", &kind)
        && (!json_object_is_type(kind, json_type_string)
            || strcmp(json_object_get_string(kind), name))) {
        return ctl_item_refuse(reader->ctl, item, "object",
                               "is not what it stands under");
    }
    item->object = object;
    item->typed = apr_hash_make(reader->ctl->pool);
    json_object_object_foreach(object, member, value) {
        if (json_object_is_type(value, json_type_string)
            && is_variable(json_object_get_string(value))) {
            apr_hash_set(item->typed, apr_pstrdup(reader->ctl->pool, member),
                         APR_HASH_KEY_STRING, "");
        }
    }
    CRM_ERR(replace_all(reader, item, object, NULL));
    APR_ARRAY_PUSH(reader->items, ctl_item_t *) = item;
    return NULL;
}

/* Add the objects of VALUE, which is at BASE: an object or an array of them. NAME
 * is their kind; NULL: they name it. */
static crm_error_t *add_items(reader_t *reader, json_object *value,
                              const char *base, const char *name)
{
    if (!json_object_is_type(value, json_type_array)) {
        return add_item(reader, value, base, name ? name : crm_json_text(
                            json_object_object_get(value, "object")));
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        json_object *one = json_object_array_get_idx(value, i);
        const char *where = crm_pointer_item(base, (int)i, reader->ctl->pool);

        if (json_object_is_type(one, json_type_array)) {
            reader->at.base = where;
            return ctl_item_refuse(reader->ctl, &reader->at, NULL,
                                   "is not a JSON object");
        }
        CRM_ERR(add_items(reader, one, where, name));
    }
    return NULL;
}

/* Add the objects of DOCUMENT, a whole text. */
static crm_error_t *add_document(reader_t *reader, json_object *document)
{
    reader->at.base = "";
    if (json_object_is_type(document, json_type_array)
        || json_object_object_get_ex(document, "object", NULL)) {
        return add_items(reader, document, "", NULL);
    }
    if (!json_object_is_type(document, json_type_object)) {
        return ctl_item_refuse(reader->ctl, &reader->at, NULL,
                               "is not a JSON object");
    }
    json_object_object_foreach(document, name, value) {
        const char *where = crm_pointer_member("", name, reader->ctl->pool);

        if (!strcmp(name, "$schema")) {
            continue;
        }
        if (!ctl_kind_find(name)) {
            return ctl_item_refuse(reader->ctl, &reader->at, where,
                                   "is not a known object");
        }
        CRM_ERR(add_items(reader, value, where, name));
    }
    return NULL;
}

/* ---- files ---------------------------------------------------------------- */

/* Parse the LEN bytes at TEXT, on LINE of the file, and add what is there. */
static crm_error_t *add_text(reader_t *reader, const char *text,
                             apr_size_t len, apr_int64_t line)
{
    apr_pool_t *pool = reader->ctl->pool;
    json_object *document;
    apr_size_t offset;
    const char *rule;

    reader->at.text = text;
    reader->at.len = len;
    reader->at.line = line;
    rule = crm_json_parse(&document, &offset, text, len, pool);
    return !rule ? add_document(reader, document)
           : ctl_fault(reader->ctl, "%s: line %" APR_INT64_T_FMT ": is not"
                       " valid JSON: %s at byte %" APR_SIZE_T_FMT,
                       reader->at.file, line_at(&reader->at, text, offset),
                       rule, offset);
}

/* Return whether the LEN bytes at TEXT are JSON Lines: they are more than one JSON
 * text, and the first line that is not blank is one. */
static int is_lines(const char *text, apr_size_t len, apr_pool_t *pool)
{
    const char *start = text + strspn(text, " \t\r\n");
    apr_size_t line = strcspn(start, "\n"), offset;

    return crm_json_check(&offset, text, len, pool)
           && !crm_json_check(&offset, start, line, pool);
}

/* Read the file PATH. */
static crm_error_t *read_document(reader_t *reader, const char *path)
{
    const char *text, *end;
    apr_int64_t line = 1;
    apr_size_t len;

    CRM_ERR(read_file(&text, &len, &reader->at.file, reader->ctl, path));
    if (!is_lines(text, len, reader->ctl->pool)) {
        return add_text(reader, text, len, line);
    }
    for (; len; line++) {
        end = memchr(text, '\n', len);
        end = end ? end : text + len;
        if (text + strspn(text, " \t\r") < end) {
            CRM_ERR(add_text(reader, text, (apr_size_t)(end - text), line));
        }
        len -= (apr_size_t)(end - text);
        len -= len > 0;
        text = end + 1;
    }
    return NULL;
}

crm_error_t *ctl_document_read(apr_array_header_t **items_p, ctl_t *ctl)
{
    reader_t reader = {.ctl = ctl};

    reader.items = apr_array_make(ctl->pool, 32, sizeof(ctl_item_t *));
    reader.variables = apr_hash_make(ctl->pool);
    CRM_ERR(read_variables(&reader));
    for (int i = 0; ctl->args[i]; i++) {
        CRM_ERR(read_document(&reader, ctl->args[i]));
    }
    *items_p = reader.items;
    return NULL;
}
