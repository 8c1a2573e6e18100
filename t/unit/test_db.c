/* SPDX-License-Identifier: Apache-2.0 */
/* test_db.c: sessions of crm_db and what they run, with $CRM_TEST_DATABASE */
#include <string.h>

#include "crm_db_test.h"

/* --- values, sessions ----------------------------------------------------- */

START_TEST(values_are_bound)
{
    const char *const values[] = {"7", NULL, "' \\ \xc3\xa4"};
    crm_stmt_t stmt = {"SELECT $1::int + 1, $2::text, $3::text", 3, values};
    crm_error_t *error;
    PGresult *result;

    for (int i = 0; i < 3; i++) {
        error = crm_db_query(&result, conn, &stmt, pool);
        ck_assert_msg(!error, "%s", why(error));
        ck_assert_str_eq(crm_db_value(result, 0, 0), "8");
        ck_assert_ptr_null(crm_db_value(result, 0, 1));
        ck_assert_str_eq(crm_db_value(result, 0, 2), values[2]);
    }
    ck_assert_str_eq(ask(""), "");
}
END_TEST

START_TEST(session_speaks_utf8_utc_iso)
{
    static const char *const strange =
        "SET client_encoding TO 'LATIN1'; SET TimeZone TO 'Asia/Tokyo';"
        "SET DateStyle TO 'German'; SET standard_conforming_strings TO off";

    for (int i = 0; i < 2; i++) {
        PQclear(PQexec(pg, strange));
        adopt(&named);
        ck_assert_str_eq(ask("SELECT timestamptz '2026-11-21 10:59:27+09'"
                             "::text || '\\' || chr(228)"),
                         "2026-11-21 01:59:27+00\\\xc3\xa4");
        terminate();
    }
    ck_assert_str_eq(ask("SHOW client_encoding"), "UTF8");
}
END_TEST

START_TEST(a_session_has_its_settings_whatever_its_role_has)
{
    static const struct {
        const char *name, *strange, *is;
        int generic;            /* for those that want generic plans */
    } cases[] = {
        {"array_nulls", "off", "on", 0},
        {"bytea_output", "escape", "hex", 0},
        {"client_min_messages", "error", "warning", 0},
        {"default_transaction_isolation", "serializable", "read committed", 0},
        {"jit", "on", "off", 0},
        {"gin_fuzzy_search_limit", "5", "0", 0},
        {"gin_pending_list_limit", "64kB", "256kB", 0},
        {"idle_session_timeout", "1min", "0", 0},
        {"plan_cache_mode", "force_custom_plan", "force_generic_plan", 1},
        {"enable_seqscan", "on", "off", 1},
    };
    const char *options = "";

    for (int i = 0; i < COUNT(cases); i++) {
        options = apr_pstrcat(pool, options, " -c ", cases[i].name, "=",
                              cases[i].strange, NULL);
    }
    PQfinish(pg);
    setenv("PGOPTIONS", options, 1);
    pg = PQconnectdb(getenv("CRM_TEST_DATABASE"));
    unsetenv("PGOPTIONS");
    for (int generic = 0; generic < 2; generic++) {
        const crm_conn_options_t wanted = {
            .named_statements = 1, .generic_plans = generic};

        adopt(&wanted);
        for (int i = 0; i < COUNT(cases); i++) {
            ck_assert_str_eq(ask(apr_pstrcat(pool, "SHOW ", cases[i].name,
                                             NULL)),
                             cases[i].generic > generic ? cases[i].strange
                             : cases[i].is);
        }
        terminate();            /* the next session is a new one */
    }
}
END_TEST

static PGconn *opened;         /* by crm_conn_open() */

/* Takes the place of libpq's. */
PGconn *PQconnectdbParams(const char *const *keywords,
                          const char *const *values, int expand)
{
    PGconn *(*real)(const char *const *, const char *const *, int);

    *(void **)&real = dlsym(RTLD_NEXT, "PQconnectdbParams");
    return opened = real(keywords, values, expand);
}

