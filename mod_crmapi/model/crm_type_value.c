/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_value.c: types with one value: ids, texts, numbers, booleans, times */
#include "crm_type.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_bare.h"
#include "crm_email.h"
#include "crm_number.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crm_uuid.h"

#define TEXT_MAX 1000           /* contract 6.3: names and one-line text */

/* Add TEXT to BUF in quotes. It has no character to escape. */
static void write_quoted(crm_buf_t *buf, const char *text, apr_size_t len)
{
    crm_buf_putc(buf, '"');
    crm_buf_add(buf, text, len);
    crm_buf_putc(buf, '"');
}

/* Set *TEXT_P and *LEN_P to the JSON string VALUE. If it is not a string or
 * contains U+0000, add an error at PATH to INPUT and return 0. */
static int get_string(const char **text_p, apr_size_t *len_p,
                      crm_input_t *input, const char *path, json_object *value)
{
    if (!json_object_is_type(value, json_type_string)) {
        crm_input_error(input, path, "must be a string");
        return 0;
    }
    *text_p = json_object_get_string(value);
    *len_p = (apr_size_t)json_object_get_string_len(value);
    if (strlen(*text_p) != *len_p) {
        crm_input_error(input, path, "must not contain U+0000");
        return 0;
    }
    return 1;
}

/* Set *BIND_P to TEXT, or add the error that it breaks RULE (may be NULL) at PATH. */
static void take(const char **bind_p, crm_input_t *input, const char *path,
                 const char *text, const char *rule)
{
    if (rule) {
        crm_input_error(input, path, rule);
    }
    else {
        *bind_p = text;
    }
}

/* ---- ids and references ---- */

static void uuid_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    char *id = apr_palloc(input->pool, CRM_UUID_LEN + 1);
    const char *text;
    apr_size_t len;

    if (!get_string(&text, &len, input, path, value)) {
        return;
    }
    if (crm_uuid_parse(id, text, len)) {
        *bind_p = id;
    }
    else {
        crm_input_error(input, path, !field->ref ? "must be a UUID"
                        : crm_ref_rule(field->ref, input->pool));
    }
}

/* A malformed id in a filter matches nothing (contract 6.8). */
static const char *uuid_parse_query(const char **bind_p,
                                    const crm_field_t *field,
                                    const char *text, apr_pool_t *pool)
{
    char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

    (void)field;
    *bind_p = crm_uuid_parse(id, text, strlen(text)) ? id : NULL;
    return NULL;
}

/* A filter takes any text. */
static void uuid_schema(crm_buf_t *buf, const crm_field_t *field,
                        crm_side_t side)
{
    crm_type_schema(buf, "string", field, side);
    if (side != CRM_SIDE_QUERY) {
        crm_buf_puts(buf, ",\"format\":\"uuid\"");
    }
}

const crm_type_t crm_type_uuid = {
    .name = "uuid", .cast = "uuid", .parse = uuid_parse,
    .parse_query = uuid_parse_query, .write = write_quoted,
    .schema = uuid_schema,
};

const crm_type_t crm_type_ref = {
    .name = "reference", .cast = "uuid", .parse = uuid_parse,
    .parse_query = uuid_parse_query, .write = write_quoted,
    .schema = uuid_schema,
};

/* ---- text ---- */

/* Return the maximum number of characters of FIELD. */
static apr_size_t text_max(const crm_field_t *field)
{
    return field->max ? field->max : TEXT_MAX;
}

/* Return NULL or the rule that the LEN bytes at TEXT break. */
static const char *text_check(const crm_field_t *field, const char *text,
                              apr_size_t len, apr_pool_t *pool)
{
    if (!len && (field->flags & (CRM_F_REQUIRED | CRM_F_UNIQUE))) {
        return "must not be empty";
    }
    if (field->flags & CRM_F_SHOWN
        && !crm_text_shows(apr_pstrmemdup(pool, text, len))) {
        return "must not be blank";
    }
    if (len > text_max(field)
        && crm_text_length(text, len) > text_max(field)) {
        return apr_psprintf(pool, "must have at most %" APR_SIZE_T_FMT
                            " characters", text_max(field));
    }
    return NULL;
}

static void text_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    const char *text;
    apr_size_t len;

    if (get_string(&text, &len, input, path, value)) {
        take(bind_p, input, path, text,
             text_check(field, text, len, input->pool));
    }
}

static const char *text_parse_query(const char **bind_p,
                                    const crm_field_t *field,
                                    const char *text, apr_pool_t *pool)
{
    *bind_p = text;
    return text_check(field, text, strlen(text), pool);
}

static void text_schema(crm_buf_t *buf, const crm_field_t *field,
                        crm_side_t side)
{
    crm_type_schema(buf, "string", field, side);
    if (side != CRM_SIDE_OUTPUT) {
        crm_buf_printf(buf, ",\"maxLength\":%" APR_SIZE_T_FMT,
                       text_max(field));
        if (field->flags & (CRM_F_REQUIRED | CRM_F_UNIQUE)) {
            crm_buf_puts(buf, ",\"minLength\":1");
        }
    }
}

