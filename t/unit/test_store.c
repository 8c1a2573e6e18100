/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c: budgets that several hosts share (contract 16.1), without a
 * server: a back end of the test's own answers */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "crm_budget.h"
#include "crm_limit_test.h"
#include "crm_redis.h"
#include "crm_redis_url.h"

/* The back end: what it answers, and what it was asked. */
static struct {
    const char *reason;         /* NULL: it answers */
    int room;                   /* requests that it still admits */
    apr_int64_t reset_us;
    int trips, checks, largest, receiving, closed;
    int hold;                   /* the next trip waits until this is 0 */
    int late;                   /* the answer has not arrived */
    apr_int64_t takes;          /* the time until it has */
} server;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static crm_store_check_t *under_way[CRM_STORE_TOGETHER];
static int under_way_count;

static const char *server_send(void *baton, crm_store_check_t *const *checks,
                               int count, apr_int64_t timeout)
{
    (void)baton;
    (void)timeout;
    pthread_mutex_lock(&mutex);
    server.trips++;
    server.checks += count;
    server.largest = count > server.largest ? count : server.largest;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++) {
        under_way[i] = checks[i];
    }
    under_way_count = count;
    return count ? NULL : server.reason;
}

static const char *server_receive(void *baton, apr_int64_t timeout)
{
    crm_store_check_t **checks = under_way;

    (void)baton;
    (void)timeout;
    pthread_mutex_lock(&mutex);
    server.receiving++;
    now += server.takes;
    pthread_cond_broadcast(&changed);
    while (server.hold) {
        pthread_cond_wait(&changed, &mutex);
    }
    for (int i = 0; i < under_way_count && !server.reason; i++) {
        checks[i]->answered = 1;
        checks[i]->admitted = server.room > 0;
        checks[i]->remaining = server.room > 0 ? (apr_uint32_t)--server.room
                                               : 0;
        checks[i]->reset_us = server.reset_us;
        checks[i]->time_us = 7000 * SECOND + now;
    }
    pthread_mutex_unlock(&mutex);
    return server.reason;
}

static int server_ready(void *baton)
{
    (void)baton;
    return !server.late;
}

static void server_close(void *baton)
{
    (void)baton;
    server.closed++;
}

/* What was logged. */
static struct {
    int warnings, notices;
    char last[512];
} logged;

static void write_log(void *baton, crm_level_t level, const char *text)
{
    (void)baton;
    logged.warnings += level == CRM_LOG_WARNING;
    logged.notices += level == CRM_LOG_NOTICE;
    snprintf(logged.last, sizeof(logged.last), "%s", text);
}

static crm_store_shared_t shared;

static crm_store_t *make_store(void)
{
    static const crm_store_backend_t backend = {
        "redis://there", NULL, server_send, server_receive, server_ready,
        server_close
    };
    static const crm_log_t log = {write_log, NULL};

    return crm_store_create(&backend, SECOND, &shared, &log,
                            crm_check_pool());
}

static crm_store_t *store;

static void set_up(void)
{
    setup();
    memset(&server, 0, sizeof(server));
    memset(&logged, 0, sizeof(logged));
    memset(&shared, 0, sizeof(shared));
    server.room = 1000;
    server.reset_us = 20 * SECOND;
    store = make_store();
    add(1);
}

/* A read of KEY under LIMIT, to be charged to STORE. */
static crm_budget_t budget_of(crm_limit_key_t *key, apr_uint32_t limit)
{
    return (crm_budget_t) {.limit = block, .store = store, .key = key,
                           .class = CRM_LIMIT_READ, .max = limit};
}

/* Charge a read of key 1 under LIMIT to STORE. */
static crm_limit_verdict_t charge(apr_uint32_t limit)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_budget_t budget = budget_of(&key, limit);

    crm_budget_charge(&budget, crm_check_pool());
    return budget.verdict;
}

