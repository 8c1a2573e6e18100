/* SPDX-License-Identifier: Apache-2.0 */
/* test_mcp.c: JSON-RPC messages, JSON in place, headers, arguments and fields
 * (contract 21) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_api.h"
#include "crm_domain.h"
#include "crm_json_check.h"
#include "mcp_arguments.h"
#include "mcp_fields.h"
#include "mcp_header.h"
#include "mcp_message.h"

static void setup(void)
{
    crm_api_init(&crm_domain, crm_check_pool());
    ck_assert_ptr_null(crm_mcp_init(crm_check_pool()));
}

static crm_slice_t slice(const char *text)
{
    apr_size_t offset;

    ck_assert_msg(!crm_json_check(&offset, text, strlen(text),
                                  crm_check_pool()), "%s", text);
    return crm_json_slice(text, strlen(text));
}

static const char *text_of(crm_slice_t value)
{
    return value.text ? apr_pstrmemdup(crm_check_pool(), value.text, value.len)
           : "none";
}

/* ---- JSON in place ------------------------------------------------------- */

/* A value, and its members or items with their names. */
static const struct {
    const char *value, *said;
} values[] = {
    {"{}", ""}, {" { } ", ""}, {"[]", ""}, {"[ ]", ""},
    {"{\"a\":1}", "[\"a\" 1]"}, {"{ \"a\" : 1 }", "[\"a\" 1]"},
    {"{\"a\":1,\"b\":[1,2]}", "[\"a\" 1][\"b\" [1,2]]"},
    {"\t{\"a\":{\"b\":[{},{\"c\":\"]}\"}]},\n\"d\" :null}\r\n",
     "[\"a\" {\"b\":[{},{\"c\":\"]}\"}]}][\"d\" null]"},
    {"{\"a\\\"}\":\"\\\\\",\"b\":\"\\\"\"}", "[\"a\\\"}\" \"\\\\\"]"
     "[\"b\" \"\\\"\"]"},
    {"[1,-2.5e+3,true,false,null,\"x,y\",[],{}]", "[1][-2.5e+3][true][false]"
     "[null][\"x,y\"][[]][{}]"},
    {"[ 1 , [ 2 , 3 ] ]", "[1][[ 2 , 3 ]]"},
    {"7", ""}, {"\"x\"", ""}, {"null", ""},
};

START_TEST(members_and_items)
{
    crm_slice_t value = slice(values[_i].value), name, found;
    const char *said = "";
    crm_json_walk_t walk;

    if (crm_json_walk(&walk, value, '{')) {
        while (crm_json_member(&name, &found, &walk)) {
            said = apr_pstrcat(crm_check_pool(), said, "[", text_of(name), " ",
                               text_of(found), "]", NULL);
        }
    }
    else {
        crm_json_walk(&walk, value, '[');
        while (crm_json_item(&found, &walk)) {
            said = apr_pstrcat(crm_check_pool(), said, "[", text_of(found),
                               "]", NULL);
        }
    }
    ck_assert_str_eq(said, values[_i].said);
}
END_TEST

/* A string, and its text. */
static const struct {
    const char *json, *text;
} strings[] = {
    {"\"\"", ""}, {"\"a\"", "a"}, {"\"a b\"", "a b"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"\\u0041\\u00e4\\u20AC\"", "A\xc3\xa4\xe2\x82\xac"},
    {"\"x\\ud83d\\ude00y\"", "x\xf0\x9f\x98\x80y"},
    {"\"\xc3\xa4\"", "\xc3\xa4"},
};

START_TEST(strings_have_texts)
{
    crm_slice_t value = slice(strings[_i].json);
    apr_size_t len;

    ck_assert_str_eq(crm_slice_text(value, &len, crm_check_pool()),
                     strings[_i].text);
    ck_assert_uint_eq(len, strlen(strings[_i].text));
    ck_assert(crm_slice_is(value, strings[_i].text));
    ck_assert(!crm_slice_is(value, apr_pstrcat(crm_check_pool(),
                                               strings[_i].text, "x", NULL)));
    ck_assert(!*strings[_i].text || !crm_slice_is(value, ""));
}
END_TEST

START_TEST(a_text_may_have_u0000)
{
    apr_size_t len;

    crm_slice_text(slice("\"a\\u0000b\""), &len, crm_check_pool());
    ck_assert_uint_eq(len, 3);
    ck_assert(!crm_slice_is(slice("\"a\\u0000\""), "a"));
    ck_assert(!crm_slice_is(slice("1"), "1"));
    ck_assert(!crm_slice_is(slice("[1]"), "1"));
}
END_TEST