const crm_type_t crm_type_text = {
    .name = "text", .cast = "text", .parse = text_parse,
    .parse_query = text_parse_query, .write = crm_buf_json_string,
    .schema = text_schema,
};

/* ---- one e-mail address (query only: by-email) ---- */

/* The bind is the canonical form: a malformed address matches nothing (contract
 * 7.8, 17.2). */
static const char *email_parse_query(const char **bind_p,
                                     const crm_field_t *field,
                                     const char *text, apr_pool_t *pool)
{
    (void)field;
    *bind_p = crm_email_canonical(crm_email_plus(text, pool), pool);
    return NULL;
}

static void email_parse(const char **bind_p, crm_input_t *input,
                        const crm_field_t *field, const char *path,
                        json_object *value)
{
    const char *text;
    apr_size_t len;

    (void)field;
    if (get_string(&text, &len, input, path, value)) {
        take(bind_p, input, path, text,
             crm_email_check(text, len, input->pool));
    }
}

static void email_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    crm_type_schema(buf, "string", field, side);
    if (side != CRM_SIDE_OUTPUT) {
        crm_buf_puts(buf, ",\"maxLength\":254");
    }
}

const crm_type_t crm_type_email = {
    .name = "email", .cast = "text", .parse = email_parse,
    .parse_query = email_parse_query, .write = crm_buf_json_string,
    .schema = email_schema,
};

/* ---- numbers ---- */

static void number_parse(const char **bind_p, crm_input_t *input,
                         const crm_field_t *field, const char *path,
                         json_object *value)
{
    const char *rule;

    (void)field;
    if (!json_object_is_type(value, json_type_int)
        && !json_object_is_type(value, json_type_double)) {
        crm_input_error(input, path, "must be a number");
        return;
    }
    rule = crm_number_parse(bind_p, json_object_to_json_string(value),
                            input->pool);
    if (rule) {
        *bind_p = NULL;
        crm_input_error(input, path, rule);
    }
}

static void number_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    char *out = crm_buf_reserve(buf, len + 1);

    buf->len += crm_number_trim(out, text);
}

static void number_schema(crm_buf_t *buf, const crm_field_t *field,
                          crm_side_t side)
{
    crm_type_schema(buf, "number", field, side);
    if (side != CRM_SIDE_OUTPUT) {
        crm_buf_puts(buf, ",\"exclusiveMinimum\":-1e15"
                     ",\"exclusiveMaximum\":1e15");
    }
}

const crm_type_t crm_type_number = {
    .name = "number", .cast = "numeric", .parse = number_parse,
    .write = number_write, .schema = number_schema,
};

/* The least and the greatest value of FIELD, an integer. */
static int least_of(const crm_field_t *field)
{
    return field->max ? 1 : 0;
}

static int greatest_of(const crm_field_t *field)
{
    return field->max ? (int)field->max : APR_INT32_MAX;
}

static void integer_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    apr_int64_t number;

    if ((!json_object_is_type(value, json_type_int)
         && !json_object_is_type(value, json_type_double))
        || crm_number_parse_integer(&number,
                                    json_object_to_json_string(value))
        || number < least_of(field) || number > greatest_of(field)) {
        crm_input_error(input, path, apr_psprintf(
            input->pool, "must be an integer from %d to %d", least_of(field),
            greatest_of(field)));
        return;
    }
    *bind_p = apr_psprintf(input->pool, "%" APR_INT64_T_FMT, number);
}

static void integer_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    crm_type_schema(buf, "integer", field, side);
    crm_buf_printf(buf, ",\"minimum\":%d,\"maximum\":%d", least_of(field),
                   greatest_of(field));
}

const crm_type_t crm_type_integer = {
    .name = "integer", .cast = "integer", .parse = integer_parse,
    .write = crm_buf_add, .schema = integer_schema,
};

/* ---- booleans ---- */

static void boolean_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    (void)field;
    if (!json_object_is_type(value, json_type_boolean)) {
        crm_input_error(input, path, "must be true or false");
        return;
    }
    *bind_p = json_object_get_boolean(value) ? "t" : "f";
}

static const char *boolean_parse_query(const char **bind_p,
                                       const crm_field_t *field,
                                       const char *text, apr_pool_t *pool)
{
    (void)field;
    (void)pool;
    if (!apr_cstr_casecmp(text, "true") || !strcmp(text, "1")) {
        *bind_p = "t";
    }
    else if (!apr_cstr_casecmp(text, "false") || !strcmp(text, "0")) {
        *bind_p = "f";
    }
    else {
        return "must be true, false, 1 or 0";
    }
    return NULL;
}

static void boolean_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    (void)len;
    crm_buf_puts(buf, *text == 't' ? "true" : "false");
}

