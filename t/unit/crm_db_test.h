/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_test.h: what the tests of crm_db share: a connection to a real PostgreSQL,
 * $CRM_TEST_DATABASE, that is adopted, and a second session beside it */
#ifndef CRM_DB_TEST_H
#define CRM_DB_TEST_H

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_check.h"
#include "crm_db.h"
#include "crm_db_conn.h"
#include "crm_db_copy.h"
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
static inline crm_error_t *query(PGresult **result_p, const char *sql,
                                 const char *value)
{
    crm_stmt_t stmt = {sql, value ? 1 : 0, &value};

    return crm_db_query(result_p, conn, &stmt, pool);
}

static inline const char *why(const crm_error_t *error)
{
    return error ? error->log : "no error";
}

/* The first value that SQL gives; it must succeed. */
static inline const char *ask(const char *sql)
{
    PGresult *result;
    crm_error_t *error = query(&result, sql, NULL);

    ck_assert_msg(!error, "%s: %s", sql, why(error));
    return PQntuples(result) ? crm_db_value(result, 0, 0) : "";
}

/* SQL fails with CODE and STATE (NULL: none). Returns the error. */
static inline crm_error_t *refuse(const char *sql, crm_code_t code,
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
int PQbackendPID(const PGconn *any);
int PQbackendPID(const PGconn *any)
{
    int (*real)(const PGconn *);

    *(void **)&real = dlsym(RTLD_NEXT, "PQbackendPID");
    return same_pid && real(any) ? same_pid : real(any);
}

/* End the adopted connection's backend and wait until it is gone. */
static inline void terminate(void)
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

static inline void adopt(const crm_conn_options_t *options)
{
    crm_error_t *error = crm_conn_adopt(&conn, pg, options, pool, pool);

    ck_assert_msg(!error, "%s", why(error));
}

static inline void setup(void)
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

static inline void teardown(void)
{
    apr_pool_destroy(pool);
    PQfinish(pg);
    PQfinish(other);
}

/* How many statements the adopted session has prepared, this one aside. */
static inline int prepared_count(void)
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
int PQenterPipelineMode(PGconn *pipeline);
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

/* --- COPY ------------------------------------------------------------------ */

/* Run SQL, a COPY, with DATA. */
static inline crm_error_t *copy_in(const char *sql, const char *data)
{
    apr_int64_t rows;

    CRM_ERR(crm_db_copy_begin(conn, sql, pool));
    CRM_ERR(crm_db_copy_put(conn, data, strlen(data), pool));
    return crm_db_copy_end(&rows, conn, pool);
}

/* --- the program ---------------------------------------------------------- */

/* Return a new case of SUITE for the tests of NAME. */
static inline TCase *new_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    return tests;
}

/* Run SUITE, which needs a database. */
static inline int run_suite(Suite *suite)
{
    if (!getenv("CRM_TEST_DATABASE")) {
        puts("Bail out! CRM_TEST_DATABASE names no database");
        return EXIT_FAILURE;
    }
    return crm_check_main(suite);
}

#endif /* CRM_DB_TEST_H */
