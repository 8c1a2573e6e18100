/* SPDX-License-Identifier: Apache-2.0 */
/* store_driver.c: demand on a store of budgets, for t/29-limit-store.t
 *
 * store_driver load URL HOSTS PROCESSES THREADS KEYS LIMIT SECONDS TRIES
 *     HOSTS hosts of PROCESSES processes with THREADS threads each share TRIES
 *     requests of KEYS keys, evenly over SECONDS. Each host has shared memory
 *     of its own and a clock that is 10 minutes ahead of the one before.
 *     Writes "key microseconds" for each admission, by the server's clock as
 *     the back end got it, then one line of totals: "wrong" is how many
 *     requests were refused while the window had room all the time. The
 *     server's clock must be this machine's.
 * store_driver script SOCKET STEPS
 *     Runs the script with a clock of the driver's own beside crm_limit.c, on
 *     random requests: both must decide alike. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis.h>

#include "apr_time.h"

#include "crm_budget.h"
#include "crm_limit_key.h"
#include "crm_limit_test.h"
#include "crm_redis.h"
#include "crm_redis_url.h"
#include "crm_time.h"

#define LOG_MAX 1000000
#define TRIES_MAX 6000000

static void die(const char *what)
{
    fprintf(stderr, "store_driver: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Return SIZE bytes that processes share. */
static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        die("no memory");
    }
    return memory;
}

/* ---- load ---------------------------------------------------------------- */

/* What was admitted, by the back end, and what the hosts said. */
typedef struct journal_t {
    apr_uint32_t count;
    apr_uint64_t admitted, asked, alone, trips;
    apr_uint64_t elsewhen;      /* admissions outside of the call's time */
    struct {
        int key;
        apr_int64_t at;
    } entries[LOG_MAX];
    apr_uint32_t refusals;
    struct {
        int key;
        int took;               /* microseconds */
        apr_int64_t at;
    } refusal[TRIES_MAX];
} journal_t;

static journal_t *journal;
static apr_int64_t ahead;       /* of this host's clock */
static crm_store_backend_t real;

static apr_int64_t host_clock(void)
{
    return crm_time_monotonic() + ahead;
}

/* What the real back end has under way. */
static crm_store_check_t *checks[CRM_STORE_TOGETHER];
static int check_count;
static apr_time_t sent_at;

static const char *note_and_send(void *baton, crm_store_check_t *const *list,
                                 int count, apr_int64_t timeout)
{
    for (int i = 0; i < count; i++) {
        checks[i] = list[i];
    }
    check_count = count;
    sent_at = apr_time_now();
    return real.send(baton, list, count, timeout);
}

/* Note that CHECK was admitted. */
static void note_admission(const crm_store_check_t *check)
{
    apr_uint32_t n = __atomic_fetch_add(&journal->count, 1, __ATOMIC_RELAXED);

    if (n >= LOG_MAX) {
        die("too many admissions");
    }
    journal->entries[n].key = atoi(check->key_id);
    journal->entries[n].at = check->time_us;
    if (check->time_us < sent_at - 1000
        || check->time_us > apr_time_now() + 1000) {
        __atomic_fetch_add(&journal->elsewhen, 1, __ATOMIC_RELAXED);
    }
}

static const char *receive_and_note(void *baton, apr_int64_t timeout)
{
    const char *reason = real.receive(baton, timeout);

    for (int i = 0; i < check_count && !reason; i++) {
        if (checks[i]->admitted) {
            note_admission(checks[i]);
        }
    }
    return reason;
}

