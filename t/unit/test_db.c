/* SPDX-License-Identifier: Apache-2.0 */
/* test_db.c: crm_db against a real PostgreSQL, $CRM_TEST_DATABASE */
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_check.h"
#include "crm_db.h"
#include "crm_db_conn.h"
#include "crm_db_copy.h"
#include "crm_server.h"
#include "crm_session.h"

static const crm_conn_options_t named = {
    .named_statements = 1, .generic_plans = 1};
static const crm_conn_options_t unnamed = {.generic_plans = 1};
static const crm_conn_options_t shared = {
    .named_statements = CRM_NAMES_SHARED, .generic_plans = 1};
static const crm_conn_options_t hasty = {
    .named_statements = 1, .generic_plans = 1, .timeout = 300000};
static const crm_conn_options_t patient = {
    .named_statements = 1, .generic_plans = 1, .timeout = 1500000};
static apr_pool_t *pool;
static PGconn *pg;              /* the one that is adopted */
static crm_conn_t *conn;

/* --- what the tests say --------------------------------------------------- */

/* Run SQL with one value (NULL: none) on the adopted connection. */
static crm_error_t *query(PGresult **result_p, const char *sql,
                          const char *value)
{
    crm_stmt_t stmt = {sql, value ? 1 : 0, &value};

    return crm_db_query(result_p, conn, &stmt, pool);
}

static const char *why(const crm_error_t *error)
{
    return error ? error->log : "no error";
}

/* The first value that SQL gives; it must succeed. */
static const char *ask(const char *sql)
{
    PGresult *result;
    crm_error_t *error = query(&result, sql, NULL);

    ck_assert_msg(!error, "%s: %s", sql, why(error));
    return PQntuples(result) ? crm_db_value(result, 0, 0) : "";
}

/* SQL fails with CODE and STATE (NULL: none). Returns the error. */
static crm_error_t *refuse(const char *sql, crm_code_t code,
                           const char *state)
{
    PGresult *result;
    crm_error_t *error = query(&result, sql, NULL);

    ck_assert_msg(error != NULL, "%s succeeded", sql);
    ck_assert_msg(error->code == code, "%s: code %d: %s", sql, error->code,
                  why(error));
    ck_assert_pstr_eq(error->sqlstate, state);
    ck_assert_ptr_nonnull(error->log);
    return error;
}

/* The pid that every backend seems to have; 0: its own. */
static int same_pid;

/* Takes the place of libpq's: hosts of their own may give the same pids. */
int PQbackendPID(const PGconn *any)
{
    int (*real)(const PGconn *);

    *(void **)&real = dlsym(RTLD_NEXT, "PQbackendPID");
    return same_pid && real(any) ? same_pid : real(any);
}

/* End the adopted connection's backend and wait until it is gone. */
static void terminate(void)
{
    int same = same_pid;
    const char *pid;

    same_pid = 0;
    pid = apr_itoa(pool, PQbackendPID(pg));
    same_pid = same;
    look(apr_pstrcat(pool, "SELECT pg_terminate_backend(", pid, ", 10000)",
                     NULL));
    for (int i = 0; i < 1000; i++) {
        if (*look(apr_pstrcat(pool, "SELECT count(*) FROM pg_stat_activity"
                              " WHERE pid = ", pid, NULL)) == '0') {
            return;
        }
        usleep(10000);
    }
    ck_abort_msg("the backend %s does not end", pid);
}

static void adopt(const crm_conn_options_t *options)
{
    crm_error_t *error = crm_conn_adopt(&conn, pg, options, pool, pool);

    ck_assert_msg(!error, "%s", why(error));
}

