/* SPDX-License-Identifier: Apache-2.0 */
/* test_address_budget.c: budgets of client addresses (contract 2.4, 2.5) */
#include <stdio.h>

#include "crm_address.h"
#include "crm_limit_test.h"
#include "crm_network.h"

static apr_pool_t *pool;

static void set_up(void)
{
    setup();
    free(block);
    config.evict = 1;
    make_block(64, 3 * CRM_ADDRESS_SITE, 3 * CRM_ADDRESS_SITE);
    pool = crm_check_pool();
}

/* Return the budget for requests of KIND: 3 a minute. */
static crm_address_budget_t budget_of(const char *kind)
{
    return (crm_address_budget_t){.addresses = block, .kind = kind,
                                  .class = CRM_LIMIT_READ, .max = 3};
}

/* Charge ADDRESS for a KIND: 0 where it is refused. */
static int charge(const char *kind, const char *address)
{
    crm_address_budget_t budget = budget_of(kind);
    crm_error_t *error = crm_address_charge(&budget, address, pool);

    now++;
    if (error) {
        ck_assert_int_eq(error->code, CRM_E_RATE_LIMITED);
        ck_assert_int_ge(error->retry_after, 1);
        ck_assert_int_le(error->retry_after, 60);
    }
    return !error;
}

/* ADDRESS may make COUNT requests of a KIND, and no more. */
static void may(const char *kind, const char *address, int count)
{
    for (int i = 0; i < count; i++) {
        ck_assert_msg(charge(kind, address), "%s: request %d", address, i);
    }
    ck_assert_msg(!charge(kind, address), "%s: one more", address);
}

START_TEST(each_address_has_a_budget)
{
    may("key", "203.0.113.7", 3);
    may("key", "203.0.113.8", 3);
    may("form", "203.0.113.7", 3);
    now += WINDOW;
    may("key", "203.0.113.7", 3);
}
END_TEST