static void write_log(void *baton, crm_level_t level, const char *text)
{
    (void)baton;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

/* What a thread needs. */
typedef struct load_t {
    crm_limit_t *limit;
    crm_store_t *store;
    int keys, max, tries, number;
    apr_int64_t start, pace;    /* between two tries */
} load_t;

static crm_limit_key_t load_key(int n)
{
    crm_limit_key_t key = key_of(n + 1, 0);

    snprintf(key.key_id, sizeof(key.key_id), "%d-0000-0000", n);
    return key;
}

/* Note that a request of KEY was refused, which began AT. */
static void note_refusal(int key, apr_time_t at)
{
    apr_uint32_t n = __atomic_fetch_add(&journal->refusals, 1,
                                        __ATOMIC_RELAXED);

    if (n >= TRIES_MAX) {
        die("too many requests");
    }
    journal->refusal[n].key = key;
    journal->refusal[n].at = at;
    journal->refusal[n].took = (int)(apr_time_now() - at);
}

/* Make a request of key number N. LATER: it is served before the decision. */
static void try_once(const load_t *load, int n, int later, apr_pool_t *pool)
{
    crm_limit_key_t key = load_key(n);
    apr_time_t at = apr_time_now();
    crm_budget_t budget = {
        .limit = load->limit, .store = load->store, .key = &key,
        .class = CRM_LIMIT_READ, .max = (apr_uint32_t)load->max, .later = later
    };

    crm_budget_charge(&budget, pool);
    if (budget.undecided) {
        crm_store_send(load->store);
        sched_yield();
        crm_store_take(load->store);
        crm_budget_settle(&budget, pool);
    }
    if (budget.verdict.admitted) {
        __atomic_fetch_add(&journal->admitted, 1, __ATOMIC_RELAXED);
    }
    else {
        note_refusal(n, at);
    }
    apr_pool_clear(pool);
}

static void *demand(void *data)
{
    const load_t *load = data;
    apr_pool_t *pool;

    apr_pool_create(&pool, NULL);
    for (int i = 0; i < load->tries; i++) {
        apr_int64_t wait = load->start + i * load->pace - crm_time_monotonic();

        if (wait > 0) {
            usleep((useconds_t)wait);
        }
        try_once(load, (i + load->number) % load->keys, i % 2, pool);
    }
    apr_pool_destroy(pool);
    return NULL;
}

/* A process of a host. */
static void run_process(const load_t *load, int threads,
                        const crm_redis_config_t *server,
                        crm_store_shared_t *state)
{
    static const crm_log_t log = {write_log, NULL};
    crm_store_backend_t backend;
    apr_pool_t *pool;
    pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
    load_t *loads = calloc((size_t)threads, sizeof(*loads));

    apr_pool_create(&pool, NULL);
    if (!ids || !loads || crm_redis_create(&real, server, pool)) {
        die("no store");
    }
    backend = real;
    backend.send = note_and_send;
    backend.receive = receive_and_note;
    for (int i = 0; i < threads; i++) {
        loads[i] = *load;
        if (!i) {
            loads[0].store = crm_store_create(&backend, 5000000, state, &log,
                                              pool);
            crm_store_open(loads[0].store, pool);
        }
        loads[i].store = loads[0].store;
        loads[i].number = i * 7919;
        pthread_create(&ids[i], NULL, demand, &loads[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    apr_pool_destroy(pool);
    exit(EXIT_SUCCESS);
}

/* Start the PROCESSES of a host. Return what they share. */
static crm_store_shared_t *run_host(const load_t *common, int processes,
                                    int threads,
                                    const crm_redis_config_t *server)
{
    crm_limit_config_t size = {
        (apr_uint32_t)common->keys, {(apr_uint32_t)common->max, 1}, 0
    };
    crm_store_shared_t *state = share(sizeof(*state));
    load_t load = *common;

    load.limit = share(crm_limit_size(&size));
    if (crm_limit_init(load.limit, crm_limit_size(&size), &size,
                       crm_check_pool())) {
        die("no block");
    }
    for (int i = 0; i < common->keys; i++) {
        crm_limit_key_t key = load_key(i);

        crm_limit_add(load.limit, &key, NULL);
    }
    for (int i = 0; i < processes; i++) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_process(&load, threads, server, state);
        }
    }
    return state;
}

static int compare_times(const void *a, const void *b)
{
    const apr_int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Set *TIMES_P to when KEY was admitted, in order. Return how often. */
static size_t times_of(apr_int64_t **times_p, int key)
{
    apr_int64_t *times = malloc((journal->count + 1) * sizeof(*times));
    size_t count = 0;

    for (apr_uint32_t i = 0; times && i < journal->count; i++) {
        if (journal->entries[i].key == key) {
            times[count++] = journal->entries[i].at;
        }
    }
    qsort(times, count, sizeof(*times), compare_times);
    *times_p = times;
    return count;
}

/* Return how many of the COUNT TIMES are not after AT. */
static size_t count_until(const apr_int64_t *times, size_t count,
                          apr_int64_t at)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = (low + count) / 2;

        if (times[middle] <= at) {
            low = middle + 1;
        }
        else {
            count = middle;
        }
    }
    return low;
}

/* Print when KEY was admitted, in order. Return how many requests were refused
 * although at no moment of their duration MAX had been admitted in 60 s. */
static int report_key(int key, int max)
{
    apr_int64_t *times;
    size_t count = times_of(&times, key);
    int wrong = 0;

    for (apr_uint32_t i = 0; i < journal->refusals; i++) {
        apr_int64_t at = journal->refusal[i].at;

        wrong += journal->refusal[i].key == key
                 && (int)(count_until(times, count,
                                      at + journal->refusal[i].took)
                          - count_until(times, count, at - WINDOW)) < max;
    }
    for (size_t i = 0; i < count; i++) {
        printf("%d %" APR_INT64_T_FMT "\n", key, times[i]);
    }
    free(times);
    return wrong;
}

static int load(const char *url, int hosts, int processes, int threads,
                int keys, int max, int seconds, int tries)
{
    load_t common = {.keys = keys, .max = max};
    crm_store_shared_t *states[16];
    crm_redis_config_t server;
    int share_of = tries / (hosts * processes * threads), status, failed = 0;
    int wrong = 0;

    if (hosts > COUNT(states) || crm_redis_parse(&server, url,
                                                 crm_check_pool())) {
        die("hosts or URL");
    }
    server.prefix = "driver";
    journal = share(sizeof(*journal));
    common.tries = share_of;
    common.pace = (apr_int64_t)seconds * 1000000 / share_of;
    common.start = crm_time_monotonic() + 200000;
    crm_limit_set_clock(host_clock);
    for (int i = 0; i < hosts; i++) {
        ahead = i * 600 * SECOND;
        states[i] = run_host(&common, processes, threads, &server);
    }
    while (wait(&status) > 0) {
        failed |= status;
    }
    for (int i = 0; i < keys; i++) {
        wrong += report_key(i, max);
    }
    for (int i = 0; i < hosts; i++) {
        journal->asked += states[i]->counted;
        journal->alone += states[i]->alone;
        journal->trips += states[i]->trips;
    }
    printf("totals admitted %" APR_UINT64_T_FMT " refused %u wrong %d asked %"
           APR_UINT64_T_FMT " trips %" APR_UINT64_T_FMT
           " alone %" APR_UINT64_T_FMT " elsewhen %" APR_UINT64_T_FMT "\n",
           journal->admitted, journal->refusals, wrong, journal->asked,
           journal->trips, journal->alone, journal->elsewhen);
    return failed;
}

/* ---- script -------------------------------------------------------------- */

#define AT_ONCE 100

static redisContext *redis;
static char *script;            /* with a clock of the driver's own */

/* Set SCRIPT to the module's with ARGV[3] and ARGV[4] as the time. */
static void change_clock(void)
{
    static const char clock[] = "call('TIME')", own[]
        = "{ARGV[3],ARGV[4]}";
    const char *place = strstr(crm_store_script, clock);

    script = malloc(strlen(crm_store_script) + sizeof(own));
    if (!place || !script) {
        die("the script does not ask for the time");
    }
    sprintf(script, "%.*s%s%s", (int)(place - crm_store_script),
            crm_store_script, own, place + strlen(clock));
}

/* Send COUNT requests under LIMIT at AT. */
static void send_requests(apr_uint32_t limit, int count, apr_int64_t at)
{
    char seconds[24], rest[24];

    snprintf(seconds, sizeof(seconds), "%" APR_INT64_T_FMT, at / SECOND);
    snprintf(rest, sizeof(rest), "%" APR_INT64_T_FMT, at % SECOND);
    redisAppendCommand(redis, "EVAL %s 1 k %u %d %s %s", script, limit, count,
                       seconds, rest);
}

/* Take the reply to requests that were sent together. It admitted as many as
 * the result says. */
static crm_limit_verdict_t take_reply(void)
{
    crm_limit_verdict_t verdict = {0};
    redisReply *reply;

    if (redisGetReply(redis, (void **)&reply) != REDIS_OK) {
        die(redis->errstr);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        die(reply->str ? reply->str : "another reply");
    }
    verdict.admitted = (int)reply->element[1]->integer;
    verdict.remaining = (apr_uint32_t)reply->element[2]->integer;
    verdict.reset_us = reply->element[3]->integer;
    freeReplyObject(reply);
    return verdict;
}

/* Count COUNT requests under LIMIT in crm_limit.c. Return what take_reply()
 * must. */
static crm_limit_verdict_t read_some(apr_uint32_t limit, int count)
{
    crm_limit_verdict_t verdict = {0};
    int admitted = 0;

    for (int i = 0; i < count; i++) {
        verdict = read_1(limit);
        admitted += verdict.admitted;
    }
    verdict.admitted = admitted;
    return verdict;
}

/* Compare STEPS random requests, AT_ONCE together. */
static int compare_steps(int steps)
{
    static const apr_uint32_t limits[] = {1, 2, 7, 8, 40};
    const apr_int64_t epoch = 1700000000 * SECOND;
    crm_limit_verdict_t own[AT_ONCE];
    int different = 0, admitted = 0;

    for (int i = 0; i < steps; i += AT_ONCE) {
        for (int j = 0; j < AT_ONCE; j++) {
            apr_uint32_t limit = limits[random_below(COUNT(limits))];
            int count = random_below(2) ? 1 : 1 + (int)random_below(9);

            now += random_step();
            own[j] = read_some(limit, count);
            send_requests(limit, count, epoch + now);
        }
        for (int j = 0; j < AT_ONCE; j++) {
            crm_limit_verdict_t its = take_reply();

            admitted += its.admitted;
            different += its.admitted != own[j].admitted
                         || its.remaining != own[j].remaining
                         || its.reset_us != own[j].reset_us;
        }
    }
    printf("steps %d admitted %d different %d\n", steps, admitted, different);
    return different != 0;
}

/* The server's clock goes back an hour: the window goes on as it is. */
static int go_back(void)
{
    static const struct {
        apr_int64_t at;
        int admitted;
    } steps[] = {
        {10000, 1}, {10010, 1}, {10015, 0},
        {6415, 0}, {6416, 0}, {6464, 0}, {6465, 1}, {6470, 0}, {6475, 1},
        {6476, 0},
    };
    int wrong = 0;

    freeReplyObject(redisCommand(redis, "DEL k"));
    for (int i = 0; i < COUNT(steps); i++) {
        crm_limit_verdict_t verdict;

        send_requests(2, 1, steps[i].at * SECOND);
        verdict = take_reply();
        if (verdict.admitted != steps[i].admitted) {
            printf("at %d: %d, %d us\n", (int)steps[i].at, verdict.admitted,
                   (int)verdict.reset_us);
            wrong = 1;
        }
    }
    return wrong;
}

static int compare_script(const char *path, int steps)
{
    int wrong;

    redis = redisConnectUnix(path);
    if (!redis || redis->err) {
        die("no connection");
    }
    change_clock();
    now = 0;
    crm_limit_set_clock(fake_clock);
    config.keys = config.ring[CRM_LIMIT_WRITE] = 1;
    config.ring[CRM_LIMIT_READ] = 40;
    block = share(crm_limit_size(&config));
    if (crm_limit_init(block, crm_limit_size(&config), &config,
                       crm_check_pool())) {
        die("no block");
    }
    add(1);
    now = 100 * SECOND;
    wrong = compare_steps(steps) | go_back();
    redisFree(redis);
    free(script);
    return wrong;
}

int main(int argc, char **argv)
{
    int n[10] = {0}, failed = 1;

    for (int i = 3; i < argc && i < COUNT(n); i++) {
        n[i] = atoi(argv[i]);
    }
    crm_check_pool();
    signal(SIGPIPE, SIG_IGN);
    if (argc == 10 && !strcmp(argv[1], "load")) {
        failed = load(argv[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]);
    }
    else if (argc == 4 && !strcmp(argv[1], "script")) {
        failed = compare_script(argv[2], n[3]);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