static void setup(void)
{
    const char *conninfo = getenv("CRM_TEST_DATABASE");

    signal(SIGPIPE, SIG_DFL);
    apr_pool_create(&pool, crm_check_pool());
    session_open();
    look("SET client_min_messages TO warning;"
         "DROP SCHEMA IF EXISTS test_db CASCADE; CREATE SCHEMA test_db;"
         "CREATE TABLE test_db.row (n int PRIMARY KEY CHECK (n < 1000),"
         " text text);"
         "CREATE SEQUENCE test_db.tries;"
         /* fails with STATE in its first TIMES calls */
         "CREATE FUNCTION test_db.fail(state text, times int) RETURNS bigint"
         " LANGUAGE plpgsql AS $$ DECLARE n bigint := nextval("
         "'test_db.tries'); BEGIN IF n <= times THEN RAISE EXCEPTION"
         " 'failed by request' USING ERRCODE = state, DETAIL = 'secret';"
         " END IF; RETURN n; END $$;");
    pg = PQconnectdb(conninfo);
    ck_assert_int_eq(PQstatus(pg), CONNECTION_OK);
    adopt(&named);
}

static void teardown(void)
{
    apr_pool_destroy(pool);
    PQfinish(pg);
    PQfinish(other);
}

/* How many statements the adopted session has prepared, this one aside. */
static int prepared_count(void)
{
    PGresult *result = PQexec(pg, "SELECT count(*) FROM"
                              " pg_prepared_statements");
    int count = atoi(PQgetvalue(result, 0, 0));

    PQclear(result);
    return count;
}

/* --- a place for a test to act: after the check, before the sending -------- */

static void (*between)(void);

/* Takes the place of libpq's, which crm_db calls at just that moment. */
int PQenterPipelineMode(PGconn *pipeline)
{
    int (*real)(PGconn *);
    void (*act)(void) = between;

    *(void **)&real = dlsym(RTLD_NEXT, "PQenterPipelineMode");
    if (act) {
        between = NULL;
        act();
    }
    return real(pipeline);
}

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
        {"client_min_messages", "error", "warning", 0},
        {"default_transaction_isolation", "serializable", "read committed", 0},
        {"jit", "on", "off", 0},
        {"gin_fuzzy_search_limit", "5", "0", 0},
        {"gin_pending_list_limit", "64kB", "256kB", 0},
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
    ck_assert_str_eq(ask("SELECT 5"), "5");
}
END_TEST

/* --- prepared statements -------------------------------------------------- */

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

/* --- dead connections ----------------------------------------------------- */

START_TEST(a_connection_dead_before_use_is_opened_anew)
{
    ask("SELECT 'before'");
    terminate();
    ask("INSERT INTO test_db.row VALUES (1)");
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "1");
    terminate();
    adopt(&named);
    ck_assert_str_eq(ask("SELECT 'before'"), "before");
}
END_TEST

START_TEST(opened_anew_behind_our_back)
{
    ask("SELECT 'kept'");
    PQreset(pg);
    adopt(&named);
    ck_assert_int_eq(prepared_count(), 0);
    ck_assert_str_eq(ask("SELECT 'kept'"), "kept");
    PQreset(pg);
    ck_assert_str_eq(ask("SELECT 'kept'"), "kept");
}
END_TEST

/* What mod_dbd has opened anew is not opened once more. */
START_TEST(opened_anew_once)
{
    int pid;

    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    terminate();
    refuse("SELECT 1", CRM_E_UNAVAILABLE, "57P01");
    PQreset(pg);
    pid = PQbackendPID(pg);
    adopt(&named);
    ck_assert_str_eq(ask("SHOW jit"), "off");
    ck_assert_int_eq(PQbackendPID(pg), pid);
}
END_TEST

/* Backends of two hosts may have the same pid. */
START_TEST(a_session_is_known_whatever_its_pid)
{
    unsigned session;

    terminate();
    same_pid = 77;
    ck_assert_str_eq(ask("SHOW jit"), "off");
    session = crm_conn_session(conn);
    ck_assert_str_eq(ask("SHOW jit"), "off");
    ck_assert_uint_eq(crm_conn_session(conn), session);
    terminate();
    ck_assert_str_eq(ask("SHOW jit"), "off");
    ck_assert_uint_ne(crm_conn_session(conn), session);
    same_pid = 0;
}
END_TEST

