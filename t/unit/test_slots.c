/* SPDX-License-Identifier: Apache-2.0 */
/* test_slots.c: a limit on what threads do at the same time */
#include "crm_check.h"

#include <pthread.h>
#include <sched.h>

#include "crm_slots.h"

#define THREADS 8
#define TURNS 2000
#define LIMIT 3

static crm_slots_t slots;
static int inside, most;

static void set_up(void)
{
    slots = (crm_slots_t) CRM_SLOTS_INITIALIZER;
    inside = most = 0;
}

START_TEST(as_many_as_the_limit_says_are_taken_at_once)
{
    crm_slots_wait(&slots, 2);
    crm_slots_wait(&slots, 2);
    ck_assert_int_eq(slots.used, 2);
    crm_slots_wait(&slots, 3);  /* the limit was raised */
    ck_assert_int_eq(slots.used, 3);
}
END_TEST

/* Work in a slot, and note how many do. */
static void *work(void *baton)
{
    (void)baton;
    for (int i = 0; i < TURNS; i++) {
        int now, seen;

        crm_slots_wait(&slots, LIMIT);
        now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);
        while (now > seen && !__atomic_compare_exchange_n(
                   &most, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            continue;
        }
        sched_yield();
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        crm_slots_leave(&slots);
    }
    return NULL;
}

START_TEST(no_more_threads_than_the_limit_are_inside)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_ge(most, 1);
    ck_assert_int_le(most, LIMIT);
    ck_assert_int_eq(slots.used, 0);
}
END_TEST

START_TEST(a_limit_of_zero_is_one)
{
    crm_slots_wait(&slots, 0);
    ck_assert_int_eq(slots.used, 1);
    crm_slots_leave(&slots);
}
END_TEST

START_TEST(what_is_away_is_tried_by_one_thread)
{
    ck_assert_int_eq(crm_slots_try(&slots, 2), 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 0);      /* more than the limit */
    crm_slots_tried(&slots, 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 0);      /* the second one does */
    crm_slots_tried(&slots, 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 0);
    crm_slots_tried(&slots, 0);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 1);
    ck_assert_int_eq(crm_slots_try(&slots, 2), 1);
}
END_TEST

static void *take(void *baton)
{
    crm_slots_wait(&slots, 1);
    crm_slots_leave(&slots);
    return baton;
}

/* If this waits, the test program is ended by its time limit. */
START_TEST(nobody_waits_for_what_is_away)
{
    pthread_t thread;

    crm_slots_wait(&slots, 1);
    ck_assert_int_eq(crm_slots_try(&slots, 1), 1);
    pthread_create(&thread, NULL, take, NULL);
    crm_slots_tried(&slots, 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(slots.used, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *tcase = tcase_create("slots");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, as_many_as_the_limit_says_are_taken_at_once);
    tcase_add_test(tcase, no_more_threads_than_the_limit_are_inside);
    tcase_add_test(tcase, a_limit_of_zero_is_one);
    tcase_add_test(tcase, what_is_away_is_tried_by_one_thread);
    tcase_add_test(tcase, nobody_waits_for_what_is_away);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
