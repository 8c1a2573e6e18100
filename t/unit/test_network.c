/* SPDX-License-Identifier: Apache-2.0 */
/* test_network.c: networks that a key is limited to (contract 14.5) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_network.h"

START_TEST(the_bytes_of_an_address)
{
    static const struct {
        const char *address;
        apr_size_t count;
        unsigned char bytes[16];
    } cases[] = {
        {"203.0.113.7", 4, {203, 0, 113, 7}},
        {"::ffff:203.0.113.7", 4, {203, 0, 113, 7}},
        {"::ffff:cb00:7107", 4, {203, 0, 113, 7}},
        {"::1", 16, {[15] = 1}},
        {"::203.0.113.7", 16, {[12] = 203, 0, 113, 7}},
        {"::fffe:203.0.113.7", 16, {[10] = 0xff, 0xfe, 203, 0, 113, 7}},
        {"::1:ffff:203.0.113.7", 16, {[9] = 1, 0xff, 0xff, 203, 0, 113, 7}},
        {"2001:db8:1:2:3:4:5:6", 16, {0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4,
                                      0, 5, 0, 6}},
        {"fe80::1%eth0", 16, {0xfe, 0x80, [15] = 1}},
        {"fe80::1%", 16, {0xfe, 0x80, [15] = 1}},
        {"", 0, {0}}, {"x", 0, {0}}, {"203.0.113", 0, {0}},
        {"203.0.113.256", 0, {0}}, {"203.0.113.7%eth0", 0, {0}}, {":::", 0, {0}},
        {"2001:db8:1:2:3:4:5:6:7", 0, {0}},
        {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", 0, {0}},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        unsigned char net[16];
        apr_size_t count = crm_network_address(net, cases[i].address);

        ck_assert_msg(count == cases[i].count, "%s: %d", cases[i].address,
                      (int)count);
        ck_assert_msg(!memcmp(net, cases[i].bytes, count), "%s",
                      cases[i].address);
    }
}
END_TEST

START_TEST(what_is_a_network)
{
    static const struct {
        const char *text;
        int count;
    } cases[] = {
        {"", 0}, {"  ", 0}, {"203.0.113.7", 1}, {" 203.0.113.0/24  ::1 ", 2},
        {"0.0.0.0/0", 1}, {"203.0.113.7/32", 1}, {"203.0.113.7/024", 1},
        {"203.0.113.7/33", -1}, {"203.0.113.7/", -1}, {"203.0.113.7/x", -1},
        {"203.0.113.7/8x", -1}, {"203.0.113.7/-8", -1}, {"203.0.113.7/ 8", -1},
        {"203.0.113.7/0008", -1}, {"203.0.113.7/99999999999999999999", -1},
        {"/8", -1}, {"203.0.113/8", -1}, {"203.0.113.7/8/8", -1},
        {"::/0", 1}, {"2001:db8::/128", 1}, {"2001:db8::/129", -1},
        {"fe80::1%eth0", -1}, {"fe80::%eth0/64", -1},
        {"::ffff:203.0.113.0/120", 1}, {"::ffff:203.0.113.7/128", 1},
        {"::ffff:0.0.0.0/96", 1}, {"::ffff:0.0.0.0/95", -1},
        {"::ffff:203.0.113.7/129", -1}, {"::ffff:203.0.113.7/24", -1},
        {"::1 x", -1}, {"x ::1", -1}, {"203.0.113.7,203.0.113.8", -1},
        {"0000000000000000000000000000000000000000000000000000000000000000.0.0.0",
         -1},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        crm_network_t networks[CRM_NETWORKS_MAX];
        int count = crm_networks_parse(networks, cases[i].text);

        ck_assert_msg(count == cases[i].count, "\"%s\": %d", cases[i].text,
                      count);
    }
}
END_TEST

START_TEST(at_most_so_many)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    const char *text = "";

    for (int i = 0; i < CRM_NETWORKS_MAX; i++) {
        text = apr_psprintf(crm_check_pool(), "%s 203.0.113.%d", text, i);
    }
    ck_assert_int_eq(crm_networks_parse(networks, text), CRM_NETWORKS_MAX);
    ck_assert(crm_networks_have(networks, CRM_NETWORKS_MAX, "203.0.113.0"));
    ck_assert(crm_networks_have(networks, CRM_NETWORKS_MAX, "203.0.113.31"));
    ck_assert(!crm_networks_have(networks, CRM_NETWORKS_MAX - 1, "203.0.113.31"));
    text = apr_pstrcat(crm_check_pool(), text, " ::1", NULL);
    ck_assert_int_eq(crm_networks_parse(networks, text), -1);
}
END_TEST

START_TEST(what_is_in_a_network)
{
    static const struct {
        const char *networks, *address;
        int is;
    } cases[] = {
        {"", "203.0.113.7", 0},
        {"203.0.113.7", "203.0.113.7", 1},
        {"203.0.113.7", "203.0.113.6", 0},
        {"203.0.113.7", "::ffff:203.0.113.7", 1},
        {"::ffff:203.0.113.7", "203.0.113.7", 1},
        {"::ffff:203.0.113.0/120", "203.0.113.255", 1},
        {"::ffff:203.0.113.0/120", "203.0.112.255", 0},
        {"203.0.113.0/24", "203.0.113.0", 1},
        {"203.0.113.0/24", "203.0.113.255", 1},
        {"203.0.113.0/24", "203.0.112.255", 0},
        {"203.0.113.0/24", "203.0.114.0", 0},
        {"203.0.113.99/24", "203.0.113.1", 1},
        {"203.0.113.128/25", "203.0.113.127", 0},
        {"203.0.113.128/25", "203.0.113.128", 1},
        {"203.0.112.0/23", "203.0.113.255", 1},
        {"203.0.112.0/23", "203.0.114.0", 0},
        {"203.0.113.7/31", "203.0.113.6", 1},
        {"203.0.113.7/31", "203.0.113.8", 0},
        {"0.0.0.0/0", "255.255.255.255", 1},
        {"0.0.0.0/0", "::1", 0},
        {"::/0", "203.0.113.7", 0},
        {"::/0", "2001:db8::1", 1},
        {"2001:db8::/33", "2001:db8:7fff::1", 1},
        {"2001:db8::/33", "2001:db8:8000::1", 0},
        {"2001:db8::1/127", "2001:db8::", 1},
        {"2001:db8::1/127", "2001:db8::2", 0},
        {"2001:db8::1", "2001:db8::1%eth0", 1},
        {"cb00:7107::", "203.0.113.7", 0},
        {"203.0.113.7", "cb00:7107::", 0},
        {"198.51.100.0/24 203.0.113.0/24 2001:db8::/32", "203.0.113.1", 1},
        {"198.51.100.0/24 203.0.113.0/24 2001:db8::/32", "2001:db8:f::", 1},
        {"198.51.100.0/24 203.0.113.0/24 2001:db8::/32", "192.0.2.1", 0},
        {"0.0.0.0/0 ::/0", "", 0},
        {"0.0.0.0/0 ::/0", "x", 0},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        crm_network_t networks[CRM_NETWORKS_MAX];
        int count = crm_networks_parse(networks, cases[i].networks);

        ck_assert_int_ge(count, 0);
        ck_assert_msg(crm_networks_have(networks, count, cases[i].address)
                      == cases[i].is, "%s in \"%s\"", cases[i].address,
                      cases[i].networks);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network");
    TCase *tcase = tcase_create("network");

    tcase_add_test(tcase, the_bytes_of_an_address);
    tcase_add_test(tcase, what_is_a_network);
    tcase_add_test(tcase, at_most_so_many);
    tcase_add_test(tcase, what_is_in_a_network);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