START_TEST(a_session_that_is_kept_is_not_replaced)
{
    crm_conn_keep(conn, 1);
    ck_assert_str_eq(ask("SELECT pg_try_advisory_lock(7)"), "t");
    terminate();
    for (int i = 0; i < 2; i++) {
        refuse("INSERT INTO test_db.row VALUES (1)", CRM_E_UNAVAILABLE, NULL);
        ck_assert_ptr_nonnull(crm_db_exec(conn, "SELECT 1", pool));
    }
    crm_conn_keep(conn, 0);
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.row"), "0");
}
END_TEST

/* A server that became read-only counts as lost: see crm_db.c. */
START_TEST(a_write_that_a_read_only_server_refused_runs_elsewhere)
{
    int pid = PQbackendPID(pg);

    PQclear(PQexec(pg, "SET default_transaction_read_only TO on"));
    ask("INSERT INTO test_db.row VALUES (1)");
    ck_assert_int_ne(PQbackendPID(pg), pid);
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "1");
    /* and that one is good for what follows */
    pid = PQbackendPID(pg);
    adopt(&named);
    ck_assert_int_eq(PQbackendPID(pg), pid);
}
END_TEST

/* The same inside a transaction: the next one finds another server. */
START_TEST(a_transaction_that_a_read_only_server_refused_is_its_last)
{
    PQclear(PQexec(pg, "SET default_transaction_read_only TO on"));
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    refuse("INSERT INTO test_db.row VALUES (1)", CRM_E_UNAVAILABLE, "25006");
    adopt(&named);
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    ask("INSERT INTO test_db.row VALUES (2)");
    ck_assert_ptr_null(crm_db_exec(conn, "COMMIT", pool));
}
END_TEST

/* One that stays read-only is asked twice, not for ever. */
START_TEST(a_server_that_stays_read_only_refuses)
{
    look("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET"
         " default_transaction_read_only TO on', current_database()); END $$");
    terminate();
    refuse("INSERT INTO test_db.row VALUES (1)", CRM_E_UNAVAILABLE, "25006");
    ck_assert_str_eq(ask("SELECT 1"), "1");
    look("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET"
         " default_transaction_read_only', current_database()); END $$");
    ask("INSERT INTO test_db.row VALUES (1)");
}
END_TEST

/* The server ends the session after we have looked and before we send. */
START_TEST(a_session_ended_before_it_read_is_no_loss)
{
    ask("SELECT 'warm'");
    for (int i = 1; i <= 3; i++) {
        between = terminate;
        ask(apr_psprintf(pool, "INSERT INTO test_db.row VALUES (%d)", i));
        ck_assert_ptr_null(between);
    }
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "3");
}
END_TEST

/* A thread that ends the adopted backend once that sleeps. */
static void *terminate_sleeper(void *data)
{
    PGconn *own = PQconnectdb(getenv("CRM_TEST_DATABASE"));
    int gone = 0;

    for (int i = 0; i < 1000 && !gone; i++) {
        PGresult *result = PQexec(own, "SELECT pg_terminate_backend(pid) FROM"
                                  " pg_stat_activity WHERE wait_event ="
                                  " 'PgSleep' AND datname ="
                                  " current_database()");

        gone = PQntuples(result);
        PQclear(result);
        usleep(10000);
    }
    PQfinish(own);
    return data;
}

/* A statement that the end of its session has rolled back runs once more. */
START_TEST(a_statement_rolled_back_by_a_shutdown_runs_again)
{
    pthread_t thread;

    look("CREATE FUNCTION test_db.slow() RETURNS void LANGUAGE plpgsql AS $$"
         " DECLARE n bigint := nextval('test_db.tries'); BEGIN"
         " INSERT INTO test_db.row VALUES (n);"
         " IF n = 1 THEN PERFORM pg_sleep(60); END IF; END $$");
    pthread_create(&thread, NULL, terminate_sleeper, NULL);
    ask("SELECT test_db.slow()");
    pthread_join(thread, NULL);
    ck_assert_str_eq(look("SELECT string_agg(n::text, ',') FROM"
                          " test_db.row"), "2");
}
END_TEST

