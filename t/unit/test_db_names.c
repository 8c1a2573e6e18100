/* SPDX-License-Identifier: Apache-2.0 */
/* test_db_names.c: prepared statements of crm_db, with $CRM_TEST_DATABASE */
#include <string.h>

#include "crm_db_test.h"

START_TEST(a_text_is_prepared_once)
{
    crm_conn_t *first = conn;

    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(ask("SELECT 'once'"), "once");
        adopt(&named);
        ck_assert_ptr_eq(conn, first);
    }
    ck_assert_int_eq(prepared_count(), 1);
}
END_TEST

/* Another owner of the same session knows nothing of its statements. */
START_TEST(names_of_two_owners_differ)
{
    apr_pool_t *owner;

    ck_assert_str_eq(ask("SELECT 'one'"), "one");
    apr_pool_create(&owner, pool);
    ck_assert_ptr_null(crm_conn_adopt(&conn, pg, &named, owner, pool));
    ck_assert_str_eq(ask("SELECT 'two'"), "two");
    ck_assert_int_eq(prepared_count(), 2);
}
END_TEST

START_TEST(no_names_where_they_are_off)
{
    adopt(&unnamed);
    ck_assert_str_eq(ask("SELECT 'none'"), "none");
    ck_assert_str_eq(ask("SELECT 'none'"), "none");
    ck_assert_int_eq(prepared_count(), 0);
}
END_TEST

/* Forget the session's statements, as if a pooler had changed to another one. */
static void change_session(void)
{
    PQclear(PQexec(pg, "DEALLOCATE ALL"));
}

START_TEST(shared_names_are_prepared_where_they_are_missing)
{
    adopt(&shared);
    ask("SELECT 'often'");
    ask("SELECT 'often'");
    ck_assert_int_eq(prepared_count(), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(ask("SELECT 'often'"), "often");
        ck_assert_int_eq(prepared_count(), 1);
    }
    for (int i = 0; i < 3; i++) {
        change_session();
        ck_assert_str_eq(ask("SELECT 'often'"), "often");
        ck_assert_int_eq(prepared_count(), 1);
    }
}
END_TEST

/* The name of the session's only statement. */
static const char *only_name(void)
{
    PGresult *result = PQexec(pg, "SELECT name FROM pg_prepared_statements");
    const char *name = apr_pstrdup(pool, PQgetvalue(result, 0, 0));

    ck_assert_int_eq(PQntuples(result), 1);
    PQclear(result);
    return name;
}

/* The name of a statement that another client prepares. */
static const char *taken;

static void other_prepares(void)
{
    PQclear(PQexec(pg, apr_pstrcat(pool, "PREPARE ", taken, " AS SELECT 1",
                                   NULL)));
}

static void next_attempt(void)
{
    between = other_prepares;
}

START_TEST(shared_names_that_come_and_go_are_answered)
{
    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'often'");
    }
    taken = only_name();
    change_session();
    /* the first attempt meets a session without it, the second one with it */
    between = next_attempt;
    ck_assert_str_eq(ask("SELECT 'often'"), "often");
    ck_assert_ptr_null(between);
    change_session();
    ck_assert_str_eq(ask("SELECT 'often'"), "often");
    ck_assert_str_eq(only_name(), taken);
}
END_TEST

START_TEST(shared_names_depend_on_the_text_only)
{
    const char *first;

    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'one'");
    }
    first = only_name();
    change_session();
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'two'");
    }
    ck_assert_str_ne(only_name(), first);
    PQreset(pg);
    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'one'");
    }
    ck_assert_str_eq(only_name(), first);
}
END_TEST

START_TEST(shared_names_of_a_table_that_was_altered)
{
    PQclear(PQexec(pg, "CREATE TEMPORARY TABLE altered AS SELECT 1 AS n"));
    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(ask("SELECT * FROM altered"), "1");
    }
    PQclear(PQexec(pg, "ALTER TABLE altered ALTER COLUMN n TYPE text"));
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(ask("SELECT * FROM altered"), "1");
    }
    only_name();
}
END_TEST

