/* SPDX-License-Identifier: Apache-2.0 */
/* test_limit_fork.c: rate limits under many processes, some of them killed */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crm_check.h"
#include "crm_limit_key.h"
#include "crm_limit_ring.h"
#include "crm_limit_validate.h"

/* The clock of all processes runs this much faster, so that many windows pass
 * in a second: a window is 100 ms. */
#define SPEED 600
#define WINDOW CRM_LIMIT_WINDOW_US

#define KEYS 8                  /* whose requests are recorded */
#define READS 40
#define WRITES 15
#define CAPACITY 64
#define VISITORS 200            /* further keys, which come and go */
#define WORKERS 4               /* processes */
#define THREADS 8               /* in all */
#define LOG_SIZE 200000         /* records of a thread */

/* The thread sanitizer sees what the threads of its process do and knows of no
 * other: one process has all threads there. */
#ifdef __SANITIZE_THREAD__
#define MANY 1
#else
#define MANY WORKERS
#endif

/* What became of one request. */
typedef struct record_t {
    apr_int64_t time;
    unsigned char key, class, admitted;
} record_t;

typedef struct log_t {
    apr_uint32_t count;
    record_t records[LOG_SIZE];
} log_t;

/* What the processes of a test share, beside the block. */
typedef struct stage_t {
    apr_int64_t start_ns;
    apr_uint32_t stop;
    apr_uint32_t touches[KEYS];
    log_t logs[THREADS];
} stage_t;

static crm_limit_t *block;
static stage_t *stage;
static const crm_limit_config_t config = {CAPACITY, {READS, WRITES}, 0};
static __thread apr_int64_t time_read;

static apr_int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (apr_int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The limiter reads the clock once in a request: TIME_READ is its time then. */
static apr_int64_t fast_clock(void)
{
    time_read = WINDOW + (monotonic_ns() - stage->start_ns) * SPEED / 1000;
    return time_read;
}

/* A clock that stands still, for tests of what a window has. */
static apr_int64_t stopped_clock(void)
{
    return time_read;
}

static void *shared(apr_size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

static crm_limit_key_t key_of(int n)
{
    crm_limit_key_t key;

    memset(&key, 0, sizeof(key));
    memcpy(key.hash, &n, sizeof(n));
    snprintf(key.key_id, sizeof(key.key_id), "%d", n);
    return key;
}

static void setup(void)
{
    apr_size_t size = crm_limit_size(&config);

    block = shared(size);
    stage = shared(sizeof(*stage));
    stage->start_ns = monotonic_ns();
    crm_limit_set_clock(fast_clock);
    ck_assert_ptr_null(crm_limit_init(block, size, &config,
                                      crm_check_pool()));
}

static void teardown(void)
{
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    munmap(block, crm_limit_size(&config));
    munmap(stage, sizeof(*stage));
}

static void nap(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

static int stopped(void)
{
    return (int)__atomic_load_n(&stage->stop, __ATOMIC_ACQUIRE);
}

static void stop(void)
{
    __atomic_store_n(&stage->stop, 1, __ATOMIC_RELEASE);
}

/* --- what workers do --- */

typedef struct worker_t {
    int number;                 /* its log */
    int keys;                   /* ask for that many recorded keys */
    int visitors;               /* do keys come and go meanwhile? */
    apr_uint32_t random;
} worker_t;

static apr_uint32_t random_below(worker_t *worker, apr_uint32_t bound)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 17;
    worker->random ^= worker->random << 5;
    return worker->random % bound;
}

/* Write down what became of a request; of the refused ones only some. */
static void write_down(worker_t *worker, int key, crm_limit_class_t class,
                       const crm_limit_verdict_t *verdict)
{
    log_t *list = &stage->logs[worker->number];
    apr_uint32_t count = list->count;
    record_t *record = &list->records[count];

    if (verdict->touch) {
        __atomic_fetch_add(&stage->touches[key], 1, __ATOMIC_RELAXED);
    }
    if (count == LOG_SIZE
        || (!verdict->admitted && random_below(worker, 256))) {
        return;
    }
    record->time = time_read;
    record->key = (unsigned char)key;
    record->class = (unsigned char)class;
    record->admitted = (unsigned char)verdict->admitted;
    __atomic_store_n(&list->count, count + 1, __ATOMIC_RELEASE);
}

/* Make a request of a recorded key. */
static void ask(worker_t *worker)
{
    int n = (int)random_below(worker, (apr_uint32_t)worker->keys);
    crm_limit_class_t class = random_below(worker, 4) ? CRM_LIMIT_READ
                                                      : CRM_LIMIT_WRITE;
    crm_limit_key_t key = key_of(n);
    crm_limit_verdict_t verdict;

    crm_limit_admit(&verdict, NULL, block, key.hash, 0, class,
                    config.ring[class], 0);
    if (verdict.known) {
        write_down(worker, n, class, &verdict);
    } else {
        /* It was idle, so that a visitor got its slot: nothing is forgiven. */
        crm_limit_add(block, &key, NULL);
    }
}

/* Let a visitor come, ask, or go. */
static void visit(worker_t *worker)
{
    int n = KEYS + (int)random_below(worker, VISITORS);
    crm_limit_key_t key = key_of(n), out;
    crm_limit_verdict_t verdict;

    if (!random_below(worker, 4)) {
        crm_limit_forget(block, key.hash, 0);
    } else if (crm_limit_find(&out, block, key.hash, 0)) {
        if (memcmp(&out, &key, sizeof(key))) {
            _exit(3);           /* one key's slot showed another's identity */
        }
        crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ, 3, 0);
    } else {
        crm_limit_add(block, &key, NULL);
    }
}

/* Work until the test says stop; should it be gone, for 100 seconds. */
static void *work(void *baton)
{
    worker_t *worker = baton;

    while (!stopped() && time_read < 1000 * WINDOW) {
        ask(worker);
        if (worker->visitors) {
            visit(worker);
        }
    }
    return NULL;
}

/* Start a process of THREADS_COUNT threads that all do work(), the first with
 * log number LOG. Return its id. */
static pid_t start(int log, int threads_count, int keys, int visitors)
{
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    pid_t pid;
    int i;

    fflush(stdout);
    pid = fork();
    if (pid) {
        ck_assert_int_gt(pid, 0);
        return pid;
    }
    for (i = 0; i < threads_count; i++) {
        workers[i].number = log + i;
        workers[i].keys = keys;
        workers[i].visitors = visitors;
        workers[i].random = (apr_uint32_t)(monotonic_ns() ^ getpid()) | 1;
        if (pthread_create(&threads[i], NULL, work, &workers[i])) {
            _exit(2);
        }
    }
    for (i = 0; i < threads_count; i++) {
        pthread_join(threads[i], NULL);
    }
    _exit(0);
}

/* Wait for process PID to end by itself and well. */
static void wait_for(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "a worker ended with status %#x", (unsigned)status);
}

