/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch_write.c: writes that share a statement, with $CRM_TEST_DATABASE */
#include "crm_batch_test.h"

/* Writes of a table that has no key, so that it shows what is done twice. FIRST is
 * the workspace, SECOND the id. */
#define INSERT_HEAD "INSERT INTO crmapi.thing AS t (workspace_id, id, value)" \
    " SELECT " FIRST "::uuid, " SECOND "::uuid, " THIRD
#define INSERT_TAIL " WHERE " THIRD " <> 'nobody' AND (SELECT pg_sleep(0.2))" \
    " IS NOT NULL AND 100 / length(" THIRD ") > 0"
/* Inserts a row when the lock 7 is free. */
#define INSERT_AWAITED " WHERE crmapi.await() IS NOT NULL"
#define INSERT_LOCKED " WHERE pg_advisory_xact_lock_shared(" THIRD "::int)" \
    " IS NOT NULL"
#define UPDATE_HEAD "UPDATE crmapi.thing t SET value = " THIRD
#define UPDATE_TAIL " WHERE t.workspace_id = " FIRST "::uuid AND t.id = " SECOND \
    "::uuid"
#define WORKSPACE "00000000-0000-7000-8000-00000000000%d"
#define THINGS "SELECT string_agg(value, ' ' ORDER BY value) FROM crmapi.thing"

static void setup_things(void)
{
    setup();
    look("CREATE SCHEMA IF NOT EXISTS crmapi;"
         "DROP TABLE IF EXISTS crmapi.thing;"
         "CREATE TABLE crmapi.thing (workspace_id uuid, id uuid, value text);"
         "CREATE OR REPLACE FUNCTION crmapi.await() RETURNS boolean LANGUAGE"
         " plpgsql AS $$ BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(7)"
         " LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN true; END $$");
}

static void teardown_things(void)
{
    look("DROP TABLE crmapi.thing; DROP FUNCTION crmapi.await()");
    teardown();
}

/* Prepare the client I to write VALUE in the row ID of WORKSPACE. */
static client_t *prepare_write(int i, int is_update, int workspace, int id,
                               const char *value)
{
    client_t *client = prepare(i, is_update ? UPDATE_TAIL : INSERT_TAIL,
                               apr_psprintf(pool, WORKSPACE, workspace),
                               apr_psprintf(pool, WORKSPACE, id));

    client->values[2] = value;
    client->head = is_update ? UPDATE_HEAD : INSERT_HEAD;
    client->table = is_update ? "thing" : NULL;
    return client;
}

/* Have the clients below COUNT go at the same time, and wait for them. */
static void go_together(int count)
{
    gather(count);
    gate_set(&gate.closed, 0);
    join(count);
}

START_TEST(inserts)
{
    for (int i = 0; i < 4; i++) {
        prepare_write(i, 0, i % 2, i / 2,
                      i == 2 ? "nobody" : apr_itoa(pool, i));
    }
    go_together(4);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_int_eq(clients[i].rows.count, i != 2);
        ck_assert_ptr_eq(clients[i].rows.result, clients[0].rows.result);
    }
    ck_assert_str_eq(value(&clients[0], 0, 0), "0");
    ck_assert_str_eq(value(&clients[1], 0, 0), "1");
    ck_assert_str_eq(value(&clients[3], 0, 0), "3");
    ck_assert_str_eq(look(THINGS), "0 1 3");
    ck_assert_int_eq(clients[0].part.sent, 4);
}
END_TEST

START_TEST(failed_inserts_did_nothing)
{
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, i == 1 ? "" : "x");
    }
    go_together(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    ck_assert_str_eq(look(THINGS), "");
}
END_TEST

/* A server that stays read-only did nothing either, though its connection is given
 * up: another host may be the primary. */
START_TEST(refused_inserts_did_nothing)
{
    look("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET"
         " default_transaction_read_only TO on', current_database()); END $$");
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, "x");
        PQclear(PQexec(crm_conn_pg(clients[i].conn),
                       "SET default_transaction_read_only TO on"));
    }
    go_together(3);
    look("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET"
         " default_transaction_read_only', current_database()); END $$");
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    ck_assert_str_eq(look(THINGS), "");
}
END_TEST

