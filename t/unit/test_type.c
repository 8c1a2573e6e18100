/* SPDX-License-Identifier: Apache-2.0 */
/* test_type.c: types of fields: what they take, bind and write */
#include "crm_check.h"

#include <regex.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_sql.h"
#include "crm_type.h"
#include "crm_type_address.h"
#include "crm_type_channel.h"
#include "crm_type_list.h"

#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"
#define ID_UPPER "0190A6F0-1C2D-7ABC-8DEF-0123456789AB"

static const char *const colors[] = {"red", "green", NULL};

/* A field of TYPE with FLAGS, for one test. */
static crm_field_t field_of(const crm_type_t *type, unsigned flags)
{
    crm_field_t field = {.name = "f", .type = type, .flags = flags};

    field.ref = type == &crm_type_ref ? "company" : NULL;
    field.values = type == &crm_type_enum ? colors : NULL;
    return field;
}

/* Return the details of ERROR as "path: message; ...", "" for none. */
static const char *details(const crm_error_t *error)
{
    const char *text = "";

    for (int i = 0; error && i < error->details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(error->details, i,
                                                    crm_detail_t);

        text = apr_pstrcat(crm_check_pool(), text, i ? "; " : "",
                           detail->field, NULL);
    }
    return text;
}

/* Parse JSON (NULL: a null) as FIELD. Return the bind, "NULL" for none; and
 * the wrong paths in *WRONG_P, "" for none. */
static const char *parse(const char **wrong_p, const crm_field_t *field,
                         const char *json)
{
    crm_input_t input = {crm_check_pool(), NULL, 0};
    json_object *value = strcmp(json, "null") ? json_tokener_parse(json)
                         : NULL;
    const char *bind = "unset";

    crm_type_parse(&bind, &input, field, "f", value);
    bind = bind ? apr_pstrdup(crm_check_pool(), bind) : "NULL";
    *wrong_p = details(input.error);
    json_object_put(value);
    return bind;
}

/* A JSON text, and the bind it makes; BIND NULL: it is wrong at PATH. */
typedef struct case_t {
    const crm_type_t *type;
    const char *json;
    const char *bind;
    const char *path;
} case_t;