static void add_keys(void)
{
    int n;

    for (n = 0; n < KEYS; n++) {
        crm_limit_key_t key = key_of(n);

        ck_assert_int_eq(crm_limit_add(block, &key, NULL), CRM_LIMIT_ADDED);
    }
}

/* --- the judge --- */

static int compare_times(const void *a, const void *b)
{
    apr_int64_t left = *(const apr_int64_t *)a;
    apr_int64_t right = *(const apr_int64_t *)b;

    return left < right ? -1 : left > right;
}

/* Set *TIMES_P to the sorted times of all requests of KEY and CLASS that were
 * ADMITTED or not; return how many they are. */
static int gather(apr_int64_t **times_p, int key, crm_limit_class_t class,
                  int admitted)
{
    apr_int64_t *times = malloc(THREADS * LOG_SIZE * sizeof(*times));
    apr_uint32_t i;
    int count = 0, log;

    for (log = 0; log < THREADS; log++) {
        const log_t *list = &stage->logs[log];
        apr_uint32_t end = __atomic_load_n(&list->count, __ATOMIC_ACQUIRE);

        ck_assert_msg(end < LOG_SIZE, "a log is full");
        for (i = 0; i < end; i++) {
            const record_t *record = &list->records[i];

            if (record->key == key && record->class == class
                && record->admitted == admitted) {
                times[count++] = record->time;
            }
        }
    }
    qsort(times, (size_t)count, sizeof(*times), compare_times);
    *times_p = times;
    return count;
}

/* Contract 4.1, never more: no LIMIT + 1 of the COUNT admissions at TIMES lie
 * within 60 s. */
static void never_more(const apr_int64_t *times, int count, int limit)
{
    int i;

    for (i = 0; i + limit < count; i++) {
        ck_assert_msg(times[i + limit] - times[i] >= WINDOW,
                      "%d admissions within %d us, %d are the limit",
                      limit + 1, (int)(times[i + limit] - times[i]), limit);
    }
}

/* Contract 4.1, never fewer: whenever one was REFUSED, LIMIT admissions were
 * in the 60 s before, but for LOST ones that nobody could write down. */
