/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch.c: reads that share a statement, with $CRM_TEST_DATABASE */
#include "crm_batch_test.h"

START_TEST(alone)
{
    client_t *client = prepare(0, NUMBERS, "3", "x");

    start(client);
    join(1);
    has_numbers(client, 3, "x");
    ck_assert_int_eq(client->part.sent, 1);
    /* it is the statement itself, on a connection that the request keeps */
    ck_assert_int_eq(PQnfields(client->rows.result), 2);
    ck_assert_int_eq(client->released, 0);
    ck_assert_int_eq(gate.joined, 0);
    crm_rows_drop(&client->rows);
    ck_assert_ptr_null(client->rows.result);
}
END_TEST

START_TEST(together)
{
    static const char *const counts[THREADS] = {"2", "0", "5", "1", "0", "3",
        "4", "2"};
    static const char *const texts[THREADS] = {"", "a", "b,}\"", "NULL",
        "{", "\\", "'", NULL};

    for (int i = 0; i < THREADS; i++) {
        prepare(i, NUMBERS, counts[i], texts[i]);
    }
    gather(THREADS);
    gate_set(&gate.closed, 0);
    join(THREADS);
    for (int i = 0; i < THREADS - 1; i++) {
        has_numbers(&clients[i], atoi(counts[i]), texts[i]);
        ck_assert_int_eq(clients[i].part.sent, i ? 0 : THREADS);
        ck_assert_ptr_eq(clients[i].rows.result, clients[0].rows.result);
    }
    ck_assert_ptr_null(value(&clients[7], 1, 1));
    ck_assert_int_eq(clients[0].released, 1);
    ck_assert_int_eq(gate.sharing, 0);
}
END_TEST

START_TEST(outlives_its_leader)
{
    for (int i = 0; i < 3; i++) {
        prepare(i, NUMBERS, "2", "x");
    }
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    crm_rows_drop(&clients[1].rows);
    apr_pool_destroy(clients[0].pool);
    has_numbers(&clients[2], 2, "x");
}
END_TEST

START_TEST(texts_do_not_mix)
{
    client_t *slow = prepare(0, NUMBERS, "2", "x");
    client_t *client = prepare(1, DIVISION, "5", "y");

    gate_set(&gate.closed, 1);
    start(slow);
    WAIT_FOR(gate_read(&gate.waiting) == 1);
    start(client);
    WAIT_FOR(gate_read(&gate.waiting) == 2);
    gate_set(&gate.closed, 0);
    join(2);
    has_numbers(slow, 2, "x");
    ck_assert_str_eq(value(client, 0, 0), "20");
    ck_assert_int_eq(slow->part.sent, 1);
    ck_assert_int_eq(client->part.sent, 1);
}
END_TEST

START_TEST(slow_ones_hold_up_nobody)
{
    client_t *slow = prepare(0, LOCKED, "7", "slow");
    client_t *quick = prepare(1, LOCKED, "8", "quick");

    look("SELECT pg_advisory_lock(7)");
    start(slow);
    WAIT_FOR(*look(BLOCKED) == '1');
    start(quick);
    WAIT_FOR(is_done(quick));
    ck_assert_str_eq(value(quick, 0, 1), "quick");
    ck_assert_int_eq(is_done(slow), 0);
    look("SELECT pg_advisory_unlock(7)");
    join(2);
    ck_assert_str_eq(value(slow, 0, 1), "slow");
}
END_TEST

/* Run TEXT with VALUE until it was quick 20 times in succession, so that it is
 * shared, also on a busy machine. */
static void be_quick(const char *text, const char *value)
{
    client_t *client = prepare(0, text, value, "warm");
    int quick = 0;

    for (int i = 0; quick < 20; i++) {
        apr_time_t began = crm_time_monotonic();

        ck_assert_int_lt(i, 10000);
        memset(&client->part, 0, sizeof(client->part));
        client_main(client);
        crm_rows_drop(&client->rows);
        quick = crm_time_monotonic() - began < apr_time_from_msec(2)
                    ? quick + 1
                    : 0;
    }
}

/* The end of a statement makes no second leader beside the one there is, and a
 * slow statement is soon forgotten. */
START_TEST(one_leader)
{
    be_quick(LOCKED, "8");
    for (int i = 0; i < 4; i++) {
        prepare(i, LOCKED, i ? "8" : "7", apr_itoa(pool, i));
    }
    look("SELECT pg_advisory_lock(7)");
    start(&clients[0]);
    WAIT_FOR(*look(BLOCKED) == '1');
    gate_set(&gate.closed, 1);
    start(&clients[1]);
    WAIT_FOR(gate_read(&gate.waiting) == 1);
    start(&clients[2]);
    start(&clients[3]);
    WAIT_FOR(gate_read(&gate.joined) >= 2);
    look("SELECT pg_advisory_unlock(7)");
    WAIT_FOR(is_done(&clients[0]));
    ck_assert_int_eq(gate_read(&gate.waiting), 1);
    gate_set(&gate.closed, 0);
    join(4);
    ck_assert_int_eq(clients[1].part.sent, 3);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(value(&clients[i], 0, 1), apr_itoa(pool, i));
    }
}
END_TEST