static const case_t cases[] = {
    {&crm_type_uuid, "\"" ID "\"", ID, NULL},
    {&crm_type_uuid, "\"" ID_UPPER "\"", ID, NULL},
    {&crm_type_uuid, "\"x\"", NULL, "f"},
    {&crm_type_uuid, "\"\"", NULL, "f"},
    {&crm_type_uuid, "\"" ID "0\"", NULL, "f"},
    {&crm_type_uuid, "1", NULL, "f"},
    {&crm_type_ref, "\"" ID "\"", ID, NULL},
    {&crm_type_ref, "\"{" ID "}\"", NULL, "f"},
    {&crm_type_text, "\"a\"", "a", NULL},
    {&crm_type_text, "\"\"", "", NULL},
    {&crm_type_text, "\" a \"", " a ", NULL},
    {&crm_type_text, "1", NULL, "f"},
    {&crm_type_text, "true", NULL, "f"},
    {&crm_type_text, "[]", NULL, "f"},
    {&crm_type_text, "{}", NULL, "f"},
    {&crm_type_text, "\"a\\u0000b\"", NULL, "f"},
    {&crm_type_text, "\"\\u0000\"", NULL, "f"},
    {&crm_type_email, "\"A@b\"", "A@b", NULL},
    {&crm_type_email, "\"a\"", NULL, "f"},
    {&crm_type_email, "\"a@b@c\"", NULL, "f"},
    {&crm_type_number, "1", "1", NULL},
    {&crm_type_number, "-0", "0", NULL},
    {&crm_type_number, "12.50", "12.5", NULL},
    {&crm_type_number, "1e3", "1000", NULL},
    {&crm_type_number, "0.0001", "0.0001", NULL},
    {&crm_type_number, "0.00001", NULL, "f"},
    {&crm_type_number, "999999999999999.9999", "999999999999999.9999", NULL},
    {&crm_type_number, "1e15", NULL, "f"},
    {&crm_type_number, "-1e15", NULL, "f"},
    {&crm_type_number, "1e400", NULL, "f"},
    {&crm_type_number, "99999999999999999999999999", NULL, "f"},
    {&crm_type_number, "\"1\"", NULL, "f"},
    {&crm_type_number, "true", NULL, "f"},
    {&crm_type_integer, "0", "0", NULL},
    {&crm_type_integer, "3.0", "3", NULL},
    {&crm_type_integer, "2147483647", "2147483647", NULL},
    {&crm_type_integer, "2147483648", NULL, "f"},
    {&crm_type_integer, "-1", NULL, "f"},
    {&crm_type_integer, "1.5", NULL, "f"},
    {&crm_type_integer, "\"1\"", NULL, "f"},
    {&crm_type_boolean, "true", "t", NULL},
    {&crm_type_boolean, "false", "f", NULL},
    {&crm_type_boolean, "1", NULL, "f"},
    {&crm_type_boolean, "\"true\"", NULL, "f"},
    {&crm_type_time, "\"2026-11-21T01:59:27.552Z\"",
     "2026-11-21T01:59:27.552Z", NULL},
    {&crm_type_time, "\"2026-11-21T02:59:27.5529+01:00\"",
     "2026-11-21T01:59:27.552Z", NULL},
    {&crm_type_time, "\"2026-02-30T00:00:00Z\"", NULL, "f"},
    {&crm_type_time, "\"\"", NULL, "f"},
    {&crm_type_time, "1767225600", NULL, "f"},
    {&crm_type_enum, "\"red\"", "red", NULL},
    {&crm_type_enum, "\"Red\"", NULL, "f"},
    {&crm_type_enum, "\"\"", NULL, "f"},
    {&crm_type_enum, "1", NULL, "f"},
    {&crm_type_channel, "3", "3", NULL},
    {&crm_type_channel, "6", NULL, "f"},
    {&crm_type_channel, "\"sms\"", "3", NULL},
    {&crm_type_channel, "\"fax\"", NULL, "f"},
    {&crm_type_object, "{\"a\":[1,null]}", "{\"a\":[1,null]}", NULL},
    {&crm_type_object, "{}", "{}", NULL},
    {&crm_type_object, "[]", NULL, "f"},
    {&crm_type_object, "\"{}\"", NULL, "f"},
    {&crm_type_array, "[1,{\"a\":2}]", "[1,{\"a\":2}]", NULL},
    {&crm_type_array, "{}", NULL, "f"},
    {&crm_type_tags, "[]", "{}", NULL},
    {&crm_type_tags, "[\"a\",\"b c\"]", "{\"a\",\"b c\"}", NULL},
    {&crm_type_tags, "[\"a\",\"a\",\"A\"]", "{\"a\",\"A\"}", NULL},
    {&crm_type_tags, "[\"{,}\\\"\\\\\"]", "{\"{,}\\\"\\\\\"}", NULL},
    {&crm_type_tags, "[\"NULL\"]", "{\"NULL\"}", NULL},
    {&crm_type_tags, "[\"a\",\"\"]", "{\"a\"}", NULL},
    {&crm_type_tags, "[\" \",\"\\u3000\"]", "{}", NULL},
    {&crm_type_tags, "[\" a\",\"b c\\u00a0\",\"a\\n\"]", "{\"a\",\"b c\"}",
     NULL},
    {&crm_type_tags, "[\"a\",1,null]", NULL, "f[1]; f[2]"},
    {&crm_type_tags, "[\"a\\u0000\"]", NULL, "f[0]"},
    {&crm_type_tags, "\"a\"", NULL, "f"},
    {&crm_type_strings, "[\"a\",\"a\",\"\"]", "{\"a\",\"a\",\"\"}", NULL},
    {&crm_type_emails, "[]", "[]", NULL},
    {&crm_type_emails, "[\"a@x\",\"b@x\"]",
     "[{\"email\":\"a@x\",\"is_primary\":true},"
     "{\"email\":\"b@x\",\"is_primary\":false}]", NULL},
    {&crm_type_emails, "[\"a@x\",{\"email\":\"b@x\",\"is_primary\":true}]",
     "[{\"email\":\"a@x\",\"is_primary\":false},"
     "{\"email\":\"b@x\",\"is_primary\":true}]", NULL},
    {&crm_type_emails, "[\"A@x\",{\"email\":\"a@X\",\"is_primary\":true}]",
     "[{\"email\":\"A@x\",\"is_primary\":true}]", NULL},
    {&crm_type_emails, "[{\"email\":\"a@x\",\"is_primary\":null}]",
     "[{\"email\":\"a@x\",\"is_primary\":true}]", NULL},
    {&crm_type_emails, "[{\"email\":\"a@x\",\"is_primary\":true},"
     "{\"email\":\"b@x\",\"is_primary\":true}]", NULL, "f"},
    {&crm_type_emails, "[\"a@x\",\"b\"]", NULL, "f[1]"},
    {&crm_type_emails, "[{\"email\":\"b\"}]", NULL, "f[0].email"},
    {&crm_type_emails, "[{}]", NULL, "f[0].email"},
    {&crm_type_emails, "[{\"email\":1}]", NULL, "f[0].email"},
    {&crm_type_emails, "[{\"email\":\"a@x\",\"is_primary\":1}]", NULL,
     "f[0].is_primary"},
    {&crm_type_emails, "[{\"email\":\"a@x\",\"kind\":1}]", NULL, "f[0].kind"},
    {&crm_type_emails, "[null,1]", NULL, "f[0]; f[1]"},
    {&crm_type_emails, "\"a@x\"", NULL, "f"},
    {&crm_type_phones, "[\"+1 (555) 01\"]",
     "[{\"is_primary\":true,\"phone_number\":\"+1 (555) 01\"}]", NULL},
    {&crm_type_phones, "[\"\"]", NULL, "f[0]"},
    {&crm_type_phones, "[\"call me\"]", NULL, "f[0]"},
    {&crm_type_phones, "[{\"email\":\"a@x\"}]", NULL,
     "f[0].email; f[0].phone_number"},
};
#define CASES COUNT(cases)

