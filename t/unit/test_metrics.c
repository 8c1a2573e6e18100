/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics.c: labels of metrics, as OpenMetrics wants them; the format that
 * a client prefers; what a histogram counts */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_metrics.h"

/* Values of labels as they come, and as they are written between quotes. */
static const char *const labels[][2] = {
    {"", ""}, {"crm.example:443", "crm.example:443"},
    {"a\"b", "a\\\"b"}, {"\\", "\\\\"}, {"\"\\\"", "\\\"\\\\\\\""},
    {"a\nb\r\tc\x1f\x7f", "a?b??c??"}, {"b\xc3\xbc" "cher", "b\xc3\xbc" "cher"},
};

START_TEST(a_label_is_escaped)
{
    ck_assert_str_eq(crm_metrics_label(labels[_i][0], crm_check_pool()),
                     labels[_i][1]);
}
END_TEST

/* Accept headers, and whether OpenMetrics is preferred to the older format. */
static const struct {
    const char *accept;
    int open;
} asked[] = {
    {NULL, 0}, {"", 0}, {"text/html", 0}, {"*/*", 0}, {"text/plain", 0},
    {"application/openmetrics-text", 1},
    {"text/plain, APPLICATION/OpenMetrics-Text; version=1.0.0", 1},
    {"application/openmetrics-text;q=0", 0},
    {"application/openmetrics-text;q=0.5, text/plain;q=0.5", 1},
    {"application/openmetrics-text;q=0.5, text/plain;q=0.6", 0},
    {"application/openmetrics-text;version=1.0.0; q=0.5, text/*;q=0.6", 0},
    {"application/openmetrics-text;q=0.5, */*;q=0.6", 0},
    {"application/openmetrics-text;q=0.5, text/plain, */*;q=0.1", 0},
    {"text/html;q=0.9, application/openmetrics-text;q=0.5", 1},
};

START_TEST(what_is_preferred_is_sent)
{
    crm_metrics_t metrics;

    crm_metrics_init(&metrics, asked[_i].accept, crm_check_pool());
    ck_assert_int_eq(metrics.open_metrics, asked[_i].open);
}
END_TEST

/* Times in microseconds, the first bound that is not below them, and the sum. */
static const struct {
    apr_int64_t us;
    const char *bound;
    const char *sum;
} times[] = {
    {-5, "0.001", "0.000000"}, {0, "0.001", "0.000000"},
    {1000, "0.001", "0.001000"}, {1001, "0.0025", "0.001001"},
    {1000000, "1.0", "1.000000"}, {1000001, "2.5", "1.000001"},
    {30000000, "30.0", "30.000000"}, {30000001, "+Inf", "30.000001"},
};

START_TEST(a_time_counts_up_to_its_bound)
{
    apr_pool_t *pool = crm_check_pool();
    crm_histogram_t histogram = {{0}, 0};
    crm_metrics_t metrics;
    const char *one;

    crm_metrics_init(&metrics, NULL, pool);
    crm_metrics_family(&metrics, "t", "histogram", "times");
    ck_assert(!crm_metrics_counted(&histogram));
    crm_metrics_observe(&histogram, times[_i].us);
    ck_assert(crm_metrics_counted(&histogram));
    crm_metrics_histogram(&metrics, "", &histogram);
    crm_buf_putc(&metrics.text, '\0');
    one = strstr(metrics.text.data, "\"} 1\n");
    ck_assert_ptr_nonnull(one);
    ck_assert(strlen(times[_i].bound) < (size_t)(one - metrics.text.data));
    ck_assert_str_eq(apr_pstrmemdup(pool, one - strlen(times[_i].bound) - 1,
                                    strlen(times[_i].bound) + 1),
                     apr_pstrcat(pool, "\"", times[_i].bound, NULL));
    ck_assert_ptr_nonnull(strstr(metrics.text.data, apr_pstrcat(
        pool, "t_count 1\nt_sum ", times[_i].sum, "\n", NULL)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = tcase_create("metrics");

    tcase_add_loop_test(tcase, a_label_is_escaped, 0, CRM_NELTS(labels));
    tcase_add_loop_test(tcase, what_is_preferred_is_sent, 0, CRM_NELTS(asked));
    tcase_add_loop_test(tcase, a_time_counts_up_to_its_bound, 0,
                        CRM_NELTS(times));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
