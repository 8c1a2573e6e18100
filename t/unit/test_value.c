/* SPDX-License-Identifier: Apache-2.0 */
/* test_value.c: a value that somebody else wrote is one line in a text of ours,
 * and never a link */
#include "crm_check.h"

#include <string.h>

#include "crm_value.h"

static const struct {
    const char *text, *line, *shown;    /* SHOWN NULL: as LINE */
} values[] = {
    {"Ada King", "Ada King", NULL},
    {"", "", NULL},
    {"L\xc3\xb8v \"x\" & <b>", "L\xc3\xb8v \"x\" & <b>", NULL},
    /* breaks, controls and blanks of all kinds */
    {" a\r\nb\n\n c\t\v\f d ", "a b c d", NULL},
    {"a\xc2\x85" "b\xe2\x80\xa8" "c\xe2\x80\xa9" "d", "a b c d", NULL},
    {"a\x1b\x01\x7f" "b\xc2\x9b" "c", "a b c", NULL},
    {"a\xc2\xa0\xc2\xa0\xe2\x80\x83\xe3\x80\x80" "b", "a b", NULL},
    {"a\xe2\xa0\x80\xe3\x85\xa4\xef\xbe\xa0\xe1\x85\x9f" "b", "a b", NULL},
    {"\xc2\xa0\xe2\x80\x8b\xe2\x80\xa8\xe3\x85\xa4", "", NULL},
    /* what is not seen, and what turns the direction */
    {"a\xe2\x80\x8b\xe2\x81\xa0\xef\xbb\xbf\xc2\xad" "b", "ab", NULL},
    {"a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xe2\x80\x8f", "abc", NULL},
    {"\xd9\x85\xe2\x80\x8c\xd9\x86", "\xd9\x85\xe2\x80\x8c\xd9\x86", NULL},
    {"\xff" "a\xc3", "a", NULL},
    /* links */
    {"https://evil.example/x?y=1", "https://evil.example/x?y=1",
     "https: / /evil. example/x?y=1"},
    {"HTTP://1.2.3.4/", "HTTP://1.2.3.4/", "HTTP: / /1.2.3.4/"},
    {"www.evil.example", "www.evil.example", "www. evil. example"},
    {"evil.com", "evil.com", "evil. com"},
    {"//evil.com", "//evil.com", "/ /evil. com"},
    {"\\\\evil\\share", "\\\\evil\\share", "\\ \\evil\\share"},
    {"mailto:a@b.example", "mailto:a@b.example", "mailto: a@b. example"},
    {"tel:110", "tel:110", "tel: 110"},
    {"ht\ntps://a.b", "ht tps://a.b", "ht tps: / /a. b"},
    {"evil.\xe2\x80\x8b" "com", "evil.com", "evil. com"},
    {"evil.\xe2\x80\x8d" "com", "evil.\xe2\x80\x8d" "com",
     "evil.\xe2\x80\x8d com"},
    {"evil.\xef\xb8\x8f" "com", "evil.\xef\xb8\x8f" "com",
     "evil.\xef\xb8\x8f com"},
    {"evil.\xcd\x8f" "com", "evil.\xcd\x8f" "com", "evil.\xcd\x8f com"},
    {"evil.\xe2\x93\x92om", "evil.\xe2\x93\x92om", "evil. \xe2\x93\x92om"},
    {"evil\xe3\x80\x82" "com", "evil\xe3\x80\x82" "com",
     "evil\xe3\x80\x82 com"},
    {"evil\xef\xbc\x8e\xef\xbd\x83", "evil\xef\xbc\x8e\xef\xbd\x83",
     "evil\xef\xbc\x8e \xef\xbd\x83"},
    {"\xd1\x82.\xd1\x80\xd1\x84", "\xd1\x82.\xd1\x80\xd1\x84",
     "\xd1\x82. \xd1\x80\xd1\x84"},
    /* no links */
    {"12.5, 10:30, 01.02.2026, 1/2", "12.5, 10:30, 01.02.2026, 1/2", NULL},
    {"Dr. Ada... St. Ives: yes", "Dr. Ada... St. Ives: yes", NULL},
    {"J.R. Smith", "J.R. Smith", "J. R. Smith"},
};

START_TEST(a_value_is_one_line)
{
    ck_assert_str_eq(crm_value_line(values[_i].text, crm_check_pool()),
                     values[_i].line);
}
END_TEST

START_TEST(a_value_that_is_shown_is_no_link)
{
    const char *want = values[_i].shown ? values[_i].shown : values[_i].line;
    const char *shown = crm_value_show(values[_i].text, crm_check_pool());

    ck_assert_str_eq(shown, want);
    ck_assert_str_eq(crm_value_show(shown, crm_check_pool()), want);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("value");
    TCase *tcase = tcase_create("value");

    tcase_add_loop_test(tcase, a_value_is_one_line, 0, COUNT(values));
    tcase_add_loop_test(tcase, a_value_that_is_shown_is_no_link, 0,
                        COUNT(values));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