/* The session may end after the commit: what has an answer is not sent again, even
 * if it was rolled back, as here. */
START_TEST(a_statement_with_an_answer_is_not_sent_again)
{
    pthread_t thread;

    look("CREATE TABLE test_db.late (n int);"
         "CREATE FUNCTION test_db.late() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN IF nextval('test_db.tries') = 1 THEN PERFORM pg_sleep(60);"
         " END IF; RETURN NULL; END $$;"
         "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON test_db.late"
         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION"
         " test_db.late()");
    pthread_create(&thread, NULL, terminate_sleeper, NULL);
    refuse("INSERT INTO test_db.late VALUES (1)", CRM_E_UNAVAILABLE, "57P01");
    pthread_join(thread, NULL);
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "1");
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.late"), "0");
}
END_TEST

/* A commit that no standby has confirmed is an error, is not repeated, and is none
 * of the next statement. */
START_TEST(an_unconfirmed_commit_is_an_error)
{
    static const char insert[] = "INSERT INTO test_db.row SELECT"
                                 " nextval('test_db.tries')";
    const char *seen;

    look("CREATE FUNCTION test_db.warn() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN RAISE WARNING '" UNCONFIRMED "'; RETURN NULL; END $$;"
         "CREATE TRIGGER warn AFTER INSERT ON test_db.row EXECUTE FUNCTION"
         " test_db.warn()");
    seen = refuse(insert, CRM_E_UNAVAILABLE, NULL)->log;
    ck_assert_msg(!strncmp(seen, "CRM2007", 7), "%s", seen);
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.row"), "1");
    seen = why(crm_db_exec(conn, insert, pool));
    ck_assert_msg(!strncmp(seen, "CRM2007", 7), "%s", seen);
    ck_assert_ptr_null(crm_db_exec(conn, "SELECT 1", pool));
    ck_assert_str_eq(ask("SELECT count(*) FROM test_db.row"), "2");
}
END_TEST

/* The same inside a transaction: the transaction is lost as a whole. */
START_TEST(a_lost_transaction_does_not_go_on)
{
    ck_assert_ptr_null(crm_db_exec(conn, "BEGIN", pool));
    ask("INSERT INTO test_db.row VALUES (1)");
    terminate();
    refuse("INSERT INTO test_db.row VALUES (2)", CRM_E_UNAVAILABLE, "57P01");
    refuse("INSERT INTO test_db.row VALUES (3)", CRM_E_UNAVAILABLE, NULL);
    ck_assert_ptr_nonnull(crm_db_exec(conn, "COMMIT", pool));
    crm_db_rollback(conn);
    ask("INSERT INTO test_db.row VALUES (4)");
    ck_assert_str_eq(look("SELECT string_agg(n::text, ',') FROM"
                          " test_db.row"), "4");
}
END_TEST

/* A relay between the connection and the server that can cut it off. */
typedef struct relay_t {
    char dir[64];
    struct sockaddr_un server;
    int listener;
    volatile int deaf;          /* swallow what the server answers, then cut */
    pthread_t thread;
} relay_t;

/* Fill in the address of the socket of DIR and PORT. */
static void address(struct sockaddr_un *sun, const char *dir,
                    const char *port)
{
    memset(sun, 0, sizeof(*sun));
    sun->sun_family = AF_UNIX;
    snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/.s.PGSQL.%s", dir,
             port);
}

/* Pass on what one side says to the other, until one of them ends or what the
 * server says is to be swallowed. */
