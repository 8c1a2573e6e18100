/* SPDX-License-Identifier: Apache-2.0 */
/* test_etag.c: entity tags, the lists of them in headers, and the hash */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_etag.h"
#include "crm_hash.h"

#define TIME "2026-11-21 01:59:27.552+00"
#define BODY "{\"data\":{\"id\":\"0190a6f0-1c2d-7abc-8def-0123456789ab\"}}"

/* Return the tag for UPDATED_AT and BODY. */
static const char *make(const char *updated_at, const char *body)
{
    char *tag = apr_palloc(crm_check_pool(), CRM_ETAG_SIZE);

    crm_etag_make(tag, updated_at, body, strlen(body));
    return tag;
}

/* Return what HEADER's tags have as times; WEAKLY as of crm_etags_times(). */
static const char *times_as(const char *header, int weakly)
{
    crm_etags_t tags;

    ck_assert_ptr_null(crm_etags_read(&tags, header, crm_check_pool()));
    return crm_etags_times(&tags, weakly, crm_check_pool());
}

static const char *times_of(const char *header)
{
    return times_as(header, 0);
}

/* --- the hash --------------------------------------------------------------- */

START_TEST(each_bit_and_the_length_count)
{
    unsigned char text[200];
    apr_uint64_t whole;

    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (unsigned char)(i * 7);
    }
    for (size_t len = 0; len <= sizeof(text); len++) {
        whole = crm_hash(CRM_HASH_START, text, len);
        ck_assert(whole != crm_hash(CRM_HASH_START + 1, text, len));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            text[bit / 8] ^= (unsigned char)(1U << bit % 8);
            CRM_CHECK(whole != crm_hash(CRM_HASH_START, text, len),
                      "bit %zu of %zu bytes", bit, len);
            text[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
    memset(text, 0, sizeof(text));
    for (size_t len = 0; len < sizeof(text); len++) {
        ck_assert(crm_hash(CRM_HASH_START, text, len)
                  != crm_hash(CRM_HASH_START, text, len + 1));
    }
}
END_TEST

/* --- tags ------------------------------------------------------------------- */

START_TEST(contract_13_2_form)
{
    const char *tag = make(TIME, BODY);

    ck_assert_int_eq(strlen(tag), CRM_ETAG_SIZE - 1);
    ck_assert(*tag == '"' && tag[strlen(tag) - 1] == '"');
    ck_assert(tag[11] == '.');
    ck_assert_int_eq(strspn(tag + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "abcdefghijklmnopqrstuvwxyz0123456789-_."), 19);
    ck_assert_str_eq(tag, make(TIME, BODY));
    ck_assert_msg(!strncmp(tag, make(TIME, "{}"), 12), "the time is its own");
    ck_assert_str_ne(tag, make(TIME, "{}"));
    ck_assert_str_ne(tag, make("2026-11-21 01:59:27.553+00", BODY));
    ck_assert_msg(!strchr(make(NULL, BODY), '.'), "without updated_at");
    ck_assert_str_ne(make(NULL, BODY), make(NULL, "{}"));
}
END_TEST

static const struct {
    const char *pg, *bind;
} times[] = {
    {TIME, "2026-11-21T01:59:27.552Z"},
    {"2026-11-21 01:59:27+00", "2026-11-21T01:59:27.000Z"},
    {"2026-11-21 01:59:27.5+00", "2026-11-21T01:59:27.500Z"},
    {"2026-11-21 01:59:27.05+00", "2026-11-21T01:59:27.050Z"},
    {"0001-01-01 00:00:00+00", "0001-01-01T00:00:00.000Z"},
    {"9999-12-31 23:59:59.999+00", "9999-12-31T23:59:59.999Z"},
};

START_TEST(the_time_of_a_tag_is_read_back)
{
    ck_assert_str_eq(times_of(make(times[_i].pg, BODY)),
                     apr_pstrcat(crm_check_pool(), "{\"", times[_i].bind,
                                 "\"}", NULL));
}
END_TEST

START_TEST(rfc_9110_if_match_compares_strongly)
{
    const char *tag = make(TIME, BODY), *other = make(TIME, "{}");

    ck_assert_str_eq(times_of(apr_pstrcat(crm_check_pool(), "W/", tag, NULL)),
                     "{}");
    ck_assert_str_eq(times_of(apr_pstrcat(crm_check_pool(), "W/", tag, ", ",
                                          other, NULL)),
                     times_of(tag));
    ck_assert_str_eq(times_as(apr_pstrcat(crm_check_pool(), "W/", tag, NULL),
                              1), times_of(tag));
    ck_assert_str_eq(times_of(make(NULL, BODY)), "{}");
}
END_TEST

static const char *const foreign[] = {
    "\"\"", "\"x\"", "\"AAAAAAAAAA\"", "\"AAAAAAAAAA.\"", "\"__________.x\"",
    "\"AAAAAAAAA+.x\"", "\"AAAAAAAAA.xx\"", "\"\xc3\xa4\xc3\xa4\xc3\xa4.xxxxx\"",
};

START_TEST(a_foreign_tag_has_no_time)
{
    ck_assert_str_eq(times_of(foreign[_i]), "{}");
}
END_TEST

/* --- headers ---------------------------------------------------------------- */

static const struct {
    const char *header;
    int count;                  /* of tags; -1: "*"; -2: it is malformed */
} headers[] = {
    {"\"a\"", 1}, {"W/\"a\"", 1}, {"\"a\", \"b\"", 2}, {"\"a\",\"b\"", 2},
    {" \"a\"\t,\t\"b\" ", 2}, {",\"a\",,W/\"b\",", 2}, {"\"\"", 1},
    {"\"a,b\"", 1}, {"\"!#~\x80\"", 1}, {"*", -1}, {" * ", -1},
    {"", -2}, {",", -2}, {"a", -2}, {"\"a", -2}, {"a\"", -2}, {"\"", -2},
    {"w/\"a\"", -2}, {"W/a", -2}, {"W/", -2}, {"W", -2}, {"W /\"a\"", -2},
    {"\"a\" \"b\"", -2}, {"\"a\"b", -2}, {"\"a b\"", -2}, {"\"a\x7f\"", -2},
    {"*, \"a\"", -2}, {"\"a\", *", -2}, {"**", -2}, {"'a'", -2},
};

START_TEST(rfc_9110_lists_of_tags)
{
    crm_etags_t tags;
    const char *rule = crm_etags_read(&tags, headers[_i].header,
                                      crm_check_pool());

    ck_assert_msg(!rule == (headers[_i].count != -2), "%s: %s",
                  headers[_i].header, rule);
    if (!rule) {
        ck_assert_int_eq(tags.any, headers[_i].count == -1);
        ck_assert_int_eq(tags.tags->nelts, tags.any ? 0 : headers[_i].count);
    }
}
END_TEST

START_TEST(rfc_9110_if_none_match_compares_weakly_if_match_strongly)
{
    const char *tag = make(TIME, BODY);
    const char *cut = apr_pstrndup(crm_check_pool(), tag, strlen(tag) - 1);
    crm_etags_t tags;
    const struct {
        const char *header;
        int has;
    } cases[] = {
        {tag, 1}, {"*", 1}, {"\"x\"", 0}, {make(TIME, "{}"), 0},
        {apr_pstrcat(crm_check_pool(), "W/", tag, NULL), 1},
        {apr_pstrcat(crm_check_pool(), "\"x\", ", tag, NULL), 1},
        {apr_pstrcat(crm_check_pool(), cut, "-gzip\"", NULL), 1},
        {apr_pstrcat(crm_check_pool(), cut, "x\"", NULL), 0},
        {apr_pstrcat(crm_check_pool(), "\"", cut + 2, "\"", NULL), 0},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        ck_assert_ptr_null(crm_etags_read(&tags, cases[i].header,
                                          crm_check_pool()));
        ck_assert_msg(crm_etags_have(&tags, tag, 1) == cases[i].has,
                      "%s of %s", tag, cases[i].header);
        ck_assert_msg(crm_etags_have(&tags, tag, 0)
                      == (cases[i].has && *cases[i].header != 'W'),
                      "%s of %s, strongly", tag, cases[i].header);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("etag");
    TCase *hash = tcase_create("hash"), *tag = tcase_create("tag");
    TCase *header = tcase_create("header");

    tcase_add_test(hash, each_bit_and_the_length_count);
    tcase_add_test(tag, contract_13_2_form);
    tcase_add_loop_test(tag, the_time_of_a_tag_is_read_back, 0, COUNT(times));
    tcase_add_test(tag, rfc_9110_if_match_compares_strongly);
    tcase_add_loop_test(tag, a_foreign_tag_has_no_time, 0, COUNT(foreign));
    tcase_add_loop_test(header, rfc_9110_lists_of_tags, 0, COUNT(headers));
    tcase_add_test(header, rfc_9110_if_none_match_compares_weakly_if_match_strongly);
    suite_add_tcase(suite, hash);
    suite_add_tcase(suite, tag);
    suite_add_tcase(suite, header);
    return crm_check_main(suite);
}
