/* SPDX-License-Identifier: Apache-2.0 */
/* test_db_copy.c: rows one by one, and COPY, with $CRM_TEST_DATABASE */
#include <string.h>

#include "crm_db_test.h"

/* A crm_db_row_t: gather what is in the column; the row "stop" fails. */
static crm_error_t *gather(void *baton, const PGresult *result)
{
    const char **gathered = baton;

    ck_assert_int_eq(PQntuples(result), 1);
    *gathered = apr_pstrcat(pool, *gathered, crm_db_value(result, 0, 0), " ",
                            NULL);
    return strcmp(crm_db_value(result, 0, 0), "stop") ? NULL
           : crm_error_logf(CRM_E_INTERNAL, pool, "stopped");
}

START_TEST(rows_come_one_by_one)
{
    crm_stmt_t stmt = {"VALUES ('a'), ('b'), ('c')", 0, NULL};
    const char *gathered = "";
    crm_error_t *error;

    error = crm_db_each(conn, &stmt, gather, &gathered, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(gathered, "a b c ");
    gathered = "";
    stmt.sql = "VALUES ('a'), ('stop'), ('c')";
    error = crm_db_each(conn, &stmt, gather, &gathered, pool);
    ck_assert_str_eq(why(error), "stopped");
    ck_assert_str_eq(gathered, "a stop ");
    stmt.sql = "SELECT (1 / (3 - n))::text FROM generate_series(1, 5) n";
    error = crm_db_each(conn, &stmt, gather, &gathered, pool);
    ck_assert_pstr_eq(error->sqlstate, "22012");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
}
END_TEST

/* The time limit is that of each row. 20 kB are more than a server keeps back. */
START_TEST(rows_may_come_for_longer_than_the_timeout)
{
    crm_stmt_t stmt = {"SELECT n, repeat('x', 20000) || pg_sleep(0.5) FROM"
                       " generate_series(1, 4) n", 0, NULL};
    const char *gathered = "";
    crm_error_t *error;

    adopt(&patient);
    error = crm_db_each(conn, &stmt, gather, &gathered, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(gathered, "1 2 3 4 ");
}
END_TEST

START_TEST(a_copy_that_fails_says_why)
{
    crm_error_t *error = copy_in("COPY test_db.row FROM STDIN",
                                 "1\ta\n2\tb\n");

    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(look("SELECT string_agg(text, '' ORDER BY n) FROM"
                          " test_db.row"), "ab");
    error = copy_in("COPY test_db.row FROM STDIN", "3\tc\n2\td\n");
    ck_assert_pstr_eq(error->sqlstate, "23505");
    error = copy_in("COPY test_db.none FROM STDIN", "");
    ck_assert_pstr_eq(error->sqlstate, "42P01");
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.row"), "2");
}
END_TEST

/* A crm_db_line_t: add LINE to the text at BATON; "stop" is an error. */
static crm_error_t *gather_line(void *baton, const char *line,
                                apr_size_t len)
{
    const char **text = baton;

    *text = apr_pstrcat(pool, *text, apr_pstrmemdup(pool, line, len), NULL);
    return strncmp(line, "stop", 4)
           ? NULL : crm_error_logf(CRM_E_INTERNAL, pool, "stopped");
}

START_TEST(a_copy_to_the_client_comes_line_by_line)
{
    const char *text = "";
    crm_error_t *error = crm_db_copy_out(conn, "COPY (VALUES ('a', 'b\tc'),"
                                         " (NULL, E'd\n')) TO STDOUT",
                                         gather_line, &text, pool);

    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(text, "a\tb\\tc\n\\N\td\\n\n");
    text = "";
    error = crm_db_copy_out(conn, "COPY (VALUES ('a'), ('stop'), ('c')) TO"
                            " STDOUT", gather_line, &text, pool);
    ck_assert_str_eq(why(error), "stopped");
    ck_assert_str_eq(text, "a\nstop\n");
    error = crm_db_copy_out(conn, "COPY (SELECT 1 / (3 - n) FROM"
                            " generate_series(1, 5) n) TO STDOUT", gather_line,
                            &text, pool);
    ck_assert_pstr_eq(error->sqlstate, "22012");
    error = crm_db_copy_out(conn, "COPY test_db.none TO STDOUT", gather_line,
                            &text, pool);
    ck_assert_pstr_eq(error->sqlstate, "42P01");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
}
END_TEST

START_TEST(a_copy_in_parts_names_the_row_that_is_refused)
{
    static const char sql[] = "COPY test_db.row FROM STDIN";
    apr_int64_t row;

    ck_assert_ptr_null(crm_db_copy_begin(conn, sql, pool));
    ck_assert_ptr_null(crm_db_copy_put(conn, "5\ta\n6", 5, pool));
    ck_assert_ptr_null(crm_db_copy_put(conn, "\tb\n", 3, pool));
    ck_assert_ptr_null(crm_db_copy_end(&row, conn, pool));
    ck_assert_int_eq(row, 2);

    ck_assert_ptr_null(crm_db_copy_begin(conn, sql, pool));
    ck_assert_ptr_null(crm_db_copy_put(conn, "7\ta\n8\tb\nx\tc\n", 12,
                                       pool));
    ck_assert_pstr_eq(crm_db_copy_end(&row, conn, pool)->sqlstate, "22P02");
    ck_assert_int_eq(row, 3);

    ck_assert_ptr_null(crm_db_copy_begin(conn, sql, pool));
    ck_assert_ptr_null(crm_db_copy_put(conn, "9\ta\n", 4, pool));
    crm_db_copy_abort(conn);
    ck_assert_str_eq(ask("SELECT max(n) FROM test_db.row"), "6");

    ck_assert_ptr_null(crm_db_copy_begin(conn, sql, pool));    /* no end */
    ck_assert_str_eq(ask("SELECT max(n) FROM test_db.row"), "6");
}
END_TEST

/* The server may apply a cancel request to a later statement. So a session that
 * got one is not used again, even if its statement has succeeded. */
START_TEST(a_session_that_was_cancelled_late_is_not_used_again)
{
    crm_stmt_t stmt = {"SELECT test_db.late()", 0, NULL};
    const char *gathered = "";
    PGresult *results[1];
    unsigned session;
    crm_error_t *error;

    look("CREATE FUNCTION test_db.late() RETURNS text LANGUAGE plpgsql AS $$"
         " BEGIN PERFORM pg_sleep(60); RETURN 'slept'; EXCEPTION"
         " WHEN query_canceled THEN RETURN 'late'; END $$");
    adopt(&hasty);
    session = crm_conn_session(conn);
    error = crm_db_each(conn, &stmt, gather, &gathered, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(gathered, "late ");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session + 1);

    gathered = "";
    error = crm_db_copy_out(conn, "COPY (SELECT test_db.late()) TO STDOUT",
                            gather_line, &gathered, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(gathered, "late\n");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session + 2);

    ck_assert_str_eq(ask(stmt.sql), "late");
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session + 3);
    error = crm_db_pipeline(results, conn, &stmt, 1, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session + 4);
    ck_assert_ptr_null(crm_db_exec(conn, stmt.sql, pool));
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session + 5);
}
END_TEST

