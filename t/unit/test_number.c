/* SPDX-License-Identifier: Apache-2.0 */
/* test_number.c: numbers of contract 6.4 */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_number.h"

static const char too_large[] = "must be less than 1e15 in magnitude";
static const char too_fine[] = "must have at most 4 decimals";
static const char no_integer[] = "must be an integer";

/* JSON numbers, and how they are sent back. */
static const struct {
    const char *text, *canonical;
} good[] = {
    {"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"-0.0000", "0"}, {"0e0", "0"},
    {"0e99999999999999999999", "0"}, {"-0e-99999999999999999999", "0"},
    {"0.00000000000000000000000000000000000000", "0"},
    {"1", "1"}, {"-1", "-1"}, {"10", "10"}, {"100", "100"},
    {"1.0", "1"}, {"1.50", "1.5"}, {"12.3456", "12.3456"},
    {"-12.3400", "-12.34"}, {"0.5", "0.5"}, {"-0.5", "-0.5"},
    {"0.0001", "0.0001"}, {"-0.0001", "-0.0001"}, {"0.0100", "0.01"},
    {"1.0001", "1.0001"}, {"100.0001", "100.0001"}, {"10.01", "10.01"},
    {"1e0", "1"}, {"1e2", "100"}, {"1E2", "100"}, {"1e+2", "100"},
    {"1.5e1", "15"}, {"1.5e3", "1500"}, {"1.2345678e4", "12345.678"},
    {"12e-1", "1.2"}, {"12e-4", "0.0012"}, {"1e-4", "0.0001"},
    {"0.001e1", "0.01"}, {"0.00001e1", "0.0001"}, {"100e-2", "1"},
    {"100e-6", "0.0001"}, {"1.50000000000000000000000000", "1.5"},
    {"0.1e15", "100000000000000"}, {"1e14", "100000000000000"},
    {"999999999999999", "999999999999999"},
    {"-999999999999999", "-999999999999999"},
    {"999999999999999.9999", "999999999999999.9999"},
    {"-999999999999999.9999", "-999999999999999.9999"},
    {"9.999999999999999999e14", "999999999999999.9999"},
    {"9999999999999999999e-4", "999999999999999.9999"},
    {"0.1", "0.1"}, {"0.3", "0.3"}, {"123456789012345.1", "123456789012345.1"},
    {"100000000000000000000000000000000000000000e-40", "10"},
    {"1000000000000000000000000000000000000000000000e-45", "1"},
    {"0.000000000000000000000000000000000000000001e42", "1"},
};

START_TEST(contract_6_4_exactly_and_without_exponent)
{
    const char *canonical = NULL;
    const char *wrong = crm_number_parse(&canonical, good[_i].text,
                                         crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s", good[_i].text, wrong);
    ck_assert_msg(!strcmp(canonical, good[_i].canonical), "%s is %s, not %s",
                  good[_i].text, canonical, good[_i].canonical);
}
END_TEST

START_TEST(what_is_canonical_stays)
{
    const char *again = NULL;

    ck_assert_ptr_null(crm_number_parse(&again, good[_i].canonical,
                                        crm_check_pool()));
    ck_assert_str_eq(again, good[_i].canonical);
}
END_TEST

static const struct {
    const char *text, *wrong;
} bad[] = {
    {"1e15", too_large}, {"-1e15", too_large}, {"1000000000000000", too_large},
    {"-1000000000000000", too_large}, {"0.1e16", too_large},
    {"1e16", too_large}, {"1e308", too_large}, {"1e400", too_large},
    {"1e99999999999999999999999", too_large},
    {"-1e99999999999999999999999", too_large},
    {"123456789012345678901234567890", too_large},
    {"9223372036854775808", too_large},
    {"0.00001", too_fine}, {"-0.00001", too_fine}, {"1.00001", too_fine},
    {"1e-5", too_fine}, {"0.99999", too_fine}, {"12345e-5", too_fine},
    {"1e-400", too_fine}, {"1e-99999999999999999999999", too_fine},
    {"999999999999999.99999", too_fine},
    {"0.1000000000000000055511151231257827", too_fine},
    {"1.0000000000000000000000000000000000001", too_fine},
};

START_TEST(contract_6_4_out_of_range)
{
    const char *canonical = NULL;
    const char *wrong = crm_number_parse(&canonical, bad[_i].text,
                                         crm_check_pool());

    ck_assert_msg(wrong != NULL, "%s is %s", bad[_i].text, canonical);
    ck_assert_msg(!strcmp(wrong, bad[_i].wrong), "%s: %s", bad[_i].text,
                  wrong);
}
END_TEST

/* All with four decimals and few digits, against integers. */
START_TEST(four_decimals_in_every_notation)
{
    apr_pool_t *pool;
    const char *canonical;

    apr_pool_create(&pool, crm_check_pool());
    for (int n = -20100; n <= 20100; n += 3) {
        int abs = n < 0 ? -n : n;
        const char *sign = n < 0 ? "-" : "";
        const char *plain = apr_psprintf(pool, "%s%d.%04d", sign, abs / 10000,
                                         abs % 10000);
        const char *scientific[] = {
            apr_psprintf(pool, "%de-4", n),
            apr_psprintf(pool, "%d00e-6", n),
            apr_psprintf(pool, "%s%d.%02de-2", sign, abs / 100, abs % 100),
            apr_psprintf(pool, "%s0.%06de+2", sign, abs),
        };

        ck_assert_ptr_null(crm_number_parse(&canonical, plain, pool));
        for (int i = 0; i < 4; i++) {
            const char *same = NULL;

            ck_assert_ptr_null(crm_number_parse(&same, scientific[i], pool));
            ck_assert_msg(!strcmp(same, canonical), "%s is %s, %s is %s",
                          plain, canonical, scientific[i], same);
        }
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
}
END_TEST

/* An exponent may undo as many zeros as a body has room for. */
START_TEST(a_million_zeros)
{
    enum { ZEROS = 1500000 };
    char *text = malloc(ZEROS + 32);
    const char *canonical = NULL;

    memset(text, '0', ZEROS + 1);
    text[0] = '7';
    apr_snprintf(text + ZEROS + 1, 31, "e-%d", ZEROS);
    ck_assert_ptr_null(crm_number_parse(&canonical, text, crm_check_pool()));
    ck_assert_str_eq(canonical, "7");
    memset(text, '0', ZEROS + 1);
    text[1] = '.';
    apr_snprintf(text + ZEROS + 1, 31, "7e%d", ZEROS);
    ck_assert_ptr_null(crm_number_parse(&canonical, text, crm_check_pool()));
    ck_assert_str_eq(canonical, "7");
    free(text);
}
END_TEST

/* Canonical numbers, in their order. */
static const char *const ordered[] = {
    "-999999999999999.9999", "-999999999999999", "-100", "-99.5", "-10.25",
    "-10.2", "-10", "-9", "-1", "-0.0001", "0", "0.0001", "0.0012", "0.1",
    "1", "1.5", "9", "10", "10.2", "10.25", "99.5", "100", "999999999999999",
    "999999999999999.9999",
};

START_TEST(numbers_are_compared_by_value)
{
    int count = COUNT(ordered);

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int order = crm_number_compare(ordered[i], ordered[j]);

            ck_assert_msg((order > 0) - (order < 0) == (i > j) - (i < j),
                          "%s and %s: %d", ordered[i], ordered[j], order);
        }
    }
}
END_TEST

static const struct {
    const char *text;
    apr_int64_t value;
} integers[] = {
    {"0", 0}, {"-0", 0}, {"-0.0", 0}, {"3", 3}, {"3.0", 3}, {"-3.000", -3},
    {"3e2", 300}, {"0.5e1", 5}, {"30e-1", 3}, {"1200e-2", 12},
    {"999999999999999", APR_INT64_C(999999999999999)},
    {"-999999999999999", APR_INT64_C(-999999999999999)},
    {"0e99999999999", 0}, {"2147483648", APR_INT64_C(2147483648)},
    {"3.00000000000000000000000000000000000", 3},
};

START_TEST(contract_6_4_integers_accept_3_0)
{
    apr_int64_t value = -1;
    const char *wrong = crm_number_parse_integer(&value, integers[_i].text);

    ck_assert_msg(!wrong, "%s: %s", integers[_i].text, wrong);
    ck_assert_msg(value == integers[_i].value, "%s is %" APR_INT64_T_FMT,
                  integers[_i].text, value);
}
END_TEST

static const struct {
    const char *text, *wrong;
} no_integers[] = {
    {"0.5", no_integer}, {"-0.5", no_integer}, {"3.1", no_integer},
    {"3.0001", no_integer}, {"3.00000001", no_integer}, {"1e-1", no_integer},
    {"1e-99999999999999999999", no_integer}, {"15e-1", no_integer},
    {"0.00000000000000000000000000123456789012345678901", no_integer},
    {"3.0000000000000000000000000000000000001", no_integer},
    {"1e15", too_large}, {"-1e15", too_large},
    {"1000000000000000", too_large}, {"9223372036854775808", too_large},
    {"1e99999999999999999999", too_large},
    {"123456789012345678901234567890", too_large},
};

START_TEST(contract_6_4_what_is_no_integer)
{
    apr_int64_t value = -1;
    const char *wrong = crm_number_parse_integer(&value,
                                                 no_integers[_i].text);

    ck_assert_msg(wrong != NULL, "%s is %" APR_INT64_T_FMT,
                  no_integers[_i].text, value);
    ck_assert_msg(!strcmp(wrong, no_integers[_i].wrong), "%s: %s",
                  no_integers[_i].text, wrong);
}
END_TEST

/* numeric(19,4) as PostgreSQL writes it. */
static const struct {
    const char *pg, *text;
} trimmed[] = {
    {"12.5000", "12.5"}, {"12.0000", "12"}, {"0.0000", "0"}, {"0", "0"},
    {"100", "100"}, {"100.0000", "100"}, {"-0.5000", "-0.5"},
    {"0.0001", "0.0001"}, {"10.0100", "10.01"},
    {"999999999999999.9999", "999999999999999.9999"}, {"-100", "-100"},
    {"1200", "1200"}, {"-1200.0", "-1200"},
};

START_TEST(contract_6_4_sent_back_without_trailing_zeros)
{
    apr_size_t size = strlen(trimmed[_i].pg), len;
    char *out = malloc(size);           /* exactly the room that is promised */

    len = crm_number_trim(out, trimmed[_i].pg);
    ck_assert_uint_le(len, size);
    ck_assert_msg(len == strlen(trimmed[_i].text)
                  && !memcmp(out, trimmed[_i].text, len), "%s is %.*s",
                  trimmed[_i].pg, (int)len, out);
    free(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("number");
    TCase *numbers = tcase_create("numbers");
    TCase *whole = tcase_create("integers"), *out = tcase_create("out");

    tcase_add_loop_test(numbers, contract_6_4_exactly_and_without_exponent, 0,
                        COUNT(good));
    tcase_add_loop_test(numbers, what_is_canonical_stays, 0, COUNT(good));
    tcase_add_loop_test(numbers, contract_6_4_out_of_range, 0, COUNT(bad));
    tcase_add_test(numbers, four_decimals_in_every_notation);
    tcase_add_test(numbers, a_million_zeros);
    tcase_add_test(numbers, numbers_are_compared_by_value);
    tcase_add_loop_test(whole, contract_6_4_integers_accept_3_0, 0,
                        COUNT(integers));
    tcase_add_loop_test(whole, contract_6_4_what_is_no_integer, 0,
                        COUNT(no_integers));
    tcase_add_loop_test(out, contract_6_4_sent_back_without_trailing_zeros, 0,
                        COUNT(trimmed));
    suite_add_tcase(suite, numbers);
    suite_add_tcase(suite, whole);
    suite_add_tcase(suite, out);
    return crm_check_main(suite);
}
