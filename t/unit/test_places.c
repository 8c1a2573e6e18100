/* SPDX-License-Identifier: Apache-2.0 */
/* test_places.c: an owner waits once, and nobody takes the places of others */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crm_check.h"
#include "crm_places.h"
#include "crm_time.h"

#define PROCESSES 4
#define OWNERS 40
#define ROUNDS 200

static crm_places_t *places;

static void setup(void)
{
    places = mmap(NULL, sizeof(*places), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(places, MAP_FAILED);
}

static void teardown(void)
{
    munmap(places, sizeof(*places));
}

/* Return a place in which OWNER waits, whose networks NET and SITE may have
 * MOST places and twice as many; NULL: none. */
static crm_place_t *enter_from(const char *owner, const char *net,
                               const char *site, int most)
{
    const crm_places_client_t client = {owner, {net, site}, {most, 2 * most},
                                        CRM_PLACES_MAX};

    return crm_places_enter(places, &client, crm_time_monotonic()
                            + apr_time_from_sec(30));
}

static crm_place_t *enter(const char *owner)
{
    return enter_from(owner, NULL, NULL, 0);
}

START_TEST(an_owner_waits_once)
{
    crm_place_t *place = enter("a");

    ck_assert_ptr_nonnull(place);
    ck_assert_ptr_null(enter("a"));
    ck_assert_ptr_nonnull(enter("b"));
    crm_places_leave(place);
    ck_assert_ptr_nonnull(enter("a"));
}
END_TEST

START_TEST(a_network_has_its_share_of_the_places)
{
    crm_place_t *first = enter_from("a", "net 1", NULL, 2);

    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(enter_from("b", "net 1", NULL, 2));
    ck_assert_ptr_null(enter_from("c", "net 1", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("c", "net 2", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("d", "net 1", NULL, 0));  /* no limit */
    ck_assert_ptr_null(enter_from("e", "net 1", NULL, 2));
    crm_places_leave(first);
    ck_assert_ptr_null(enter_from("e", "net 1", NULL, 2));
    ck_assert_ptr_nonnull(enter_from("e", "net 1", NULL, 3));
    /* places of other processes do not count */
    for (int i = 0; i < CRM_PLACES_MAX; i++) {
        places->places[i].process++;
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
    crm_place_t *taken[CRM_PLACES_MAX];
    char name[12];

    for (int i = 0; i < CRM_PLACES_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        taken[i] = enter(name);
        ck_assert_ptr_nonnull(taken[i]);
    }
    ck_assert_ptr_null(enter("one more"));
    crm_places_leave(taken[7]);
    ck_assert_ptr_eq(enter("one more"), taken[7]);
    /* of a process that was killed long ago */
    taken[9]->until = crm_time_monotonic() - apr_time_from_sec(61);
    ck_assert_ptr_eq(enter("9"), taken[9]);
}
END_TEST

START_TEST(a_process_has_so_many)
{
    crm_places_client_t client = {"a", {NULL}, {0}, 2};
    apr_time_t until = crm_time_monotonic() + apr_time_from_sec(30);

    ck_assert_ptr_nonnull(crm_places_enter(places, &client, until));
    client.owner = "b";
    ck_assert_ptr_nonnull(crm_places_enter(places, &client, until));
    client.owner = "c";
    ck_assert_ptr_null(crm_places_enter(places, &client, until));
    for (int i = 0; i < CRM_PLACES_MAX; i++) {
        places->places[i].process++;
    }
    ck_assert_ptr_nonnull(crm_places_enter(places, &client, until));
    client.owner = "d";
    client.most = 0;
    ck_assert_ptr_null(crm_places_enter(places, &client, until));
}
END_TEST

/* Enter all owners; exit with the number of those that could. */
static pid_t enter_elsewhere(void)
{
    pid_t pid = fork();

    if (!pid) {
        int count = 0;

        for (int i = 0; i < OWNERS; i++) {
            char name[12];

            snprintf(name, sizeof(name), "%d", i);
            count += enter(name) != NULL;
        }
        _exit(count);
    }
    return pid;
}

START_TEST(an_owner_waits_once_in_all_processes)
{
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[PROCESSES];
        int entered = 0, used = 0;

        memset(places, 0, sizeof(*places));
        fflush(stdout);
        for (int i = 0; i < PROCESSES; i++) {
            pids[i] = enter_elsewhere();
            ck_assert_int_gt(pids[i], 0);
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status;

            ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
            ck_assert(WIFEXITED(status));
            entered += WEXITSTATUS(status);
        }
        for (int i = 0; i < CRM_PLACES_MAX; i++) {
            used += places->places[i].until != 0;
        }
        /* two that come at the same moment may both be refused */
        ck_assert_int_le(entered, OWNERS);
        ck_assert_int_eq(used, entered);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places");
    TCase *tcase = tcase_create("places");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_owner_waits_once);
    tcase_add_test(tcase, an_owner_waits_once_in_all_processes);
    tcase_add_test(tcase, a_network_has_its_share_of_the_places);
    tcase_add_test(tcase, the_networks_of_a_site_share_its_places);
    tcase_add_test(tcase, a_process_has_so_many);
    tcase_add_test(tcase, places_are_taken_again);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
