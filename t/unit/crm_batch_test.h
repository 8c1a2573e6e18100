/* SPDX-License-Identifier: Apache-2.0 */
/* crm_batch_test.h: requests in threads that share statements of a real PostgreSQL,
 * $CRM_TEST_DATABASE */
#ifndef CRM_BATCH_TEST_H
#define CRM_BATCH_TEST_H

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
    int asked;                  /* how often it was asked while overloaded */
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

static inline int gate_read(const int *value)
{
    int got;

    pthread_mutex_lock(&gate.lock);
    got = *value;
    pthread_mutex_unlock(&gate.lock);
    return got;
}

static inline void gate_set(int *value, int to)
{
    pthread_mutex_lock(&gate.lock);
    *value = to;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

/* For crm_conn_watch(): the client at DATA wants no result any more. */
static inline int unwanted(void *data)
{
    __atomic_add_fetch(&((client_t *)data)->asked, 1, __ATOMIC_RELAXED);
    return 1;
}

static inline crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since,
                                   void *baton)
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

static inline void release(void *baton)
{
    ((client_t *)baton)->released = 1;
}

static inline int add_waiting(int change, void *baton)
{
    int overloaded;

    (void)baton;
    pthread_mutex_lock(&gate.lock);
    gate.sharing += change;
    gate.joined += change > 0;
    overloaded = gate.overloaded;
    gate.asked += overloaded && !change;
    pthread_mutex_unlock(&gate.lock);
    return overloaded;
}

static inline void *client_main(void *data)
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
static inline client_t *prepare(int i, const char *text, const char *first,
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

static inline void start(client_t *client)
{
    ck_assert_int_eq(pthread_create(&client->thread, NULL, client_main,
                                    client), 0);
}

static inline int is_done(const client_t *client)
{
    return __atomic_load_n(&client->done, __ATOMIC_ACQUIRE);
}

/* Wait for the clients below COUNT. */
static inline void join(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
    }
}

/* Start the client 0 with the gate closed, so that it leads and waits for a
 * connection, then those below COUNT, which join its queue. */
static inline void gather(int count)
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
static inline const char *value(const client_t *client, int row, int column)
{
    ck_assert_int_lt(row, client->rows.count);
    return crm_db_value(client->rows.result, client->rows.first + row, column);
}

/* CLIENT asked NUMBERS for COUNT rows with TEXT and got them, in order. */
static inline void has_numbers(const client_t *client, int count,
                               const char *text)
{
    ck_assert_ptr_null(client->error);
    ck_assert_ptr_nonnull(client->rows.result);
    ck_assert_int_eq(client->rows.count, count);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(atoi(value(client, i, 0)), count - i);
        ck_assert_str_eq(value(client, i, 1), text);
    }
}

static inline void setup(void)
{
    pool = NULL;
    apr_pool_create(&pool, crm_check_pool());
    batcher = crm_batcher_create(pool);
    memset(&gate, 0, sizeof(gate));
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.changed, NULL);
    session_open();
}

static inline void teardown(void)
{
    PQfinish(other);
    apr_pool_destroy(pool);
}

static inline crm_answered_t answer_client(const crm_rows_t *rows, void *baton)
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
static inline client_t *prepare_polled(int i, const char *count,
                                       const char *text,
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
static inline void ask_again(client_t *client)
{
    ck_assert_int_eq(write(client->pair[1], "x", 1), 1);
}

static inline void close_pairs(int count)
{
    for (int i = 0; i < count; i++) {
        close(clients[i].pair[0]);
        close(clients[i].pair[1]);
    }
}

#endif /* CRM_BATCH_TEST_H */