START_TEST(the_store_decides)
{
    crm_limit_verdict_t verdict;

    server.room = 3;
    verdict = charge(10);
    ck_assert(verdict.admitted);
    ck_assert_uint_eq(verdict.remaining, 2);
    ck_assert_int_eq(verdict.reset_us, 20 * SECOND);
    ck_assert(charge(10).admitted);
    ck_assert(charge(10).admitted);
    verdict = charge(10);
    ck_assert(!verdict.admitted);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 20 * SECOND);
    ck_assert_uint_eq(shared.counted, 4);
    ck_assert_uint_eq(shared.alone, 0);
}
END_TEST

START_TEST(a_refusal_is_remembered_until_the_window_opens)
{
    server.room = 0;
    ck_assert(!charge(10).admitted);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(charge(10).reset_us, (20 - i) * SECOND);
        now += SECOND;
    }
    ck_assert_int_eq(server.checks, 1);
    server.room = 1;
    ck_assert(charge(10).admitted);
    ck_assert_int_eq(server.checks, 2);
}
END_TEST

START_TEST(no_host_admits_more_if_the_store_forgets)
{
    for (int i = 0; i < 10; i++) {
        ck_assert(charge(10).admitted);
    }
    server.room = 1000;         /* flushed */
    ck_assert(!charge(10).admitted);
    ck_assert_int_eq(server.checks, 10);
}
END_TEST

START_TEST(unlimited_requests_do_not_ask)
{
    ck_assert(charge(0).admitted);
    ck_assert_int_eq(server.checks, 0);
}
END_TEST

START_TEST(without_the_store_the_host_counts)
{
    for (int i = 0; i < 4; i++) {
        ck_assert(charge(10).admitted);
    }
    server.reason = "cannot connect: refused";
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(charge(10).admitted, "request %d", 5 + i);
    }
    ck_assert_msg(!charge(10).admitted, "the window was not empty before");
    ck_assert_int_eq(server.trips, 5);
    ck_assert_uint_eq(shared.trips, 5);
    ck_assert_uint_eq(shared.alone, 6);
    ck_assert_int_eq(logged.warnings, 1);
    ck_assert_str_eq(logged.last, "CRM4002: the rate limit store redis://there "
                     "cannot be used; this host counts requests by itself: "
                     "cannot connect: refused");
}
END_TEST

START_TEST(one_request_of_the_host_tries_again)
{
    crm_store_t *first = store, *second = make_store();

    server.reason = "away";
    charge(100);
    store = second;
    charge(100);
    ck_assert_msg(server.trips == 1, "the other process knows");
    now += CRM_STORE_RETRY_US;
    charge(100);
    store = first;
    charge(100);
    ck_assert_int_eq(server.trips, 2);
    server.reason = NULL;
    now += CRM_STORE_RETRY_US;
    charge(100);
    ck_assert_int_eq(server.trips, 3);
    ck_assert(!shared.away);
    store = second;
    charge(100);
    ck_assert_int_eq(server.trips, 4);
    ck_assert_int_eq(logged.warnings, 1);
    ck_assert_int_eq(logged.notices, 1);
}
END_TEST

/* Others do not try while one does, of which nothing is known yet. */
START_TEST(one_check_tries_again)
{
    crm_store_check_t checks[3];

    server.reason = "away";
    charge(100);
    now += CRM_STORE_RETRY_US;
    server.reason = NULL;
    memset(checks, 0, sizeof(checks));
    for (int i = 0; i < 3; i++) {
        crm_store_post(store, &checks[i]);
        ck_assert_msg(!checks[i].done == !i, "check %d", i);
    }
    ck_assert(crm_store_collect(store, &checks[0]));
    ck_assert(!crm_store_collect(store, &checks[1]));
    ck_assert(!crm_store_collect(store, &checks[2]));
    ck_assert_int_eq(server.largest, 1);
}
END_TEST

/* What was queued behind checks that the store does not answer is given up. */
START_TEST(a_queue_begins_anew_after_an_outage)
{
    crm_store_check_t checks[3];

    memset(checks, 0, sizeof(checks));
    crm_store_post(store, &checks[0]);
    server.late = 1;
    crm_store_send(store);
    crm_store_post(store, &checks[1]);
    server.reason = "away";
    ck_assert(!crm_store_collect(store, &checks[0]));
    ck_assert(checks[1].done && !checks[1].answered);
    server.reason = NULL;
    now += CRM_STORE_RETRY_US;
    crm_store_post(store, &checks[2]);
    ck_assert(crm_store_collect(store, &checks[2]));
}
END_TEST