/* A statement that is slow by itself is not shared. */
START_TEST(slow_statements_are_not_shared)
{
    prepare(0, SLEEP, "30", "x");
    start(&clients[0]);
    join(1);
    for (int i = 0; i < 3; i++) {
        prepare(i, SLEEP, "0", apr_itoa(pool, i));
    }
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(clients[i].part.sent, 1);
        ck_assert_str_eq(value(&clients[i], 0, 1), apr_itoa(pool, i));
    }
}
END_TEST

START_TEST(failure_is_nobodys)
{
    for (int i = 0; i < 4; i++) {
        prepare(i, DIVISION, i == 2 ? "0" : "5", "x");
    }
    gather(4);
    gate_set(&gate.closed, 0);
    join(4);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    /* one that is alone gets its own error */
    prepare(0, DIVISION, "0", "x");
    start(&clients[0]);
    join(1);
    ck_assert_str_eq(clients[0].error->sqlstate, "22012");
}
END_TEST

START_TEST(no_connection_for_the_leader)
{
    for (int i = 0; i < 4; i++) {
        prepare(i, NUMBERS, "1", "x");
    }
    gather(4);
    gate_set(&gate.refuses, 1);
    gate_set(&gate.closed, 0);
    join(4);
    ck_assert_str_eq(clients[0].error->log, "none");
    for (int i = 1; i < 4; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    /* and the queue is as new */
    gate_set(&gate.refuses, 0);
    prepare(0, NUMBERS, "1", "y");
    start(&clients[0]);
    join(1);
    has_numbers(&clients[0], 1, "y");
}
END_TEST

START_TEST(waits_no_longer_than_its_limit)
{
    for (int i = 0; i < 3; i++) {
        prepare(i, NUMBERS, "1", "x");
    }
    clients[1].source.wait = apr_time_from_msec(50);
    gather(3);
    WAIT_FOR(is_done(&clients[1]));
    ck_assert_ptr_null(clients[1].rows.result);
    ck_assert_ptr_null(clients[1].error);
    ck_assert_int_ge(clients[1].part.waited, apr_time_from_msec(50));
    ck_assert_int_eq(is_done(&clients[2]), 0);
    gate_set(&gate.closed, 0);
    join(3);
    has_numbers(&clients[0], 1, "x");
    has_numbers(&clients[2], 1, "x");
    ck_assert_int_eq(clients[0].part.sent, 2);
}
END_TEST

START_TEST(goes_when_the_database_hangs)
{
    prepare(0, NUMBERS, "1", "x");
    prepare(1, NUMBERS, "1", "x");
    gather(2);
    gate_set(&gate.overloaded, 1);
    WAIT_FOR(is_done(&clients[1]));
    ck_assert_ptr_null(clients[1].rows.result);
    gate_set(&gate.closed, 0);
    join(2);
    has_numbers(&clients[0], 1, "x");
}
END_TEST

/* The same for one whose statement was sent already. */
START_TEST(leaves_a_batch_when_the_database_hangs)
{
    prepare(0, LOCKED, "7", "x");
    prepare(1, LOCKED, "7", "x");
    look("SELECT pg_advisory_lock(7)");
    gather(2);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(BLOCKED) == '1');
    gate_set(&gate.overloaded, 1);
    WAIT_FOR(is_done(&clients[1]));
    ck_assert_ptr_null(clients[1].rows.result);
    look("SELECT pg_advisory_unlock(7)");
    join(2);
    ck_assert_str_eq(value(&clients[0], 0, 1), "x");
}
END_TEST

START_TEST(no_answer_in_time)
{
    const crm_conn_options_t hasty = {
        .named_statements = 1, .generic_plans = 1,
        .timeout = apr_time_from_msec(300)};

    for (int i = 0; i < 3; i++) {
        prepare(i, LOCKED, "7", "x");
    }
    apr_pool_clear(clients[0].pool);
    ck_assert_ptr_null(crm_conn_open(&clients[0].conn,
                                     getenv("CRM_TEST_DATABASE"), &hasty,
                                     clients[0].pool, clients[0].pool));
    look("SELECT pg_advisory_lock(7)");
    gather(3);
    gate_set(&gate.closed, 0);
    join(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(clients[i].error);
        ck_assert_int_eq(clients[i].error->code, CRM_E_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(clients[i].error->log,
                                     "CRM2005: database: no answer within"
                                     " 300 ms"));
    }
}
END_TEST

