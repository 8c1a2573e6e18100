/* SPDX-License-Identifier: Apache-2.0 */
/* test_query.c: taking a query string apart (contract 7) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_query.h"
#include "crm_text.h"

static const char bad_percent[] = "must be percent-encoded properly";
static const char bad_utf8[] = "must be valid UTF-8";
static const char bad_nul[] = "must not contain U+0000";

/* What QUERY is taken to say: "name=value" in brackets, "!" before the bracket
 * of what breaks a rule. */
static const struct {
    const char *query, *said;
} queries[] = {
    {NULL, ""}, {"", ""}, {"&", ""}, {"&&&", ""},
    {"a", "[a=]"}, {"a=", "[a=]"}, {"a=1", "[a=1]"}, {"=", "[=]"},
    {"=1", "[=1]"}, {"a=1&b=2", "[a=1][b=2]"}, {"&a=1&&b=2&", "[a=1][b=2]"},
    {"a=1&a=2", "[a=1][a=2]"}, {"a=1=2", "[a=1=2]"}, {"a==", "[a==]"},
    {"a&b", "[a=][b=]"}, {"a=1;b=2", "[a=1;b=2]"}, {"a?b=c?d", "[a?b=c?d]"},
    {"a=b+c", "[a=b c]"}, {"a+b=c", "[a b=c]"}, {"a=%2B", "[a=+]"},
    {"a=%2b1", "[a=+1]"}, {"a=%20", "[a= ]"}, {"a=%26%3D", "[a=&=]"},
    {"%61=%62", "[a=b]"}, {"a%3Db=c", "[a=b=c]"}, {"a=%25", "[a=%]"},
    {"a=%2525", "[a=%25]"}, {"page%5Fsize=1", "[page_size=1]"},
    {"a=%C3%A4", "[a=\xc3\xa4]"}, {"a=\xc3\xa4", "[a=\xc3\xa4]"},
    {"a=%F0%9F%98%80", "[a=\xf0\x9f\x98\x80]"}, {"a=%0d%0a", "[a=\r\n]"},
    {"tags=a,b%2Cc", "[tags=a,b,c]"}, {"a[]=1", "[a[]=1]"},
    {"a=#b", "[a=#b]"}, {"a=%7F", "[a=\x7f]"},
};

START_TEST(what_a_query_says)
{
    apr_array_header_t *params;
    const char *said = "";

    crm_query_parse(&params, queries[_i].query, crm_check_pool());
    for (int i = 0; i < params->nelts; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);

        said = apr_pstrcat(crm_check_pool(), said, param->bad ? "!" : "", "[",
                           param->name, "=", param->value, "]", NULL);
        ck_assert_uint_eq(param->value_len, strlen(param->value));
    }
    ck_assert_msg(!strcmp(said, queries[_i].said), "%s says %s",
                  queries[_i].query ? queries[_i].query : "nothing", said);
}
END_TEST

/* What cannot be decoded: the name under which it is told, and the rule. */
static const struct {
    const char *query, *name, *bad;
} broken[] = {
    {"a=%", "a", bad_percent}, {"a=%4", "a", bad_percent},
    {"a=%4x", "a", bad_percent}, {"a=%x4", "a", bad_percent},
    {"a=%%41", "a", bad_percent}, {"a=100%", "a", bad_percent},
    {"a=%+1", "a", bad_percent}, {"a=% 1", "a", bad_percent},
    {"a=%4&1=", "a", bad_percent},      /* not over the '&' */
    {"a=%0", "a", bad_percent}, {"a=%-1", "a", bad_percent},
    {"a=%u0041", "a", bad_percent},
    {"a=%00", "a", bad_nul}, {"a=x%00y", "a", bad_nul},
    {"a=%ff", "a", bad_utf8}, {"a=%C3", "a", bad_utf8},
    {"a=%C3%28", "a", bad_utf8}, {"a=%C0%AF", "a", bad_utf8},
    {"a=%ED%A0%80", "a", bad_utf8}, {"a=%F4%90%80%80", "a", bad_utf8},
    {"a=\xff", "a", bad_utf8}, {"a=caf\xe9", "a", bad_utf8},
    {"a=%c0%80", "a", bad_utf8},
    /* a name that cannot be decoded is told as it was sent */
    {"%ff=1", "%ff", bad_utf8}, {"%=1", "%", bad_percent},
    {"a%00b=1", "a%00b", bad_nul}, {"a%4=1", "a%4", bad_percent},
    {"\xff=1", "?", bad_utf8}, {"x\xffy", "x?y", bad_utf8},
    {"%c3=%a4", "%c3", bad_utf8},       /* halves do not make a whole */
    {"\xc3=\xa4", "?", bad_utf8},
};

START_TEST(what_is_broken_is_marked)
{
    const crm_query_param_t *param;
    apr_array_header_t *params;

    crm_query_parse(&params, broken[_i].query, crm_check_pool());
    ck_assert_int_ge(params->nelts, 1);
    param = &APR_ARRAY_IDX(params, 0, crm_query_param_t);
    ck_assert_msg(param->bad != NULL, "%s is fine", broken[_i].query);
    ck_assert_msg(!strcmp(param->bad, broken[_i].bad), "%s: %s",
                  broken[_i].query, param->bad);
    ck_assert_str_eq(param->name, broken[_i].name);
    ck_assert_msg(crm_text_valid_utf8(param->name, strlen(param->name)),
                  "the name of %s cannot be shown", broken[_i].query);
}
END_TEST

START_TEST(a_broken_one_leaves_the_others_alone)
{
    apr_array_header_t *params;

    crm_query_parse(&params, "%ff=1&b=%&c=3&%00&d=%34", crm_check_pool());
    ck_assert_int_eq(params->nelts, 5);
    for (int i = 0; i < 5; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);

        ck_assert_msg(!param->bad == (i == 2 || i == 4), "number %d", i);
    }
    ck_assert_str_eq(APR_ARRAY_IDX(params, 4, crm_query_param_t).value, "4");
}
END_TEST

START_TEST(many_parameters)
{
    enum { MANY = 4000 };
    char *query = malloc(MANY * 2 + 1);
    apr_array_header_t *params;

    for (int i = 0; i < MANY; i++) {
        memcpy(query + (size_t)i * 2, "a&", 2);
    }
    query[MANY * 2] = '\0';
    crm_query_parse(&params, query, crm_check_pool());
    ck_assert_int_eq(params->nelts, MANY);
    free(query);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("query");
    TCase *parse = tcase_create("parse");

    tcase_add_loop_test(parse, what_a_query_says, 0,
                        COUNT(queries));
    tcase_add_loop_test(parse, what_is_broken_is_marked, 0,
                        COUNT(broken));
    tcase_add_test(parse, a_broken_one_leaves_the_others_alone);
    tcase_add_test(parse, many_parameters);
    suite_add_tcase(suite, parse);
    return crm_check_main(suite);
}
