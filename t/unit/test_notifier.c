/* SPDX-License-Identifier: Apache-2.0 */
/* test_notifier.c: a notification is seen, by threads and by other processes */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crm_check.h"
#include "crm_notifier.h"

#define NAME "01890a5d-ac96-774b-bcce-b302099a8057"
#define MESSAGES 2000
#define RINGS 50000
#define PROCESSES 4
#define THREADS 2               /* in each */

static crm_notifier_t *notifier;
static int messages[MESSAGES];  /* guarded by nothing but the notifier */

static void setup(void)
{
    notifier = mmap(NULL, sizeof(*notifier), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(notifier, MAP_FAILED);
    memset(messages, 0, sizeof(messages));
}

static void teardown(void)
{
    munmap(notifier, sizeof(*notifier));
}

START_TEST(a_ring_changes_the_count_of_its_name)
{
    apr_uint32_t before = crm_notifier_count(notifier, NAME);
    int others = 0;

    crm_notifier_notify(notifier, NAME);
    ck_assert_uint_ne(crm_notifier_count(notifier, NAME), before);
    for (int i = 0; i < 100; i++) {
        char name[12];

        snprintf(name, sizeof(name), "%d", i);
        others += crm_notifier_count(notifier, name) != before;
    }
    ck_assert_int_lt(others, 10);
}
END_TEST

START_TEST(the_count_goes_round)
{
    memset(notifier, 0xff, sizeof(*notifier));
    crm_notifier_notify(notifier, NAME);
    ck_assert_uint_eq(crm_notifier_count(notifier, NAME), 0);
    ck_assert_uint_eq(crm_notifier_count(notifier, ""), APR_UINT32_MAX);
}
END_TEST

static void *write_messages(void *baton)
{
    (void)baton;
    for (int i = 0; i < MESSAGES; i++) {
        messages[i] = i + 1;
        crm_notifier_notify(notifier, NAME);
    }
    return NULL;
}

/* Who sees the count changed sees what was written before the ring. */
START_TEST(what_was_written_before_a_ring_is_there)
{
    pthread_t writer;
    int seen = 0;

    ck_assert_int_eq(pthread_create(&writer, NULL, write_messages, NULL), 0);
    while (seen < MESSAGES) {
        int count = (int)crm_notifier_count(notifier, NAME);

        for (; seen < count; seen++) {
            ck_assert_int_eq(messages[seen], seen + 1);
        }
    }
    pthread_join(writer, NULL);
}
END_TEST

static void *ring_often(void *baton)
{
    (void)baton;
    for (int i = 0; i < RINGS; i++) {
        crm_notifier_notify(notifier, NAME);
    }
    return NULL;
}

/* Ring with all threads of a process; return 0 if one could not start. */
static int ring_with_threads(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, ring_often, NULL)) {
            return 0;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 1;
}

START_TEST(no_ring_is_lost)
{
    pid_t pids[PROCESSES];

    fflush(stdout);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            _exit(!ring_with_threads());
        }
        ck_assert_int_gt(pids[i], 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(crm_notifier_count(notifier, NAME), PROCESSES * THREADS * RINGS);
}
END_TEST

/* Return a place in which OWNER waits, whose networks NET and SITE may have
 * MOST places and twice as many; NULL: none. */
static crm_waiter_t *enter_from(const char *owner, const char *net,
                                const char *site, int most)
{
    const crm_notifier_client_t client = {{net, site}, {most, 2 * most}};

    return crm_notifier_enter(notifier, owner, &client, apr_time_now()
                              + apr_time_from_sec(30));
}

static crm_waiter_t *enter(const char *owner)
{
    return enter_from(owner, NULL, NULL, 0);
}

START_TEST(an_owner_waits_once)
{
    crm_waiter_t *waiter = enter("a");

    ck_assert_ptr_nonnull(waiter);
    ck_assert_ptr_null(enter("a"));
    ck_assert_ptr_nonnull(enter("b"));
    crm_notifier_leave(notifier, waiter);
    ck_assert_ptr_nonnull(enter("a"));
}
END_TEST