START_TEST(a_host_that_is_gone_is_noticed)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"connect_timeout", "10"}, {"keepalives_idle", "30"},
        {"keepalives_interval", "10"}, {"keepalives_count", "3"},
        {"tcp_user_timeout", "60000"},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        for (int own = 0; own < 2; own++) {
            const char *conninfo = apr_pstrcat(
                pool, getenv("CRM_TEST_DATABASE"), own ? " " : NULL,
                cases[i].name, "=7", NULL);
            PQconninfoOption *all, *one;

            ck_assert_ptr_null(crm_conn_open(&conn, conninfo, &named, pool,
                                             pool));
            all = PQconninfo(opened);
            for (one = all; strcmp(one->keyword, cases[i].name); one++) {
            }
            ck_assert_str_eq(one->val, own ? "7" : cases[i].value);
            PQconninfoFree(all);
        }
    }
}
END_TEST

START_TEST(session_is_set_in_one_round_trip_and_once)
{
    char text[65536];
    FILE *file = tmpfile();
    size_t len;

    PQclear(PQexec(pg, "SET TimeZone TO 'Asia/Tokyo'; SET DateStyle TO SQL"));
    PQtrace(pg, file);
    PQsetTraceFlags(pg, PQTRACE_SUPPRESS_TIMESTAMPS);
    adopt(&named);
    adopt(&named);
    PQuntrace(pg);
    rewind(file);
    len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "Query"));
    ck_assert_ptr_null(strstr(strstr(text, "Query") + 1, "\tQuery"));
}
END_TEST

START_TEST(notices_stay_off_stderr)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);

    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    ask("DO $$ BEGIN RAISE WARNING 'hear me'; END $$");
    dup2(saved, STDERR_FILENO);
    close(saved);
    ck_assert_int_eq(lseek(fileno(file), 0, SEEK_END), 0);
    fclose(file);
}
END_TEST

START_TEST(adopt_rolls_back_what_was_left_open)
{
    PQclear(PQexec(pg, "BEGIN; INSERT INTO test_db.row VALUES (1)"));
    adopt(&named);
    ck_assert_int_eq(PQtransactionStatus(pg), PQTRANS_IDLE);
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.row"), "0");
    PQenterPipelineMode(pg);
    adopt(&named);
    ck_assert_ptr_null(crm_db_exec(conn, "SELECT 5", pool));
}
END_TEST

/* --- conflicts with other transactions ------------------------------------ */

START_TEST(conflicts_are_tried_again_three_times)
{
    static const char *const states[] = {"40001", "40P01"};
    const char *state = states[_i];

    ck_assert_str_eq(ask(apr_psprintf(pool, "SELECT test_db.fail('%s', 3)",
                                      state)), "4");
    look("ALTER SEQUENCE test_db.tries RESTART");
    refuse(apr_psprintf(pool, "SELECT test_db.fail('%s', 4)", state),
           CRM_E_UNAVAILABLE, state);
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "4");
}
END_TEST

START_TEST(conflicts_in_a_transaction_are_the_callers)
{
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("SELECT test_db.fail('40P01', 1)", CRM_E_UNAVAILABLE, "40P01");
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "1");
    crm_db_rollback(conn);
}
END_TEST

START_TEST(a_pipeline_that_opens_a_transaction_is_tried_again)
{
    crm_stmt_t stmts[] = {{"BEGIN", 0, NULL},
                          {"INSERT INTO test_db.row VALUES (1)", 0, NULL},
                          {"SELECT test_db.fail('40P01', 2)", 0, NULL}};
    PGresult *results[3];
    crm_error_t *error = crm_db_pipeline(results, conn, stmts, 3, pool);

    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(crm_db_value(results[2], 0, 0), "3");
    ck_assert_ptr_null(crm_db_exec(conn, "COMMIT", pool));
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "1");
}
END_TEST

START_TEST(what_was_committed_is_not_done_twice)
{
    crm_stmt_t stmts[] = {{"BEGIN", 0, NULL},
                          {"INSERT INTO test_db.row SELECT"
                           " nextval('test_db.tries')", 0, NULL},
                          {"COMMIT", 0, NULL},
                          {"SELECT test_db.fail('40P01', 2)", 0, NULL}};
    PGresult *results[4];
    crm_error_t *error = crm_db_pipeline(results, conn, stmts, 4, pool);

    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->sqlstate, "40P01");
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "1");
}
END_TEST

