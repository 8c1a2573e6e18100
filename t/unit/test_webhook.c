/* SPDX-License-Identifier: Apache-2.0 */
/* test_webhook.c: the schedule, answers, places (contract 12) */
#include "crm_check.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "crm_text.h"
#include "crmapid_webhook_retry.h"
#include "crmapid_webhook_slot.h"

/* How much later than now it is. */
static apr_time_t ahead;

apr_int64_t __real_crm_time_monotonic(void);
apr_int64_t __wrap_crm_time_monotonic(void);
apr_int64_t __wrap_crm_time_monotonic(void)
{
    return __real_crm_time_monotonic() + ahead;
}

/* What contract 12.3 says, with at most a tenth more. */
START_TEST(test_schedule)
{
    static const int seconds[] = {
        5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400
    };

    for (int made = 1; made <= 9; made++) {
        apr_interval_time_t least = apr_time_from_sec(seconds[made - 1]);

        for (int i = 0; i < 200; i++) {
            apr_interval_time_t delay = crmd_webhook_delay(made, 0);

            ck_assert_int_ge(delay, least);
            ck_assert_int_le(delay, least + least / 10);
        }
    }
    ck_assert_int_eq(crmd_webhook_delay(10, 0), -1);
    ck_assert_int_eq(crmd_webhook_delay(10, apr_time_from_sec(60)), -1);
    ck_assert_int_eq(crmd_webhook_delay(1000, 0), -1);
}
END_TEST

START_TEST(test_jitter)
{
    apr_interval_time_t first = crmd_webhook_delay(9, 0);
    int others = 0;

    for (int i = 0; i < 100; i++) {
        others += crmd_webhook_delay(9, 0) != first;
    }
    ck_assert_msg(others > 50, "receivers that fail together are tried"
                  " together: only %d of 100 delays differ", others);
}
END_TEST

START_TEST(test_retry_after)
{
    apr_interval_time_t day = apr_time_from_sec(86400);

    ck_assert_int_ge(crmd_webhook_delay(1, apr_time_from_sec(120)),
                     apr_time_from_sec(120));
    ck_assert_int_le(crmd_webhook_delay(1, apr_time_from_sec(120)),
                     apr_time_from_sec(132));
    /* a shorter one changes nothing */
    ck_assert_int_ge(crmd_webhook_delay(2, apr_time_from_sec(1)),
                     apr_time_from_sec(300));
    /* a longer one than a day is one of a day */
    ck_assert_int_ge(crmd_webhook_delay(1, 100 * day), day);
    ck_assert_int_le(crmd_webhook_delay(1, 100 * day), day + day / 10);
}
END_TEST

static void text_is(const char *in, apr_size_t len, const char *out)
{
    const char *got = crmd_webhook_text(in, len, crm_check_pool());

    ck_assert_str_eq(got, out);
    ck_assert(crm_text_valid_utf8(got, strlen(got)));
}

#define TEXT_IS(in, out) text_is(in, sizeof(in) - 1, out)

