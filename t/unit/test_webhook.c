/* SPDX-License-Identifier: Apache-2.0 */
/* test_webhook.c: signing, the schedule, answers, places (contract 12) */
#include "crm_check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "apr_strings.h"

#include "crm_text.h"
#include "crmapid_webhook.h"

/* Return the signature with SECRET, in base64 as behind "whsec_". */
static const char *sign(const char *secret, const char *id,
                        const char *timestamp, const char *body)
{
    unsigned char key[128];
    size_t len = strlen(secret);
    int n = EVP_DecodeBlock(key, (const unsigned char *)secret, (int)len);

    ck_assert_int_gt(n, 0);
    while (len && secret[len - 1] == '=') {
        n--;
        len--;
    }
    return crmd_webhook_sign(key, (apr_size_t)n, id, timestamp, body,
                             strlen(body), crm_check_pool());
}

/* The vector of the Standard Webhooks' reference libraries. */
START_TEST(test_vector)
{
    ck_assert_str_eq(sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                          "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
                          "{\"test\": 2432232314}"),
                     "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}
END_TEST

START_TEST(test_everything_is_signed)
{
    static const char secret[] = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const char *right = sign(secret, "msg_1", "1", "{}");

    ck_assert_str_eq(right, sign(secret, "msg_1", "1", "{}"));
    ck_assert_str_ne(right, sign(secret, "msg_2", "1", "{}"));
    ck_assert_str_ne(right, sign(secret, "msg_1", "2", "{}"));
    ck_assert_str_ne(right, sign(secret, "msg_1", "1", "{ }"));
    ck_assert_str_ne(right, sign("NfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_1",
                                 "1", "{}"));
    /* the longest key; a body with more than one block */
    ck_assert_uint_eq(strlen(sign("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                                  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                                  "A==", "msg_1", "1",
                                  apr_pstrcat(crm_check_pool(), "{\"a\":\"",
                                              "0123456789012345678901234567",
                                              "0123456789012345678901234567",
                                              "0123456789012345678901234567",
                                              "\"}", NULL))), 47);
}
END_TEST

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

START_TEST(test_places)
{
    ck_assert(crmd_webhook_enter(ONE, 2));
    ck_assert(crmd_webhook_enter(ONE, 2));
    ck_assert(!crmd_webhook_enter(ONE, 2));
    ck_assert_msg(crmd_webhook_enter(TWO, 2), "another endpoint waits, too");
    crmd_webhook_leave(ONE);
    ck_assert(crmd_webhook_enter(ONE, 2));
    ck_assert(!crmd_webhook_enter(ONE, 2));
    crmd_webhook_leave(ONE);
    crmd_webhook_leave(ONE);
    ck_assert(crmd_webhook_enter(TWO, 2));
    ck_assert(!crmd_webhook_enter(TWO, 2));
    crmd_webhook_leave(TWO);
    crmd_webhook_leave(TWO);
}
END_TEST

START_TEST(test_many_places)
{
    char id[64][37];

    for (int i = 0; i < 64; i++) {
        snprintf(id[i], sizeof(id[i]), "%08d-0000-4000-8000-000000000000", i);
        ck_assert_msg(crmd_webhook_enter(id[i], 1), "endpoint %d", i);
    }
    ck_assert(!crmd_webhook_enter(ONE, 1));
    crmd_webhook_leave(id[17]);
    ck_assert(crmd_webhook_enter(ONE, 1));
    crmd_webhook_leave(ONE);
    for (int i = 0; i < 64; i++) {
        if (i != 17) {
            crmd_webhook_leave(id[i]);
        }
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
        if (crmd_webhook_enter(ONE, 2)) {
            int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            int seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);

            while (now > seen
                   && !__atomic_compare_exchange_n(&most, &seen, now, 0,
                                                   __ATOMIC_SEQ_CST,
                                                   __ATOMIC_SEQ_CST)) {
            }
            __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
            __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            crmd_webhook_leave(ONE);
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
    ck_assert_int_le(most, 2);
    ck_assert(crmd_webhook_enter(ONE, 1));
    crmd_webhook_leave(ONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("webhook");
    TCase *tcase = tcase_create("webhook");

    crm_check_pool();
    tcase_add_test(tcase, test_vector);
    tcase_add_test(tcase, test_everything_is_signed);
    tcase_add_test(tcase, test_schedule);
    tcase_add_test(tcase, test_jitter);
    tcase_add_test(tcase, test_retry_after);
    tcase_add_test(tcase, test_answers);
    tcase_add_test(tcase, test_any_answer);
    tcase_add_test(tcase, test_places);
    tcase_add_test(tcase, test_many_places);
    tcase_add_test(tcase, test_places_of_threads);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