START_TEST(contract_6_what_each_type_takes)
{
    const case_t *c = &cases[_i];
    crm_field_t field = field_of(c->type, CRM_F_CREATE);
    const char *wrong, *bind = parse(&wrong, &field, c->json);

    if (c->bind) {
        ck_assert_msg(!*wrong, "%s: %s is refused at %s", c->type->name,
                      c->json, wrong);
        ck_assert_msg(!strcmp(bind, c->bind), "%s: %s: bind %s, expected %s",
                      c->type->name, c->json, bind, c->bind);
    }
    else {
        ck_assert_msg(!strcmp(wrong, c->path), "%s: %s: wrong at \"%s\", "
                      "expected \"%s\"", c->type->name, c->json, wrong,
                      c->path);
    }
}
END_TEST

/* What becomes of a null: the bind, or NULL where it is refused. */
static const struct {
    const crm_type_t *type;
    unsigned flags;
    const char *bind;
} nulls[] = {
    {&crm_type_text, CRM_F_NULLABLE, "NULL"},
    {&crm_type_text, CRM_F_REQUIRED, NULL},
    {&crm_type_text, 0, NULL},
    {&crm_type_ref, CRM_F_NULLABLE, "NULL"},
    {&crm_type_number, CRM_F_NULLABLE, "NULL"},
    {&crm_type_boolean, 0, NULL},
    {&crm_type_boolean, CRM_F_NULLABLE | CRM_F_NO_CLEAR, NULL},
    {&crm_type_integer, CRM_F_NO_CLEAR, NULL},
    {&crm_type_emails, 0, "[]"},
    {&crm_type_phones, 0, "[]"},
    {&crm_type_tags, 0, "{}"},
    {&crm_type_object, 0, "{}"},
    {&crm_type_array, 0, "[]"},
    {&crm_type_object, CRM_F_NULLABLE, "NULL"},
};

START_TEST(contract_6_5_null_clears_or_is_refused)
{
    crm_field_t field = field_of(nulls[_i].type, nulls[_i].flags);
    const char *wrong, *bind = parse(&wrong, &field, "null");

    if (nulls[_i].bind) {
        ck_assert_str_eq(wrong, "");
        ck_assert_str_eq(bind, nulls[_i].bind);
    }
    else {
        ck_assert_str_eq(wrong, "f");
    }
}
END_TEST

START_TEST(contract_6_5_a_required_text_is_not_empty)
{
    crm_field_t field = field_of(&crm_type_text, CRM_F_REQUIRED);
    const char *wrong;

    parse(&wrong, &field, "\"\"");
    ck_assert_str_eq(wrong, "f");
}
END_TEST