START_TEST(no_check_tries_while_one_is_under_way)
{
    crm_store_check_t checks[2];

    server.reason = "away";
    charge(100);
    now += CRM_STORE_RETRY_US;
    server.reason = NULL;
    server.late = 1;
    memset(checks, 0, sizeof(checks));
    crm_store_post(store, &checks[0]);
    crm_store_send(store);
    now += CRM_STORE_RETRY_US;
    crm_store_post(store, &checks[1]);
    ck_assert(checks[1].done && !checks[1].answered);
    ck_assert(crm_store_collect(store, &checks[0]));
}
END_TEST

/* What is beyond that waits for the next round trip. */
START_TEST(no_more_travel_together_than_there_is_room_for)
{
    static crm_store_check_t checks[2 * CRM_STORE_TOGETHER + 1];
    int count = (int)(sizeof(checks) / sizeof(checks[0]));

    memset(checks, 0, sizeof(checks));
    for (int i = 0; i < count; i++) {
        crm_store_post(store, &checks[i]);
    }
    for (int i = count; i--;) {
        ck_assert_msg(crm_store_collect(store, &checks[i]), "check %d", i);
    }
    ck_assert_int_eq(server.largest, CRM_STORE_TOGETHER);
    ck_assert_int_eq(server.trips, 3);
    ck_assert_int_eq(server.checks, count);
}
END_TEST

/* The store's window opens reset_us after it was asked. */
START_TEST(a_slow_answer_closes_the_window_no_longer)
{
    apr_int64_t asked = now;

    server.room = 0;
    server.takes = 5 * SECOND;
    ck_assert(!charge(10).admitted);
    ck_assert_int_eq(now, asked + 5 * SECOND);
    now = asked + 20 * SECOND - 1;
    ck_assert(!charge(10).admitted);
    ck_assert_int_eq(server.checks, 1);
    now = asked + 20 * SECOND;
    server.room = 1;
    ck_assert(charge(10).admitted);
    ck_assert_int_eq(server.checks, 2);
}
END_TEST

/* Without memory for a ring nothing is let through, and nobody is said to have
 * used up a limit (contract 4.5). */
START_TEST(without_memory_it_is_503)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_budget_t budget = budget_of(&key, 5);
    crm_error_t *error;

    free(block);
    make_block(4, 0, 0);
    add(1);
    budget.limit = block;
    error = crm_budget_charge(&budget, crm_check_pool());
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert_int_eq(server.checks, 0);
}
END_TEST

START_TEST(a_store_that_comes_and_goes_is_logged_once_a_minute)
{
    for (int i = 0; i < 30; i++) {
        server.reason = i % 2 ? NULL : "away";
        charge(100);
        now += CRM_STORE_RETRY_US;
    }
    ck_assert_int_eq(logged.warnings, 1);
    ck_assert_int_eq(logged.notices, 1);
    now += CRM_STORE_LOG_AGAIN_US;
    server.reason = "away";
    charge(100);
    ck_assert_int_eq(logged.warnings, 2);
    now += CRM_STORE_LOG_AGAIN_US;
    charge(100);
    ck_assert_msg(logged.warnings == 2, "it has not come back meanwhile");
}
END_TEST

START_TEST(the_time_is_the_store_s)
{
    apr_int64_t apart;

    charge(10);
    now += 5 * SECOND;
    ck_assert_int_eq(crm_store_time(store), 7000 * SECOND + now);
    server.reason = "away";
    charge(10);
    apart = crm_store_time(store) - apr_time_now();
    ck_assert_msg(apart > -SECOND && apart <= 0, "the host's own");
}
END_TEST

START_TEST(a_process_connects_before_it_is_asked)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, crm_check_pool());
    server.reason = "away";
    crm_store_open(store, pool);
    ck_assert_int_eq(server.trips, 1);
    ck_assert_int_eq(server.checks, 0);
    ck_assert_uint_eq(shared.trips, 0);
    ck_assert(shared.away);
    crm_store_open(make_store(), pool);
    ck_assert_msg(server.trips == 1, "the host knows that it is away");
    apr_pool_destroy(pool);
    ck_assert_int_eq(server.closed, 2);
}
END_TEST