START_TEST(test_answers)
{
    TEXT_IS("", "");
    TEXT_IS("ok\n\tgood", "ok\n\tgood");
    TEXT_IS("a\0b\r\x1b[2J\x7f", "a?b??[2J?");
    TEXT_IS("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    /* cut in the middle of a character */
    TEXT_IS("x\xc3", "x");
    TEXT_IS("x\xe2\x82", "x");
    TEXT_IS("x\xf0\x9f\x98", "x");
    /* no UTF-8: overlong, a surrogate, Latin 1, beyond Unicode */
    TEXT_IS("\xc0\x80z", "??z");
    TEXT_IS("\xed\xa0\x80z", "???z");
    TEXT_IS("gr\xfc\xdf.", "gr??.");
    TEXT_IS("\xf4\x90\x80\x80z", "????z");
    TEXT_IS("\xff", "?");
    TEXT_IS("a\xed\xa0\x80", "a???");     /* at the end, too */
    TEXT_IS("a\xe2z", "a?z");
    /* what no character begins with is not the beginning of one */
    TEXT_IS("a\x80", "a?");
    TEXT_IS("a\xc1", "a?");
}
END_TEST

/* Whatever bytes come: the database takes it. */
START_TEST(test_any_answer)
{
    unsigned char bytes[CRMD_WEBHOOK_ANSWER];
    unsigned int seed = 12345;

    for (int n = 0; n < 500; n++) {
        apr_pool_t *pool;
        const char *text;

        apr_pool_create(&pool, crm_check_pool());
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1103515245u + 12345u;
            bytes[i] = (unsigned char)(seed >> 16);
        }
        text = crmd_webhook_text((const char *)bytes, sizeof(bytes), pool);
        ck_assert(crm_text_valid_utf8(text, strlen(text)));
        ck_assert_uint_ge(strlen(text), sizeof(bytes) - 3);
        apr_pool_destroy(pool);
    }
}
END_TEST

#define ONE "11111111-1111-4111-8111-111111111111"
#define TWO "22222222-2222-4222-8222-222222222222"
#define SLOW "33333333-3333-4333-8333-333333333333"
#define FAST "44444444-4444-4444-8444-444444444444"

#define THREADS 64

/* As the function, for an endpoint in a workspace of its own. */
static int enter_of(apr_interval_time_t *wait_p, const char *endpoint, int limit,
                    int threads)
{
    return crmd_webhook_enter(wait_p, endpoint, endpoint, limit, threads);
}

/* As the functions, for one that takes no time. */
static int enter(const char *endpoint, int limit)
{
    apr_interval_time_t wait;

    return enter_of(&wait, endpoint, limit, THREADS);
}

static void leave(const char *endpoint)
{
    crmd_webhook_leave(endpoint, 1);
}

START_TEST(test_places)
{
    ck_assert(enter(ONE, 2));
    ck_assert_msg(!enter(ONE, 2), "one that has not answered yet");
    leave(ONE);
    ck_assert(enter(TWO, 2));
    leave(TWO);
    ck_assert(enter(ONE, 2));
    ck_assert(enter(ONE, 2));
    ck_assert(!enter(ONE, 2));
    ck_assert_msg(enter(TWO, 2), "another endpoint waits, too");
    leave(ONE);
    ck_assert(enter(ONE, 2));
    ck_assert(!enter(ONE, 2));
    leave(ONE);
    leave(ONE);
    ck_assert(enter(TWO, 2));
    ck_assert(!enter(TWO, 2));
    leave(TWO);
    leave(TWO);
}
END_TEST

START_TEST(test_many_places)
{
    char id[1024][64];

    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < 1024; i++) {
            snprintf(id[i], sizeof(id[i]),
                     "%08d-0000-4000-8000-000000000000", i);
            ck_assert_msg(enter(id[i], 1), "endpoint %d", i);
        }
        ck_assert(!enter(ONE, 1));
        leave(id[17]);
        ck_assert(enter(ONE, 1));
        leave(ONE);
        for (int i = 0; i < 1024; i++) {
            if (i != 17) {
                leave(id[i]);
            }
        }
    }
}
END_TEST

#define SECOND APR_USEC_PER_SEC

