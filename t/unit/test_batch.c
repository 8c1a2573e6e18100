/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch.c: crm_batch against a real PostgreSQL, $CRM_TEST_DATABASE */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_batch.h"
#include "crm_check.h"
#include "crm_db_conn.h"
#include "crm_session.h"
#include "crm_time.h"

/* The threads of a test. */
#define THREADS 8

/* The values of a statement. */
#define FIRST "\001\200\200\201"
#define SECOND "\001\200\200\202"
#define THIRD "\001\200\200\203::text"

/* The rows 1 to FIRST from the highest to the lowest, with SECOND. */
#define NUMBERS "SELECT i, " SECOND "::text FROM generate_series(1, " FIRST \
    "::int) i ORDER BY i DESC"
/* One row, after the lock FIRST was free; not before. */
#define LOCKED "SELECT pg_advisory_xact_lock_shared(" FIRST "::int)::text, " \
    SECOND "::text"
/* One row, after FIRST milliseconds. */
#define SLEEP "SELECT pg_sleep(0.001 * " FIRST "::int)::text, " SECOND "::text"
/* One row, or an error if FIRST is 0. */
#define DIVISION "SELECT (100 / " FIRST "::int)::text, " SECOND "::text"

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

/* The sessions that wait for such a lock: how many, and their end. */
#define OF_BLOCKED " FROM pg_locks WHERE NOT granted" \
    " AND locktype = 'advisory' AND database = (SELECT oid FROM pg_database" \
    " WHERE datname = current_database())"
#define BLOCKED "SELECT count(*)" OF_BLOCKED
#define KILL_BLOCKED "SELECT pg_terminate_backend(pid, 10000)" OF_BLOCKED

/* How many sessions sleep in a statement. */
#define ASLEEP "SELECT count(*) FROM pg_stat_activity WHERE wait_event =" \
    " 'PgSleep' AND datname = current_database()"

/* Long enough for any answer. */
#define LONG apr_time_from_sec(30)

static apr_pool_t *pool;
static crm_batcher_t *batcher;

/* What hands out connections: closed, acquire() blocks. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int closed;
    int waiting;                /* threads in acquire() */
    int refuses;                /* acquire() fails */
    int overloaded;             /* add_waiting() says so */
    int sharing;                /* sum of its changes */
    int joined;                 /* how often it grew */
} gate;

/* A request in a thread of its own. */
typedef struct client_t {
    pthread_t thread;
    apr_pool_t *pool;
    const char *text;
    const char *values[3];
    const char *head;           /* of a write; NULL: a read */
    const char *table;          /* of an UPDATE */
    crm_conn_source_t source;
    apr_interval_time_t timeout; /* of its connection */
    crm_conn_t *conn;
    int released;
    int aborts;                 /* its connection is watched by unwanted() */
    int asked;                  /* how often that was called */
    crm_rows_t rows;
    crm_batch_part_t part;
    crm_error_t *error;
    int done;                   /* atomic */
    int pair[2];                /* its client's connection, and the client's end */
    crm_answered_t how;         /* what answer() does */
    int answers;                /* how often it was called */
    pthread_t answerer;         /* by which thread */
    char seen[32];              /* with which rows */
} client_t;

static client_t clients[THREADS];

