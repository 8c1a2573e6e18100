/* SPDX-License-Identifier: Apache-2.0 */
/* test_roll.c: which keys may exist, and look-ups under way (contract 2.4) */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crm_check.h"

#include "crm_flight.h"
#include "crm_limit.h"
#include "crm_roll.h"

#define REALM 7

static crm_roll_t *roll;
static crm_flights_t *flights;

static void set_up(void)
{
    roll = calloc(1, sizeof(*roll));
    flights = mmap(NULL, crm_flights_size(), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_nonnull(roll);
    ck_assert_ptr_ne(flights, MAP_FAILED);
    ck_assert(crm_flights_init(flights));
}

/* The clock, which a test may set ahead. */
static apr_int64_t ahead;

static apr_int64_t odd_clock(void)
{
    return APR_INT64_C(1000000000) + ahead;
}

static void tear_down(void)
{
    crm_limit_set_clock(NULL);
    ahead = 0;
    free(roll);
    munmap(flights, crm_flights_size());
}

/* ---- the roll ------------------------------------------------------------ */

/* Set HASH to a different one for each N, as evenly spread as a real one. */
static void hash_of(unsigned char hash[32], apr_uint64_t n)
{
    for (int i = 0; i < 32; i++) {
        n = n * APR_UINT64_C(6364136223846793005)
            + APR_UINT64_C(1442695040888963407);
        hash[i] = (unsigned char)(n >> 56);
    }
}

/* Add COUNT keys from FIRST on to the roll, as PostgreSQL sends them. */
static void add(apr_uint64_t first, int count)
{
    char *hex = malloc(3 + (size_t)count * 2 * CRM_ROLL_PRINT), *end = hex;

    ck_assert_ptr_nonnull(hex);
    end += sprintf(end, "\\x");
    for (int i = 0; i < count; i++) {
        unsigned char hash[32];

        hash_of(hash, first + (apr_uint64_t)i);
        for (int j = 0; j < CRM_ROLL_PRINT; j++) {
            end += sprintf(end, "%02x", hash[j]);
        }
    }
    crm_roll_add(roll, hex, REALM);
    free(hex);
}

/* Return how many of COUNT keys from FIRST on are on the roll for REALM_. */
static int count_on(apr_uint64_t first, int count, apr_uint32_t realm)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        unsigned char hash[32];

        hash_of(hash, first + (apr_uint64_t)i);
        found += crm_roll_has(roll, hash, realm);
    }
    return found;
}

START_TEST(it_has_all_that_were_added_and_hardly_another)
{
    add(1, 10000);
    add(20001, 1);
    ck_assert_int_eq(count_on(1, 10000, REALM), 10000);
    ck_assert_int_eq(count_on(20001, 1, REALM), 1);
    ck_assert_int_eq(count_on(30001, 100000, REALM), 0);
    ck_assert_msg(!count_on(1, 10000, REALM + 1), "another database");
}
END_TEST

START_TEST(one_without_keys_has_none)
{
    crm_roll_add(roll, "", REALM);
    crm_roll_add(roll, "\\x", REALM);
    crm_roll_add(roll, "\\x0123456789", REALM);
    ck_assert_int_eq(count_on(1, 1000, REALM), 0);
}
END_TEST

START_TEST(what_is_struck_is_off_until_it_is_added_again)
{
    unsigned char hash[32];

    add(1, 3);
    hash_of(hash, 2);
    crm_roll_strike(roll, hash, REALM);
    ck_assert_int_eq(count_on(1, 1, REALM), 1);
    ck_assert_int_eq(count_on(2, 1, REALM), 0);
    ck_assert_int_eq(count_on(3, 1, REALM), 1);
    add(2, 1);
    ck_assert_int_eq(count_on(2, 1, REALM), 1);
}
END_TEST

START_TEST(others_that_are_added_do_not_bring_it_back)
{
    unsigned char hash[32];

    add(1, 3);
    hash_of(hash, 2);
    crm_roll_strike(roll, hash, REALM);
    add(3, 4 * CRM_ROLL_STRUCK);
    ck_assert_int_eq(count_on(2, 1, REALM), 0);
}
END_TEST