START_TEST(a_network_has_its_share_of_the_places)
{
    crm_waiter_t *first = enter_from("a", "net 1", NULL, 2);

    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(enter_from("b", "net 1", NULL, 2));
    ck_assert_ptr_null(enter_from("c", "net 1", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("c", "net 2", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("d", "net 1", NULL, 0));  /* no limit */
    ck_assert_ptr_null(enter_from("e", "net 1", NULL, 2));
    crm_notifier_leave(notifier, first);
    ck_assert_ptr_null(enter_from("e", "net 1", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("e", "net 1", NULL, 3));
    /* places of other processes do not count */
    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        notifier->waiters[i].process++;
    }
    ck_assert_ptr_nonnull(enter_from("f", "net 1", NULL, 1));
}
END_TEST

START_TEST(the_networks_of_a_site_share_its_places)
{
    ck_assert_ptr_nonnull(enter_from("a", "net 1", "site", 1));
    ck_assert_ptr_null(enter_from("b", "net 1", "site", 1));
    ck_assert_ptr_nonnull(enter_from("b", "net 2", "site", 1));
    ck_assert_ptr_null(enter_from("c", "net 3", "site", 1));
    ck_assert_ptr_nonnull(enter_from("c", "net 3", "another", 1));
}
END_TEST

START_TEST(places_are_taken_again)
{
    crm_waiter_t *waiters[CRM_NOTIFIER_WAITERS];
    char name[12];

    for (int i = 0; i < CRM_NOTIFIER_WAITERS; i++) {
        snprintf(name, sizeof(name), "%d", i);
        waiters[i] = enter(name);
        ck_assert_ptr_nonnull(waiters[i]);
    }
    ck_assert_ptr_null(enter("one more"));
    crm_notifier_leave(notifier, waiters[7]);
    ck_assert_ptr_eq(enter("one more"), waiters[7]);
    /* of a process that was killed long ago */
    waiters[9]->until = apr_time_now() - apr_time_from_sec(61);
    ck_assert_ptr_eq(enter("9"), waiters[9]);
}
END_TEST

START_TEST(what_came_before_is_not_slept_over)
{
    const char *name = NAME;
    apr_uint32_t count = crm_notifier_count(notifier, NAME);
    apr_time_t began = apr_time_now();

    crm_notifier_notify(notifier, NAME);
    crm_notifier_wait(notifier, enter("a"), &name, &count, 1,
                      apr_time_from_sec(20));
    ck_assert_int_lt(apr_time_now() - began, apr_time_from_sec(10));
}
END_TEST

START_TEST(a_wait_has_a_timeout)
{
    const char *name = NAME;
    apr_uint32_t count = crm_notifier_count(notifier, NAME);
    apr_time_t began = apr_time_now();

    crm_notifier_wait(notifier, enter("a"), &name, &count, 1,
                      apr_time_from_msec(200));
    ck_assert_int_ge(apr_time_now() - began, apr_time_from_msec(150));
}
END_TEST

/* Wait in a process of its own for NAME and another; exit with 0 if that ended
 * before the timeout. */
static pid_t wait_elsewhere(void)
{
    const char *names[] = {"nothing", NAME};
    apr_uint32_t counts[2];
    pid_t pid;

    for (int i = 0; i < 2; i++) {
        counts[i] = crm_notifier_count(notifier, names[i]);
    }
    fflush(stdout);
    pid = fork();
    if (!pid) {
        apr_time_t began = apr_time_now();

        crm_notifier_wait(notifier, enter("child"), names, counts, 2,
                          apr_time_from_sec(30));
        _exit(apr_time_now() - began >= apr_time_from_sec(25));
    }
    return pid;
}

/* Wait for PID to wait. */
static void let_it_wait(void)
{
    for (int i = 0; i < 1000 && !notifier->waiters[0].count; i++) {
        usleep(5000);
    }
    ck_assert_uint_eq(notifier->waiters[0].count, 2);
}

START_TEST(a_notification_wakes_another_process)
{
    pid_t pid = wait_elsewhere();
    int status;

    ck_assert_int_gt(pid, 0);
    let_it_wait();
    crm_notifier_notify(notifier, "not this one");
    crm_notifier_notify(notifier, NAME);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(who_waits_sleeps)
{
    pid_t pid = wait_elsewhere();
    struct rusage before, after;
    int status;

    let_it_wait();
    getrusage(RUSAGE_CHILDREN, &before);
    usleep(500000);
    crm_notifier_notify(notifier, NAME);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    getrusage(RUSAGE_CHILDREN, &after);
    /* it gave the processor up for its one sleep, and a few times else */
    ck_assert_int_lt(after.ru_nvcsw - before.ru_nvcsw, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notifier");
    TCase *tcase = tcase_create("notifier");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_ring_changes_the_count_of_its_name);
    tcase_add_test(tcase, the_count_goes_round);
    tcase_add_test(tcase, what_was_written_before_a_ring_is_there);
    tcase_add_test(tcase, no_ring_is_lost);
    tcase_add_test(tcase, an_owner_waits_once);
    tcase_add_test(tcase, a_network_has_its_share_of_the_places);
    tcase_add_test(tcase, the_networks_of_a_site_share_its_places);
    tcase_add_test(tcase, places_are_taken_again);
    tcase_add_test(tcase, what_came_before_is_not_slept_over);
    tcase_add_test(tcase, a_wait_has_a_timeout);
    tcase_add_test(tcase, a_notification_wakes_another_process);
    tcase_add_test(tcase, who_waits_sleeps);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