/* A deferred constraint is checked by the commit, which follows the answer to
 * the statement. */
START_TEST(a_commit_that_fails_is_the_statements_error)
{
    const char *backend;

    look("CREATE TABLE test_db.late (n int UNIQUE DEFERRABLE INITIALLY"
         " DEFERRED)");
    backend = ask("SELECT pg_backend_pid()");
    refuse("INSERT INTO test_db.late VALUES (1), (1)", CRM_E_CONFLICT, "23505");
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.late"), "0");
    ck_assert_str_eq(ask("SELECT pg_backend_pid()"), backend);
}
END_TEST

START_TEST(conflicts_of_a_commit_are_tried_again)
{
    look("CREATE TABLE test_db.late (n int);"
         "CREATE FUNCTION test_db.late() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN PERFORM test_db.fail('40P01', 2); RETURN NULL; END $$;"
         "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON test_db.late"
         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION"
         " test_db.late()");
    ck_assert_str_eq(ask("INSERT INTO test_db.late VALUES (1) RETURNING n"),
                     "1");
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.late"), "1");
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "3");
}
END_TEST

/* --- pipelines, transactions ---------------------------------------------- */

START_TEST(a_pipeline_runs_in_order)
{
    const char *const values[] = {"1", "one"};
    crm_stmt_t stmts[] = {
        {"BEGIN", 0, NULL},
        {"INSERT INTO test_db.row VALUES ($1::int, $2::text)", 2, values},
        {"SELECT text FROM test_db.row", 0, NULL},
        {"SELECT text FROM test_db.row", 0, NULL},
        {"COMMIT", 0, NULL}};
    PGresult *results[5];
    crm_error_t *error = crm_db_pipeline(results, conn, stmts, 5, pool);

    ck_assert_msg(!error, "%s", why(error));
    ck_assert_str_eq(PQcmdTuples(results[1]), "1");
    ck_assert_str_eq(crm_db_value(results[2], 0, 0), "one");
    ck_assert_str_eq(crm_db_value(results[3], 0, 0), "one");
    ck_assert_int_eq(prepared_count(), 4);
    ck_assert_int_eq(PQtransactionStatus(pg), PQTRANS_IDLE);
}
END_TEST

START_TEST(a_pipelines_first_failure_undoes_it)
{
    crm_stmt_t stmts[] = {{"BEGIN", 0, NULL},
                          {"INSERT INTO test_db.row VALUES (1)", 0, NULL},
                          {"INSERT INTO test_db.row VALUES (1)", 0, NULL},
                          {"COMMIT", 0, NULL}};
    PGresult *results[4];
    crm_error_t *error;

    for (int i = 0; i < 2; i++) {
        error = crm_db_pipeline(results, conn, stmts + !!i, 4 - !!i - !!i,
                                pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error->sqlstate, "23505");
        ck_assert_int_eq(PQtransactionStatus(pg), PQTRANS_IDLE);
        ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "0");
    }
    ck_assert_str_eq(ask("SELECT 2"), "2");
}
END_TEST

START_TEST(a_commit_that_rolls_back_is_an_error)
{
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("SELECT 1 / 0", CRM_E_CONFLICT, "22012");
    refuse("COMMIT", CRM_E_INTERNAL, NULL);
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("SELECT 1 / 0", CRM_E_CONFLICT, "22012");
    ck_assert_str_eq(why(crm_db_exec(conn, "COMMIT", pool)), "CRM2003:"
                     " database: COMMIT of a transaction that had failed");
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN; ROLLBACK", pool));
}
END_TEST

/* --- errors --------------------------------------------------------------- */