static void never_fewer(const apr_int64_t *times, int count,
                        const apr_int64_t *refused, int refused_count,
                        int limit, int lost)
{
    int first = 0, end = 0, i;

    for (i = 0; i < refused_count; i++) {
        while (end < count && times[end] <= refused[i]) {
            end++;
        }
        while (first < end && times[first] <= refused[i] - WINDOW) {
            first++;
        }
        ck_assert_msg(end - first + lost >= limit,
                      "refused with %d of %d counted", end - first, limit);
    }
}

/* Return whether something of each kind was recorded of KEYS_COUNT keys: refused
 * requests, and more admissions than a window has. */
static int is_enough(int keys_count)
{
    for (int i = 0; i < keys_count * CRM_LIMIT_CLASSES; i++) {
        int class = i % CRM_LIMIT_CLASSES, key = i / CRM_LIMIT_CLASSES;
        apr_int64_t *times, *refused;
        int admitted = gather(&times, key, (crm_limit_class_t)class, 1);
        int refusals = gather(&refused, key, (crm_limit_class_t)class, 0);

        free(times);
        free(refused);
        if (admitted <= (int)config.ring[class] || !refusals) {
            return 0;
        }
    }
    return 1;
}

/* Judge all that was recorded of KEYS_COUNT keys, when up to LOST admissions
 * were not. Return how many were. */
static int judge(int keys_count, int lost)
{
    int total = 0, key, class;

    for (key = 0; key < keys_count; key++) {
        for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
            apr_int64_t *times, *refused;
            int limit = (int)config.ring[class];
            int count = gather(&times, key, (crm_limit_class_t)class, 1);
            int refused_count = gather(&refused, key,
                                       (crm_limit_class_t)class, 0);

            never_more(times, count, limit);
            never_fewer(times, count, refused, refused_count, limit, lost);
            ck_assert_msg(lost || count > limit, "no window was passed");
            ck_assert_msg(lost || refused_count, "there was no demand");
            total += count;
            free(times);
            free(refused);
        }
    }
    return total;
}

/* Let COUNT processes share THREADS threads, which work on KEYS_COUNT keys until
 * there is something to judge, and judge. */
static void stress(int count, int keys_count, int visitors)
{
    pid_t pids[WORKERS];
    int threads = THREADS / count;
    crm_limit_stats_t stats;
    int total, i, key;

    add_keys();
    for (i = 0; i < count; i++) {
        pids[i] = start(i * threads, threads, keys_count, visitors);
    }
    nap(2000000);
    for (i = 0; i < 200 && !is_enough(keys_count); i++) {
        nap(100000);            /* others use the processors */
    }
    stop();
    for (i = 0; i < count; i++) {
        wait_for(pids[i]);
    }
    total = judge(keys_count, 0);
    crm_limit_stats(&stats, block);
    if (!visitors) {
        ck_assert_int_eq((int)(stats.admitted[0] + stats.admitted[1]), total);
    }
    ck_assert_uint_eq(stats.recovered, 0);
    for (key = 0; key < keys_count; key++) {
        /* Once in a window, of which the run had at most so many. */
        ck_assert_uint_ge(stage->touches[key], 2);
        ck_assert_int_le(stage->touches[key], fast_clock() / WINDOW);
    }
    printf("# %d admitted, %" APR_UINT64_T_FMT " refused in %d windows\n",
           total, stats.refused[0] + stats.refused[1],
           (int)(fast_clock() / WINDOW));
    fflush(stdout);
}

START_TEST(contract_4_1_one_key_many_processes)
{
    stress(MANY, 1, 0);
}
END_TEST

START_TEST(contract_4_1_many_keys_many_processes)
{
    stress(MANY, KEYS, 0);
}
END_TEST

START_TEST(contract_4_1_many_keys_while_others_come_and_go)
{
    stress(MANY, KEYS, 1);
}
END_TEST

START_TEST(contract_4_1_many_threads_of_one_process)
{
    stress(1, KEYS, 1);
}
END_TEST

/* --- killed processes --- */

START_TEST(killed_at_random_moments)
{
    pid_t pids[WORKERS];
    crm_limit_stats_t stats;
    worker_t dice = {0, 0, 0, 4711};
    apr_int64_t end = monotonic_ns() + APR_INT64_C(3000000000);
    int kills = 0, i;

    add_keys();
    for (i = 0; i < WORKERS; i++) {
        pids[i] = start(i, 1, KEYS, 1);
    }
    while (monotonic_ns() < end) {
        int status;

        nap(500 + (long)random_below(&dice, 4000));
        i = (int)random_below(&dice, WORKERS);
        ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                      "a worker ended with status %#x", (unsigned)status);
        kills++;
        ck_assert_pstr_eq(crm_limit_validate(block), NULL);
        pids[i] = start(i, 1, KEYS, 1);
    }
    stop();
    for (i = 0; i < WORKERS; i++) {
        wait_for(pids[i]);
    }
    crm_limit_stats(&stats, block);
    ck_assert_int_gt(judge(KEYS, kills), KEYS * (READS + WRITES));
    ck_assert_msg(stats.recovered > 0, "no kill met a lock in %d", kills);
    printf("# %d processes killed, %" APR_UINT64_T_FMT " with a lock\n", kills,
           stats.recovered);
    fflush(stdout);
}
END_TEST