START_TEST(one_thread_reads_it_and_not_again_at_once)
{
    crm_roll_state_t state = {0};
    apr_int64_t began = crm_roll_begin(&state);

    ck_assert_int_ne(began, 0);
    ck_assert_int_eq(crm_roll_begin(&state), 0);
    crm_roll_end(&state, began, 0);
    ck_assert(state.failed && !state.read);
    ck_assert_msg(!crm_roll_begin(&state), "too early");
    state.again = 0;
    began = crm_roll_begin(&state);
    ck_assert_int_ne(began, 0);
    crm_roll_end(&state, began, 1);
    ck_assert(!state.failed && state.read == began);
}
END_TEST

START_TEST(a_process_that_stops_while_it_reads_is_not_waited_for)
{
    crm_roll_state_t state = {0};
    apr_int64_t began;

    crm_limit_set_clock(odd_clock);
    began = crm_roll_begin(&state);
    ahead = 9000000;
    ck_assert_int_eq(crm_roll_begin(&state), 0);
    ahead = 11000000;
    ck_assert_int_eq(crm_roll_begin(&state), began + 11000000);
}
END_TEST

/* How long a reading takes, and the pause after it, in us. */
static const struct {
    apr_int64_t took, pause;
} readings[] = {{1000, 100000}, {50000, 500000}, {5000000, 1000000}};

START_TEST(the_longer_a_reading_takes_the_longer_is_the_pause)
{
    crm_roll_state_t state = {0};
    apr_int64_t began;

    crm_limit_set_clock(odd_clock);
    ahead = 0;
    began = crm_roll_begin(&state);
    ahead = readings[_i].took;
    crm_roll_end(&state, began, 1);
    ck_assert_msg(state.read == began, "what was stored meanwhile may be missing");
    ahead += readings[_i].pause - 1;
    ck_assert_int_eq(crm_roll_begin(&state), 0);
    ahead++;
    ck_assert_int_eq(crm_roll_begin(&state), began + ahead);
}
END_TEST

/* ---- look-ups under way -------------------------------------------------- */

/* Begin the look-up of key N of REALM_ for NET in *FLIGHT. Return whether the caller
 * does it. */
static int begin_in(crm_flight_t *flight, apr_uint32_t realm, apr_uint64_t n,
                    const char *net)
{
    unsigned char hash[32];
    crm_flight_key_t key = {.hash = hash, .realm = realm, .nets = {net}};

    hash_of(hash, n);
    return crm_flight_begin(flight, flights, &key);
}

static int begin(crm_flight_t *flight, apr_uint64_t n, const char *net)
{
    return begin_in(flight, REALM, n, net);
}

START_TEST(equal_keys_share_a_look_up)
{
    crm_flight_t first, second, other;
    apr_int64_t sent;

    ck_assert(begin(&first, 1, "a"));
    ck_assert(!begin(&second, 1, "b"));
    ck_assert(begin(&other, 2, "a"));
    ck_assert_int_eq(crm_flight_look(&sent, &second), CRM_FLIGHT_RUNNING);
    ck_assert_int_eq(sent, 0);
    crm_flight_send(&first, 1);
    crm_flight_end(&first, CRM_FLIGHT_UNKNOWN);
    ck_assert_int_eq(crm_flight_look(&sent, &second), CRM_FLIGHT_UNKNOWN);
    ck_assert_int_ne(sent, 0);
    ck_assert_msg(begin(&second, 1, "a"), "it has ended");
    ck_assert_int_eq(crm_flight_look(NULL, &first) == CRM_FLIGHT_RUNNING, 0);
}
END_TEST

START_TEST(each_database_has_its_own_keys)
{
    crm_flight_t one, two;

    ck_assert(begin_in(&one, REALM, 1, "a"));
    ck_assert(begin_in(&two, REALM + 1, 1, "a"));
    crm_flight_end(&one, CRM_FLIGHT_KNOWN);
    ck_assert_int_eq(crm_flight_look(NULL, &two), CRM_FLIGHT_RUNNING);
}
END_TEST

/* The place of a look-up that has ended is another one's soon. */
START_TEST(who_waits_is_not_told_of_another_look_up)
{
    crm_flight_t first, next[CRM_FLIGHT_PLACES];

    ck_assert(begin(&first, 1, "a"));
    crm_flight_end(&first, CRM_FLIGHT_KNOWN);
    for (apr_uint64_t i = 0; i < CRM_FLIGHT_PLACES; i++) {
        ck_assert(begin(&next[i], i + 2, "a"));
    }
    ck_assert_int_eq(crm_flight_look(NULL, &first), CRM_FLIGHT_NONE);
    crm_flight_end(&first, CRM_FLIGHT_FAILED);
    for (int i = 0; i < CRM_FLIGHT_PLACES; i++) {
        ck_assert_int_eq(crm_flight_look(NULL, &next[i]), CRM_FLIGHT_RUNNING);
    }
}
END_TEST

