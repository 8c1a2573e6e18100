/* SPDX-License-Identifier: Apache-2.0 */
/* test_db_time.c: the time that a statement of crm_db may take, with
 * $CRM_TEST_DATABASE */
#include <string.h>

#include "crm_db_test.h"
#include "crm_server.h"

/* No session but the second one is at a statement; one that was cancelled
 * needs a moment to roll back. */
static void all_idle(void)
{
    const char *busy = "";

    for (int i = 0; i < 1000; i++) {
        busy = look("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                    " current_database() AND backend_type = 'client backend'"
                    " AND pid <> pg_backend_pid() AND state <> 'idle'");
        if (*busy == '0') {
            return;
        }
        usleep(10000);
    }
    ck_abort_msg("%s statements go on", busy);
}

/* ERROR says that the time was over, and REST. */
static void ended_in_time(const crm_error_t *error, apr_time_t start,
                          const char *rest)
{
    apr_interval_time_t took = apr_time_now() - start;

    ck_assert_msg(error && error->code == CRM_E_UNAVAILABLE, "%s", why(error));
    ck_assert_str_eq(error->log, apr_pstrcat(pool, "CRM2005: database: no"
                                             " answer within 300 ms", rest,
                                             NULL));
    ck_assert_int_ge(took, 290000);
    ck_assert_int_lt(took, 20000000);
}

#define CANCELLED ", so the statement was cancelled"

START_TEST(a_statement_that_takes_too_long_is_cancelled)
{
    apr_time_t start = apr_time_now();
    PGresult *result;

    adopt(&hasty);
    ended_in_time(query(&result, "SELECT pg_sleep(60)", NULL), start,
                  CANCELLED);
    all_idle();
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ask("BEGIN");
    start = apr_time_now();
    ended_in_time(crm_db_exec(conn, "SELECT pg_sleep(60)", pool), start,
                  CANCELLED);
    /* nothing runs as if the transaction were still open */
    refuse("SELECT 1", CRM_E_UNAVAILABLE, NULL);
    crm_db_rollback(conn);
    all_idle();
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
}
END_TEST

/* Whether the result is unwanted: from the second time on that it is asked. */
static int second_time(void *baton)
{
    return ++*(int *)baton >= 2;
}

START_TEST(a_statement_whose_result_is_unwanted_is_cancelled)
{
    apr_time_t start = apr_time_now();
    PGresult *result;
    crm_error_t *error;
    int asked = 0;

    adopt(&named);
    crm_conn_watch(conn, second_time, &asked);
    ck_assert_str_eq(ask("SELECT 'quick'"), "quick");
    error = query(&result, "SELECT pg_sleep(60)", NULL);
    ck_assert_msg(error && error->code == CRM_E_REQUEST_TIMEOUT, "%s",
                  why(error));
    ck_assert_str_eq(error->log,
                     "CRM2008: database: nobody wants the answer any"
                     " more, so the statement was cancelled");
    ck_assert_int_lt(apr_time_now() - start, 20000000);
    ck_assert_int_ge(asked, 2);
    all_idle();
    crm_conn_watch(conn, NULL, NULL);
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
}
END_TEST

START_TEST(a_result_is_wanted_again_after_the_next_adoption)
{
    int asked = 10;

    adopt(&named);
    crm_conn_watch(conn, second_time, &asked);
    adopt(&named);
    ck_assert_str_eq(ask("SELECT 'whole' FROM pg_sleep(0.3)"), "whole");
    ck_assert_int_eq(asked, 10);
}
END_TEST

START_TEST(a_pipeline_that_takes_too_long_is_undone)
{
    const crm_stmt_t stmts[] = {
        {"BEGIN", 0, NULL},
        {"INSERT INTO test_db.row VALUES (1)", 0, NULL},
        {"SELECT pg_sleep(60)", 0, NULL},
        {"COMMIT", 0, NULL}
    };
    apr_time_t start = apr_time_now();
    PGresult *results[4];

    adopt(&hasty);
    ended_in_time(crm_db_pipeline(results, conn, stmts, 4, pool), start,
                  CANCELLED);
    all_idle();
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "0");
}
END_TEST

START_TEST(a_time_for_all_attempts_together)
{
    crm_stmt_t stmt = {"SELECT pg_sleep(0.2), test_db.fail('40001', 100)", 0,
                       NULL};
    apr_time_t start = apr_time_now();
    crm_error_t *error;
    PGresult *result;

    adopt(&hasty);
    /* each attempt takes 200 ms, and would be tried again */
    ck_assert_ptr_nonnull(error = crm_db_query(&result, conn, &stmt, pool));
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert_int_lt(apr_time_now() - start, 20000000);
    ck_assert_int_le(atoi(look("SELECT last_value FROM test_db.tries")), 2);
}
END_TEST

/* A statement that was cancelled is not tried again, whatever it fails with. */
START_TEST(what_was_cancelled_is_not_tried_again)
{
    look("CREATE FUNCTION test_db.late() RETURNS void LANGUAGE plpgsql AS $$"
         " BEGIN PERFORM nextval('test_db.tries'), pg_sleep(60); EXCEPTION"
         " WHEN query_canceled THEN RAISE EXCEPTION 'late' USING ERRCODE ="
         " '40001'; END $$");
    adopt(&hasty);
    refuse("SELECT test_db.late()", CRM_E_UNAVAILABLE, "40001");
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "1");
}
END_TEST

static int always(void *baton)
{
    (void)baton;
    return 1;
}

