/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch_answer.c: requests that the leader answers, with $CRM_TEST_DATABASE */
#include "crm_batch_test.h"

START_TEST(leader_answers)
{
    for (int i = 0; i < 4; i++) {
        prepare_polled(i, i == 3 ? "0" : "2", apr_itoa(pool, i), CRM_ANSWERED);
    }
    gather(4);
    gate_set(&gate.closed, 0);
    pthread_join(clients[0].thread, NULL);
    has_numbers(&clients[0], 2, "0");
    ck_assert_int_eq(clients[0].answers, 0);
    for (int i = 1; i < 4; i++) {
        ask_again(&clients[i]);
        pthread_join(clients[i].thread, NULL);
        ck_assert_ptr_null(clients[i].error);
        ck_assert_int_eq(clients[i].answers, 1);
        ck_assert(pthread_equal(clients[i].answerer, clients[0].thread));
        ck_assert_str_eq(clients[i].seen, i == 3 ? "0 "
                         : apr_psprintf(pool, "2 %d", i));
        ck_assert_int_eq(clients[i].part.answered, 1);
        ck_assert_int_ge(clients[i].part.idle, 0);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    ck_assert_int_eq(gate.sharing, 0);
    close_pairs(4);
}
END_TEST

/* Nobody asks again: each thread goes on after a short while. */
START_TEST(silent_clients)
{
    for (int i = 0; i < 3; i++) {
        prepare_polled(i, "1", "x", CRM_ANSWERED);
    }
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    ck_assert_int_eq(clients[1].part.answered, 1);
    ck_assert_int_eq(clients[2].part.answered, 1);
    close_pairs(3);
}
END_TEST

/* A response that the leader cannot send is its own thread's. */
START_TEST(leader_cannot_answer)
{
    for (int i = 0; i < 3; i++) {
        prepare_polled(i, "2", apr_itoa(pool, i), CRM_ANSWERED_NOT);
    }
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    for (int i = 0; i < 3; i++) {
        has_numbers(&clients[i], 2, apr_itoa(pool, i));
        ck_assert_int_eq(clients[i].answers, i > 0);
        ck_assert_int_eq(clients[i].part.answered, 0);
    }
    close_pairs(3);
}
END_TEST

/* After the last response of a connection, its thread is needed at once, and does
 * not sleep until it is time to look. */
START_TEST(last_answer)
{
    prepare(0, NUMBERS, "1", "x");
    prepare_polled(1, "1", "y", CRM_ANSWERED_LAST);
    gather(2);
    /* long enough for a patience of seconds */
    usleep(1500000);
    gate_set(&gate.closed, 0);
    join(2);
    ck_assert_int_eq(clients[1].part.answered, 1);
    ck_assert_int_lt(clients[1].part.idle, apr_time_from_msec(500));
    close(clients[1].pair[0]);
    close(clients[1].pair[1]);
}
END_TEST

/* A client that sends before it has its answer, or goes, has a thread of its own
 * again. */
START_TEST(impatient_clients)
{
    for (int i = 0; i < 3; i++) {
        prepare_polled(i, "2", "x", CRM_ANSWERED);
    }
    gather(3);
    ask_again(&clients[1]);
    close(clients[2].pair[1]);
    /* both threads have seen that when they no longer use processor time; the test
     * holds whether they have or not */
    usleep(50000);
    gate_set(&gate.closed, 0);
    join(3);
    for (int i = 1; i < 3; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_int_eq(clients[i].answers, clients[i].part.answered);
        if (!clients[i].answers) {
            has_numbers(&clients[i], 2, "x");
        }
    }
    clients[2].pair[1] = -1;
    close_pairs(3);
}
END_TEST

/* No more threads than that sleep until a client sends. */
START_TEST(clients_max)
{
    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < 5; i++) {
            prepare_polled(i, "2", "x", CRM_ANSWERED)->source.clients_max = 2;
        }
        gather(5);
        gate_set(&gate.closed, 0);
        join(5);
        for (int i = 1; i < 5; i++) {
            ck_assert_int_eq(clients[i].answers, i <= 2);
        }
        close_pairs(5);
    }
}
END_TEST

/* The statement fails: nobody answers, and each thread runs its own. */
START_TEST(no_answer_of_a_failure)
{
    for (int i = 0; i < 3; i++) {
        prepare_polled(i, "2", "x", CRM_ANSWERED)->text = DIVISION;
    }
    clients[1].values[0] = "0";
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
        ck_assert_int_eq(clients[i].answers, 0);
    }
    close_pairs(3);
}
END_TEST

/* All threads ask again and again; each answer is the right one, whoever gives
 * it. Every third cannot be sent by the leader, every fifth client is silent. */
static void *polled_storm_main(void *data)
{
    client_t *client = data;
    char own[32], byte;

    apr_snprintf(own, sizeof(own), "%s %s", client->values[0],
                 client->values[1]);
    for (int i = 0; i < 300; i++) {
        client->how = i % 3 ? CRM_ANSWERED : CRM_ANSWERED_NOT;
        client->seen[0] = '\0';
        client_main(client);
        ck_assert_int_eq(client->part.answered,
                         client->rows.result == NULL);
        if (client->part.answered) {
            ck_assert_str_eq(client->seen, own);
        }
        else {
            has_numbers(client, atoi(client->values[0]), client->values[1]);
        }
        crm_rows_drop(&client->rows);
        while (recv(client->pair[0], &byte, 1, MSG_DONTWAIT) == 1) {
        }
    }
    return NULL;
}

/* A client that sends at random. */
static void *sender_main(void *data)
{
    while (!__atomic_load_n((int *)data, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < THREADS; i++) {
            if (i % 5) {
                send(clients[i].pair[1], "x", 1, MSG_DONTWAIT);
            }
        }
        usleep(300);
    }
    return NULL;
}

START_TEST(polled_storm)
{
    pthread_t sender;
    int over = 0;

    for (int i = 0; i < THREADS; i++) {
        prepare_polled(i, apr_itoa(pool, 1 + i), apr_itoa(pool, 100 + i),
                       CRM_ANSWERED);
    }
    ck_assert_int_eq(pthread_create(&sender, NULL, sender_main, &over), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL,
                                        polled_storm_main, &clients[i]), 0);
    }
    join(THREADS);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(sender, NULL);
    close_pairs(THREADS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_answer");
    TCase *tcase = tcase_create("batch_answer");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, leader_answers);
    tcase_add_test(tcase, silent_clients);
    tcase_add_test(tcase, leader_cannot_answer);
    tcase_add_test(tcase, last_answer);
    tcase_add_test(tcase, impatient_clients);
    tcase_add_test(tcase, clients_max);
    tcase_add_test(tcase, no_answer_of_a_failure);
    tcase_add_test(tcase, polled_storm);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