/* ---- requests that are served before the decision ------------------------ */

/* Set *BUDGET to a read of KEY, under a limit of 10, that may be decided later,
 * and charge it. */
static void charge_later(crm_budget_t *budget, crm_limit_key_t *key)
{
    *key = key_of(1, 0);
    *budget = budget_of(key, 10);
    budget->later = 1;
    budget->headers = apr_table_make(crm_check_pool(), 4);
    ck_assert_ptr_null(crm_budget_charge(budget, crm_check_pool()));
    ck_assert(budget->verdict.admitted);
}

START_TEST(a_decision_may_come_later)
{
    crm_limit_key_t keys[4];
    crm_budget_t budgets[4];

    server.room = 3;
    server.late = 1;
    for (int i = 0; i < 4; i++) {
        charge_later(&budgets[i], &keys[i]);
        ck_assert(budgets[i].undecided);
        crm_store_send(store);
    }
    ck_assert_msg(server.trips == 1 && !server.receiving, "no answer is waited"
                  " for");
    apr_table_setn(budgets[3].headers, "ETag", "\"1\"");
    ck_assert_ptr_null(crm_budget_settle(&budgets[2], crm_check_pool()));
    ck_assert_int_eq(server.trips, 2);
    ck_assert_int_eq(server.largest, 3);
    ck_assert_int_eq(server.receiving, 2);
    ck_assert_str_eq(apr_table_get(budgets[2].headers,
                                   "X-RateLimit-Remaining"), "0");
    ck_assert(crm_store_admits(store, &budgets[0].check));
    ck_assert_ptr_null(crm_budget_settle(&budgets[0], crm_check_pool()));
    ck_assert_ptr_null(crm_budget_settle(&budgets[1], crm_check_pool()));
    ck_assert_msg(!crm_store_admits(store, &budgets[3].check), "it is refused");
    ck_assert_int_eq(crm_budget_settle(&budgets[3], crm_check_pool())->code,
                     CRM_E_RATE_LIMITED);
    ck_assert_ptr_null(apr_table_get(budgets[3].headers, "ETag"));
    ck_assert_str_eq(apr_table_get(budgets[3].headers, "X-RateLimit-Limit"),
                     "10");
    ck_assert_msg(server.trips == 2 && server.receiving == 2, "all answers"
                  " came together");
    ck_assert_uint_eq(shared.counted, 4);
}
END_TEST

START_TEST(answers_that_have_arrived_are_taken_for_all)
{
    crm_limit_key_t keys[3];
    crm_budget_t budgets[3];

    for (int i = 0; i < 3; i++) {
        charge_later(&budgets[i], &keys[i]);
    }
    ck_assert_int_eq(server.trips, 0);
    crm_store_send(store);
    server.late = 1;
    crm_store_take(store);
    ck_assert_msg(!server.receiving, "it has not arrived");
    shared.away = 1;
    ck_assert_msg(!crm_store_admits(store, &budgets[1].check)
                  && !server.receiving, "one who retries does not hold up others");
    shared.away = 0;
    ck_assert(crm_store_admits(store, &budgets[1].check));
    ck_assert_msg(server.receiving == 1, "the answer is on its way: it is waited for");
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(crm_budget_settle(&budgets[i], crm_check_pool()));
    }
    ck_assert_int_eq(server.trips, 1);
    ck_assert_int_eq(server.checks, 3);
    ck_assert_msg(server.receiving == 1, "nobody asks again");
    ck_assert_uint_eq(shared.counted, 3);
}
END_TEST

START_TEST(near_its_limit_a_request_waits_for_the_decision)
{
    crm_limit_key_t key;
    crm_budget_t budget;

    server.room = 0;
    charge_later(&budget, &key);
    ck_assert_ptr_nonnull(crm_budget_settle(&budget, crm_check_pool()));
    now += server.reset_us;     /* the window opens */
    server.room = 100;
    for (int i = 0; i < 2; i++) {
        charge_later(&budget, &key);
        ck_assert_int_eq(budget.undecided, i);
        if (budget.undecided) {
            crm_budget_settle(&budget, crm_check_pool());
        }
        now += 60 * SECOND;
    }
}
END_TEST