static void relay_session(relay_t *relay, int client, int server)
{
    struct pollfd fds[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    char data[8192];

    while (poll(fds, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            ssize_t len;

            if (!fds[i].revents) {
                continue;
            }
            len = read(fds[i].fd, data, sizeof(data));
            if (len <= 0 || (i && relay->deaf)
                || write(fds[!i].fd, data, (size_t)len) != len) {
                return;
            }
        }
    }
}

static void *relay_main(void *baton)
{
    relay_t *relay = baton;
    int client;

    while ((client = accept(relay->listener, NULL, NULL)) >= 0) {
        int server = socket(AF_UNIX, SOCK_STREAM, 0);

        if (!connect(server, (struct sockaddr *)&relay->server,
                     sizeof(relay->server))) {
            relay_session(relay, client, server);
        }
        relay->deaf = 0;
        close(server);
        close(client);
    }
    return NULL;
}

/* Start RELAY; the conninfo of its other end. */
static const char *relay_start(relay_t *relay)
{
    const char *conninfo = getenv("CRM_TEST_DATABASE");
    struct sockaddr_un sun;

    memset(relay, 0, sizeof(*relay));
    address(&relay->server, PQhost(other), PQport(other));
    strcpy(relay->dir, "/tmp/crm-db-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(relay->dir));
    address(&sun, relay->dir, "5432");
    relay->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(relay->listener, (struct sockaddr *)&sun,
                          sizeof(sun)), 0);
    ck_assert_int_eq(listen(relay->listener, 4), 0);
    pthread_create(&relay->thread, NULL, relay_main, relay);
    return apr_pstrcat(pool, conninfo, " host=", relay->dir, " port=5432",
                       NULL);
}

static void relay_stop(relay_t *relay)
{
    struct sockaddr_un sun;

    shutdown(relay->listener, SHUT_RDWR);
    pthread_join(relay->thread, NULL);
    close(relay->listener);
    address(&sun, relay->dir, "5432");
    unlink(sun.sun_path);
    rmdir(relay->dir);
}

/* The server has executed, and the answer is lost: not sent again. */
START_TEST(a_statement_without_an_answer_is_not_sent_again)
{
    relay_t relay;
    const char *conninfo = relay_start(&relay);
    crm_error_t *error;

    PQfinish(pg);
    pg = NULL;
    error = crm_conn_open(&conn, conninfo, &named, pool, pool);
    ck_assert_msg(!error, "%s", why(error));
    ask("SELECT 'warm'");
    relay.deaf = 1;
    refuse("INSERT INTO test_db.row VALUES (nextval('test_db.tries'))",
           CRM_E_UNAVAILABLE, NULL);
    /* the server may still be at it */
    for (int i = 0; i < 500
         && strcmp(look("SELECT count(*) FROM test_db.row"), "1"); i++) {
        apr_sleep(apr_time_from_msec(10));
    }
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "1");
    ck_assert_str_eq(look("SELECT last_value FROM test_db.tries"), "1");
    ask("INSERT INTO test_db.row VALUES (nextval('test_db.tries'))");
    ck_assert_str_eq(look("SELECT count(*) FROM test_db.row"), "2");
    apr_pool_clear(pool);
    relay_stop(&relay);
}
END_TEST

/* --- timeouts -------------------------------------------------------------- */

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
    ck_assert_str_eq(error->log, "CRM2008: database: nobody wants the answer any"
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

/* Run SQL, a COPY, with DATA. */
static crm_error_t *copy_in(const char *sql, const char *data)
{
    apr_int64_t rows;

    CRM_ERR(crm_db_copy_begin(conn, sql, pool));
    CRM_ERR(crm_db_copy_put(conn, data, strlen(data), pool));
    return crm_db_copy_end(&rows, conn, pool);
}

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

/* --- rows one by one, and COPY --------------------------------------------- */

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
    static const char *const wrong[] = {
        "host=/nowhere password=sesame dbname=x",
        "host=/nowhere password=open sesame",
        "postgresql://ada:sesame@/x?port=sesame",
        "postgresql://ada:open@sesame@nowhere.invalid/x",
        "postgresql://ada:x@127.0.0.1:sesame/x",
        "sesame",
    };
    crm_conn_t *none;
    crm_error_t *error = crm_conn_open(&none, wrong[_i], &named, pool, pool);

    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert_msg(!strstr(error->log, "sesame"), "%s", error->log);
    ck_assert_ptr_null(strchr(error->log, '\n'));
}
END_TEST