START_TEST(members_by_name)
{
    crm_slice_t value = slice("{\"a\":1,\"\\u0062\":{\"a\":2},\"c\":[3]}");

    ck_assert_str_eq(text_of(crm_json_find(value, "a")), "1");
    ck_assert_str_eq(text_of(crm_json_find(crm_json_find(value, "b"), "a")),
                     "2");
    ck_assert_ptr_null(crm_json_find(value, "d").text);
    ck_assert_ptr_null(crm_json_find(crm_json_find(value, "c"), "a").text);
    ck_assert_ptr_null(crm_json_find(crm_json_find(value, "d"), "a").text);
}
END_TEST

START_TEST(members_by_names)
{
    static const char *const names[] = {"b", "none", "a", NULL};
    crm_slice_t found[3];

    crm_json_find_all(found, slice("{\"a\":1,\"x\":[\"a\"],\"\\u0062\":{\"a\":2}}"),
                      names);
    ck_assert_str_eq(text_of(found[0]), "{\"a\":2}");
    ck_assert_ptr_null(found[1].text);
    ck_assert_str_eq(text_of(found[2]), "1");
    crm_json_find_all(found, slice("[\"a\"]"), names);
    ck_assert_ptr_null(found[2].text);
}
END_TEST

/* Strings are looked at in blocks: one of any length, with a character anywhere,
 * checked and walked over with nothing readable behind it. */
START_TEST(strings_of_any_length)
{
    static const char *const parts[] = {
        "\\\"", "\\\\", "\\u0041", "\xc3\xa4", "\x7f", "\x01", "\n"
    };
    apr_pool_t *pool = crm_check_pool();

    for (int before = 0; before < 36; before++) {
        for (size_t i = 0; i < COUNT(parts); i++) {
            for (int after = 0; after < 20; after += 1 + (after > 2) * 12) {
                char *text = apr_psprintf(pool, "[\"%.*s%s%.*s\",[]]", before,
                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", parts[i],
                    after, "bbbbbbbbbbbbbbbbbbbb");
                apr_size_t len = strlen(text), offset;
                int good = (unsigned char)*parts[i] >= 0x20;
                char *copy = malloc(len);
                const char *rule;
                crm_json_walk_t walk;
                crm_slice_t item;

                memcpy(copy, text, len);
                rule = crm_json_check(&offset, copy, len, pool);
                ck_assert_msg(good ? !rule : rule && offset
                              == (apr_size_t)before + 2, "%s: %s", text,
                              rule ? rule : "valid");
                crm_json_walk(&walk, crm_json_slice(copy, len), '[');
                ck_assert(!good || (crm_json_item(&item, &walk)
                                    && item.len == len - 5
                                    && crm_json_item(&item, &walk)
                                    && item.len == 2));
                free(copy);
            }
        }
    }
}
END_TEST

/* ---- messages ------------------------------------------------------------ */

#define META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"

/* A message and what is read: "code id method version". t/67-mcp.t has more of
 * those that are refused. */
static const struct {
    const char *text, *said;
} messages[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\"}", "0 1 a/b none"},
    {" {\"method\":\"\\u0061\", \"id\" : \"x\\n\" , \"jsonrpc\":\"2.0\"} ",
     "0 \"x\\n\" a none"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", "0 none n none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"a\",\"params\":{" META
     "\"v\"}}}", "0 -1 a v"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{" META
     "7}}}", "0 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"_meta\":"
     "[1]}}", "0 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}",
     "-32600 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}",
     "0 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"_meta\":"
     "null}}", "0 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", "-32600 1 none none"},
    {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", "-32600 1 a none"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}",
     "-32600 none none none"},
    {"[]", "-32600 none none none"}, {"{", "-32700 none none none"},
    {"", "-32700 none none none"},
};

START_TEST(what_a_message_says)
{
    const char *text = messages[_i].text, *problem;
    mcp_message_t message;
    int code = mcp_message_read(&message, &problem, text, strlen(text),
                                crm_check_pool());

    ck_assert_str_eq(apr_psprintf(crm_check_pool(), "%d %s %s %s", code,
                                  text_of(message.id), message.method
                                  ? message.method : "none", message.version
                                  ? message.version : "none"),
                     messages[_i].said);
    ck_assert(!code == !problem);
}
END_TEST