/* Those that wait come one after the other, as fast as the endpoint is. */
START_TEST(test_waiting)
{
    apr_interval_time_t wait, last = 0;

    /* one that has taken 10 s: two at once make one each 5 s */
    ck_assert(enter(SLOW, 2));
    crmd_webhook_leave(SLOW, 10 * SECOND);
    ck_assert(enter(SLOW, 2));
    ck_assert(enter(SLOW, 2));
    for (int i = 0; i < 20; i++) {
        ck_assert(!enter_of(&wait, SLOW, 2, THREADS));
        ck_assert_int_ge(wait, SECOND / 5);
        if (i) {
            ck_assert_int_ge(wait - last, 4 * SECOND);
            ck_assert_int_le(wait - last, 6 * SECOND);
        }
        last = wait;
    }
    for (int i = 0; i < 1000; i++) {
        ck_assert(!enter_of(&wait, SLOW, 2, THREADS));
        ck_assert_int_le(wait, 300 * SECOND);
    }
    ck_assert_int_eq(wait, 300 * SECOND);
    /* once nothing is under way, nobody is waited for */
    leave(SLOW);
    leave(SLOW);
    ck_assert(enter(SLOW, 1));
    ck_assert(!enter_of(&wait, SLOW, 1, THREADS));
    ck_assert_int_le(wait, 10 * SECOND);
    leave(SLOW);
}
END_TEST

/* Of a fast endpoint many wait a short time. */
START_TEST(test_waiting_briefly)
{
    apr_interval_time_t wait;

    ck_assert(enter(FAST, 1));
    crmd_webhook_leave(FAST, SECOND / 200);
    ck_assert(enter(FAST, 1));
    for (int i = 0; i < 100; i++) {
        ck_assert(!enter_of(&wait, FAST, 1, THREADS));
    }
    ck_assert_int_ge(wait, SECOND / 2);
    ck_assert_int_le(wait, 3 * SECOND);
    ahead += wait - SECOND / 10;    /* it is nearly over */
    ck_assert(!enter_of(&wait, FAST, 1, THREADS));
    ck_assert_int_ge(wait, SECOND / 5);
    leave(FAST);
}
END_TEST

/* Of THREADS, slow endpoints together have MOST at once. */
static void check_slow_ones(int threads, int most)
{
    apr_interval_time_t wait;
    char id[8][64];

    for (int i = 0; i < 8; i++) {
        snprintf(id[i], sizeof(id[i]),
                 "%08d-0000-4000-8000-%012d", i, threads);
        ck_assert_msg(enter_of(&wait, id[i], 1, threads),
                      "nobody knows yet that it is slow");
        crmd_webhook_leave(id[i], 2 * SECOND);
    }
    for (int i = 0; i < 8; i++) {
        ck_assert_msg(enter_of(&wait, id[i], 1, threads)
                      == (i < most), "%d of %d threads", i + 1, threads);
    }
    ck_assert_int_ge(wait, SECOND / 5);
    ck_assert_msg(enter_of(&wait, FAST, 2, threads),
                  "a fast one waits for slow ones");
    crmd_webhook_leave(FAST, 1);
    crmd_webhook_leave(id[0], 10 * SECOND);
    ck_assert(enter_of(&wait, id[7], 1, threads));
    ahead += 301 * SECOND;
    for (int i = 0; i < 12; i++) {
        crmd_webhook_leave(id[7], 1);
        ck_assert(enter_of(&wait, id[7], 1, threads));
    }
    ck_assert_msg(enter_of(&wait, id[0], 1, threads),
                  "one that is fast again still counts");
    for (int i = 0; i < 8; i++) {
        crmd_webhook_leave(id[i], 1);
    }
}

START_TEST(test_slow_ones)
{
    check_slow_ones(1, 1);
    check_slow_ones(2, 1);
    check_slow_ones(3, 2);
    check_slow_ones(4, 3);
    check_slow_ones(8, 6);
}
END_TEST

/* Set ID to the id of endpoint NUMBER of workspace W, an endpoint of this test. */
static void name_endpoint(char id[64], char w, int number)
{
    snprintf(id, 64, "%08d-000%c-4000-8000-0a1100000000", number, w);
}

/* Let deliveries of W begin until one of its first MOST endpoints finds no thread of
 * THREADS. Return how many have begun. */
static int begin(char w, int most, int threads)
{
    apr_interval_time_t wait;
    char id[64], owner[64];
    int count = 0;

    name_endpoint(owner, w, 99);
    do {
        name_endpoint(id, w, count);
    } while (count < most && crmd_webhook_enter(&wait, owner, id, 1, threads)
             && ++count);
    return count;
}

