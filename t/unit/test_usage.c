/* SPDX-License-Identifier: Apache-2.0 */
/* test_usage.c: each request is counted once, for its workspace (contract 14.7) */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crm_check.h"
#include "crm_usage.h"

#define KEYS 100                /* the table has its least size */
#define REALM 7
#define DAY 20000
#define WORKSPACES 20
#define ROUNDS 20000
#define PROCESSES 4

static crm_usage_t *usage;
static apr_size_t size;

static void set_up(void)
{
    void *memory;

    size = crm_usage_size(KEYS);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    usage = crm_usage_open(memory, size);
}

static void tear_down(void)
{
    munmap(usage, size);
}

/* Count a request of workspace N on DAY. Return whether there was room. */
static int count(unsigned n, apr_uint32_t day, int limited)
{
    crm_use_t use = {"", REALM, day, 1, (apr_uint32_t)limited};

    snprintf(use.workspace_id, sizeof(use.workspace_id),
             "%08x-0000-4000-8000-000000000000", n);
    return crm_usage_add(usage, &use);
}

/* Add what is taken out of the table for REALM to SUMS, by workspace. Return the
 * number of slots. */
static int take(crm_use_t sums[], apr_uint32_t realm)
{
    apr_uint32_t place = 0;
    crm_use_t use;
    int slots = 0;

    while (crm_usage_take(&use, usage, realm, &place)) {
        unsigned long n = strtoul(use.workspace_id, NULL, 16);

        ck_assert_int_eq(strlen(use.workspace_id), CRM_UUID_LEN);
        ck_assert_uint_eq(use.realm, realm);
        sums[n].requests += use.requests;
        sums[n].limited += use.limited;
        sums[n].day = use.day;
        slots++;
    }
    return slots;
}

START_TEST(counts_are_taken_once_by_workspace_realm_and_day)
{
    crm_use_t sums[2] = {{{0}, 0, 0, 0, 0}};
    crm_use_t foreign = {"00000000-0000-4000-8000-000000000000", REALM + 1, DAY,
                         5, 2};

    count(0, DAY, 0);
    count(0, DAY, 1);
    count(1, DAY + 1, 0);
    ck_assert(!crm_usage_has(usage, REALM + 1));
    crm_usage_add(usage, &foreign);
    ck_assert(crm_usage_has(usage, REALM + 1));
    ck_assert(crm_usage_has(usage, REALM));
    ck_assert_int_eq(take(sums, REALM), 2);
    ck_assert(!crm_usage_has(usage, REALM));
    ck_assert_uint_eq(sums[0].requests, 2);
    ck_assert_uint_eq(sums[0].limited, 1);
    ck_assert_uint_eq(sums[0].day, DAY);
    ck_assert_uint_eq(sums[1].requests, 1);
    ck_assert_uint_eq(sums[1].limited, 0);
    ck_assert_uint_eq(sums[1].day, DAY + 1);
    ck_assert_int_eq(take(sums, REALM), 0);
    ck_assert_int_eq(take(sums, REALM + 1), 1);
    ck_assert_uint_eq(sums[0].requests, 7);
    ck_assert_uint_eq(sums[0].limited, 3);
}
END_TEST

START_TEST(a_day_has_a_slot_of_its_own)
{
    crm_use_t sums[1] = {{{0}, 0, 0, 0, 0}};

    count(0, DAY, 0);
    count(0, DAY + 1, 0);
    ck_assert_int_eq(take(sums, REALM), 2);
    ck_assert_uint_eq(sums[0].requests, 2);
}
END_TEST

/* What could not be written for long is added again at once. */
START_TEST(counts_that_a_slot_cannot_hold_are_in_two)
{
    const apr_uint32_t most = (1 << 24) - 1;
    crm_use_t uses[] = {
        {"00000000-0000-4000-8000-000000000000", REALM, DAY, most, most},
        {"00000000-0000-4000-8000-000000000000", REALM, DAY, 1, 0},
        {"00000000-0000-4000-8000-000000000000", REALM, DAY, 0, 1},
    };

    for (int i = 1; i < COUNT(uses); i++) {
        crm_use_t sums[1] = {{{0}, 0, 0, 0, 0}};

        ck_assert(crm_usage_add(usage, &uses[0]));
        ck_assert(crm_usage_add(usage, &uses[i]));
        ck_assert_int_eq(take(sums, REALM), 2);
        ck_assert_uint_eq(sums[0].requests, most + uses[i].requests);
        ck_assert_uint_eq(sums[0].limited, most + uses[i].limited);
    }
}
END_TEST

START_TEST(slots_without_counts_become_free)
{
    crm_use_t *sums = calloc(100000, sizeof(*sums));

    ck_assert_ptr_nonnull(sums);
    for (unsigned n = 0; n < 100000; n += 500) {
        for (unsigned i = 0; i < 500; i++) {
            ck_assert(count(n + i, DAY, 0));
        }
        take(sums, REALM);      /* takes them */
        take(sums, REALM);      /* and frees their slots */
    }
    for (unsigned n = 0; n < 100000; n++) {
        ck_assert_uint_eq(sums[n].requests, 1);
    }
    ck_assert_uint_eq(crm_usage_lost(usage), 0);
    free(sums);
}
END_TEST