/* Return a JSON string of N times UNIT. */
static const char *json_text(const char *unit, int n)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 64, crm_check_pool());
    crm_buf_putc(&buf, '"');
    while (n-- > 0) {
        crm_buf_puts(&buf, unit);
    }
    crm_buf_puts(&buf, "\"");
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

START_TEST(contract_6_3_text_is_counted_in_characters)
{
    static const char *const units[] = {"x", "\xc3\xa4", "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80"};
    crm_field_t field = field_of(&crm_type_text, CRM_F_NULLABLE);
    const char *wrong;

    for (int i = 0; i < 4; i++) {
        field.max = 0;
        parse(&wrong, &field, json_text(units[i], 1000));
        ck_assert_msg(!*wrong, "1,000 of unit %d", i);
        parse(&wrong, &field, json_text(units[i], 1001));
        ck_assert_msg(*wrong, "1,001 of unit %d", i);
        field.max = 3;
        parse(&wrong, &field, json_text(units[i], 3));
        ck_assert_msg(!*wrong, "3 of unit %d", i);
        parse(&wrong, &field, json_text(units[i], 4));
        ck_assert_msg(*wrong, "4 of unit %d", i);
    }
}
END_TEST

/* Return a JSON array of N different items made from FORMAT. */
static const char *json_items(const char *format, int n)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 64, crm_check_pool());
    for (int i = 0; i < n; i++) {
        crm_buf_puts(&buf, i ? "," : "[");
        crm_buf_printf(&buf, "\"%s%d\"", format, i);
    }
    crm_buf_puts(&buf, "]");
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

START_TEST(contract_6_3_lists_have_a_most)
{
    static const struct {
        const crm_type_t *type;
        const char *item;
        int most;
    } lists[] = {
        {&crm_type_tags, "t", 100}, {&crm_type_emails, "a@x", 50},
        {&crm_type_phones, "+1555", 50},
    };

    for (int i = 0; i < 3; i++) {
        crm_field_t field = field_of(lists[i].type, 0);
        const char *wrong;

        parse(&wrong, &field, json_items(lists[i].item, lists[i].most));
        ck_assert_msg(!*wrong, "%d %s", lists[i].most, lists[i].item);
        parse(&wrong, &field, json_items(lists[i].item, lists[i].most + 1));
        ck_assert_str_eq(wrong, "f");
    }
}
END_TEST

START_TEST(contract_6_3_a_tag_has_100_characters)
{
    crm_field_t field = field_of(&crm_type_tags, 0);
    apr_pool_t *pool = crm_check_pool();
    const char *wrong;

    parse(&wrong, &field, apr_pstrcat(pool, "[", json_text("\xc3\xa4", 100),
                                      "]", NULL));
    ck_assert_str_eq(wrong, "");
    parse(&wrong, &field, apr_pstrcat(pool, "[\"a\",",
                                      json_text("\xc3\xa4", 101), "]", NULL));
    ck_assert_str_eq(wrong, "f[1]");
}
END_TEST

START_TEST(contract_6_2_lenient_ignores_unknown_members)
{
    crm_input_t input = {crm_check_pool(), NULL, 1};
    crm_field_t field = field_of(&crm_type_emails, 0);
    json_object *value = json_tokener_parse("[{\"email\":\"a@x\",\"b\":1}]");
    const char *bind;

    crm_type_parse(&bind, &input, &field, "f", value);
    ck_assert_ptr_null(input.error);
    ck_assert_str_eq(bind, "[{\"email\":\"a@x\",\"is_primary\":true}]");
    json_object_put(value);
}
END_TEST

/* ---- query ---- */