START_TEST(a_database_that_is_gone_is_unavailable)
{
    ask("SELECT 1");
    PQfinish(pg);
    look("DROP DATABASE IF EXISTS test_db_gone");
    look("CREATE DATABASE test_db_gone");
    pg = PQconnectdb(apr_pstrcat(pool, getenv("CRM_TEST_DATABASE"),
                                 " dbname=test_db_gone", NULL));
    adopt(&named);
    ask("SELECT 1");
    look("DROP DATABASE test_db_gone WITH (FORCE)");
    refuse("SELECT 1", CRM_E_UNAVAILABLE, NULL);
    ck_assert_ptr_nonnull(crm_conn_adopt(&conn, pg, &named, pool, pool));
    look("CREATE DATABASE test_db_gone");
    adopt(&named);
    ck_assert_str_eq(ask("SELECT 1"), "1");
    look("DROP DATABASE test_db_gone WITH (FORCE)");
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    return tests;
}

static void add_sessions(TCase *tests)
{
    tcase_add_test(tests, values_are_bound);
    tcase_add_test(tests, session_speaks_utf8_utc_iso);
    tcase_add_test(tests,
                   a_session_has_its_settings_whatever_its_role_has);
    tcase_add_test(tests, session_is_set_in_one_round_trip_and_once);
    tcase_add_test(tests, notices_stay_off_stderr);
    tcase_add_test(tests, adopt_rolls_back_what_was_left_open);
}

static void add_prepared(TCase *tests)
{
    tcase_add_test(tests, a_text_is_prepared_once);
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
}

static void add_losses(TCase *tests)
{
    tcase_add_test(tests, a_connection_dead_before_use_is_opened_anew);
    tcase_add_test(tests, opened_anew_behind_our_back);
    tcase_add_test(tests, opened_anew_once);
    tcase_add_test(tests, a_session_is_known_whatever_its_pid);
    tcase_add_test(tests, a_session_that_is_kept_is_not_replaced);
    tcase_add_test(tests,
                   a_write_that_a_read_only_server_refused_runs_elsewhere);
    tcase_add_test(tests,
                   a_transaction_that_a_read_only_server_refused_is_its_last);
    tcase_add_test(tests, a_server_that_stays_read_only_refuses);
    tcase_add_test(tests, a_session_ended_before_it_read_is_no_loss);
    tcase_add_test(tests, a_statement_rolled_back_by_a_shutdown_runs_again);
    tcase_add_test(tests, a_statement_with_an_answer_is_not_sent_again);
    tcase_add_test(tests, an_unconfirmed_commit_is_an_error);
    tcase_add_test(tests, a_lost_transaction_does_not_go_on);
    tcase_add_test(tests, a_statement_without_an_answer_is_not_sent_again);
    tcase_add_test(tests, a_database_that_is_gone_is_unavailable);
}

static void add_timeouts(TCase *tests)
{
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
    tcase_add_test(tests,
                   a_session_that_was_cancelled_late_is_not_used_again);
    tcase_add_test(tests, the_end_of_a_copy_has_a_timeout_of_its_own);
}

static void add_runs(TCase *tests)
{
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
    tcase_add_test(tests, rows_come_one_by_one);
    tcase_add_test(tests, rows_may_come_for_longer_than_the_timeout);
    tcase_add_test(tests, a_copy_that_fails_says_why);
    tcase_add_test(tests, a_copy_to_the_client_comes_line_by_line);
    tcase_add_test(tests, a_copy_in_parts_names_the_row_that_is_refused);
}

int main(void)
{
    Suite *suite = suite_create("db");

    if (!getenv("CRM_TEST_DATABASE")) {
        puts("Bail out! CRM_TEST_DATABASE names no database");
        return EXIT_FAILURE;
    }
    add_sessions(new_case(suite, "sessions"));
    add_prepared(new_case(suite, "prepared statements"));
    add_losses(new_case(suite, "lost connections"));
    add_timeouts(new_case(suite, "timeouts"));
    add_runs(new_case(suite, "runs"));
    return crm_check_main(suite);
}
