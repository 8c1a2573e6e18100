/* SPDX-License-Identifier: Apache-2.0 */
/* test_backoff.c: how long a job waits before its next attempt */
#include "crm_check.h"

#include <limits.h>

#include "crmapid_job.h"

#define FIRST apr_time_from_sec(10)
#define LAST apr_time_from_sec(3600)
#define ROUNDS 2000

/* The wait after N attempts without its random part. */
static const struct {
    int n;
    int seconds;
} waits[] = {
    {0, 10}, {1, 10}, {2, 20}, {3, 40}, {8, 1280}, {9, 2560},
    {10, 3600}, {11, 3600}, {64, 3600}, {1000, 3600}, {INT_MAX, 3600},
};

/* It doubles up to the last, and is up to a tenth less or more. */
START_TEST(backoff)
{
    apr_interval_time_t exact = apr_time_from_sec(waits[_i].seconds);
    apr_interval_time_t least = 2 * LAST, most = 0;

    for (int i = 0; i < ROUNDS; i++) {
        apr_interval_time_t wait = crmd_backoff(waits[_i].n, FIRST, LAST);

        ck_assert_int_ge(wait, exact - exact / 10);
        ck_assert_int_le(wait, exact + exact / 10);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    /* jobs that fail together do not come again together */
    ck_assert_int_lt(least, exact - exact / 20);
    ck_assert_int_gt(most, exact + exact / 20);
}
END_TEST

/* A first wait above the last one. */
START_TEST(backoff_capped)
{
    ck_assert_int_le(crmd_backoff(1, LAST, FIRST), FIRST + FIRST / 10);
    ck_assert_int_ge(crmd_backoff(9, LAST, FIRST), FIRST - FIRST / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backoff");
    TCase *tcase = tcase_create("backoff");

    tcase_add_loop_test(tcase, backoff, 0, COUNT(waits));
    tcase_add_test(tcase, backoff_capped);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
