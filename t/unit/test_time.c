/* SPDX-License-Identifier: Apache-2.0 */
/* test_time.c: times as clients and the database write them (7.5, 9.1) */
#include "crm_check.h"

#include <string.h>

#include "crm_time.h"

/* Texts that are times, and the same instant to the microsecond. */
static const struct {
    const char *text;
    const char *utc;
} good[] = {
    {"2026-11-21T01:59:27Z", "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21T01:59:27.552Z", "2026-11-21T01:59:27.552000Z"},
    {"2026-11-21t01:59:27z", "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21 01:59:27Z", "2026-11-21T01:59:27.000000Z"},
    /* offset optional, then UTC */
    {"2026-11-21T01:59:27", "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21T01:59:27.5", "2026-11-21T01:59:27.500000Z"},
    {"2026-11-21T01:59:27+02:00", "2026-11-20T23:59:27.000000Z"},
    {"2026-11-21T01:59:27-02:30", "2026-11-21T04:29:27.000000Z"},
    {"2026-11-21T01:59:27+00:00", "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21T01:59:27-00:00", "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21T01:59:27+23:59", "2026-11-20T02:00:27.000000Z"},
    {"2026-11-21T01:59:27-23:59", "2026-11-22T01:58:27.000000Z"},
    {"2026-11-21T01:59:27+0200", "2026-11-20T23:59:27.000000Z"},
    {"2026-11-21T01:59:27-0230", "2026-11-21T04:29:27.000000Z"},
    {"2026-11-21T01:59:27.5+0200", "2026-11-20T23:59:27.500000Z"},
    {"2026-11-21T01:59:27+02", "2026-11-20T23:59:27.000000Z"},
    {"2026-11-21 01:59:27-08", "2026-11-21T09:59:27.000000Z"},
    /* seconds optional */
    {"2026-11-21T01:59", "2026-11-21T01:59:00.000000Z"},
    {"2026-11-21 01:59", "2026-11-21T01:59:00.000000Z"},
    {"2026-11-21T01:59Z", "2026-11-21T01:59:00.000000Z"},
    {"2026-11-21T01:59+02:00", "2026-11-20T23:59:00.000000Z"},
    {"2026-11-21T01:59-0230", "2026-11-21T04:29:00.000000Z"},
    {"2026-11-21T01:59+02", "2026-11-20T23:59:00.000000Z"},
    /* a comma before the fraction */
    {"2026-11-21T01:59:27,5Z", "2026-11-21T01:59:27.500000Z"},
    {"2026-11-21T01:59:27,552+0200", "2026-11-20T23:59:27.552000Z"},
    {"2026-11-21T01:59:27,123456789", "2026-11-21T01:59:27.123456Z"},
    /* a date alone */
    {"2026-11-21", "2026-11-21T00:00:00.000000Z"},
    /* digits */
    {"2026-11-21T01:59:27.1Z", "2026-11-21T01:59:27.100000Z"},
    {"2026-11-21T01:59:27.123456Z", "2026-11-21T01:59:27.123456Z"},
    {"2026-11-21T01:59:27.1234569Z", "2026-11-21T01:59:27.123456Z"},
    {"2026-11-21T01:59:27.000000000000000000000000009Z",
     "2026-11-21T01:59:27.000000Z"},
    {"2026-11-21T01:59:27.99999999999999999999Z",
     "2026-11-21T01:59:27.999999Z"},
    /* leap seconds are the next second */
    {"2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"},
    {"2016-12-31T23:59:60.999Z", "2017-01-01T00:00:00.000000Z"},
    {"2016-12-31T15:59:60-08:00", "2017-01-01T00:00:00.000000Z"},
    /* the calendar */
    {"2024-02-29", "2024-02-29T00:00:00.000000Z"},
    {"2000-02-29T23:59:59Z", "2000-02-29T23:59:59.000000Z"},
    {"2023-12-31T23:59:59.999999-00:01", "2024-01-01T00:00:59.999999Z"},
    {"1970-01-01", "1970-01-01T00:00:00.000000Z"},
    {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
    {"1900-03-01T00:00:00+00:01", "1900-02-28T23:59:00.000000Z"},
    {"2038-01-19T03:14:08Z", "2038-01-19T03:14:08.000000Z"},
    /* the ends */
    {"0001-01-01", "0001-01-01T00:00:00.000000Z"},
    {"0001-01-01T00:00:00-23:59", "0001-01-01T23:59:00.000000Z"},
    {"0001-01-02T00:00:00+23:59", "0001-01-01T00:01:00.000000Z"},
    {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
    {"9999-12-31T23:59:59+00:01", "9999-12-31T23:58:59.000000Z"},
};

START_TEST(contract_7_5_what_is_a_time)
{
    const char *text = good[_i].text, *wrong;
    char out[CRM_TIME_SIZE];
    apr_time_t time = 0;

    wrong = crm_time_parse(&time, text, strlen(text));
    ck_assert_msg(!wrong, "%s: %s", text, wrong);
    crm_time_format_us(out, time);
    ck_assert_msg(!strcmp(out, good[_i].utc), "%s is %s, not %s", text, out,
                  good[_i].utc);
}
END_TEST

START_TEST(a_query_takes_what_a_body_takes)
{
    const char *text = good[_i].text;
    apr_time_t time = 0, same = 1;

    ck_assert_ptr_null(crm_time_parse(&time, text, strlen(text)));
    ck_assert_ptr_null(crm_time_parse_query(&same, text, strlen(text)));
    ck_assert(time == same);
}
END_TEST

static const char *const bad[] = {
    "", " ", "x", "now", "today", "infinity", "-infinity", "epoch",
    "2026", "2026-11", "2026-11-2", "26-11-21", "20261121", "2026/11/21",
    "2026-11-21Z", "2026-11-21+02:00", "2026-11-21 ", " 2026-11-21",
    "2026-11-21T", "2026-11-21T01", "2026-11-21T01Z", "2026-11-21T01:59:",
    "2026-11-21T01:5", "2026-11-21T01:59.5Z", "2026-11-21T01:59,5",
    "2026-11-21T01:59:2", "2026-11-21T1:59:27Z", "2026-11-21T015927Z",
    "20261121T015927Z", "2026-11-21_01:59:27Z", "2026-11-21T01:59:27.Z",
    "2026-11-21T01:59:27.", "2026-11-21T01:59:27,Z",
    "2026-11-21T01:59:27,5.5Z", "2026-11-21T01:59:27.5.5Z", "2026-11-21T01:59:27 Z",
    "2026-11-21T01:59:27Z ", "2026-11-21T01:59:27ZZ",
    "2026-11-21T01:59:27Zx", "2026-11-21T01:59:27UTC",
    "2026-11-21T01:59:27 Europe/Berlin", "2026-11-21T01:59:27+2",
    "2026-11-21T01:59:27+020", "2026-11-21T01:59:27+02000",
    "2026-11-21T01:59:27+02:", "2026-11-21T01:59:27+2400",
    "2026-11-21T01:59:27+0260", "2026-11-21T01:59:27+24",
    "2026-11-21T01:59:27+2:00",
    "2026-11-21T01:59:27+02:0", "2026-11-21T01:59:27+02:000",
    "2026-11-21T01:59:27+24:00", "2026-11-21T01:59:27+02:60",
    "2026-11-21T01:59:27++02:00", "2026-11-21T01:59:27+-2:00",
    "2026-11-21T01:59:27+", "2026-11-21T01:59:27-",
    "2026-11-21T01:59:27 02:00",        /* only a query's '+' is lost */
    "2026-11-21T24:00:00Z", "2026-11-21T23:60:00Z", "2026-11-21T23:59:61Z",
    "2026-00-21", "2026-13-21", "2026-11-00", "2026-11-31", "2026-01-32",
    "2023-02-29", "1900-02-29", "2100-02-29", "2026-04-31", "2026-02-30",
    "0000-01-01", "0000-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:60Z", "9999-12-31T23:59:59-00:01", "10000-01-01",
    "-0001-01-01", "+2026-11-21", "+002026-11-21T01:59:27Z",
    "2026-1a-21", "2026-11-21T0x:59:27Z", "2026-W47-6", "2026-W47", "2026W476",
    "2026-W47-6T01:59:27Z", "2026-325", "2026325", "2026-325T01:59:27Z",
    "1763690367", "Sat, 21 Nov 2026 01:59:27 GMT",
    "\xef\xbc\x92\xef\xbc\x90\xef\xbc\x92\xef\xbc\x96-11-21",
    "2026\342\200\22311-21", "2026-11-21\302\24001:59:27Z",
};

START_TEST(contract_7_5_what_is_none)
{
    apr_size_t len = strlen(bad[_i]);
    char *copy = malloc(len ? len : 1);
    apr_time_t time = 0;
    char out[CRM_TIME_SIZE];

    memcpy(copy, bad[_i], len);         /* nothing behind it to read */
    if (!crm_time_parse(&time, copy, len)) {
        crm_time_format_us(out, time);
        ck_abort_msg("\"%s\" is accepted as %s", bad[_i], out);
    }
    free(copy);
}
END_TEST

START_TEST(a_nul_ends_nothing)
{
    apr_time_t time;

    ck_assert_ptr_nonnull(crm_time_parse(&time, "2026-11-21\0", 11));
    ck_assert_ptr_nonnull(crm_time_parse(&time, "2026-11-21T01:59:27\0", 20));
    ck_assert_ptr_nonnull(crm_time_parse(&time, "2026-11-21T01:59:27Z\0x",
                                         22));
    ck_assert_ptr_nonnull(crm_time_parse(&time, "2026-11-21T01:59:27.\0", 21));
    ck_assert_ptr_null(crm_time_parse(&time, "2026-11-21junk", 10));
}
END_TEST

START_TEST(contract_7_5_a_lost_plus_is_repaired)
{
    static const char *const bad_in_query[] = {
        "2026-11-21T01:59:27 ", "2026-11-21T01:59:27  02:00",
        "2026-11-21T01:59:27 020", "2026-11-21T01:59:27 24:00",
        "2026-11-21T01:59:27 Z", "2026-11-21  02:00",
    };
    static const char lost[] = "2026-11-21T01:59:27.5 02:00";
    static const char lost_with_space[] = "2026-11-21 01:59:27 02:00";
    char out[CRM_TIME_SIZE];
    apr_time_t time = 0;

    ck_assert_ptr_null(crm_time_parse_query(&time, lost, strlen(lost)));
    crm_time_format_ms(out, time);
    ck_assert_str_eq(out, "2026-11-20T23:59:27.500Z");
    ck_assert_ptr_null(crm_time_parse_query(&time, lost_with_space,
                                            strlen(lost_with_space)));
    crm_time_format_ms(out, time);
    ck_assert_str_eq(out, "2026-11-20T23:59:27.000Z");
    for (int i = 0; i < COUNT(bad_in_query); i++) {
        ck_assert_msg(crm_time_parse_query(&time, bad_in_query[i],
                                           strlen(bad_in_query[i])) != NULL,
                      "\"%s\" is accepted", bad_in_query[i]);
    }
}
END_TEST

START_TEST(contract_9_1_three_decimals_cut_off)
{
    static const struct {
        apr_time_t time;
        const char *text;
    } times[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {999, "1970-01-01T00:00:00.000Z"},
        {1000, "1970-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-1000, "1969-12-31T23:59:59.999Z"},
        {-1001, "1969-12-31T23:59:59.998Z"},
        {1795226367552999, "2026-11-21T01:59:27.552Z"},
        {APR_INT64_C(951868799999999), "2000-02-29T23:59:59.999Z"},
        {APR_INT64_C(-62135596800000000), "0001-01-01T00:00:00.000Z"},
        {APR_INT64_C(253402300799999999), "9999-12-31T23:59:59.999Z"},
    };
    char out[CRM_TIME_SIZE];

    for (int i = 0; i < COUNT(times); i++) {
        crm_time_format_ms(out, times[i].time);
        ck_assert_str_eq(out, times[i].text);
    }
}
END_TEST

/* Every day of 800 years, and what is written is read back. */
START_TEST(the_calendar_has_no_gaps)
{
    apr_time_t first = 0, time, next;
    char out[CRM_TIME_SIZE], before[CRM_TIME_SIZE] = "";

    ck_assert_ptr_null(crm_time_parse(&first, "1600-01-01", 10));
    for (int day = 0; day < 2 * 146097; day++) {
        time = first + day * APR_INT64_C(86400000000);
        crm_time_format_us(out, time);
        ck_assert_msg(strcmp(before, out) < 0, "%s after %s", out, before);
        ck_assert_msg(!crm_time_parse(&next, out, 10), "%.10s", out);
        ck_assert_msg(next == time, "%.10s is read as another day", out);
        strcpy(before, out);
    }
    ck_assert_str_eq(out, "2399-12-31T00:00:00.000000Z");
}
END_TEST

/* PostgreSQL's text, and the API's; NULL: refused. */
static const struct {
    const char *pg;
    const char *text;
} from_pg[] = {
    {"2026-11-21 01:59:27+00", "2026-11-21T01:59:27.000Z"},
    {"2026-11-21 01:59:27.5+00", "2026-11-21T01:59:27.500Z"},
    {"2026-11-21 01:59:27.05+00", "2026-11-21T01:59:27.050Z"},
    {"2026-11-21 01:59:27.552+00", "2026-11-21T01:59:27.552Z"},
    {"2026-11-21 01:59:27.552999+00", "2026-11-21T01:59:27.552Z"},
    {"0001-01-01 00:00:00+00", "0001-01-01T00:00:00.000Z"},
    {"9999-12-31 23:59:59.999+00", "9999-12-31T23:59:59.999Z"},
    {"", NULL},
    {"infinity", NULL},
    {"-infinity", NULL},
    {"2026-11-21 01:59:27", NULL},
    {"2026-11-21 01:59:27.+00", NULL},
    {"2026-11-21 01:59:27+01", NULL},
    {"2026-11-21 01:59:27-00", NULL},
    {"2026-11-21 01:59:27+00:00", NULL},
    {"2026-11-21 01:59:27.1234567+00", NULL},
    {"2026-11-21T01:59:27+00", NULL},
    {"10000-01-01 00:00:00+00", NULL},
    {"0044-03-15 00:00:00+00 BC", NULL},
    {"21.11.2026 01:59:27 UTC", NULL},
    {"Sat Nov 21 01:59:27 2026 UTC", NULL},
    {"2026-11-21 01:59:27.5x+00", NULL},
    {"2026-11-21 01:5\"9:27+00", NULL},
    {"2026\"11-21 01:59:27+00", NULL},
    {"nnnn-nn-nn nn:nn:nn+00", NULL},
};

START_TEST(contract_9_1_from_the_database)
{
    char out[CRM_TIME_SIZE] = "";
    int known = crm_time_from_pg(out, from_pg[_i].pg);

    ck_assert_msg(known == (from_pg[_i].text != NULL), "%s is %s",
                  from_pg[_i].pg, known ? out : "refused");
    if (known) {
        ck_assert_str_eq(out, from_pg[_i].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("time");
    TCase *in = tcase_create("in"), *out = tcase_create("out");

    tcase_add_loop_test(in, contract_7_5_what_is_a_time, 0, COUNT(good));
    tcase_add_loop_test(in, a_query_takes_what_a_body_takes, 0, COUNT(good));
    tcase_add_loop_test(in, contract_7_5_what_is_none, 0, COUNT(bad));
    tcase_add_test(in, a_nul_ends_nothing);
    tcase_add_test(in, contract_7_5_a_lost_plus_is_repaired);
    tcase_add_test(out, contract_9_1_three_decimals_cut_off);
    tcase_add_test(out, the_calendar_has_no_gaps);
    tcase_add_loop_test(out, contract_9_1_from_the_database, 0,
                        COUNT(from_pg));
    suite_add_tcase(suite, in);
    suite_add_tcase(suite, out);
    return crm_check_main(suite);
}