/* Run STEP in a process that then dies with all locks that STEP took. */
static void die_after(void (*step)(void))
{
    pid_t pid;
    int status;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        step();
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Return the slot and *BUCKET_P the bucket of key N, whose lock is taken. */
static crm_slot_t *take_bucket(crm_bucket_t **bucket_p, int n)
{
    crm_limit_key_t key = key_of(n);

    *bucket_p = crm_bucket_of(block, key.hash, 0);
    pthread_mutex_lock(&(*bucket_p)->lock);
    return crm_slot_at(block, crm_chain_find(block, *bucket_p, key.hash, 0));
}

static void half_an_admission(void)
{
    crm_bucket_t *bucket;
    crm_slot_t *slot = take_bucket(&bucket, 0);
    crm_window_t *window = &slot->windows[CRM_LIMIT_READ];

    *crm_ring_time(block, crm_ring_end(block, window))
        = (apr_uint32_t)time_read;
    window->last = time_read;
}

START_TEST(half_an_admission_does_not_count)
{
    crm_limit_key_t key = key_of(0);
    crm_limit_verdict_t verdict;
    crm_limit_stats_t stats;

    add_keys();
    fast_clock();
    crm_limit_set_clock(stopped_clock);
    crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ, READS,
                    0);
    die_after(half_an_admission);
    crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ, READS,
                    0);
    ck_assert_int_eq(verdict.admitted, 1);
    ck_assert_uint_eq(verdict.remaining, READS - 2);
    crm_limit_stats(&stats, block);
    ck_assert_uint_eq(stats.recovered, 1);
}
END_TEST

static void slot_on_its_way_in(void)
{
    crm_allocator_t *allocator = &block->allocator;

    pthread_mutex_lock(&allocator->lock);
    if (allocator->free) {
        allocator->free = crm_slot_at(block, allocator->free)->next;
    } else {
        allocator->fresh++;
    }
}

static void slot_on_its_way_out(void)
{
    crm_bucket_t *bucket;
    crm_slot_t *slot;

    pthread_mutex_lock(&block->allocator.lock);
    slot = take_bucket(&bucket, 1);
    if (slot != crm_slot_at(block, bucket->first)) {
        abort();
    }
    bucket->first = slot->next;
}

/* Fill the block; every slot must be there. */
static void all_slots_are_there(void)
{
    crm_limit_key_t key;
    int n, result;

    for (n = 0; n <= CAPACITY; n++) {
        key = key_of(n);
        result = crm_limit_add(block, &key, NULL);
        ck_assert_msg(result == (n < CAPACITY ? CRM_LIMIT_ADDED
                                              : CRM_LIMIT_FULL),
                      "key %d of %d: %d", n, CAPACITY, result);
    }
}

/* Stop the clock: the tests that follow fill the block within a window. */
static apr_int64_t still_clock(void)
{
    return WINDOW;
}

START_TEST(no_slot_is_lost_on_its_way_in)
{
    crm_limit_key_t key = key_of(0);

    crm_limit_set_clock(still_clock);
    add_keys();
    die_after(slot_on_its_way_in); /* a fresh one */
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    crm_limit_forget(block, key.hash, 0);
    die_after(slot_on_its_way_in); /* a free one */
    die_after(slot_on_its_way_in);
    all_slots_are_there();
}
END_TEST

START_TEST(no_slot_is_lost_on_its_way_out)
{
    crm_limit_key_t key = key_of(1);
    crm_limit_stats_t stats;

    crm_limit_set_clock(still_clock);
    crm_limit_add(block, &key, NULL);
    die_after(slot_on_its_way_out);
    ck_assert_int_eq(crm_limit_find(NULL, block, key.hash, 0), 0);
    all_slots_are_there();
    crm_limit_stats(&stats, block);
    ck_assert_uint_eq(stats.recovered, 2);
    ck_assert_uint_eq(stats.slots, CAPACITY);
}
END_TEST

static void piece_on_its_way_in(void)
{
    pthread_mutex_lock(&block->allocator.lock);
    block->allocator.fresh_piece++;
}