/* The connection ends while the statement runs: it may be done or not, so
 * nobody runs it again. */
START_TEST(lost_inserts_are_not_repeated)
{
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, apr_itoa(pool, i));
    }
    gather(3);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(ASLEEP) == '1');
    shutdown(PQsocket(crm_conn_pg(clients[0].conn)), SHUT_RDWR);
    join(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(clients[i].error);
        ck_assert_int_eq(clients[i].error->code, CRM_E_UNAVAILABLE);
        ck_assert_int_eq(clients[i].error->retry_after, 1);
    }
    ck_assert_ptr_nonnull(strstr(clients[1].error->log, "CRM2006"));
}
END_TEST

/* Send a statement of two inserts that does not end yet; then the database hangs at
 * LEVEL: see add_waiting(). */
static void hang_in_inserts(int level)
{
    for (int i = 0; i < 2; i++) {
        prepare_write(i, 0, 1, i, apr_itoa(pool, i))->text = INSERT_AWAITED;
    }
    look("SELECT pg_advisory_lock(7)");
    gather(2);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(ASLEEP) == '1');
    gate_set(&gate.overloaded, level);
}

START_TEST(inserts_are_waited_for)
{
    hang_in_inserts(1);
    WAIT_FOR(gate_read(&gate.asked) > 1);
    look("SELECT pg_advisory_unlock(7)");
    join(2);
    ck_assert_str_eq(value(&clients[0], 0, 0), "0");
    ck_assert_str_eq(value(&clients[1], 0, 0), "1");
}
END_TEST

/* One that does not wait for it does not run it again either. */
START_TEST(inserts_are_not_left)
{
    hang_in_inserts(2);
    WAIT_FOR(is_done(&clients[1]));
    ck_assert_ptr_nonnull(clients[1].error);
    ck_assert_ptr_nonnull(strstr(clients[1].error->log, "CRM2006"));
    look("SELECT pg_advisory_unlock(7)");
    join(2);
    ck_assert_str_eq(value(&clients[0], 0, 0), "0");
    ck_assert_str_eq(look(THINGS), "0 1");
}
END_TEST

/* The server ends the session after its answer, that is, in the commit: nobody
 * knows of the result, and nobody runs it again. */
START_TEST(answered_inserts_are_not_repeated)
{
    look("CREATE FUNCTION crmapi.late() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN PERFORM crmapi.await(); RETURN NULL; END $$;"
         "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON crmapi.thing"
         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION"
         " crmapi.late()");
    look("SELECT pg_advisory_lock(7)");
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, apr_itoa(pool, i))->text = "";
    }
    gather(3);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(ASLEEP) == '1');
    look("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE"
         " wait_event = 'PgSleep' AND datname = current_database()");
    join(3);
    look("SELECT pg_advisory_unlock(7); DROP FUNCTION crmapi.late() CASCADE");
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(clients[i].error);
        ck_assert_int_eq(clients[i].error->code, CRM_E_UNAVAILABLE);
    }
    ck_assert_ptr_nonnull(strstr(clients[1].error->log, "CRM2006"));
}
END_TEST

/* They are there, but may be lost with the server. */
START_TEST(unconfirmed_inserts_are_not_repeated)
{
    look("CREATE FUNCTION crmapi.warn() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN RAISE WARNING '" UNCONFIRMED "'; RETURN NULL; END $$;"
         "CREATE TRIGGER warn AFTER INSERT ON crmapi.thing EXECUTE FUNCTION"
         " crmapi.warn()");
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, apr_itoa(pool, i))->text = "";
    }
    go_together(3);
    look("DROP FUNCTION crmapi.warn() CASCADE");
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(clients[i].error);
        ck_assert_int_eq(clients[i].error->code, CRM_E_UNAVAILABLE);
    }
    ck_assert_ptr_nonnull(strstr(clients[1].error->log, "CRM2006"));
    ck_assert_str_eq(look(THINGS), "0 1 2");
}
END_TEST

