/* SPDX-License-Identifier: Apache-2.0 */
/* test_gmime.c: no mail holds up another one (contract 18.7): in one process,
 * mails are read and made while another mail is being read */
#include "crm_check.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <gmime/gmime.h>

#include "apr_strings.h"

#include "crm_mail.h"
#include "crmapid_mime.h"
#include "mail_kind.h"

#define SECONDS 60

static const char slow[] = "From: slow@example.com\n\nHello\n";

/* ---- a mail that takes long ---------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int held;                /* SLOW is being read */
static int released;            /* it may go on */
static int gave_up;             /* it went on without that */

/* Wait until *VALUE is set. Return whether it was. MUTEX is locked. */
static int wait_for(const int *value)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    while (!*value) {
        if (pthread_cond_timedwait(&changed, &mutex, &until)) {
            return *value;
        }
    }
    return 1;
}

/* The linker has what reads mails call this. */
__typeof__(crm_mail_kind) __real_crm_mail_kind;
__typeof__(crm_mail_kind) __wrap_crm_mail_kind;
void __wrap_crm_mail_kind(crm_mail_t *mail, GMimeMessage *mime,
                          const crm_mail_options_t *options, apr_pool_t *pool)
{
    if (mail->from && !strcmp(mail->from, "slow@example.com")) {
        pthread_mutex_lock(&mutex);
        held = 1;
        pthread_cond_broadcast(&changed);
        gave_up = !wait_for(&released);
        pthread_mutex_unlock(&mutex);
    }
    __real_crm_mail_kind(mail, mime, options, pool);
}

/* ---- mails --------------------------------------------------------------- */

static const char *read_text(const char *text, apr_pool_t *pool)
{
    static const crm_mail_options_t options = {.attachment_bytes = 1000};
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    return apr_pstrcat(pool, mail.from, "|", mail.from_name, "|",
                       mail.subject, "|", mail.text, NULL);
}

/* Return a mail made for recipient NUMBER; its date and boundary vary. */
static crmd_mail_t make_mail(int number, apr_pool_t *pool)
{
    static const crmd_config_t config = {
        .mail_from = "crm@example.com", .mail_from_name = "The CRM",
        .mail_domain = "crm.example.com"
    };
    crmd_message_t message = {
        .channel = &crm_channels[CRM_CHANNEL_EMAIL],
        .id = "0197c0de-0000-7000-8000-000000000001",
        .from = "eve@example.com", .from_name = "Ev\xc3\xa9",
        .to = apr_psprintf(pool, "ada%d@b\xc3\xbc""cher.example", number),
        .to_name = "Ada", .subject = "Hell\xc3\xb6", .text = "Dear \xc3\x84""da"
    };
    crmd_mail_t mail;

    ck_assert_ptr_null(crmd_mail_make(&mail, &message, &config, 1, pool));
    return mail;
}

static void *read_slow(void *pool)
{
    read_text(slow, pool);
    return NULL;
}

START_TEST(no_mail_waits_for_another_one)
{
    apr_pool_t *pool;
    pthread_t thread;
    int inside;

    apr_pool_create(&pool, crm_check_pool());
    crm_mail_init();
    ck_assert_int_eq(pthread_create(&thread, NULL, read_slow, pool), 0);
    pthread_mutex_lock(&mutex);
    inside = wait_for(&held);
    pthread_mutex_unlock(&mutex);
    ck_assert_msg(inside, "the slow mail is being read");

    ck_assert_str_eq(read_text("From: Ada <a@b.example>\nSubject: x\n\ny\n",
                               crm_check_pool()), "a@b.example|Ada|x|y");
    make_mail(1, crm_check_pool());
    pthread_mutex_lock(&mutex);
    released = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    ck_assert_msg(!gave_up, "the others were done while it was being read");
}
END_TEST

/* ---- many at once -------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 100

/* A mail with all that GMime decodes. */
static const char rich[] =
    "From: =?iso-8859-1?Q?J=F6rg?= <j@b.example>\n"
    "To: g: a@b.example, =?x-none?Q?x?= <c@d.example>;\n"
    "Subject: =?koi8-r?B?8NLJ18XU?=\nDate: Sat, 1 Jan 2000 00:00:00 +0000\n"
    "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
    "Content-Type: text/html; charset=iso-8859-2\n"
    "Content-Transfer-Encoding: quoted-printable\n\n<p>=B1 &auml;</p>\n--b\n"
    "Content-Type: image/png; name*=utf-8''%C3%A4\n"
    "Content-Transfer-Encoding: base64\n\nYQ==\n--b\n"
    "Content-Type: message/rfc822\n\nSubject: x\n\nx\n--b--\n";

/* Return 0 if each mail is read and made as if it was alone. */
static void *read_and_make(void *expected)
{
    apr_pool_t *pool;
    intptr_t wrong = 0;

    apr_pool_create(&pool, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        crmd_mail_t mail = make_mail(i, pool);

        wrong += strcmp(read_text(rich, pool), expected) != 0;
        wrong += strcmp(mail.to, apr_psprintf(
                            pool, "ada%d@xn--bcher-kva.example", i)) != 0;
        wrong += strcmp(read_text(mail.text, pool),
                        "eve@example.com|Ev\xc3\xa9|Hell\xc3\xb6|"
                        "Dear \xc3\x84""da") != 0;
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
    return (void *)wrong;
}

START_TEST(many_mails_are_read_and_made_at_once)
{
    union {
        const char *text;
        void *baton;
    } expected = {read_text(rich, crm_check_pool())};
    pthread_t threads[THREADS];

    ck_assert_str_eq(expected.text, "j@b.example|J\xc3\xb6rg|\xd0\x9f\xd1\x80"
                     "\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82|\xc4\x85 \xc3\xa4");
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_and_make,
                                        expected.baton), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gmime");
    TCase *threads = tcase_create("threads");

    crm_check_pool();
    tcase_add_test(threads, no_mail_waits_for_another_one);
    tcase_add_test(threads, many_mails_are_read_and_made_at_once);
    suite_add_tcase(suite, threads);
    return crm_check_main(suite);
}