START_TEST(no_shared_name_in_an_open_transaction)
{
    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'often'");
    }
    change_session();
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    ck_assert_str_eq(ask("SELECT 'often'"), "often");
    ck_assert_ptr_null(crm_db_exec(conn, "COMMIT", pool));
    ck_assert_int_eq(prepared_count(), 0);
}
END_TEST

/* What was committed is not sent again, so what follows must not need that. */
START_TEST(no_shared_name_after_a_commit)
{
    const crm_stmt_t stmts[] = {
        {"BEGIN", 0, NULL},
        {"INSERT INTO test_db.row VALUES (1)", 0, NULL},
        {"COMMIT", 0, NULL},
        {"SELECT 'often'", 0, NULL}
    };
    PGresult *results[4];
    crm_error_t *error;

    adopt(&shared);
    for (int i = 0; i < 3; i++) {
        ask("SELECT 'often'");
    }
    change_session();
    error = crm_db_pipeline(results, conn, stmts, 4, pool);
    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(crm_db_value(results[3], 0, 0), "often");
}
END_TEST

START_TEST(shared_names_are_limited)
{
    adopt(&shared);
    for (int i = 0; i < 200; i++) {
        const char *sql = apr_psprintf(pool, "SELECT %d", i);

        for (int n = 0; n < 4; n++) {
            ck_assert_str_eq(ask(sql), sql + 7);
        }
    }
    ck_assert_int_eq(prepared_count(), 128);
}
END_TEST

START_TEST(first_use_is_one_round_trip)
{
    FILE *file = tmpfile();
    char line[4096];
    int syncs = 0, parses = 0;

    PQtrace(pg, file);
    PQsetTraceFlags(pg, PQTRACE_SUPPRESS_TIMESTAMPS);
    ask("SELECT 'trip'");
    PQuntrace(pg);
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        syncs += !strncmp(line, "F\t", 2) && strstr(line, "Sync");
        parses += !strncmp(line, "F\t", 2) && strstr(line, "Parse");
    }
    fclose(file);
    ck_assert_int_eq(parses, 1);
    ck_assert_int_eq(syncs, 1);
}
END_TEST

START_TEST(the_least_recently_used_is_deallocated)
{
    for (int i = 0; i < 600; i++) {
        const char *sql = apr_psprintf(pool, "SELECT %d", i);

        ck_assert_str_eq(ask(sql), sql + 7);
        ck_assert_str_eq(ask("SELECT 'always'"), "always");
    }
    ck_assert_int_eq(prepared_count(), 256);
    ck_assert_str_eq(look("SELECT 1"), "1");
    ck_assert_str_eq(ask("SELECT count(*) FROM pg_prepared_statements"
                         " WHERE statement = 'SELECT ''always'''"), "1");
    ck_assert_str_eq(ask("SELECT 3"), "3");
}
END_TEST

START_TEST(a_deallocation_that_does_not_happen_is_made_up_for)
{
    const char *one = "1";
    crm_stmt_t stmts[2] = {{"SELECT 1 / 0", 0, NULL},
                           {"SELECT $1::text", 1, &one}};
    PGresult *results[2];

    for (int i = 0; i < 256; i++) {
        ask(apr_psprintf(pool, "SELECT %d", i));
    }
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_nonnull(crm_db_pipeline(results, conn, stmts, 2, pool));
    }
    ck_assert_int_le(prepared_count(), 256);
    ck_assert_str_eq(ask("SELECT 'after'"), "after");
    ck_assert_int_le(prepared_count(), 256);
}
END_TEST

START_TEST(more_texts_in_a_pipeline_than_places)
{
    PGresult *results[300];
    crm_stmt_t stmts[300];
    crm_error_t *error;

    for (int i = 0; i < 300; i++) {
        stmts[i].sql = apr_psprintf(pool, "SELECT %d", i);
        stmts[i].count = 0;
    }
    error = crm_db_pipeline(results, conn, stmts, 300, pool);
    ck_assert_msg(!error, "%s", why(error));
    for (int i = 0; i < 300; i++) {
        ck_assert_str_eq(crm_db_value(results[i], 0, 0), stmts[i].sql + 7);
    }
    ck_assert_int_eq(prepared_count(), 256);
}
END_TEST