/* Wait until CONDITION holds. */
#define WAIT_FOR(condition)                                             \
    do {                                                                \
        int tries_ = 0;                                                 \
        while (!(condition)) {                                          \
            ck_assert_msg(tries_++ < 3000, "not within 30 s: "          \
                          #condition);                                  \
            usleep(10000);                                              \
        }                                                               \
    } while (0)

static int gate_read(const int *value)
{
    int got;

    pthread_mutex_lock(&gate.lock);
    got = *value;
    pthread_mutex_unlock(&gate.lock);
    return got;
}

static void gate_set(int *value, int to)
{
    pthread_mutex_lock(&gate.lock);
    *value = to;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

/* For crm_conn_watch(): the client at DATA wants no result any more. */
static int unwanted(void *data)
{
    __atomic_add_fetch(&((client_t *)data)->asked, 1, __ATOMIC_RELAXED);
    return 1;
}

static crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since, void *baton)
{
    client_t *client = baton;
    int refuses;

    (void)since;
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    while (gate.closed) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    gate.waiting--;
    refuses = gate.refuses;
    pthread_mutex_unlock(&gate.lock);
    *conn_p = client->conn;
    crm_conn_watch(client->conn, client->aborts ? unwanted : NULL, client);
    return refuses ? crm_error_logf(CRM_E_UNAVAILABLE, client->pool, "none")
                   : NULL;
}

static void release(void *baton)
{
    ((client_t *)baton)->released = 1;
}

static int add_waiting(int change, void *baton)
{
    int overloaded;

    (void)baton;
    pthread_mutex_lock(&gate.lock);
    gate.sharing += change;
    gate.joined += change > 0;
    overloaded = gate.overloaded;
    pthread_mutex_unlock(&gate.lock);
    return overloaded;
}

static void *client_main(void *data)
{
    client_t *client = data;
    crm_sql_t sql;

    crm_sql_init(&sql, client->pool);
    if (client->head) {
        crm_sql_value(&sql, client->values[0], "uuid");
        crm_sql_value(&sql, client->values[1], "uuid");
        crm_sql_value(&sql, client->values[2], "text");
        crm_sql_add(&sql, client->head);
        crm_sql_clause(&sql, CRM_SQL_WHERE);
        crm_sql_add(&sql, client->text);
        crm_sql_clause(&sql, CRM_SQL_RETURNING);
        crm_sql_add(&sql, " RETURNING t.value");
        crm_sql_write(&sql, 2, client->table);
    }
    else {
        crm_sql_value(&sql, client->values[0], "int");
        crm_sql_value(&sql, client->values[1], "text");
        crm_sql_add(&sql, client->text);
    }
    client->error = crm_batch_run(&client->rows, &client->part, batcher, &sql,
                                  &client->source, client->pool);
    __atomic_store_n(&client->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Prepare the client I, which will ask for TEXT with FIRST and SECOND. */
static client_t *prepare(int i, const char *text, const char *first,
                         const char *second)
{
    client_t *client = &clients[i];
    crm_error_t *error;

    memset(client, 0, sizeof(*client));
    apr_pool_create(&client->pool, pool);
    client->text = text;
    client->values[0] = first;
    client->values[1] = second;
    client->source = (crm_conn_source_t){acquire, release, add_waiting, LONG,
                                         client, -1, 0, NULL};
    client->timeout = LONG;
    error = crm_conn_open(&client->conn, getenv("CRM_TEST_DATABASE"),
                          &(crm_conn_options_t){
                              .named_statements = 1, .generic_plans = 1,
                              .timeout = LONG}, client->pool,
                          client->pool);
    ck_assert_ptr_null(error);
    return client;
}

static void start(client_t *client)
{
    ck_assert_int_eq(pthread_create(&client->thread, NULL, client_main,
                                    client), 0);
}

static int is_done(const client_t *client)
{
    return __atomic_load_n(&client->done, __ATOMIC_ACQUIRE);
}

/* Wait for the clients below COUNT. */
static void join(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
    }
}

/* Start the client 0 with the gate closed, so that it leads and waits for a
 * connection, then those below COUNT, which join its queue. */
static void gather(int count)
{
    gate_set(&gate.closed, 1);
    gate_set(&gate.joined, 0);
    start(&clients[0]);
    WAIT_FOR(gate_read(&gate.waiting) == 1);
    for (int i = 1; i < count; i++) {
        start(&clients[i]);
        WAIT_FOR(gate_read(&gate.joined) == i);
    }
}

/* The row ROW, COLUMN of CLIENT's rows. */
static const char *value(const client_t *client, int row, int column)
{
    ck_assert_int_lt(row, client->rows.count);
    return crm_db_value(client->rows.result, client->rows.first + row, column);
}

/* CLIENT asked NUMBERS for COUNT rows with TEXT and got them, in order. */
static void has_numbers(const client_t *client, int count, const char *text)
{
    ck_assert_ptr_null(client->error);
    ck_assert_ptr_nonnull(client->rows.result);
    ck_assert_int_eq(client->rows.count, count);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(atoi(value(client, i, 0)), count - i);
        ck_assert_str_eq(value(client, i, 1), text);
    }
}

static void setup(void)
{
    pool = NULL;
    apr_pool_create(&pool, crm_check_pool());
    batcher = crm_batcher_create(pool);
    memset(&gate, 0, sizeof(gate));
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.changed, NULL);
    session_open();
}

static void teardown(void)
{
    PQfinish(other);
    apr_pool_destroy(pool);
}

/* --- tests ---------------------------------------------------------------- */

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

/* --- answered by the leader --------------------------------------------------- */

static crm_answered_t answer_client(const crm_rows_t *rows, void *baton)
{
    client_t *client = baton;

    client->answers++;
    client->answerer = pthread_self();
    apr_snprintf(client->seen, sizeof(client->seen), "%d %s", rows->count,
                 rows->count ? crm_db_value(rows->result, rows->first, 1) : "");
    return client->how;
}

/* Prepare client I, which asks for COUNT rows of TEXT, and whose answers are
 * sent as HOW says. */
static client_t *prepare_polled(int i, const char *count, const char *text,
                                crm_answered_t how)
{
    client_t *client = prepare(i, NUMBERS, count, text);

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, client->pair), 0);
    client->source.client = client->pair[0];
    client->source.clients_max = THREADS;
    client->source.answer = answer_client;
    client->how = how;
    return client;
}

/* Let CLIENT send its next request. */
static void ask_again(client_t *client)
{
    ck_assert_int_eq(write(client->pair[1], "x", 1), 1);
}

static void close_pairs(int count)
{
    for (int i = 0; i < count; i++) {
        close(clients[i].pair[0]);
        close(clients[i].pair[1]);
    }
}

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

/* --- writes --------------------------------------------------------------- */

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

/* One that does not wait for it does not run it again either. */
START_TEST(inserts_are_not_left)
{
    for (int i = 0; i < 2; i++) {
        prepare_write(i, 0, 1, i, apr_itoa(pool, i))->text = INSERT_AWAITED;
    }
    look("SELECT pg_advisory_lock(7)");
    gather(2);
    gate_set(&gate.closed, 0);
    WAIT_FOR(*look(ASLEEP) == '1');
    gate_set(&gate.overloaded, 1);
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
    Suite *suite = suite_create("crm_batch");
    TCase *tcase = tcase_create("crm_batch");

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
    tcase = tcase_create("answered by the leader");
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
    tcase = tcase_create("writes");
    tcase_add_checked_fixture(tcase, setup_things, teardown_things);
    tcase_add_test(tcase, inserts);
    tcase_add_test(tcase, failed_inserts_did_nothing);
    tcase_add_test(tcase, refused_inserts_did_nothing);
    tcase_add_test(tcase, lost_inserts_are_not_repeated);
    tcase_add_test(tcase, inserts_are_not_left);
    tcase_add_test(tcase, answered_inserts_are_not_repeated);
    tcase_add_test(tcase, unconfirmed_inserts_are_not_repeated);
    tcase_add_test(tcase, a_failure_makes_smaller_batches);
    tcase_add_test(tcase, updates);
    tcase_add_test(tcase, writes_do_not_wait_for_locks);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