START_TEST(an_ipv6_address_stands_for_its_64)
{
    may("key", "2001:db8:1:2::1", 3);
    ck_assert(!charge("key", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    may("key", "2001:db8:1:3::1", 3);
}
END_TEST

START_TEST(a_mapped_address_is_the_ipv4_one)
{
    may("key", "203.0.113.7", 3);
    ck_assert(!charge("key", "::ffff:203.0.113.7"));
}
END_TEST

/* RFC 4007: "%" and the name of an interface */
START_TEST(an_address_with_a_zone_is_an_address)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    int count = crm_networks_parse(networks, "fe80::/10 203.0.113.0/24");

    may("key", "fe80::1%eth0", 3);
    ck_assert(!charge("key", "fe80::2"));
    may("key", "fe80:0:0:1::1%eth0", 3);
    ck_assert_int_eq(count, 2);
    ck_assert(crm_networks_have(networks, count, "fe80::1%eth0"));
    ck_assert(!crm_networks_have(networks, count, "fec0::1%eth0"));
    ck_assert(!crm_networks_have(networks, count, "203.0.113.7%eth0"));
    ck_assert(!crm_networks_have(networks, count, "%fe80::1"));
    ck_assert(!crm_networks_have(networks, count, ""));
    ck_assert_int_eq(crm_networks_parse(networks, "fe80::1%eth0"), -1);
    ck_assert_int_eq(crm_networks_parse(networks, "fe80::%eth0/64"), -1);
}
END_TEST

START_TEST(a_48_has_a_budget_of_its_own)
{
    int admitted = 0;
    char address[40];

    for (int i = 0; i < 1000; i++) {
        snprintf(address, sizeof(address), "2001:db8:5:%x::1", i);
        admitted += charge("key", address);
    }
    ck_assert_int_eq(admitted, 3 * CRM_ADDRESS_SITE);
    may("key", "2001:db8:6::1", 3);
}
END_TEST

/* A /64 over its own budget takes nothing from the others of its /48. */
START_TEST(refused_requests_cost_the_neighbours_nothing)
{
    may("key", "2001:db8:7:1::1", 3);
    for (int i = 0; i < 100; i++) {
        ck_assert(!charge("key", "2001:db8:7:1::1"));
    }
    may("key", "2001:db8:7:2::1", 3);
}
END_TEST

/* A /64 that its /48 refuses may use its own budget as soon as there is room
 * again. */
START_TEST(a_64_does_not_pay_for_refusals_of_its_48)
{
    char address[40];

    for (int i = 0; i < CRM_ADDRESS_SITE; i++) {
        snprintf(address, sizeof(address), "2001:db8:8:%x::1", i);
        may("key", address, 3);
    }
    now += WINDOW - 100;
    for (int i = 0; i < 50; i++) {
        ck_assert(!charge("key", "2001:db8:8:99::1"));
    }
    now += 100;
    may("key", "2001:db8:8:99::1", 3);
}
END_TEST

/* What proves its rights is charged to nobody. */
START_TEST(what_is_refunded_is_charged_neither_to_the_64_nor_to_the_48)
{
    crm_address_budget_t budget = budget_of("key");
    char address[40];

    for (int i = 0; i < 2 * 3 * CRM_ADDRESS_SITE; i++) {
        snprintf(address, sizeof(address), "2001:db8:9:%x::1", i % 4);
        ck_assert_msg(charge("key", address), "request %d", i);
        crm_address_refund(&budget, address, pool);
    }
    may("key", "2001:db8:9:1::1", 3);
}
END_TEST

START_TEST(contract_4_3_retry_after_is_rounded_up)
{
    static const struct {
        apr_int64_t left;
        int seconds;
    } times[] = {
        {30 * SECOND + 1, 31}, {30 * SECOND, 30}, {SECOND + 1, 2}, {1, 1}
    };
    crm_address_budget_t budget = budget_of("key");
    apr_int64_t start = now;

    for (int i = 0; i < 3; i++) {
        ck_assert(charge("key", "203.0.113.9"));
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        crm_error_t *error;

        now = start + WINDOW - times[i].left;
        error = crm_address_charge(&budget, "203.0.113.9", pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_int_eq(error->retry_after, times[i].seconds);
    }
}
END_TEST

/* CrmApiAddressLimit is at most 1,000,000, a visitor's polls have 5 times as
 * much (CRM_ACCESS_POLLS), and a /48 has CRM_ADDRESS_SITE times that. */
START_TEST(the_highest_limits_fit_into_a_table)
{
    crm_limit_config_t highest = {16384, {5 * CRM_ADDRESS_SITE * 1000000,
                                          CRM_ADDRESS_SITE * 1000000}, 1};

    ck_assert_uint_gt(crm_limit_size(&highest), 0);
}
END_TEST

START_TEST(nobody_new_is_shut_out)
{
    char address[40];

    for (int i = 0; i < 5000; i++) {
        snprintf(address, sizeof(address), "10.1.%d.%d", i / 250, i % 250);
        ck_assert(charge("key", address));
    }
}
END_TEST

START_TEST(without_a_table_or_limit_nothing_is_counted)
{
    crm_address_budget_t no_table = budget_of("key"), no_limit = no_table;

    no_table.addresses = NULL;
    no_limit.max = 0;
    for (int i = 0; i < 10; i++) {
        ck_assert_ptr_null(crm_address_charge(&no_table, "192.0.2.1", pool));
        ck_assert_ptr_null(crm_address_charge(&no_limit, "192.0.2.1", pool));
    }
    may("key", "192.0.2.1", 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("address_budget");
    TCase *tcase = tcase_create("address_budget");

    tcase_add_checked_fixture(tcase, set_up, teardown);
    tcase_add_test(tcase, each_address_has_a_budget);
    tcase_add_test(tcase, an_ipv6_address_stands_for_its_64);
    tcase_add_test(tcase,
        what_is_refunded_is_charged_neither_to_the_64_nor_to_the_48);
    tcase_add_test(tcase, contract_4_3_retry_after_is_rounded_up);
    tcase_add_test(tcase, a_mapped_address_is_the_ipv4_one);
    tcase_add_test(tcase, an_address_with_a_zone_is_an_address);
    tcase_add_test(tcase, a_48_has_a_budget_of_its_own);
    tcase_add_test(tcase, refused_requests_cost_the_neighbours_nothing);
    tcase_add_test(tcase, a_64_does_not_pay_for_refusals_of_its_48);
    tcase_add_test(tcase, the_highest_limits_fit_into_a_table);
    tcase_add_test(tcase, nobody_new_is_shut_out);
    tcase_add_test(tcase, without_a_table_or_limit_nothing_is_counted);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