static void piece_on_its_way_out(void)
{
    crm_bucket_t *bucket;
    crm_slot_t *slot;

    pthread_mutex_lock(&block->allocator.lock);
    slot = take_bucket(&bucket, 0);
    CRM_COMMIT(slot->windows[CRM_LIMIT_READ].head, 0);
}

/* A process that dies between a free list and a ring loses no piece. */
START_TEST(no_piece_is_lost)
{
    crm_limit_key_t key = key_of(0), other = key_of(1);
    crm_limit_verdict_t verdict;

    crm_limit_set_clock(still_clock);
    crm_limit_add(block, &key, NULL);
    crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ, READS,
                    0);
    die_after(piece_on_its_way_in);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    die_after(piece_on_its_way_out);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    ck_assert_uint_eq(block->allocator.fresh_piece, 2);
    crm_limit_add(block, &other, NULL);
    for (int i = 0; i < 2 * CRM_PIECE_TIMES; i++) {
        crm_limit_admit(&verdict, NULL, block, other.hash, 0, CRM_LIMIT_READ,
                        READS, 0);
        ck_assert_int_eq(verdict.admitted, 1);
    }
    ck_assert_uint_eq(block->allocator.fresh_piece, 2);
}
END_TEST

static void chain_in_a_knot(void)
{
    pthread_mutex_lock(&block->allocator.lock);
    crm_slot_at(block, 1)->next = 1;
}

/* What cannot be repaired is never let through uncounted (contract 4.5). */
START_TEST(damage_beyond_repair_admits_no_new_key)
{
    crm_limit_key_t key = key_of(0), other = key_of(1);

    crm_limit_set_clock(still_clock);
    crm_limit_add(block, &key, NULL);
    die_after(chain_in_a_knot);
    ck_assert_int_eq(crm_limit_add(block, &other, NULL), CRM_LIMIT_FULL);
    ck_assert_int_eq(crm_limit_add(block, &other, NULL), CRM_LIMIT_FULL);
    ck_assert_int_eq(crm_limit_find(NULL, block, key.hash, 0), 1);
    setup();                    /* for teardown() */
}
END_TEST

/* --- how fast --- */

/* Return the nanoseconds that each of COUNT requests of one key took. */
static int measure(int count)
{
    crm_limit_key_t key = key_of(0);
    crm_limit_verdict_t verdict;
    apr_int64_t start_ns = monotonic_ns();
    int i;

    for (i = 0; i < count; i++) {
        crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ,
                        READS, 0);
    }
    return (int)((monotonic_ns() - start_ns) / count);
}

/* Each request of many processes is counted; how fast that goes is printed. */
START_TEST(each_request_is_counted)
{
    enum { ALONE = 300000, EACH = 100000 };
    crm_limit_key_t key = key_of(0);
    pid_t pids[WORKERS];
    crm_limit_stats_t stats;
    int alone, together = 0, i;

    crm_limit_set_clock(NULL);
    crm_limit_add(block, &key, NULL);
    alone = measure(ALONE);
    fflush(stdout);
    for (i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            stage->logs[i].count = (apr_uint32_t)measure(EACH);
            _exit(0);
        }
        ck_assert_int_gt(pids[i], 0);
    }
    for (i = 0; i < WORKERS; i++) {
        wait_for(pids[i]);
        together += (int)stage->logs[i].count;
    }
    crm_limit_stats(&stats, block);
    ck_assert_uint_eq(stats.admitted[CRM_LIMIT_READ]
                      + stats.refused[CRM_LIMIT_READ], ALONE + WORKERS * EACH);
    ck_assert_uint_ge(stats.admitted[CRM_LIMIT_READ], READS);
    printf("# ns for one admission: %d alone, %d with %d processes on one key\n",
           alone, together / WORKERS, WORKERS);
    fflush(stdout);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limit_fork");
    TCase *tcase = tcase_create("limit_fork");

    crm_check_pool();
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, contract_4_1_one_key_many_processes);
    tcase_add_test(tcase, contract_4_1_many_keys_many_processes);
    tcase_add_test(tcase, contract_4_1_many_keys_while_others_come_and_go);
    tcase_add_test(tcase, contract_4_1_many_threads_of_one_process);
    tcase_add_test(tcase, killed_at_random_moments);
    tcase_add_test(tcase, half_an_admission_does_not_count);
    tcase_add_test(tcase, no_slot_is_lost_on_its_way_in);
    tcase_add_test(tcase, no_slot_is_lost_on_its_way_out);
    tcase_add_test(tcase, no_piece_is_lost);
    tcase_add_test(tcase, damage_beyond_repair_admits_no_new_key);
    tcase_add_test(tcase, each_request_is_counted);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
