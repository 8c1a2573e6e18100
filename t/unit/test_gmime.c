/* SPDX-License-Identifier: Apache-2.0 */
/* test_gmime.c: GMime is no library for several threads: mails that come and
 * mails that go, in one process, use it one after the other */
#include "crm_check.h"

#include <pthread.h>
#include <unistd.h>

#include <gmime/gmime.h>

#include "crm_mail.h"
#include "crmapid_mime.h"

/* How long whoever is in GMime waits for somebody else to come in, too. */
#define WAIT_MS 500

static int begun;               /* threads that have set out */
static int inside;              /* that are in GMime now */
static int visits;              /* that have been there */
static int met;                 /* two were there at once */

static int get(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

/* In GMime: once both threads have set out, wait for the other. */
static void visit(void)
{
    __atomic_add_fetch(&visits, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    while (get(&begun) < 2) {
        usleep(1000);
    }
    for (int ms = 0; ms < WAIT_MS && !get(&met); ms++) {
        if (get(&inside) > 1) {
            __atomic_store_n(&met, 1, __ATOMIC_SEQ_CST);
        }
        usleep(1000);
    }
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

/* The linker has what reads and makes mails call these. */
GMimeMessage *__real_g_mime_message_new(gboolean pretty);
GMimeMessage *__wrap_g_mime_message_new(gboolean pretty);
GMimeMessage *__wrap_g_mime_message_new(gboolean pretty)
{
    visit();
    return __real_g_mime_message_new(pretty);
}

GMimeMessage *__real_g_mime_parser_construct_message(
    GMimeParser *parser, GMimeParserOptions *options);
GMimeMessage *__wrap_g_mime_parser_construct_message(
    GMimeParser *parser, GMimeParserOptions *options);
GMimeMessage *__wrap_g_mime_parser_construct_message(
    GMimeParser *parser, GMimeParserOptions *options)
{
    if (get(&begun)) {          /* not what crm_mail_init() reads */
        visit();
    }
    return __real_g_mime_parser_construct_message(parser, options);
}

static void *read_mail(void *pool)
{
    static const char text[] = "From: a@example.com\n\nHello\n";
    static const crm_mail_options_t options = {.hourly = 1};
    crm_mail_t mail;

    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    crm_mail_read(&mail, text, sizeof(text) - 1, &options, pool);
    return NULL;
}

static void *make_mail(void *pool)
{
    static const crmd_config_t config = {
        .mail_from = "crm@example.com", .mail_from_name = "The CRM",
        .mail_domain = "crm.example.com"
    };
    static const crmd_message_t message = {
        .channel = "email", .id = "0197c0de-0000-7000-8000-000000000001",
        .from = "eve@example.com", .from_name = "Eve",
        .to = "ada@example.org", .to_name = "Ada", .subject = "Hello",
        .text = "Dear Ada"
    };
    crmd_mail_t mail;

    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    crmd_mail_make(&mail, &message, &config, 0, pool);
    return NULL;
}

START_TEST(mails_are_read_and_made_one_after_the_other)
{
    void *(*const work[])(void *) = {read_mail, make_mail};
    apr_pool_t *parent = crm_check_pool();
    pthread_t threads[2];

    crm_mail_init();
    for (int i = 0; i < 2; i++) {
        apr_pool_t *pool;

        apr_pool_create(&pool, parent);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work[i], pool), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(visits, 2);
    ck_assert_msg(!met, "both were in GMime at the same time");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gmime");
    TCase *threads = tcase_create("threads");

    tcase_add_test(threads, mails_are_read_and_made_one_after_the_other);
    suite_add_tcase(suite, threads);
    return crm_check_main(suite);
}
