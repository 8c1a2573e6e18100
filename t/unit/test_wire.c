/* SPDX-License-Identifier: Apache-2.0 */
/* test_wire.c: addresses as envelopes and headers have them (crm_email_wire.c) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_email_wire.h"

#define TEN "aaaaaaaaaa"
#define LABEL TEN TEN TEN TEN TEN "a."  /* 52 bytes */
#define HOST LABEL LABEL LABEL LABEL    /* 208 bytes */

/* What of an address may be said: it itself, it in quotes, or nothing. */
static const struct {
    const char *address, *quoted;
    int plain, ascii;
} cases[] = {
    {"a@b", "a@b", 1, 1},
    {"a.b!#$%&'*+-/=?^_`{|}~Z9@b-c.example", "a.b!#$%&'*+-/=?^_`{|}~Z9@b-c.example",
     1, 1},
    {"a@b.example.", "a@b.example.", 1, 1},
    {"a@b\303\274.example", "a@b\303\274.example", 1, 1},
    /* dots that only a quoted local part may have */
    {"a..b@c", "\"a..b\"@c", 0, 1},
    {".a@b", "\".a\"@b", 0, 1},
    {"a.@b", "\"a.\"@b", 0, 1},
    /* for servers with SMTPUTF8 */
    {"\303\274@b", "\303\274@b", 0, 0},
    {"a\303\274..@b", "\"a\303\274..\"@b", 0, 0},
    {"\342\200\256a@b", NULL, 0, 0},    /* it turns what follows around */
    {"\377@b", NULL, 0, 0}, {"a@b\377", NULL, 0, 1},
    /* 254 bytes, and one more */
    {TEN TEN TEN TEN "aaaaa@" HOST, TEN TEN TEN TEN "aaaaa@" HOST, 1, 1},
    {TEN TEN TEN TEN "aaaaaa@" HOST, NULL, 0, 1},
    {"", NULL, 0, 1}, {"a", NULL, 0, 1}, {"@b", NULL, 0, 1}, {"a@", NULL, 0, 1},
    {"a@.b", NULL, 0, 1}, {"a@b..c", NULL, 0, 1}, {"a@b_c", NULL, 0, 1},
    {"a@b@c", NULL, 0, 1}, {"a@[192.0.2.1]", NULL, 0, 1},
    {"a b@c", NULL, 0, 1}, {"a@b c", NULL, 0, 1}, {"a\r\n@b", NULL, 0, 1},
    {"a@b\r\nc", NULL, 0, 1}, {"a<b>@c", NULL, 0, 1}, {"\"a\"@b", NULL, 0, 1},
    {"a,b@c", NULL, 0, 1}, {"a;b@c", NULL, 0, 1}, {"a:b@c", NULL, 0, 1},
    {"a(b)@c", NULL, 0, 1}, {"a\\b@c", NULL, 0, 1}, {"a\177@b", NULL, 0, 1},
};

START_TEST(an_address_as_it_is_sent)
{
    const char *address = cases[_i].address;
    apr_pool_t *pool = crm_check_pool();

    ck_assert_int_eq(crm_email_wire(address), cases[_i].plain);
    ck_assert_pstr_eq(crm_email_wire_quoted(address, pool), cases[_i].quoted);
    ck_assert_int_eq(crm_email_wire_is_ascii(address), cases[_i].ascii);
    /* what cannot be sent is refused before */
    if (!cases[_i].plain) {
        ck_assert_ptr_nonnull(crm_email_wire_from(address, pool));
    }
    if (!cases[_i].quoted) {
        ck_assert_ptr_nonnull(crm_email_wire_to(address, pool));
    }
}
END_TEST

START_TEST(what_can_be_sent_is_taken)
{
    apr_pool_t *pool = crm_check_pool();

    ck_assert_ptr_null(crm_email_wire_from("a.b@c.example", pool));
    ck_assert_ptr_null(crm_email_wire_from("a@b\303\274.example", pool));
    ck_assert_ptr_nonnull(strstr(crm_email_wire_from("\303\274@c.example", pool),
                                 "mails are sent from it"));
    ck_assert_ptr_nonnull(strstr(crm_email_wire_from("a..b@c.example", pool),
                                 "mails are sent from it"));
    ck_assert_ptr_null(crm_email_wire_to("\303\274@c.example", pool));
    ck_assert_ptr_null(crm_email_wire_to("a..b@c.example", pool));
    ck_assert_ptr_nonnull(strstr(crm_email_wire_to("\"a\"@c.example", pool),
                                 "mails are sent to it"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *tcase = tcase_create("wire");

    tcase_add_loop_test(tcase, an_address_as_it_is_sent, 0, COUNT(cases));
    tcase_add_test(tcase, what_can_be_sent_is_taken);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