START_TEST(the_end_of_a_copy_has_a_timeout_of_its_own)
{
    crm_error_t *error;
    apr_int64_t row;
    unsigned session;

    adopt(&patient);
    session = crm_conn_session(conn);
    ck_assert_ptr_null(crm_db_copy_begin(conn, "COPY test_db.row FROM STDIN",
                                         pool));
    ck_assert_ptr_null(crm_db_copy_put(conn, "5\ta\n", 4, pool));
    usleep(1600000);            /* the caller waits for its next part */
    error = crm_db_copy_end(&row, conn, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_int_eq(row, 1);
    ck_assert_str_eq(ask("SELECT 'next'"), "next");
    ck_assert_uint_eq(crm_conn_session(conn), session);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("db_copy");
    TCase *tests;

    tests = new_case(suite, "rows and COPY");
    tcase_add_test(tests,
                   a_session_that_was_cancelled_late_is_not_used_again);
    tcase_add_test(tests, the_end_of_a_copy_has_a_timeout_of_its_own);
    tcase_add_test(tests, rows_come_one_by_one);
    tcase_add_test(tests, rows_may_come_for_longer_than_the_timeout);
    tcase_add_test(tests, a_copy_that_fails_says_why);
    tcase_add_test(tests, a_copy_to_the_client_comes_line_by_line);
    tcase_add_test(tests, a_copy_in_parts_names_the_row_that_is_refused);
    return run_suite(suite);
}