/* A parameter's TEXT and its bind: "NULL" matches nothing, NULL is refused. */
static const struct {
    const crm_type_t *type;
    const char *text;
    const char *bind;
} queries[] = {
    {&crm_type_ref, ID, ID}, {&crm_type_ref, ID_UPPER, ID},
    {&crm_type_ref, "x", "NULL"}, {&crm_type_uuid, "x", "NULL"},
    {&crm_type_text, "a%_", "a%_"},
    {&crm_type_email, "a@b", "a@b"}, {&crm_type_email, "a b@c", "a+b@c"},
    {&crm_type_email, "nonsense", "NULL"},
    {&crm_type_boolean, "true", "t"}, {&crm_type_boolean, "TRUE", "t"},
    {&crm_type_boolean, "1", "t"}, {&crm_type_boolean, "False", "f"},
    {&crm_type_boolean, "0", "f"}, {&crm_type_boolean, "yes", NULL},
    {&crm_type_boolean, "t", NULL}, {&crm_type_boolean, "00", NULL},
    {&crm_type_time, "2026-01-02", "2026-01-02T00:00:00.000000Z"},
    {&crm_type_time, "2026-01-02T03:04:05", "2026-01-02T03:04:05.000000Z"},
    {&crm_type_time, "2026-01-02T03:04:05.1234567Z",
     "2026-01-02T03:04:05.123456Z"},
    {&crm_type_time, "2026-01-02T03:04:05 01:00",
     "2026-01-02T02:04:05.000000Z"},
    {&crm_type_time, "2026-01-02T03:04 0100", "2026-01-02T02:04:00.000000Z"},
    {&crm_type_time, "2026-01-02 03:04:05 01", "2026-01-02T02:04:05.000000Z"},
    {&crm_type_time, "soon", NULL}, {&crm_type_time, "2026-02-30", NULL},
    {&crm_type_enum, "red", "red"}, {&crm_type_enum, "RED", NULL},
    {&crm_type_channel, "chat", "1"}, {&crm_type_channel, "phone", "2"},
    {&crm_type_channel, "voice", "2"}, {&crm_type_channel, "call", "2"},
    {&crm_type_channel, "text", "3"}, {&crm_type_channel, "sms", "3"},
    {&crm_type_channel, "email", "4"}, {&crm_type_channel, "form", "5"},
    {&crm_type_channel, "5", "5"}, {&crm_type_channel, "6", NULL},
    {&crm_type_channel, "0", NULL}, {&crm_type_channel, "Chat", NULL},
    {&crm_type_tags, "a,b", "{\"a\",\"b\"}"},
    {&crm_type_tags, " a , b c ", "{\"a\",\"b c\"}"},
    {&crm_type_tags, "a,,b,", "{\"a\",\"b\"}"},
    {&crm_type_tags, "{\"", "{\"{\\\"\"}"},
    {&crm_type_tags, "\"a, b\"", "{\"a, b\"}"},
    {&crm_type_tags, "x, \"a, b\" ,y", "{\"x\",\"a, b\",\"y\"}"},
    {&crm_type_tags, "\" a \",\"\"", "{\"a\"}"},
    {&crm_type_tags, "\"a\"\"b,\"", "{\"a\\\"b,\"}"},
    {&crm_type_tags, "\"a,b", "{\"\\\"a\",\"b\"}"},
    {&crm_type_tags, "\"a,b\"c", "{\"\\\"a\",\"b\\\"c\"}"},
    {&crm_type_tags, "a\",b\"", "{\"a\\\"\",\"b\\\"\"}"},
    {&crm_type_tags, "\"", "{\"\\\"\"}"},
    {&crm_type_tags, "\"\"\"\"", "{\"\\\"\"}"},
};

START_TEST(contract_7_what_a_parameter_takes)
{
    const crm_type_t *type = queries[_i].type;
    const char *expected = queries[_i].bind;
    crm_field_t field = field_of(type, 0);
    const char *bind = "unset";
    const char *wrong = type->parse_query(&bind, &field, queries[_i].text,
                                          crm_check_pool());

    ck_assert_msg(!wrong == !!expected, "%s: %s: %s", type->name,
                  queries[_i].text, wrong ? wrong : "not refused");
    if (expected) {
        ck_assert_msg(!strcmp(bind ? bind : "NULL", expected),
                      "%s: %s: bind %s, expected %s", type->name,
                      queries[_i].text, bind ? bind : "NULL", expected);
    }
}
END_TEST

/* ---- output ---- */

