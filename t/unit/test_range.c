/* SPDX-License-Identifier: Apache-2.0 */
/* test_range.c: what a Range asks for (RFC 9110, 14.1.2) */
#include "crm_check.h"
#include "crm_range.h"

/* Check what TEXT asks for of SIZE bytes. */
static void check(const char *text, apr_off_t size, crm_ranged_t is,
                  apr_off_t first, apr_off_t last)
{
    crm_range_t range = {-1, -1};

    ck_assert_msg(crm_range_read(&range, text, size) == is, "%s of %ld",
                  text ? text : "none",
                  (long)size);
    if (is == CRM_RANGED_PART) {
        ck_assert_int_eq(range.first, first);
        ck_assert_int_eq(range.last, last);
    }
}

static void part(const char *text, apr_off_t first, apr_off_t last)
{
    check(text, 10000, CRM_RANGED_PART, first, last);
}

START_TEST(a_part)
{
    part("bytes=0-499", 0, 499);
    part("bytes=500-999", 500, 999);
    part("bytes=-500", 9500, 9999);
    part("bytes=9500-", 9500, 9999);
    part("bytes=0-0", 0, 0);
    part("bytes=-1", 9999, 9999);
    part("bytes=0-", 0, 9999);
    part("bytes=9999-9999", 9999, 9999);
    part("bytes=9999-99999", 9999, 9999);
    part("bytes=0-10000", 0, 9999);
    part("bytes=-99999", 0, 9999);
    part("Bytes=0-1", 0, 1);
    part("bytes= 0-1 ", 0, 1);
    part("bytes=1-99999999999999999999999999", 1, 9999);
    part("bytes=-99999999999999999999999999", 0, 9999);
    check("bytes=0-0", 1, CRM_RANGED_PART, 0, 0);
}
END_TEST

START_TEST(what_is_not_there)
{
    check("bytes=10000-", 10000, CRM_RANGED_NEVER, 0, 0);
    check("bytes=10000-10001", 10000, CRM_RANGED_NEVER, 0, 0);
    check("bytes=-0", 10000, CRM_RANGED_NEVER, 0, 0);
    check("bytes=99999999999999999999999999-", 10000, CRM_RANGED_NEVER, 0, 0);
    check("bytes=0-", 0, CRM_RANGED_NEVER, 0, 0);
    check("bytes=-0", 0, CRM_RANGED_NEVER, 0, 0);
    check("bytes=0-0", 0, CRM_RANGED_NEVER, 0, 0);
}
END_TEST

START_TEST(what_is_ignored)
{
    static const char *const texts[] = {
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4",
        "bytes=0-1,3-4", "bytes=0-1,", "bytes=0x1-2", "bytes=--1", "bytes=1-2-3",
        "bytes=1.0-2", "items=0-1", "bytes 0-1", "bytes=0 - 1"
    };

    check(NULL, 10000, CRM_RANGED_NOT, 0, 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        check(texts[i], 10000, CRM_RANGED_NOT, 0, 0);
    }
    check("bytes=-5", 0, CRM_RANGED_NOT, 0, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tcase = tcase_create("range");

    tcase_add_test(tcase, a_part);
    tcase_add_test(tcase, what_is_not_there);
    tcase_add_test(tcase, what_is_ignored);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