START_TEST(is_not_cancelled_while_others_want_it)
{
    for (int i = 0; i < 3; i++) {
        prepare(i, LOCKED, "7", "x");
        clients[i].aborts = 1;
    }
    look("SELECT pg_advisory_lock(7)");
    gather(3);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(BLOCKED) == '1');
    usleep(200000);             /* time to ask, if it would */
    look("SELECT pg_advisory_unlock(7)");
    join(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(value(&clients[i], 0, 1), "x");
        ck_assert_int_eq(clients[i].asked, 0);
    }
}
END_TEST

START_TEST(is_cancelled_when_nobody_else_wants_it)
{
    prepare(0, LOCKED, "7", "x")->aborts = 1;
    look("SELECT pg_advisory_lock(7)");
    start(&clients[0]);
    join(1);
    ck_assert_ptr_nonnull(clients[0].error);
    ck_assert_int_eq(clients[0].error->code, CRM_E_REQUEST_TIMEOUT);
    WAIT_FOR(*look(BLOCKED) == '0');
}
END_TEST

START_TEST(killed_backend)
{
    for (int i = 0; i < 4; i++) {
        prepare(i, LOCKED, "7", apr_itoa(pool, i));
    }
    look("SELECT pg_advisory_lock(7)");
    gather(4);
    gate_set(&gate.closed, 0);
    for (int i = 0; i < 2; i++) {   /* and the second attempt */
        WAIT_FOR(*look(BLOCKED) == '1');
        look(KILL_BLOCKED);
    }
    join(4);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
}
END_TEST

START_TEST(many_texts)
{
    client_t *client = prepare(0, "", "1", "x");

    for (int i = 0; i < 600; i++) {
        client->text = apr_psprintf(pool, NUMBERS " LIMIT %d", i + 1);
        client_main(client);
        has_numbers(client, 1, "x");
        crm_rows_drop(&client->rows);
    }
}
END_TEST

/* A queue that is in use is not the one that makes room. */
START_TEST(many_texts_beside_one_that_is_used)
{
    client_t *client;

    for (int i = 0; i < 2; i++) {
        prepare(i, LOCKED, "7", apr_itoa(pool, i));
    }
    look("SELECT pg_advisory_lock(7)");
    gather(2);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(BLOCKED) == '1');
    client = prepare(2, "", "1", "x");
    for (int i = 0; i < 300; i++) {
        client->text = apr_psprintf(pool, NUMBERS " LIMIT %d", i + 1);
        client_main(client);
        has_numbers(client, 1, "x");
        crm_rows_drop(&client->rows);
    }
    look("SELECT pg_advisory_unlock(7)");
    join(2);
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(value(&clients[i], 0, 1), apr_itoa(pool, i));
    }
}
END_TEST

/* All threads ask again and again; each always gets what is its own. */
static void *storm_main(void *data)
{
    client_t *client = data;
    int number = atoi(client->values[0]);

    for (int i = 0; i < 200; i++) {
        client_main(client);
        has_numbers(client, number, client->values[1]);
        crm_rows_drop(&client->rows);
    }
    return NULL;
}

START_TEST(storm)
{
    for (int i = 0; i < THREADS; i++) {
        prepare(i, NUMBERS, apr_itoa(pool, i), apr_itoa(pool, 100 + i));
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, storm_main,
                                        &clients[i]), 0);
    }
    join(THREADS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tcase = tcase_create("batch");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, alone);
    tcase_add_test(tcase, together);
    tcase_add_test(tcase, outlives_its_leader);
    tcase_add_test(tcase, texts_do_not_mix);
    tcase_add_test(tcase, slow_ones_hold_up_nobody);
    tcase_add_test(tcase, one_leader);
    tcase_add_test(tcase, slow_statements_are_not_shared);
    tcase_add_test(tcase, failure_is_nobodys);
    tcase_add_test(tcase, no_connection_for_the_leader);
    tcase_add_test(tcase, waits_no_longer_than_its_limit);
    tcase_add_test(tcase, goes_when_the_database_hangs);
    tcase_add_test(tcase, leaves_a_batch_when_the_database_hangs);
    tcase_add_test(tcase, no_answer_in_time);
    tcase_add_test(tcase, is_not_cancelled_while_others_want_it);
    tcase_add_test(tcase, is_cancelled_when_nobody_else_wants_it);
    tcase_add_test(tcase, killed_backend);
    tcase_add_test(tcase, many_texts);
    tcase_add_test(tcase, many_texts_beside_one_that_is_used);
    tcase_add_test(tcase, storm);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