START_TEST(only_charges_to_the_same_network_may_come_back)
{
    crm_flight_t one, two;

    ck_assert(begin(&one, 1, "a") && begin(&two, 2, "a"));
    ck_assert(!crm_flight_others(&one));
    crm_flight_send(&two, 0);
    ck_assert(!crm_flight_others(&one));
    crm_flight_send(&two, 1);
    ck_assert(crm_flight_others(&one));
    ck_assert(!crm_flight_others(&two));
    crm_flight_end(&two, CRM_FLIGHT_KNOWN);
    ck_assert(!crm_flight_others(&one));
    ck_assert(begin(&two, 3, "b"));
    crm_flight_send(&two, 1);
    ck_assert(!crm_flight_others(&one));
}
END_TEST

START_TEST(the_look_up_of_a_killed_process_has_ended)
{
    crm_flight_t flight;
    int status;
    pid_t pid = fork();

    if (!pid) {
        _exit(!begin(&flight, 1, "a"));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(begin(&flight, 1, "a"));
}
END_TEST

/* Or its number has become that of another one. */
START_TEST(the_look_up_of_a_process_that_stops_is_not_waited_for)
{
    crm_flight_t first, second, third;

    crm_limit_set_clock(odd_clock);
    ck_assert(begin(&first, 1, "a"));
    crm_flight_send(&first, 1);
    ahead = 9000000;
    ck_assert(!begin(&second, 1, "a"));
    ahead = 11000000;
    ck_assert_int_eq(crm_flight_look(NULL, &second), CRM_FLIGHT_NONE);
    ck_assert(begin(&second, 1, "a"));
    crm_flight_send(&second, 0);
    ck_assert(!crm_flight_others(&second));
    crm_flight_end(&first, CRM_FLIGHT_UNKNOWN);
    ck_assert_int_eq(crm_flight_look(NULL, &second), CRM_FLIGHT_RUNNING);
    crm_flight_end(&second, CRM_FLIGHT_KNOWN);
    ck_assert_int_eq(crm_flight_look(NULL, &second), CRM_FLIGHT_KNOWN);
    ck_assert(begin(&third, 1, "a"));
}
END_TEST

START_TEST(what_finds_no_place_is_looked_up_alone)
{
    crm_flight_t flight[CRM_FLIGHT_PLACES], more;

    for (apr_uint64_t i = 0; i < CRM_FLIGHT_PLACES; i++) {
        ck_assert(begin(&flight[i], i, "a"));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert(begin(&more, 1000, "a"));
        crm_flight_send(&more, 1);
        ck_assert(!crm_flight_others(&more));
        crm_flight_end(&more, CRM_FLIGHT_KNOWN);
    }
    crm_flight_end(&flight[9], CRM_FLIGHT_KNOWN);
    ck_assert(begin(&more, 1000, "a"));
    ck_assert(!begin(&more, 1000, "a"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roll");
    TCase *tcase = tcase_create("roll");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, it_has_all_that_were_added_and_hardly_another);
    tcase_add_test(tcase, one_without_keys_has_none);
    tcase_add_test(tcase, what_is_struck_is_off_until_it_is_added_again);
    tcase_add_test(tcase, others_that_are_added_do_not_bring_it_back);
    tcase_add_test(tcase, one_thread_reads_it_and_not_again_at_once);
    tcase_add_loop_test(tcase, the_longer_a_reading_takes_the_longer_is_the_pause,
                        0, sizeof(readings) / sizeof(*readings));
    tcase_add_test(tcase, a_process_that_stops_while_it_reads_is_not_waited_for);
    tcase_add_test(tcase, equal_keys_share_a_look_up);
    tcase_add_test(tcase, each_database_has_its_own_keys);
    tcase_add_test(tcase, who_waits_is_not_told_of_another_look_up);
    tcase_add_test(tcase, only_charges_to_the_same_network_may_come_back);
    tcase_add_test(tcase, the_look_up_of_a_killed_process_has_ended);
    tcase_add_test(tcase, the_look_up_of_a_process_that_stops_is_not_waited_for);
    tcase_add_test(tcase, what_finds_no_place_is_looked_up_alone);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