/* A store that has lost its data knows of fewer requests. */
START_TEST(what_the_host_has_counted_counts_too)
{
    crm_limit_key_t key;
    crm_budget_t budget;

    server.room = 100;
    charge_later(&budget, &key);
    ck_assert_ptr_null(crm_budget_settle(&budget, crm_check_pool()));
    ck_assert_uint_eq(budget.verdict.remaining, 9);
}
END_TEST

START_TEST(the_host_decides_if_the_store_goes_meanwhile)
{
    crm_limit_key_t keys[3];
    crm_budget_t budgets[3];

    for (int i = 0; i < 3; i++) {
        charge_later(&budgets[i], &keys[i]);
    }
    server.reason = "away";
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(crm_budget_settle(&budgets[i], crm_check_pool()));
        ck_assert(crm_store_admits(store, &budgets[i].check));
        ck_assert_uint_eq(budgets[i].verdict.remaining, 9 - i);
    }
    ck_assert_int_eq(server.trips, 1);
    ck_assert_uint_eq(shared.alone, 3);
    charge_later(&budgets[0], &keys[0]);
    ck_assert_ptr_null(crm_budget_settle(&budgets[0], crm_check_pool()));
    ck_assert_int_eq(server.trips, 1);
    ck_assert_int_eq(logged.warnings, 1);
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

#define THREADS 20

static int asking;              /* threads on their way to the store */

static void *ask_once(void *admitted)
{
    crm_store_check_t check = {
        .key_id = "key", .class = CRM_LIMIT_READ, .limit = 100
    };

    __atomic_add_fetch(&asking, 1, __ATOMIC_SEQ_CST);
    crm_store_post(store, &check);
    crm_store_collect(store, &check);
    __atomic_add_fetch((int *)admitted, check.admitted, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Let one thread ask, which is held, and the others come meanwhile. Set REASON
 * for the held trip, and let go. Return how many were admitted. */
static int ask_together(const char *reason)
{
    pthread_t threads[THREADS];
    int admitted = 0;

    asking = 0;
    server.hold = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, ask_once, &admitted);
        pthread_mutex_lock(&mutex);
        while (!server.receiving) {
            pthread_cond_wait(&changed, &mutex);
        }
        pthread_mutex_unlock(&mutex);
    }
    while (__atomic_load_n(&asking, __ATOMIC_SEQ_CST) < THREADS) {
        usleep(1000);
    }
    usleep(100000);             /* from there to the queue */
    pthread_mutex_lock(&mutex);
    server.reason = reason;
    server.hold = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return admitted;
}

START_TEST(checks_that_wait_travel_together)
{
    ck_assert_int_eq(ask_together(NULL), THREADS);
    ck_assert_int_eq(server.checks, THREADS);
    ck_assert_int_le(server.trips, 4);
    ck_assert_int_ge(server.largest, THREADS - 4);
    ck_assert_int_eq(server.room, 1000 - THREADS);
}
END_TEST

START_TEST(nobody_waits_for_a_store_that_has_gone)
{
    ck_assert_int_eq(ask_together("away"), 0);
    ck_assert_int_eq(server.trips, 1);
    ck_assert_uint_eq(shared.alone, THREADS);
    ck_assert_int_eq(logged.warnings, 1);
}
END_TEST

/* ---- URLs ---------------------------------------------------------------- */