/* PostgreSQL's text of a column, and its JSON. */
static const struct {
    const crm_type_t *type;
    const char *text;
    const char *json;
} outputs[] = {
    {&crm_type_uuid, ID, "\"" ID "\""},
    {&crm_type_text, "a\"b\\c\n\x01", "\"a\\\"b\\\\c\\n\\u0001\""},
    {&crm_type_text, "", "\"\""},
    {&crm_type_text, "\xc3\xa4\xf0\x9f\x98\x80",
     "\"\xc3\xa4\xf0\x9f\x98\x80\""},
    {&crm_type_number, "12.5000", "12.5"}, {&crm_type_number, "0.0000", "0"},
    {&crm_type_number, "1000", "1000"}, {&crm_type_number, "-0.0100", "-0.01"},
    {&crm_type_integer, "0", "0"}, {&crm_type_boolean, "t", "true"},
    {&crm_type_boolean, "f", "false"},
    {&crm_type_time, "2026-11-21 01:59:27.552+00",
     "\"2026-11-21T01:59:27.552Z\""},
    {&crm_type_time, "2026-11-21 01:59:27+00", "\"2026-11-21T01:59:27.000Z\""},
    {&crm_type_time, "2026-11-21 01:59:27.5+00",
     "\"2026-11-21T01:59:27.500Z\""},
    {&crm_type_tags, "{}", "[]"}, {&crm_type_tags, "{a}", "[\"a\"]"},
    {&crm_type_tags, "{a,\"b c\",\"\\\"\\\\\",\"\"}",
     "[\"a\",\"b c\",\"\\\"\\\\\",\"\"]"},
    {&crm_type_tags, "{\"{x}\",\"a,b\"}", "[\"{x}\",\"a,b\"]"},
    {&crm_type_object, "{\"a\": 1}", "{\"a\":1}"},
    {&crm_type_channel, "3", "3"}, {&crm_type_enum, "red", "\"red\""},
};

START_TEST(contract_9_1_what_each_type_writes)
{
    crm_field_t field = field_of(outputs[_i].type, CRM_F_NULLABLE);
    crm_buf_t buf;

    crm_buf_init(&buf, 16, crm_check_pool());
    crm_type_write(&buf, &field, outputs[_i].text, strlen(outputs[_i].text));
    crm_buf_putc(&buf, '\0');
    ck_assert_str_eq(buf.data, outputs[_i].json);
    crm_buf_init(&buf, 16, crm_check_pool());
    crm_type_write(&buf, &field, NULL, 0);
    ck_assert_int_eq(buf.len, 4);
    ck_assert(!memcmp(buf.data, "null", 4));
}
END_TEST

/* ---- comparing and uniting ---- */

START_TEST(contract_6_6_equal_means_equal)
{
    static const struct {
        const crm_type_t *type;
        const char *a, *b;
        int equal;
    } pairs[] = {
        {&crm_type_number, "12.5", "12.5000", 1},
        {&crm_type_number, "12.5", "12.51", 0},
        {&crm_type_text, "a", "a", 1}, {&crm_type_text, "a", "A", 0},
        {&crm_type_text, "", NULL, 0}, {&crm_type_text, NULL, NULL, 1},
        {&crm_type_object, "{\"a\":1,\"b\":2}", "{\"b\": 2, \"a\": 1}", 1},
        {&crm_type_object, "{\"a\":1}", "{\"a\":2}", 0},
        /* numbers are what they are, however they are written, and exactly */
        {&crm_type_object, "{\"a\": 10}", "{\"a\":1e1}", 1},
        {&crm_type_object, "{\"a\": [100.0]}", "{\"a\":[1.0E+2]}", 1},
        {&crm_type_object, "{\"a\": 0.0000015}", "{\"a\":1.5e-6}", 1},
        {&crm_type_object, "{\"a\": 0}", "{\"a\":-0.00e7}", 1},
        {&crm_type_object, "{\"a\": 100000000000000000000}", "{\"a\":1e20}",
         1},
        {&crm_type_object, "{\"a\": 100000000000000000000}",
         "{\"a\":100000000000000000001}", 0},
        {&crm_type_object, "{\"a\": 9007199254740993.0}",
         "{\"a\":9007199254740992.0}", 0},
        {&crm_type_object, "{\"a\": 0.1}", "{\"a\":0.10000000000000000001}",
         0},
        {&crm_type_object, "{\"a\": 5}", "{\"a\":-5}", 0},
        {&crm_type_object, "{\"a\": 5e1}", "{\"a\":5e2}", 0},
        {&crm_type_object, "{\"a\": 1e9999999999999999999999}",
         "{\"a\":1e-9999999999999999999999}", 0},
        {&crm_type_object, "{\"a\": \"1e1\"}", "{\"a\":\"10\"}", 0},
        {&crm_type_object, "{\"a\": \"\\\"1e1\"}", "{\"a\":\"\\\"10\"}",
         0},
        {&crm_type_object, "{\"a\": \"10\"}", "{\"a\":10}", 0},
        {&crm_type_object, "{\"1e1\": true}", "{\"10\":true}", 0},
        {&crm_type_tags, "{\"a\",\"b c\"}", "{a,\"b c\"}", 1},
        {&crm_type_tags, "{a,b}", "{b,a}", 0},
        {&crm_type_time, "2026-01-01T00:00:00.000Z", "2026-01-01 00:00:00+00",
         1},
        {&crm_type_boolean, "t", "f", 0},
    };

    for (size_t i = 0; i < CRM_NELTS(pairs); i++) {
        crm_field_t field = field_of(pairs[i].type, CRM_F_NULLABLE);

        ck_assert_msg(!crm_type_equal(&field, pairs[i].a, pairs[i].b,
                                      crm_check_pool()) == !pairs[i].equal,
                      "%s and %s", pairs[i].a, pairs[i].b);
        ck_assert_msg(!crm_type_equal(&field, pairs[i].b, pairs[i].a,
                                      crm_check_pool()) == !pairs[i].equal,
                      "%s and %s", pairs[i].b, pairs[i].a);
    }
}
END_TEST