/* However many were cancelled before. */
START_TEST(cancel_requests_do_not_run_out)
{
    PGresult *result;

    adopt(&named);
    crm_conn_watch(conn, always, NULL);
    for (int i = 0; i < 40; i++) {
        crm_error_t *error = query(&result, "SELECT pg_sleep(60)", NULL);

        ck_assert_msg(error && error->code == CRM_E_REQUEST_TIMEOUT, "%d: %s",
                      i, why(error));
    }
}
END_TEST

START_TEST(a_silent_server_is_given_up)
{
    crm_error_t *error;
    PGresult *result;
    apr_time_t start;
    pid_t stopped;

    adopt(&hasty);
    stopped = PQbackendPID(pg);
    ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
    start = apr_time_now();
    error = query(&result, "SELECT 1", NULL);
    kill(stopped, SIGCONT);
    ended_in_time(error, start, "");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_int_ne(PQbackendPID(pg), stopped);
}
END_TEST

/* Nothing limits the statement. The cancel request has its own time. */
START_TEST(a_silent_server_whose_answer_is_unwanted_is_given_up)
{
    crm_error_t *error;
    PGresult *result;
    pid_t stopped;

    adopt(&named);
    crm_conn_watch(conn, always, NULL);
    stopped = PQbackendPID(pg);
    ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
    error = query(&result, "SELECT 1", NULL);
    kill(stopped, SIGCONT);
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->log, "CRM2005: database: no answer within 2000 ms");
}
END_TEST

/* A server that takes the connection and says nothing. It is waited for, unless nobody
 * wants it any more; a thread still waits then, and is over when the server goes. */
START_TEST(a_connection_that_is_unwanted_is_given_up)
{
    struct sockaddr_in sin = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int asked = -2, fd = socket(AF_INET, SOCK_STREAM, 0);
    crm_conn_options_t watched = {.unwanted = second_time,
                                  .unwanted_baton = &asked};
    apr_time_t start = apr_time_now();
    crm_conn_t *none = NULL;
    crm_error_t *error;

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, len), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
    error = crm_conn_open(&none, apr_psprintf(
                              pool, "host=127.0.0.1 port=%d dbname=x"
                              " connect_timeout=100", ntohs(sin.sin_port)),
                          &watched, pool, pool);
    ck_assert_msg(error && error->code == CRM_E_REQUEST_TIMEOUT, "%s",
                  why(error));
    ck_assert_int_ge(asked, 2);
    ck_assert_int_lt(apr_time_now() - start, 50000000);
    close(fd);
    asked = -100000;            /* one that is wanted */
    error = crm_conn_open(&conn, getenv("CRM_TEST_DATABASE"), &watched, pool,
                          pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(ask("SELECT 'open'"), "open");
}
END_TEST

/* More than all buffers on the way hold is sent to a backend that is stopped:
 * neither a statement nor a COPY waits for it. */
START_TEST(a_backend_that_does_not_read_is_given_up)
{
    char *large = apr_palloc(pool, 32 * 1024 * 1024);
    apr_time_t start;
    PGresult *result;
    crm_error_t *error;
    pid_t stopped;

    memset(large, 'x', 32 * 1024 * 1024);
    large[32 * 1024 * 1024 - 1] = '\0';
    ask("SELECT 'warm'");
    adopt(&hasty);
    stopped = PQbackendPID(pg);
    ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
    start = apr_time_now();
    error = query(&result, "SELECT length($1::text)", large);
    kill(stopped, SIGCONT);
    ended_in_time(error, start, "");

    adopt(&named);
    ask("CREATE TEMPORARY TABLE copied (text text)");
    adopt(&hasty);
    stopped = PQbackendPID(pg);
    ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
    start = apr_time_now();
    error = copy_in("COPY copied FROM STDIN", large);
    kill(stopped, SIGCONT);
    ended_in_time(error, start, "");
}
END_TEST

START_TEST(a_server_that_never_lets_in_is_given_up)
{
    apr_time_t start;
    crm_error_t *error;
    int port, fd = server_open(&port, 1);

    PQfinish(pg);
    pg = PQconnectStart(apr_psprintf(pool, "host=127.0.0.1 port=%d sslmode="
                                     "disable gssencmode=disable", port));
    start = apr_time_now();
    error = crm_conn_adopt(&conn, pg, &hasty, pool, pool);
    ended_in_time(error, start, "");
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("db_time");
    TCase *tests;

    tests = new_case(suite, "timeouts");
    tcase_add_test(tests, a_statement_that_takes_too_long_is_cancelled);
    tcase_add_test(tests, a_statement_whose_result_is_unwanted_is_cancelled);
    tcase_add_test(tests, a_result_is_wanted_again_after_the_next_adoption);
    tcase_add_test(tests, a_pipeline_that_takes_too_long_is_undone);
    tcase_add_test(tests, a_time_for_all_attempts_together);
    tcase_add_test(tests, what_was_cancelled_is_not_tried_again);
    tcase_add_test(tests, cancel_requests_do_not_run_out);
    tcase_add_test(tests, a_silent_server_is_given_up);
    tcase_add_test(tests,
                   a_silent_server_whose_answer_is_unwanted_is_given_up);
    tcase_add_test(tests, a_connection_that_is_unwanted_is_given_up);
    tcase_add_test(tests, a_backend_that_does_not_read_is_given_up);
    tcase_add_test(tests, a_server_that_never_lets_in_is_given_up);
    return run_suite(suite);
}