/* A header's value, and the text that it stands for (NULL: none). */
static const struct {
    const char *value, *text;
} headers[] = {
    {"", ""}, {"a", "a"}, {"=?base64?", "=?base64?"},
    {"=?base64?" "?=", ""}, {"=?base64?YQ==?=", "a"}, {"=?base64?YQ?=", NULL},
    {"=?base64?YQ=?=", NULL}, {"=?base64?YR==?=", NULL},
    {"=?base64?Y Q==?=", NULL}, {"=?base64?YQ==?=x", "=?base64?YQ==?=x"},
    {"=?BASE64?YQ==?=", "=?BASE64?YQ==?="}, {"=?base64?AA==?=", NULL},
    {"=?base64?/w==?=", NULL}, {"=?base64?w6Q=?=", "\xc3\xa4"},
    {"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="},
};

START_TEST(headers_may_be_encoded)
{
    const char *text = mcp_header_text(headers[_i].value, crm_check_pool());

    ck_assert_pstr_eq(text, headers[_i].text);
}
END_TEST

/* ---- arguments ----------------------------------------------------------- */

#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"

/* A tool, its arguments, and the request: "path?query body key". */
static const struct {
    const char *tool, *arguments, *said;
} calls[] = {
    {"agents_list", "{}", "/agents?page_size=10&cursor=* - -"},
    {"agents_list", "{\"page\":2}", "/agents?page=2&page_size=10 - -"},
    {"agents_list", "{\"page\":null,\"cursor\":\"x\",\"page_size\":3}",
     "/agents?cursor=x&page_size=3 - -"},
    {"events_list", "{}", "/events?page_size=10 - -"},
    {"contacts_get", "{\"id\":\"" ID "\"}", "/contacts/" ID "? - -"},
    {"contacts_get", "{\"id\":\"a/../b?c\"}", "/contacts/a/../b?c? - -"},
    {"conversations_messages_get", "{\"message_id\":\"b\",\"id\":\"a\"}",
     "/conversations/a/messages/b? - -"},
    {"contacts_list", "{\"page\":1,\"search\":\"a&b=c d+\\u00e4%\",\"tags\":"
     "[\"x\",\"y, z\",5,true]}", "/contacts?page=1&search=a%26b%3Dc%20d%2B"
     "%C3%A4%25&tags=x,%22y,%20z%22,5,true&page_size=10 - -"},
    {"contacts_list", "{\"page\":1,\"custom_fields\":{\"a.b\":\"c\",\"d\":null,"
     "\"e\":1.50}}", "/contacts?page=1&custom_fields.a.b=c&custom_fields.d="
     "null&custom_fields.e=1.5&page_size=10 - -"},
    {"contacts_create", "{}", "/contacts? {} -"},
    {"contacts_create", "{ \"a\\n\" : 1.0 , \"idempotency_key\":\"k\",\"b\":"
     "[ {} ]}", "/contacts? {\"a\\n\":1.0,\"b\":[ {} ]} k"},
    {"sequences_start", "{\"idempotency_key\":\"k\"}",
     "/sequences/start? {\"idempotency_key\":\"k\"} -"},
    {"contacts_delete", "{\"id\":\"" ID "\",\"idempotency_key\":\"k\"}",
     "/contacts/" ID "? - k"},
    /* lists and objects that came as texts, where the tool has some */
    {"contacts_create", "{\"tags\":\"[\\\"a\\\",\\\"\\u00e4\\\"] \",\"notes\":\"[1]\","
     "\"custom_fields\":\"{\\\"x\\\":{}}\",\"emails\":\"{}\"}", "/contacts? {\"tags\":"
     "[\"a\",\"\xc3\xa4\"],\"notes\":\"[1]\",\"custom_fields\":{\"x\":{}},"
     "\"emails\":\"{}\"} -"},
    {"contacts_upsert", "{\"contacts\":\"[{\\\"a\\\":1}]\",\"x\":\"[]\"}",
     "/contacts/upsert? {\"contacts\":[{\"a\":1}],\"x\":\"[]\"} -"},
    {"contacts_create", "{\"tags\":\"[1,]\",\"custom_fields\":\"{\\\"a\\\":1,"
     "\\\"a\\\":2}\"}", "/contacts? {\"tags\":\"[1,]\",\"custom_fields\":\"{\\\"a\\\":"
     "1,\\\"a\\\":2}\"} -"},
    {"contacts_list", "{\"custom_fields\":\"{\\\"a\\\":1}\",\"search\":\"[x]\","
     "\"page\":1}", "/contacts?custom_fields.a=1&search=%5Bx%5D&page=1"
     "&page_size=10 - -"},
    {"contacts_get", "{\"id\":\"[x]\",\"fields\":\"[\\\"id\\\"]\"}", "/contacts/[x]?"
     " - -"},
    {"contacts_get", "{}", "id is required; "},
    {"contacts_get", "{\"id\":[]}", "id must be a string; "},
    {"conversations_messages_get", "{\"id\":1,\"message_id\":2}",
     "id must be a string; message_id must be a string; "},
    {"contacts_list", "{\"fields\":1,\"search\":{\"x\":[]},\"tags\":[[]]}",
     "fields must be an array of names; search must be a text, a number or a"
     " boolean; tags must be an array of texts; "},
    {"contacts_list", "{\"custom_fields\":{\"x\":[]}}", "custom_fields.x must be"
     " a text, a number, a boolean or null; "},
};