/* Let COUNT deliveries of W end, which took TOOK. */
static void end(char w, int count, apr_interval_time_t took)
{
    char id[64];

    while (count--) {
        name_endpoint(id, w, count);
        crmd_webhook_leave(id, took);
    }
}

START_TEST(test_a_workspace_has_its_share)
{
    apr_interval_time_t wait;
    char id[64], owner[64];

    ck_assert_msg(begin('a', 4, 4) == 3, "nobody knows what is slow");
    name_endpoint(id, 'a', 3);
    name_endpoint(owner, 'a', 99);
    ck_assert(!crmd_webhook_enter(&wait, owner, id, 1, 4));
    ck_assert_msg(wait > 2 * SECOND, "it waits as for a slow one");
    ck_assert_msg(begin('b', 1, 4) == 1, "a neighbour finds a thread");
    end('b', 1, 1);
    end('a', 3, 0);
    ck_assert_msg(begin('a', 4, 4) == 4, "three are known not to be slow");
    end('a', 4, 1);
    ck_assert_msg(begin('a', 4, 4) == 4, "all are");
    end('a', 4, 10 * SECOND);
    ck_assert_msg(begin('a', 4, 4) == 2, "all are slow");
    ck_assert_msg(begin('b', 4, 4) == 4, "which is nothing to a neighbour");
    end('b', 4, 10 * SECOND);
    ck_assert_msg(begin('b', 4, 4) == 1, "unless that is slow, too");
    end('b', 1, 1);
    end('a', 2, 1);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(begin('a', 2, 4), 2);
        end('a', 2, 1);
    }
    ck_assert_msg(begin('a', 4, 4) == 2, "they were a short time ago");
    ck_assert_int_eq(begin('c', 4, 4), 3);
    end('c', 3, 1);
    end('a', 2, 1);
    ck_assert_int_eq(begin('a', 3, 3), 2);
    end('a', 2, 1);
    ahead += 301 * SECOND;
    ck_assert_int_eq(begin('a', 2, 2), 2);
    end('a', 2, 1);
    ck_assert_msg(begin('d', 3, 2) == 2, "of two threads it may have both");
    end('d', 2, 1);
}
END_TEST

/* How a slow endpoint is remembered: longer than fast ones. */
START_TEST(test_slow_is_remembered)
{
    static const char slow[] = "5d0c0000-0000-4000-8000-000000000000";
    apr_interval_time_t wait;
    char id[64];

    ck_assert(enter(slow, 1));
    crmd_webhook_leave(slow, 100 * SECOND);
    for (int i = 0; i < 3000; i++) {
        snprintf(id, sizeof(id), "%08d-0000-4000-8000-000000000000", i);
        ck_assert(enter(id, 1));
        leave(id);
    }
    ck_assert(enter(slow, 1));
    ck_assert(!enter(slow, 1));
    ck_assert(!enter_of(&wait, slow, 1, THREADS));
    ck_assert_int_ge(wait, 60 * SECOND);
    leave(slow);
}
END_TEST

/* Two that find no room at ENDPOINT: how long the second one waits. */
static apr_interval_time_t second_wait(const char *endpoint)
{
    apr_interval_time_t wait;

    ck_assert(enter(endpoint, 1));
    ck_assert(!enter(endpoint, 1));
    ck_assert(!enter_of(&wait, endpoint, 1, THREADS));
    leave(endpoint);
    return wait;
}

/* Of those that are not slow, the one that was used longest ago is forgotten. Nothing
 * of it is left for the next one. */