static const struct {
    const char *url, *name, *user, *file, *path, *host, *port;
    int tls, database;
} good[] = {
    {"redis://one", "redis://one", NULL, NULL, NULL, "one", "6379", 0, 0},
    {"redis://one:1", "redis://one:1", NULL, NULL, NULL, "one", "1", 0, 0},
    {"redis://one/7", "redis://one/7", NULL, NULL, NULL, "one", "6379", 0, 7},
    {"rediss://[::1]:65535/9999", "rediss://[::1]:65535/9999", NULL, NULL,
     NULL, "::1", "65535", 1, 9999},
    {"redis://[::1]", "redis://[::1]", NULL, NULL, NULL, "::1", "6379", 0, 0},
    {"rediss://me:/etc/a@b.pw@one:2/3", "rediss://one:2/3", "me",
     "/etc/a@b.pw", NULL, "one", "2", 1, 3},
    {"redis://:pw@one", "redis://one", "", "pw", NULL, "one", "6379", 0, 0},
    {"unix:/run/redis.sock", "unix:/run/redis.sock", NULL, NULL,
     "/run/redis.sock", NULL, NULL, 0, 0},
    {"unix:me:/etc/pw@/run/redis.sock", "unix:/run/redis.sock", "me",
     "/etc/pw", "/run/redis.sock", NULL, NULL, 0, 0},
};

START_TEST(urls)
{
    crm_redis_config_t parts;

    ck_assert_ptr_null(crm_redis_parse(&parts, good[_i].url,
                                       crm_check_pool()));
    ck_assert_str_eq(parts.name, good[_i].name);
    ck_assert_pstr_eq(parts.user, good[_i].user);
    ck_assert_pstr_eq(parts.password_file, good[_i].file);
    ck_assert_pstr_eq(parts.place.path, good[_i].path);
    ck_assert_pstr_eq(parts.place.host, good[_i].host);
    ck_assert_pstr_eq(parts.place.port, good[_i].port);
    ck_assert_int_eq(parts.tls, good[_i].tls);
    ck_assert_int_eq(parts.database, good[_i].database);
}
END_TEST

static const char *const bad[] = {
    "", "one", "http://one", "redis:one", "redis://", "redis://:1",
    "redis://one:", "redis://one:0", "redis://one:65536", "redis://one:x",
    "redis://one/", "redis://one/-1", "redis://one/10000", "redis://one/1/2",
    "redis://::1", "redis://[::1", "redis://[::1]1", "redis://pw@one",
    "redis://me:@one",
    "unix:", "unix:run", "unix:me@/run",
};

START_TEST(wrong_urls)
{
    crm_redis_config_t parts;

    ck_assert_msg(crm_redis_parse(&parts, bad[_i], crm_check_pool()) != NULL,
                  "%s", bad[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *tcase = tcase_create("store");

    crm_check_pool();
    tcase_add_checked_fixture(tcase, set_up, teardown);
    tcase_add_test(tcase, the_store_decides);
    tcase_add_test(tcase, a_refusal_is_remembered_until_the_window_opens);
    tcase_add_test(tcase,
                   no_host_admits_more_if_the_store_forgets);
    tcase_add_test(tcase, unlimited_requests_do_not_ask);
    tcase_add_test(tcase, without_the_store_the_host_counts);
    tcase_add_test(tcase, one_request_of_the_host_tries_again);
    tcase_add_test(tcase, one_check_tries_again);
    tcase_add_test(tcase, a_queue_begins_anew_after_an_outage);
    tcase_add_test(tcase, no_check_tries_while_one_is_under_way);
    tcase_add_test(tcase, no_more_travel_together_than_there_is_room_for);
    tcase_add_test(tcase, a_slow_answer_closes_the_window_no_longer);
    tcase_add_test(tcase, without_memory_it_is_503);
    tcase_add_test(tcase, a_store_that_comes_and_goes_is_logged_once_a_minute);
    tcase_add_test(tcase, the_time_is_the_store_s);
    tcase_add_test(tcase, a_process_connects_before_it_is_asked);
    tcase_add_test(tcase, a_decision_may_come_later);
    tcase_add_test(tcase, answers_that_have_arrived_are_taken_for_all);
    tcase_add_test(tcase, near_its_limit_a_request_waits_for_the_decision);
    tcase_add_test(tcase, what_the_host_has_counted_counts_too);
    tcase_add_test(tcase, the_host_decides_if_the_store_goes_meanwhile);
    tcase_add_test(tcase, checks_that_wait_travel_together);
    tcase_add_test(tcase, nobody_waits_for_a_store_that_has_gone);
    tcase_add_loop_test(tcase, urls, 0, COUNT(good));
    tcase_add_loop_test(tcase, wrong_urls, 0, COUNT(bad));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