START_TEST(sqlstates_have_their_codes)
{
    static const struct {
        const char *state;
        crm_code_t code;
    } cases[] = {
        {"08006", CRM_E_UNAVAILABLE}, {"53300", CRM_E_UNAVAILABLE},
        {"57014", CRM_E_UNAVAILABLE}, {"25006", CRM_E_UNAVAILABLE},
        {"55P03", CRM_E_UNAVAILABLE}, {"42P01", CRM_E_UNAVAILABLE},
        {"42501", CRM_E_UNAVAILABLE}, {"3F000", CRM_E_UNAVAILABLE},
        {"23505", CRM_E_CONFLICT}, {"23503", CRM_E_CONFLICT},
        {"23514", CRM_E_CONFLICT}, {"22P02", CRM_E_CONFLICT},
        {"54000", CRM_E_VALIDATION},
        {"22003", CRM_E_CONFLICT}, {"23502", CRM_E_INTERNAL},
        {"P0001", CRM_E_INTERNAL}, {"XX000", CRM_E_INTERNAL},
        {"0A000", CRM_E_INTERNAL},
    };
    crm_error_t *error = refuse(apr_psprintf(pool, "SELECT test_db.fail('%s',"
                                " 100)", cases[_i].state), cases[_i].code,
                                cases[_i].state);

    ck_assert_ptr_nonnull(strstr(error->log, "failed by request"));
    ck_assert_ptr_null(strstr(error->log, "secret"));
    ck_assert_ptr_null(strstr(error->message, "failed"));
    ck_assert_str_eq(ask("SELECT 1"), "1");
}
END_TEST

START_TEST(values_stay_out_of_the_log)
{
    PGresult *result;
    crm_error_t *error = query(&result, "SELECT $1::uuid", "Ada's diary");

    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->sqlstate, "22P02");
    ck_assert_ptr_null(strstr(error->log, "diary"));
    ask("INSERT INTO test_db.row VALUES (77)");
    error = refuse("INSERT INTO test_db.row VALUES (77)", CRM_E_CONFLICT,
                   "23505");
    ck_assert_ptr_null(strstr(error->log, "77"));
}
END_TEST

START_TEST(passwords_stay_out_of_errors)
{
    static const struct {
        const char *conninfo, *says;
    } wrong[] = {
        {"host=/nowhere password=sesame dbname=x", "/nowhere"},
        {"host=/nowhere password=open sesame", "connection string is invalid"},
        {"postgresql://ada:sesame@/x?port=sesame", "invalid integer"},
        /* no name service is asked for a part of a password */
        {"postgresql://ada:open@sesame@nowhere.invalid/x",
         "connection string is invalid: the host contains '@'"},
        {"postgresql://ada:x@127.0.0.1:sesame/x", "invalid integer"},
        {"sesame", "connection string is invalid"},
    };
    crm_conn_t *none;
    crm_error_t *error = crm_conn_open(&none, wrong[_i].conninfo, &named, pool,
                                       pool);

    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert_msg(!strstr(error->log, "sesame"), "%s", error->log);
    ck_assert_msg(strstr(error->log, wrong[_i].says), "%s", error->log);
    ck_assert_ptr_null(strchr(error->log, '\n'));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("db");
    TCase *tests;

    tests = new_case(suite, "sessions");
    tcase_add_test(tests, values_are_bound);
    tcase_add_test(tests, session_speaks_utf8_utc_iso);
    tcase_add_test(tests,
                   a_session_has_its_settings_whatever_its_role_has);
    tcase_add_test(tests, a_host_that_is_gone_is_noticed);
    tcase_add_test(tests, session_is_set_in_one_round_trip_and_once);
    tcase_add_test(tests, notices_stay_off_stderr);
    tcase_add_test(tests, adopt_rolls_back_what_was_left_open);
    tests = new_case(suite, "runs");
    tcase_add_loop_test(tests, conflicts_are_tried_again_three_times, 0, 2);
    tcase_add_test(tests, conflicts_in_a_transaction_are_the_callers);
    tcase_add_test(tests, a_commit_that_fails_is_the_statements_error);
    tcase_add_test(tests, conflicts_of_a_commit_are_tried_again);
    tcase_add_test(tests, a_pipeline_that_opens_a_transaction_is_tried_again);
    tcase_add_test(tests, what_was_committed_is_not_done_twice);
    tcase_add_test(tests, a_pipeline_runs_in_order);
    tcase_add_test(tests, a_pipelines_first_failure_undoes_it);
    tcase_add_test(tests, a_commit_that_rolls_back_is_an_error);
    tcase_add_loop_test(tests, sqlstates_have_their_codes, 0, 18);
    tcase_add_test(tests, values_stay_out_of_the_log);
    tcase_add_loop_test(tests, passwords_stay_out_of_errors, 0, 6);
    return run_suite(suite);
}