#define E(email, primary) \
    "{\"email\":\"" email "\",\"is_primary\":" #primary "}"

START_TEST(contract_10_3_lists_are_united)
{
    crm_field_t field = field_of(&crm_type_emails, 0);
    apr_pool_t *pool = crm_check_pool();
    const char *united;

    crm_type_merge(&united, &field, "[" E("a@x", false) "," E("b@x", true) "]",
                   "[" E("c@x", true) "," E("A@X", false) "]", pool);
    ck_assert_str_eq(united, "[" E("a@x", false) "," E("b@x", true) ","
                     E("c@x", false) "]");
    crm_type_merge(&united, &field, "[]", "[" E("c@x", false) ","
                   E("d@x", true) "]", pool);
    ck_assert_str_eq(united, "[" E("c@x", false) "," E("d@x", true) "]");
    crm_type_merge(&united, &field, "[" E("a@x", true) "]", "[]", pool);
    ck_assert_str_eq(united, "[" E("a@x", true) "]");
}
END_TEST

START_TEST(contract_11_5_tags_are_united)
{
    const char *united;

    crm_type_merge_tags(&united, "{a,\"b c\"}", "{\"b c\",\"d\\\"\",A}",
                        crm_check_pool());
    ck_assert_str_eq(united, "{\"a\",\"b c\",\"d\\\"\",\"A\"}");
}
END_TEST

START_TEST(arrays_survive_a_round_trip)
{
    static const char *const texts[] = {"", "a", "NULL", "a,b", "{}", "\"",
                                        "\\", "\\\"", " ", "\xc3\xa4"};
    apr_array_header_t *in = apr_array_make(crm_check_pool(), 4,
                                            sizeof(char *)), *out;

    for (int i = 0; i < 10; i++) {
        APR_ARRAY_PUSH(in, const char *) = texts[i];
    }
    out = crm_type_array_strings(crm_sql_array(in, crm_check_pool()),
                                 crm_check_pool());
    ck_assert_int_eq(out->nelts, 10);
    for (int i = 0; i < 10; i++) {
        ck_assert_str_eq(APR_ARRAY_IDX(out, i, const char *), texts[i]);
    }
}
END_TEST

/* NULL is null; the text "NULL" is not. */
START_TEST(an_array_may_have_nulls)
{
    apr_array_header_t *in = apr_array_make(crm_check_pool(), 3,
                                            sizeof(char *));

    ck_assert_str_eq(crm_sql_array(in, crm_check_pool()), "{}");
    APR_ARRAY_PUSH(in, const char *) = NULL;
    APR_ARRAY_PUSH(in, const char *) = "NULL";
    APR_ARRAY_PUSH(in, const char *) = NULL;
    ck_assert_str_eq(crm_sql_array(in, crm_check_pool()),
                     "{NULL,\"NULL\",NULL}");
}
END_TEST

