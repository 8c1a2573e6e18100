/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics.c: labels of metrics, as OpenMetrics wants them */
#include "crm_check.h"

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

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = tcase_create("metrics");

    tcase_add_loop_test(tcase, a_label_is_escaped, 0, CRM_NELTS(labels));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
