/* SPDX-License-Identifier: Apache-2.0 */
/* test_db_lost.c: connections of crm_db that are lost, with $CRM_TEST_DATABASE */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "apr_atomic.h"

#include "crm_db_test.h"
#include "crm_dial.h"
#include "crm_server.h"

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
 * of the next statement: on a connection that is adopted, and on one of our own. */
START_TEST(an_unconfirmed_commit_is_an_error)
{
    static const char insert[] = "INSERT INTO test_db.row SELECT"
                                 " nextval('test_db.tries')";
    const char *seen;

    if (_i) {
        ck_assert_ptr_null(crm_conn_open(&conn, getenv("CRM_TEST_DATABASE"),
                                         &named, pool, pool));
    }
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
    int keeps;                  /* the client's socket, when the server ends */
    volatile apr_uint32_t ended; /* sessions */
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
            if (!len && i && relay->keeps) {
                server_hang(client);
            }
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
        apr_atomic_inc32(&relay->ended);
    }
    return NULL;
}

/* Begin to listen for RELAY; the conninfo of its other end, which gets no answer
 * until relay_run(). */
static const char *relay_listen(relay_t *relay)
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
    return apr_pstrcat(pool, conninfo, " host=", relay->dir, " port=5432",
                       NULL);
}

static void relay_run(relay_t *relay)
{
    ck_assert(!pthread_create(&relay->thread, NULL, relay_main, relay));
}

/* Start RELAY; the conninfo of its other end. */
static const char *relay_start(relay_t *relay)
{
    const char *conninfo = relay_listen(relay);

    relay_run(relay);
    return conninfo;
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

/* What is between may keep the socket open when the server has ended the session. */
START_TEST(a_session_that_ends_is_replaced_whatever_its_socket_does)
{
    relay_t relay;
    struct pollfd told = {.events = POLLIN};
    crm_error_t *error;

    PQfinish(pg);
    pg = PQconnectdb(relay_start(&relay));
    relay.keeps = 1;
    adopt(&patient);
    terminate();
    told.fd = PQsocket(pg);
    ck_assert_int_eq(poll(&told, 1, SERVER_LONG / 1000), 1);
    adopt(&patient);
    error = crm_db_exec(conn, "SELECT 1", pool);
    ck_assert_msg(!error, "%s", why(error));
    apr_pool_clear(pool);
    PQfinish(pg);
    pg = NULL;
    relay_stop(&relay);
}
END_TEST

static void nobody(void *baton, const PGresult *notice)
{
    (void)baton;
    (void)notice;
}

/* As of a PGconn that libpq makes where it has freed another one. */
START_TEST(the_notices_of_a_session_are_heard_whoever_heard_them_before)
{
    PQsetNoticeReceiver(pg, nobody, NULL);
    adopt(&named);
    ck_assert(PQsetNoticeReceiver(pg, NULL, NULL) != nobody);
}
END_TEST

static int not_wanted(void *baton)
{
    (void)baton;
    return 1;
}

START_TEST(a_connection_that_nobody_wants_any_more_is_closed)
{
    static const char *const keywords[] = {"dbname", NULL};
    const char *values[] = {NULL, NULL};
    relay_t relay;

    values[0] = relay_listen(&relay);
    ck_assert_ptr_null(crm_dial(keywords, values, not_wanted, NULL));
    relay_run(&relay);
    for (int i = 0; i < 1000 && !apr_atomic_read32(&relay.ended); i++) {
        usleep(10000);
    }
    ck_assert_int_eq(apr_atomic_read32(&relay.ended), 1);
    relay_stop(&relay);
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

int main(void)
{
    Suite *suite = suite_create("db_lost");
    TCase *tests;

    tests = new_case(suite, "lost connections");
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
    tcase_add_loop_test(tests, an_unconfirmed_commit_is_an_error, 0, 2);
    tcase_add_test(tests, a_lost_transaction_does_not_go_on);
    tcase_add_test(tests, a_statement_without_an_answer_is_not_sent_again);
    tcase_add_test(tests,
                   a_session_that_ends_is_replaced_whatever_its_socket_does);
    tcase_add_test(tests,
                   the_notices_of_a_session_are_heard_whoever_heard_them_before);
    tcase_add_test(tests, a_connection_that_nobody_wants_any_more_is_closed);
    tcase_add_test(tests, a_database_that_is_gone_is_unavailable);
    return run_suite(suite);
}