START_TEST(what_finds_no_room_is_counted_as_lost)
{
    crm_use_t many = {"ffffffff-0000-4000-8000-000000000000", REALM, DAY, 3, 0};
    unsigned added = 0, n = 0;

    for (; n < 5000; n++) {
        added += (unsigned)count(n, DAY, 0);
    }
    ck_assert_uint_lt(added, n);
    ck_assert_uint_eq(crm_usage_lost(usage), n - added);
    ck_assert_uint_eq(crm_usage_lost(usage), 0);
    while (crm_usage_add(usage, &many)) {   /* there is room for another day */
        many.day++;
        added++;
    }
    ck_assert_uint_eq(crm_usage_lost(usage), many.requests);
    for (apr_uint32_t place = 0; crm_usage_take(&many, usage, REALM, &place);) {
        added--;
    }
    ck_assert_uint_eq(added, 0);
}
END_TEST

/* Count ROUNDS requests, of many workspaces. */
static void count_often(unsigned seed)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!count((seed + i) % WORKSPACES, DAY + i % 2, i % 5 == 0)) {
            _exit(1);
        }
    }
    _exit(0);
}

START_TEST(none_is_lost_or_anothers_while_slots_come_and_go)
{
    crm_use_t sums[WORKSPACES] = {{{0}, 0, 0, 0, 0}};
    apr_uint64_t requests = 0, limited = 0;
    int running = PROCESSES, status;

    for (unsigned i = 0; i < PROCESSES; i++) {
        if (!fork()) {
            count_often(i);
        }
    }
    while (running) {
        take(sums, REALM);
        while (waitpid(-1, &status, WNOHANG) > 0) {
            ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
            running--;
        }
    }
    take(sums, REALM);
    for (int i = 0; i < WORKSPACES; i++) {
        requests += sums[i].requests;
        limited += sums[i].limited;
        ck_assert_uint_eq(sums[i].requests, PROCESSES * ROUNDS / WORKSPACES);
    }
    ck_assert_uint_eq(requests, PROCESSES * ROUNDS);
    ck_assert_uint_eq(limited, PROCESSES * ROUNDS / 5);
}
END_TEST

/* The place of the slot that workspace N gets in an empty table. */
static apr_uint32_t place_of(unsigned n)
{
    apr_uint32_t place = 0;
    crm_use_t use;

    ck_assert(count(n, DAY, 0));
    ck_assert(crm_usage_take(&use, usage, REALM, &place));
    tear_down();
    set_up();
    return place - 1;
}

#define HEIRS 100000

static unsigned heir;           /* its slot is at the place of workspace 0 */

/* A SIGSEGV handler: the slot is freed and becomes the heir's, without counts, at the
 * moment at which it was to be written. */
static void give_away(int signo)
{
    static crm_use_t taken[HEIRS];

    (void)signo;
    mprotect(usage, size, PROT_READ | PROT_WRITE);
    take(taken, REALM);
    count(heir, DAY, 0);
    take(taken, REALM);
}

START_TEST(a_slot_that_becomes_anothers_gets_no_count)
{
    static crm_use_t sums[HEIRS];
    apr_uint32_t place = place_of(0);

    for (heir = 1; place_of(heir) != place; heir++) {
        ck_assert_uint_lt(heir, HEIRS - 1);
    }
    count(0, DAY, 0);
    take(sums, REALM);          /* the slot is without counts */
    ck_assert_int_eq(mprotect(usage, size, PROT_READ), 0);
    signal(SIGSEGV, give_away);
    count(0, DAY, 0);
    signal(SIGSEGV, SIG_DFL);
    ck_assert_int_eq(take(sums, REALM), 1);
    ck_assert_uint_eq(sums[0].requests, 2);
    ck_assert_uint_eq(sums[heir].requests, 0);
}
END_TEST

START_TEST(one_caller_is_told_that_it_is_due)
{
    apr_time_t now = apr_time_from_sec(1000), every = apr_time_from_sec(60);

    ck_assert(crm_usage_due(usage, now, every));
    ck_assert(!crm_usage_due(usage, now, every));
    ck_assert(!crm_usage_due(usage, now + every - 1, every));
    ck_assert(crm_usage_due(usage, now + every, every));
    /* a restart with a shorter interval */
    ck_assert(crm_usage_due(usage, now + every + 1, every / 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *tcase = tcase_create("usage");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, counts_are_taken_once_by_workspace_realm_and_day);
    tcase_add_test(tcase, a_day_has_a_slot_of_its_own);
    tcase_add_test(tcase, counts_that_a_slot_cannot_hold_are_in_two);
    tcase_add_test(tcase, slots_without_counts_become_free);
    tcase_add_test(tcase, what_finds_no_room_is_counted_as_lost);
    tcase_add_test(tcase, none_is_lost_or_anothers_while_slots_come_and_go);
    tcase_add_test(tcase, a_slot_that_becomes_anothers_gets_no_count);
    tcase_add_test(tcase, one_caller_is_told_that_it_is_due);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