/* Texts that are times or none for a reason that a pattern can tell: no 30 February. */
static const char *const times[] = {
    "2026-11-21", "2026-11-21T01:59:27Z", "2026-11-21t01:59:27z",
    "2026-11-21 01:59", "2026-11-21T01:59Z", "2026-11-21T01:59:27.5,Z",
    "2026-11-21T01:59:27,552+0100", "2026-11-21T01:59:27.552-01",
    "2026-11-21T23:59:60Z", "2026-11-21T01:59+01:30", "2026-11-21T01:59:27 02:00",
    "2026-11-21T24:00Z", "2026-11-21T23:60Z", "2026-11-21T23:59:61Z",
    "2026-11-21T01", "2026-11-21T1:59", "2026-11-21T", "2026-11-21Z",
    "2026-11-21T01:59.5", "2026-11-21T01:59:27.", "2026-11-21T01:59:27 ",
    "2026-11-21T01:59+24:00", "2026-11-21T01:59+02:60", "2026-11-21T01:59+2",
    "2026-11-21T01:59+02:", "2026-11-21T01:59+020", "2026-11-21T01:59ZZ",
    "2026-11-00", "2026-11-32", "2026-00-01", "2026-13-01", "26-11-21", "now", "",
};

/* Return whether the schema of times on SIDE permits TEXT. */
static int time_is_documented(crm_side_t side, const char *text)
{
    crm_field_t field = field_of(&crm_type_time, 0);
    char *start, *end;
    regex_t pattern;
    crm_buf_t buf;
    int found;

    crm_buf_init(&buf, 256, crm_check_pool());
    crm_field_schema(&buf, &field, side);
    crm_buf_putc(&buf, '\0');
    start = strstr(buf.data, "\"pattern\":\"");
    ck_assert_ptr_nonnull(start);
    start += strlen("\"pattern\":\"");
    end = strchr(start, '"');
    *end = '\0';
    ck_assert_int_eq(regcomp(&pattern, start, REG_EXTENDED | REG_NOSUB), 0);
    found = !regexec(&pattern, text, 0, NULL, 0);
    regfree(&pattern);
    return found;
}

START_TEST(contract_20_7_what_is_a_time_is_documented)
{
    crm_field_t field = field_of(&crm_type_time, 0);
    const char *text = times[_i], *bind = "unset", *wrong;

    parse(&wrong, &field, apr_pstrcat(crm_check_pool(), "\"", text, "\"", NULL));
    ck_assert_int_eq(time_is_documented(CRM_SIDE_INPUT, text), !*wrong);
    wrong = field.type->parse_query(&bind, &field, text, crm_check_pool());
    ck_assert_int_eq(time_is_documented(CRM_SIDE_QUERY, text), !wrong);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("type");
    TCase *in = tcase_create("input"), *query = tcase_create("query");
    TCase *out = tcase_create("output"), *unite = tcase_create("unite");

    tcase_add_loop_test(in, contract_6_what_each_type_takes, 0, CASES);
    tcase_add_loop_test(in, contract_6_5_null_clears_or_is_refused, 0,
                        COUNT(nulls));
    tcase_add_test(in, contract_6_5_a_required_text_is_not_empty);
    tcase_add_test(in, contract_6_3_text_is_counted_in_characters);
    tcase_add_test(in, contract_6_3_lists_have_a_most);
    tcase_add_test(in, contract_6_3_a_tag_has_100_characters);
    tcase_add_test(in, contract_6_2_lenient_ignores_unknown_members);
    tcase_add_loop_test(query, contract_7_what_a_parameter_takes, 0,
                        COUNT(queries));
    tcase_add_loop_test(query, contract_20_7_what_is_a_time_is_documented, 0,
                        COUNT(times));
    tcase_add_loop_test(out, contract_9_1_what_each_type_writes, 0,
                        COUNT(outputs));
    tcase_add_test(unite, contract_6_6_equal_means_equal);
    tcase_add_test(unite, contract_10_3_lists_are_united);
    tcase_add_test(unite, contract_11_5_tags_are_united);
    tcase_add_test(unite, arrays_survive_a_round_trip);
    tcase_add_test(unite, an_array_may_have_nulls);
    suite_add_tcase(suite, in);
    suite_add_tcase(suite, query);
    suite_add_tcase(suite, out);
    suite_add_tcase(suite, unite);
    return crm_check_main(suite);
}