/* 26000: a pooler has given us another session. */
START_TEST(a_vanished_statement_is_prepared_anew)
{
    ask("SELECT 'gone'");
    PQclear(PQexec(pg, "DEALLOCATE ALL"));
    ck_assert_str_eq(ask("SELECT 'gone'"), "gone");
    ck_assert_int_eq(prepared_count(), 1);

    PQclear(PQexec(pg, "DEALLOCATE ALL"));
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("SELECT 'gone'", CRM_E_UNAVAILABLE, "26000");
    crm_db_rollback(conn);
    ck_assert_str_eq(ask("SELECT 'gone'"), "gone");
}
END_TEST

/* In a transaction it cannot be, but in the next one it is. */
START_TEST(a_vanished_statement_costs_one_transaction)
{
    static const char sql[] = "SELECT count(*) FROM test_db.row";

    ask(sql);
    change_session();
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse(sql, CRM_E_UNAVAILABLE, "26000");
    crm_db_rollback(conn);
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    ck_assert_str_eq(ask(sql), "0");
    ck_assert_ptr_null(crm_db_exec(conn, "COMMIT", pool));
}
END_TEST

/* A text that cannot be prepared says so each time, also in a transaction, where
 * nothing can be tried again. */
START_TEST(a_text_that_cannot_be_prepared_says_why)
{
    static const char sql[] = "SELECT * FROM test_db.none";

    for (int i = 0; i < 3; i++) {
        refuse(sql, CRM_E_UNAVAILABLE, "42P01");
        ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
        refuse(sql, CRM_E_UNAVAILABLE, "42P01");
        crm_db_rollback(conn);
    }
}
END_TEST

/* 0A000: cached plan must not change result type. */
START_TEST(a_statement_outdated_by_a_migration_is_prepared_anew)
{
    look("INSERT INTO test_db.row VALUES (1, 'a')");
    for (int i = 0; i < 7; i++) {
        ask("SELECT * FROM test_db.row");
    }
    look("ALTER TABLE test_db.row ADD more int");
    ck_assert_str_eq(ask("SELECT * FROM test_db.row"), "1");
    ck_assert_int_eq(prepared_count(), 1);

    look("ALTER TABLE test_db.row DROP more");
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("SELECT * FROM test_db.row", CRM_E_INTERNAL, "0A000");
    crm_db_rollback(conn);
    ck_assert_str_eq(ask("SELECT * FROM test_db.row"), "1");
    ck_assert_int_eq(prepared_count(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("db_names");
    TCase *tests;

    tests = new_case(suite, "prepared statements");
    tcase_add_test(tests, a_text_is_prepared_once);
    tcase_add_test(tests, names_of_two_owners_differ);
    tcase_add_test(tests, no_names_where_they_are_off);
    tcase_add_test(tests, shared_names_are_prepared_where_they_are_missing);
    tcase_add_test(tests, shared_names_that_come_and_go_are_answered);
    tcase_add_test(tests, shared_names_depend_on_the_text_only);
    tcase_add_test(tests, shared_names_of_a_table_that_was_altered);
    tcase_add_test(tests, no_shared_name_in_an_open_transaction);
    tcase_add_test(tests, no_shared_name_after_a_commit);
    tcase_add_test(tests, shared_names_are_limited);
    tcase_add_test(tests, first_use_is_one_round_trip);
    tcase_add_test(tests, the_least_recently_used_is_deallocated);
    tcase_add_test(tests, a_deallocation_that_does_not_happen_is_made_up_for);
    tcase_add_test(tests, more_texts_in_a_pipeline_than_places);
    tcase_add_test(tests, a_vanished_statement_is_prepared_anew);
    tcase_add_test(tests, a_vanished_statement_costs_one_transaction);
    tcase_add_test(tests, a_text_that_cannot_be_prepared_says_why);
    tcase_add_test(tests,
                   a_statement_outdated_by_a_migration_is_prepared_anew);
    return run_suite(suite);
}
