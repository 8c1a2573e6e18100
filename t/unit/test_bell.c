/* SPDX-License-Identifier: Apache-2.0 */
/* test_bell.c: what rings is heard, by threads and by other processes */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crm_check.h"
#include "crm_bell.h"

#define NAME "01890a5d-ac96-774b-bcce-b302099a8057"
#define MESSAGES 2000
#define RINGS 50000
#define PROCESSES 4
#define THREADS 2               /* in each */

static crm_bell_t *bell;
static int messages[MESSAGES];  /* guarded by nothing but the bell */

static void setup(void)
{
    bell = mmap(NULL, sizeof(*bell), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bell, MAP_FAILED);
    memset(messages, 0, sizeof(messages));
}

static void teardown(void)
{
    munmap(bell, sizeof(*bell));
}

START_TEST(a_ring_changes_the_count_of_its_name)
{
    apr_uint32_t before = crm_bell_count(bell, NAME);
    int others = 0;

    crm_bell_ring(bell, NAME);
    ck_assert_uint_ne(crm_bell_count(bell, NAME), before);
    for (int i = 0; i < 100; i++) {
        char name[12];

        snprintf(name, sizeof(name), "%d", i);
        others += crm_bell_count(bell, name) != before;
    }
    ck_assert_int_lt(others, 10);
}
END_TEST

START_TEST(the_count_goes_round)
{
    memset(bell, 0xff, sizeof(*bell));
    crm_bell_ring(bell, NAME);
    ck_assert_uint_eq(crm_bell_count(bell, NAME), 0);
    ck_assert_uint_eq(crm_bell_count(bell, ""), APR_UINT32_MAX);
}
END_TEST

static void *write_messages(void *baton)
{
    (void)baton;
    for (int i = 0; i < MESSAGES; i++) {
        messages[i] = i + 1;
        crm_bell_ring(bell, NAME);
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
        int count = (int)crm_bell_count(bell, NAME);

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
        crm_bell_ring(bell, NAME);
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
    ck_assert_uint_eq(crm_bell_count(bell, NAME), PROCESSES * THREADS * RINGS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bell");
    TCase *tcase = tcase_create("bell");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_ring_changes_the_count_of_its_name);
    tcase_add_test(tcase, the_count_goes_round);
    tcase_add_test(tcase, what_was_written_before_a_ring_is_there);
    tcase_add_test(tcase, no_ring_is_lost);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
