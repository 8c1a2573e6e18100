/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_store.c: which JSON can be stored (contract 6.3) */
#include "crm_check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_json.h"
#include "crm_json_store.h"

static json_object *parsed(const char *text)
{
    json_object *value = NULL;
    apr_size_t offset;
    const char *wrong = crm_json_parse(&value, &offset, text, strlen(text),
                                       crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s", text, wrong);
    return value;
}

static const char too_large[] = "must have at most 100 bytes as JSON";
static const char no_nul[] = "must not contain U+0000";
static const char no_double[] = "must be a number that a double can hold";
static const char too_deep[] = "is nested more than 3 levels deep";

/* With at most 100 bytes and 3 levels: NULL or the rule, and its place. */
static const struct {
    const char *text, *wrong, *path;
} stored[] = {
    {"{}", NULL, ""},
    {"[]", NULL, ""},
    {"{\"a\":{\"b\":{\"c\":1}}}", NULL, ""},
    {"{\"a\":{\"b\":{\"c\":{}}}}", too_deep, ".a.b.c"},
    {"[[[]]]", NULL, ""},
    {"[0,[[1,[]]]]", too_deep, "[1][0][1]"},
    {"{\"a\":[1,{\"b\":\"x\\u0000\"}]}", no_nul, ".a[1].b"},
    {"[1,\"\\u0000\"]", no_nul, "[1]"},
    {"{\"a\":\"\\u0001\\u001f\"}", NULL, ""},
    {"[9223372036854775806]", NULL, ""},
    /* jsonb shows 1e20 like this: what is shown can be sent */
    {"[9223372036854775807]", NULL, ""},
    {"[9223372036854775808]", NULL, ""},
    {"[-9223372036854775809]", NULL, ""},
    {"[\"12345678901234567890123\\\"1\",-12345678901234567890123]", NULL, ""},
    {"{\"n\":123456789012345678901234567890}", NULL, ""},
    {"{\"12345678901234567890\":[100000000000000000000,1e2,10000000000000000.5]}",
     NULL, ""},
    {"[1e400]", no_double, "[0]"},
    {"[-1e400]", no_double, "[0]"},
    {"[0,{\"x\":1e99999999999999999999}]", no_double, "[1].x"},
    {"[1e-99999999999999999999]", no_double, "[0]"},
    {"[1e-99999999999999999999,1e-99999999999999999999]", no_double, "[0]"},
    {"[1e-401]", no_double, "[0]"},
    {"[1e90]", NULL, ""},
    {"[1e-90]", NULL, ""},
    {"[1e99]", too_large, ""},
    {"[1e50,1e50]", too_large, ""},
    {"[1e40,1e40]", NULL, ""},
    {"[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]", NULL, ""},         /* 100 bytes */
    {"[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]", too_large, ""},   /* 101 bytes */
    {"[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaa\\u0000\"]", too_large, ""}, /* is not looked at */
};

/* Set *TEXT_P to the value TEXT as it is stored, with at most BYTES and LEVELS,
 * or return its faults. */
static apr_array_header_t *faults_of(const char **text_p, const char *text,
                                     apr_size_t bytes, int levels)
{
    *text_p = NULL;
    return crm_json_storable(text_p, parsed(text), bytes, levels,
                             crm_check_pool());
}

static const crm_json_fault_t *fault_of(const apr_array_header_t *found, int i)
{
    return &APR_ARRAY_IDX(found, i, const crm_json_fault_t);
}

START_TEST(contract_6_3_what_can_be_stored)
{
    const char *text;
    apr_array_header_t *found = faults_of(&text, stored[_i].text, 100, 3);
    const char *wrong = found ? fault_of(found, 0)->rule : "fine";

    ck_assert_msg(!strcmp(wrong, stored[_i].wrong ? stored[_i].wrong : "fine"),
                  "%s: %s", stored[_i].text, wrong);
    ck_assert_str_eq(found ? fault_of(found, 0)->path : "", stored[_i].path);
    if (!found) {
        ck_assert_str_eq(text, stored[_i].text);
    }
}
END_TEST

START_TEST(contract_5_6_every_place_is_told)
{
    static const struct {
        const char *path, *rule;
    } expected[] = {
        {".a", no_nul}, {".b[1]", no_double}, {".b[2].c", no_double},
        {".d.e[0]", too_deep}, {".f", no_nul},
    };
    const char *text;
    apr_array_header_t *found = faults_of(
        &text, "{\"a\":\"\\u0000\",\"b\":[0,-1e999,{\"c\":1e400}],"
        "\"d\":{\"e\":[[]]},\"f\":\"\\u0000\",\"g\":1}", 100, 3);

    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(text);
    ck_assert_int_eq(found->nelts, (int)(sizeof(expected)
                                          / sizeof(expected[0])));
    for (int i = 0; i < found->nelts; i++) {
        ck_assert_str_eq(fault_of(found, i)->path, expected[i].path);
        ck_assert_str_eq(fault_of(found, i)->rule, expected[i].rule);
    }
}
END_TEST

/* Return how many faults COUNT wrong values below a name of NAME bytes have: entries
 * of an array, or MEMBERS of an object. */
static int faults_below(apr_size_t name, int count, int members)
{
    apr_array_header_t *found;
    const char *text;
    crm_buf_t buf;

    crm_buf_init(&buf, 65536, crm_check_pool());
    crm_buf_puts(&buf, "{\"");
    for (apr_size_t i = 0; i < name; i++) {
        crm_buf_putc(&buf, 'k');
    }
    crm_buf_puts(&buf, members ? "\":{" : "\":[");
    for (int i = 0; i < count; i++) {
        crm_buf_puts(&buf, i ? "," : "");
        if (members) {
            crm_buf_printf(&buf, "\"m%d\":", i);
        }
        crm_buf_puts(&buf, "\"\\u0000\"");
    }
    crm_buf_puts(&buf, members ? "}}" : "]}");
    crm_buf_putc(&buf, '\0');
    found = faults_of(&text, buf.data, 65536, 16);
    return found ? found->nelts : 0;
}

START_TEST(what_is_told_has_an_end)
{
    for (int members = 0; members < 2; members++) {
        ck_assert_int_eq(faults_below(1, 99, members), 99);
        ck_assert_int_eq(faults_below(1, 100, members), 100);
        ck_assert_int_eq(faults_below(1, 101, members), 100);
        ck_assert_int_eq(faults_below(2048, 10, members), 2);
        ck_assert_int_eq(faults_below(32768, 10, members), 1);
    }
}
END_TEST

/* Return the rule that a number of SIGN and COUNT decimals with TAIL breaks. */
static const char *decimals_break(const char *sign, int count, const char *tail)
{
    apr_array_header_t *found;
    const char *text;
    crm_buf_t buf;

    crm_buf_init(&buf, 65536, crm_check_pool());
    crm_buf_printf(&buf, "[%s1.", sign);
    for (int i = 0; i < count; i++) {
        crm_buf_putc(&buf, (char)('0' + i % 10));
    }
    crm_buf_printf(&buf, "%s]", tail);
    crm_buf_putc(&buf, '\0');
    found = faults_of(&text, buf.data, 65536, 16);
    ck_assert(found || !strcmp(text, buf.data));
    return found ? fault_of(found, 0)->rule : "fine";
}

/* PostgreSQL's numeric has no more. */
START_TEST(contract_6_1_decimals_have_an_end)
{
    static const char wrong[] = "must have at most 16383 decimals";
    static const struct {
        const char *sign, *tail;
        int most;
    } cases[] = {
        {"", "", 16383}, {"-", "", 16383}, {"", "e0", 16383}, {"", "e-0", 16383},
        {"", "e-1", 16382}, {"-", "E-400", 15983}, {"", "e+1", 16384},
        {"", "e300", 16683},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        ck_assert_str_eq(decimals_break(cases[i].sign, cases[i].most,
                                        cases[i].tail), "fine");
        ck_assert_str_eq(decimals_break(cases[i].sign, cases[i].most + 1,
                                        cases[i].tail), wrong);
    }
}
END_TEST

START_TEST(what_is_stored_is_compact)
{
    const char *text;

    ck_assert_ptr_null(faults_of(&text, " { \"a\" : [ 1 , 2.50 , \"\\u00e4\\/\" ]"
                                 " , \"b\" : null } ", 100, 3));
    ck_assert_str_eq(text, "{\"a\":[1,2.50,\"\xc3\xa4/\"],\"b\":null}");
}
END_TEST

/* A long name above many values must not be copied for each of them. */
START_TEST(storing_takes_no_more_than_its_size)
{
    apr_pool_t *pool;
    const char *text;
    clock_t start;
    crm_buf_t buf;
    double ms;

    apr_pool_create(&pool, crm_check_pool());
    crm_buf_init(&buf, 65536, pool);
    crm_buf_puts(&buf, "{\"");
    while (buf.len < 32768) {
        crm_buf_putc(&buf, 'k');
    }
    crm_buf_puts(&buf, "\":[");
    while (buf.len < 65500) {
        crm_buf_puts(&buf, "1,");
    }
    buf.len--;                  /* the last comma */
    crm_buf_puts(&buf, "]}");
    crm_buf_putc(&buf, '\0');
    start = clock();
    ck_assert_ptr_null(crm_json_storable(&text, parsed(buf.data), 65536, 16,
                                         pool));
    ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
    printf("# 64 KiB, 16,000 values below a name of 32 KiB: %.1f ms\n", ms);
    fflush(stdout);
    ck_assert_msg(ms < 500, "%.0f ms", ms);
    apr_pool_destroy(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_store");
    TCase *store = tcase_create("store");

    tcase_add_test(store, storing_takes_no_more_than_its_size);
    tcase_add_loop_test(store, contract_6_3_what_can_be_stored, 0,
                        COUNT(stored));
    tcase_add_test(store, contract_5_6_every_place_is_told);
    tcase_add_test(store, what_is_told_has_an_end);
    tcase_add_test(store, contract_6_1_decimals_have_an_end);
    tcase_add_test(store, what_is_stored_is_compact);
    suite_add_tcase(suite, store);
    return crm_check_main(suite);
}