/* A failure makes each request run twice: fewer of them share the next statement,
 * and soon as many as before. */
START_TEST(a_failure_makes_smaller_batches)
{
    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < 4; i++) {
            prepare_write(i, 0, 1, i, n || i ? "x" : "");
        }
        go_together(4);
        ck_assert_int_eq(clients[0].part.sent, n == 1 ? 2 : 4);
    }
}
END_TEST

/* Rows of the same id in two workspaces are two rows; a row that is locked has
 * no answer; the same row twice is in two statements. */
START_TEST(updates)
{
    look("INSERT INTO crmapi.thing SELECT w.id, i.id, 'old' FROM"
         " (VALUES ('00000000-0000-7000-8000-000000000001'::uuid),"
         " ('00000000-0000-7000-8000-000000000002')) w(id), (VALUES"
         " ('00000000-0000-7000-8000-000000000001'::uuid),"
         " ('00000000-0000-7000-8000-000000000002')) i(id)");
    look("BEGIN; SELECT FROM crmapi.thing WHERE workspace_id ="
         " '00000000-0000-7000-8000-000000000001' AND id ="
         " '00000000-0000-7000-8000-000000000002' FOR UPDATE");
    prepare_write(0, 1, 1, 1, "a");
    prepare_write(1, 1, 2, 1, "b");
    prepare_write(2, 1, 1, 2, "locked");
    prepare_write(3, 1, 1, 1, "second");
    prepare_write(4, 1, 2, 3, "none");
    prepare_write(5, 1, 2, 2, "c");
    go_together(6);
    look("COMMIT");
    for (int i = 0; i < 6; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_int_eq(clients[i].rows.count, i != 2 && i != 4);
    }
    ck_assert_str_eq(value(&clients[0], 0, 0), "a");
    ck_assert_str_eq(value(&clients[1], 0, 0), "b");
    ck_assert_str_eq(value(&clients[3], 0, 0), "second");
    ck_assert_str_eq(value(&clients[5], 0, 0), "c");
    ck_assert_int_eq(clients[0].part.sent, 5);
    ck_assert_int_eq(clients[3].part.sent, 1);
    ck_assert_str_eq(look(THINGS " WHERE value NOT IN ('a', 'second')"),
                     "b c old");
    ck_assert_str_eq(look("SELECT count(*) FROM crmapi.thing WHERE value IN"
                          " ('a', 'second')"), "1");
}
END_TEST

/* What others lock makes the statement fail soon, not wait. */
START_TEST(writes_do_not_wait_for_locks)
{
    look("BEGIN; SELECT pg_advisory_xact_lock(7)");
    for (int i = 0; i < 3; i++) {
        prepare_write(i, 0, 1, i, i == 1 ? "7" : "8")->text = INSERT_LOCKED;
    }
    go_together(3);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(clients[i].error);
        ck_assert_ptr_null(clients[i].rows.result);
    }
    look("COMMIT");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_write");
    TCase *tcase = tcase_create("batch_write");

    tcase_add_checked_fixture(tcase, setup_things, teardown_things);
    tcase_add_test(tcase, inserts);
    tcase_add_test(tcase, failed_inserts_did_nothing);
    tcase_add_test(tcase, refused_inserts_did_nothing);
    tcase_add_test(tcase, lost_inserts_are_not_repeated);
    tcase_add_test(tcase, inserts_are_waited_for);
    tcase_add_test(tcase, inserts_are_not_left);
    tcase_add_test(tcase, answered_inserts_are_not_repeated);
    tcase_add_test(tcase, unconfirmed_inserts_are_not_repeated);
    tcase_add_test(tcase, a_failure_makes_smaller_batches);
    tcase_add_test(tcase, updates);
    tcase_add_test(tcase, writes_do_not_wait_for_locks);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