/* A filter takes more than JSON's booleans (contract 7.3). */
static void boolean_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    if (side == CRM_SIDE_QUERY) {
        crm_buf_puts(buf, "\"type\":[\"boolean\",\"string\"],\"pattern\":"
                     "\"^(?:[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[01])$\"");
    }
    else {
        crm_type_schema(buf, "boolean", field, side);
    }
}

const crm_type_t crm_type_boolean = {
    .name = "boolean", .cast = "boolean", .parse = boolean_parse,
    .parse_query = boolean_parse_query, .write = boolean_write,
    .schema = boolean_schema,
};

/* ---- times ---- */

/* Times are stored with milliseconds (contract 9.1). They are truncated here
 * because the database would round. */
static void time_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    const char *text, *rule;
    apr_size_t len;
    apr_time_t when;
    char *bind;

    (void)field;
    if (!get_string(&text, &len, input, path, value)) {
        return;
    }
    rule = crm_time_parse(&when, text, len);
    if (rule) {
        crm_input_error(input, path, rule);
        return;
    }
    bind = apr_palloc(input->pool, CRM_TIME_SIZE);
    crm_time_format_ms(bind, when);
    *bind_p = bind;
}

static const char *time_parse_query(const char **bind_p,
                                    const crm_field_t *field,
                                    const char *text, apr_pool_t *pool)
{
    char *bind = apr_palloc(pool, CRM_TIME_SIZE);
    const char *rule;
    apr_time_t when;

    (void)field;
    rule = crm_time_parse_query(&when, text, strlen(text));
    if (!rule) {
        crm_time_format_us(bind, when);
        *bind_p = bind;
    }
    return rule;
}

static void time_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    char when[CRM_TIME_SIZE];

    if (crm_time_from_pg(when, text)) {
        write_quoted(buf, when, strlen(when));
    }
    else {
        write_quoted(buf, text, len);
    }
}

#define HOUR_PATTERN "([01][0-9]|2[0-3])"

/* What crm_time_parse() takes, but for the days of each month: also a date, and forms
 * that RFC 3339 does not have (contract 7.5). PLUS: what is a '+'. */
#define TIME_PATTERN(plus) \
    "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])" \
    "([Tt ]" HOUR_PATTERN ":[0-5][0-9](:([0-5][0-9]|60)([.,][0-9]+)?)?" \
    "([Zz]|[" plus "-]" HOUR_PATTERN "(:?[0-5][0-9])?)?)?$"

static void time_schema(crm_buf_t *buf, const crm_field_t *field,
                        crm_side_t side)
{
    crm_type_schema(buf, "string", field, side);
    crm_buf_puts(buf, side == CRM_SIDE_OUTPUT ? ",\"format\":\"date-time\""
                 : side == CRM_SIDE_INPUT ? ",\"pattern\":\"" TIME_PATTERN("+")
                 "\"" : ",\"pattern\":\"" TIME_PATTERN("+ ") "\"");
}

const crm_type_t crm_type_time = {
    .name = "time", .cast = "timestamptz", .parse = time_parse,
    .parse_query = time_parse_query, .write = time_write,
    .schema = time_schema,
};

/* ---- enumerations ---- */

/* Return NULL, or the rule if TEXT is not one of FIELD's values. */
static const char *enum_check(const crm_field_t *field, const char *text,
                              apr_pool_t *pool)
{
    const char *list = NULL;

    for (const char *const *value = field->values; *value; value++) {
        if (!strcmp(*value, text)) {
            return NULL;
        }
        list = crm_text_listed(list, *value, pool);
    }
    return apr_pstrcat(pool, "must be one of ", list, NULL);
}

static void enum_parse(const char **bind_p, crm_input_t *input,
                       const crm_field_t *field, const char *path,
                       json_object *value)
{
    const char *text;
    apr_size_t len;

    if (get_string(&text, &len, input, path, value)) {
        take(bind_p, input, path, text,
             enum_check(field, text, input->pool));
    }
}

static const char *enum_parse_query(const char **bind_p,
                                    const crm_field_t *field,
                                    const char *text, apr_pool_t *pool)
{
    *bind_p = text;
    return enum_check(field, text, pool);
}

static void enum_schema(crm_buf_t *buf, const crm_field_t *field,
                        crm_side_t side)
{
    int null = crm_type_schema(buf, "string", field, side);

    crm_buf_puts(buf, ",\"enum\":[");
    for (const char *const *value = field->values; *value; value++) {
        crm_buf_puts(buf, value == field->values ? "" : ",");
        crm_buf_json_text(buf, *value);
    }
    crm_buf_puts(buf, null ? ",null]" : "]");
}

const crm_type_t crm_type_enum = {
    .name = "enum", .cast = "text", .parse = enum_parse,
    .parse_query = enum_parse_query, .write = crm_buf_json_string,
    .schema = enum_schema,
};