START_TEST(test_the_oldest_is_forgotten)
{
    static const char recent[] = "4ece0000-0000-4000-8000-000000000000";
    char id[64];

    ck_assert(enter(recent, 1));
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof(id), "%08d-0000-4000-8000-010000000000", i);
        ck_assert(enter(id, 1));
        crmd_webhook_leave(id, SECOND);
    }
    crmd_webhook_leave(recent, SECOND);
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "%08d-0000-4000-8000-020000000000", i);
        ck_assert_int_lt(second_wait(id), SECOND);
    }
    ck_assert_int_ge(second_wait(recent), SECOND);
}
END_TEST

/* Of four threads slow endpoints have three. Slow is also one whose first delivery
 * is under way for seconds, but not one that is merely not used. */
START_TEST(test_what_is_slow)
{
    static const char idle[] = "1d1e0000-0000-4000-8000-000000000000";
    static const char first[] = "f1250000-0000-4000-8000-000000000000";
    apr_interval_time_t wait;
    char id[3][64];

    ck_assert(enter_of(&wait, idle, 1, 4));
    crmd_webhook_leave(idle, 1);
    ck_assert(enter_of(&wait, first, 1, 4));
    crmd_webhook_leave(first, 3 * SECOND);
    for (int i = 0; i < 3; i++) {
        snprintf(id[i], sizeof(id[i]), "%08d-0000-4000-8000-510000000000", i);
        ck_assert(enter_of(&wait, id[i], 1, 4));
    }
    ck_assert_msg(enter_of(&wait, first, 1, 4), "no other is slow");
    crmd_webhook_leave(first, 3 * SECOND);
    ahead += 3 * SECOND;
    ck_assert_msg(!enter_of(&wait, first, 1, 4),
                  "three are, and it is known to be");
    ck_assert_msg(enter_of(&wait, idle, 1, 4), "it is not used");
    crmd_webhook_leave(idle, 1);
    crmd_webhook_leave(id[0], 1);
    ck_assert(enter_of(&wait, first, 1, 4));
    crmd_webhook_leave(first, 1);
    ck_assert(enter_of(&wait, first, 2, 4));
    ck_assert_msg(!enter_of(&wait, first, 2, 4),
                  "it has taken 2.25 s on average");
    crmd_webhook_leave(first, 1);
    for (int i = 1; i < 3; i++) {
        crmd_webhook_leave(id[i], 1);
    }
}
END_TEST

/* How many threads are between enter and leave. */
static int inside;
static int most;
static int entered;

static void *enter_often(void *baton)
{
    for (int i = 0; i < 20000; i++) {
        if (enter(ONE, 2)) {
            int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            int seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);

            while (now > seen
                   && !__atomic_compare_exchange_n(&most, &seen, now, 0,
                                                   __ATOMIC_SEQ_CST,
                                                   __ATOMIC_SEQ_CST)) {
            }
            __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
            sched_yield();          /* others come while it is inside */
            __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            leave(ONE);
        }
    }
    return baton;
}

START_TEST(test_places_of_threads)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, enter_often, NULL),
                         0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_gt(entered, 0);
    ck_assert_int_eq(most, 2);
    ck_assert(enter(ONE, 1));
    leave(ONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("webhook");
    TCase *tcase = tcase_create("webhook");

    crm_check_pool();
    tcase_add_test(tcase, test_schedule);
    tcase_add_test(tcase, test_jitter);
    tcase_add_test(tcase, test_retry_after);
    tcase_add_test(tcase, test_answers);
    tcase_add_test(tcase, test_any_answer);
    tcase_add_test(tcase, test_places);
    tcase_add_test(tcase, test_many_places);
    tcase_add_test(tcase, test_waiting);
    tcase_add_test(tcase, test_waiting_briefly);
    tcase_add_test(tcase, test_slow_ones);
    tcase_add_test(tcase, test_a_workspace_has_its_share);
    tcase_add_test(tcase, test_slow_is_remembered);
    tcase_add_test(tcase, test_the_oldest_is_forgotten);
    tcase_add_test(tcase, test_what_is_slow);
    tcase_add_test(tcase, test_places_of_threads);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