START_TEST(arguments_make_a_request)
{
    const mcp_tool_t *tool = mcp_tool_find(calls[_i].tool);
    apr_pool_t *pool = crm_check_pool();
    mcp_operation_t operation;
    const char *said = "";
    crm_error_t *error;

    ck_assert_ptr_nonnull(tool);
    error = mcp_arguments_read(&operation, tool, slice(calls[_i].arguments),
                               pool);
    for (int i = 0; error && i < error->details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(error->details, i,
                                                    crm_detail_t);

        said = apr_pstrcat(pool, said, detail->field, " ", detail->message,
                           "; ", NULL);
    }
    if (!error) {
        said = apr_psprintf(pool, "%s?%.*s %s %s", operation.path,
                            (int)operation.query.len, operation.query.data
                            ? operation.query.data : "",
                            operation.body.len
                            ? apr_pstrmemdup(pool, operation.body.data,
                                             operation.body.len) : "-",
                            operation.key ? operation.key : "-");
    }
    ck_assert_str_eq(said, calls[_i].said);
}
END_TEST

START_TEST(many_arguments_are_bounded)
{
    const mcp_tool_t *tool = mcp_tool_find("agents_list");
    apr_pool_t *pool;
    mcp_operation_t operation;
    crm_error_t *error;
    crm_buf_t text;

    apr_pool_create(&pool, crm_check_pool());
    crm_buf_init(&text, 4096, pool);
    for (int i = 0; i < 100000; i++) {
        crm_buf_printf(&text, "%s\"a%d\":1", i ? "," : "{", i);
    }
    crm_buf_putc(&text, '}');
    error = mcp_arguments_read(&operation, tool,
                               crm_json_slice(text.data, text.len), pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->details->nelts, 1);
    ck_assert_uint_lt(operation.query.len, 10000);
    apr_pool_destroy(pool);
}
END_TEST

/* Fields, a response, and what is left of it. */
static const struct {
    const char *fields, *body, *left;
} trims[] = {
    {"[\"b\"]", "{\"data\":{\"id\":1,\"a\":2,\"b\":[3]}}",
     "{\"data\":{\"id\":1,\"b\":[3]}}"},
    {"[]", "{\"data\":[{\"id\":1,\"a\":2},{\"id\":2}],\"pagination\":{\"a\":1}}",
     "{\"data\":[{\"id\":1},{\"id\":2}],\"pagination\":{\"a\":1}}"},
    {"[\"a\",\"id\",\"x\"]", "{\"data\":[]}", "{\"data\":[]}"},
};

START_TEST(fields_are_trimmed)
{
    crm_buf_t out;

    crm_buf_init(&out, 16, crm_check_pool());
    mcp_fields_trim(&out, trims[_i].body, strlen(trims[_i].body),
                    slice(trims[_i].fields));
    crm_buf_putc(&out, '\0');
    ck_assert_str_eq(out.data, trims[_i].left);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mcp");
    TCase *json = tcase_create("json"), *tools = tcase_create("tools");

    tcase_add_loop_test(json, members_and_items, 0, COUNT(values));
    tcase_add_loop_test(json, strings_have_texts, 0, COUNT(strings));
    tcase_add_test(json, a_text_may_have_u0000);
    tcase_add_test(json, members_by_name);
    tcase_add_test(json, members_by_names);
    tcase_add_test(json, strings_of_any_length);
    tcase_add_loop_test(json, what_a_message_says, 0, COUNT(messages));
    tcase_add_loop_test(json, headers_may_be_encoded, 0, COUNT(headers));
    tcase_add_loop_test(json, fields_are_trimmed, 0, COUNT(trims));
    tcase_add_unchecked_fixture(tools, setup, NULL);
    tcase_add_loop_test(tools, arguments_make_a_request, 0, COUNT(calls));
    tcase_add_test(tools, many_arguments_are_bounded);
    suite_add_tcase(suite, json);
    suite_add_tcase(suite, tools);
    return crm_check_main(suite);
}
