/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay.c: choosing a relay, and the maildir */
#include "crm_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crmapid_outbox.h"
#include "crmapid_relay.h"

#define MAIL_CHANNEL (&crm_channels[CRM_CHANNEL_EMAIL])
#define SMS_CHANNEL (&crm_channels[CRM_CHANNEL_TEXT])
#define VOICE_CHANNEL (&crm_channels[CRM_CHANNEL_PHONE])

#define ID "0197c0de-0000-7000-8000-000000000001"

static char root[] = "/tmp/crm-relay-XXXXXX";

static void make_root(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void)
{
    const char *command = apr_pstrcat(crm_check_pool(), "chmod -R u+rwx ",
                                      root, "; rm -rf ", root, NULL);

    ck_assert_int_eq(system(command), 0);
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
}

static crmd_config_t *config_of(void)
{
    crmd_config_t *config = apr_pcalloc(crm_check_pool(), sizeof(*config));

    config->mail_from = "sales@example.com";
    config->mail_from_name = config->sms_from = config->voice_from = "";
    config->mail_domain = "crm.example.com";
    config->email_relay = config->sms_relay = "maildir";
    config->voice_relay = "maildir";
    config->maildir = apr_pstrcat(crm_check_pool(), root, "/a/outbox", NULL);
    config->relay_concurrency = 2;
    return config;
}

static const crmd_message_t message = {
    .channel = MAIL_CHANNEL, .id = ID, .to = "ada@example.org", .subject = "Hello",
    .text = "Dear Ada"
};

static crmd_receipt_t hand_over(const crmd_config_t *config,
                                const crmd_message_t *msg)
{
    crmd_receipt_t receipt;

    crmd_relay_send(&receipt, &crmd_relay_maildir, msg, config,
                    crm_check_pool());
    ck_assert_msg((receipt.verdict == CRMD_SENT) == !receipt.reason,
                  "verdict %d: %s", receipt.verdict, receipt.reason);
    return receipt;
}

/* Return the number of files in FOLDER of CONFIG's maildir. */
static int count(const crmd_config_t *config, const char *folder)
{
    DIR *dir = opendir(apr_pstrcat(crm_check_pool(), config->maildir, "/",
                                   folder, NULL));
    struct dirent *entry;
    int n = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        n += *entry->d_name != '.';
    }
    closedir(dir);
    return n;
}

static int mode_of(const crmd_config_t *config, const char *path)
{
    struct stat info;

    path = apr_pstrcat(crm_check_pool(), config->maildir, path, NULL);
    ck_assert_int_eq(stat(path, &info), 0);
    return (int)info.st_mode & 0777;
}

START_TEST(the_configuration_chooses)
{
    static const char *const names[] = {"maildir", "smtp", "http", "twilio"};
    crmd_config_t *config = config_of();

    for (int i = 0; i < 4; i++) {
        config->email_relay = names[i];
        config->sms_relay = names[(i + 1) % 4];
        config->voice_relay = names[(i + 2) % 4];
        ck_assert_str_eq(crmd_relay_of(config, MAIL_CHANNEL)->name, names[i]);
        ck_assert_str_eq(crmd_relay_of(config, SMS_CHANNEL)->name,
                         names[(i + 1) % 4]);
        ck_assert_str_eq(crmd_relay_of(config, VOICE_CHANNEL)->name,
                         names[(i + 2) % 4]);
        ck_assert_str_eq(crmd_relays[i]->name, names[i]);
    }
    ck_assert_ptr_null(crmd_relays[4]);
    ck_assert_ptr_null(crmd_relay_maildir.check(config, SMS_CHANNEL,
                                                crm_check_pool()));
    config->maildir = "";
    ck_assert_ptr_nonnull(crmd_relay_maildir.check(config, SMS_CHANNEL,
                                                   crm_check_pool()));
}
END_TEST

START_TEST(a_message_is_a_file)
{
    static const crm_channel_t *const channels[] = {
        MAIL_CHANNEL, SMS_CHANNEL, VOICE_CHANNEL
    };
    crmd_config_t *config = config_of();
    crmd_message_t msg = message;

    umask(0);
    for (int i = 0; i < 3; i++) {
        crmd_receipt_t receipt;

        msg.channel = channels[i];
        msg.id = apr_psprintf(crm_check_pool(), ID "%d", i);
        msg.to = i ? "+491701234567" : "ada@example.org";
        receipt = hand_over(config, &msg);
        ck_assert_msg(receipt.verdict == CRMD_SENT, "%s", receipt.reason);
        ck_assert_str_eq(receipt.provider_id,
                         apr_pstrcat(crm_check_pool(), "<", msg.id,
                                     "@crm.example.com>", NULL));
        ck_assert_int_eq(count(config, "new"), i + 1);
        ck_assert_int_eq(mode_of(config, apr_pstrcat(
            crm_check_pool(), "/new/", msg.id, ".crmapi", NULL)), 0600);
    }
    ck_assert_int_eq(count(config, "tmp"), 0);
    ck_assert_int_eq(mode_of(config, ""), 0700);
    ck_assert_int_eq(mode_of(config, "/new"), 0700);
    ck_assert_int_eq(mode_of(config, "/tmp"), 0700);
    ck_assert_int_eq(mode_of(config, "/cur"), 0700);
}
END_TEST

START_TEST(handed_over_again_it_stays_one)
{
    crmd_config_t *config = config_of();
    const char *to = apr_pstrcat(crm_check_pool(), config->maildir,
                                 "/cur/" ID ".crmapi:2,S", NULL);
    const char *from = apr_pstrcat(crm_check_pool(), config->maildir,
                                   "/new/" ID ".crmapi", NULL);
    struct stat first, again;

    ck_assert(crmd_relay_maildir.repeatable(config));
    ck_assert_int_eq(hand_over(config, &message).verdict, CRMD_SENT);
    ck_assert_int_eq(stat(from, &first), 0);
    ck_assert_int_eq(hand_over(config, &message).verdict, CRMD_SENT);
    ck_assert_int_eq(count(config, "new"), 1);
    ck_assert_int_eq(stat(from, &again), 0);
    ck_assert_msg(first.st_ino == again.st_ino, "it is another file");
    /* A reader has seen it. */
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(hand_over(config, &message).verdict, CRMD_SENT);
    ck_assert_int_eq(count(config, "new"), 0);
    ck_assert_int_eq(count(config, "cur"), 1);
    ck_assert_int_eq(count(config, "tmp"), 0);
}
END_TEST

static void *hand_over_often(void *argument)
{
    crmd_config_t *config = argument;
    crmd_receipt_t receipt;
    apr_pool_t *pool;

    apr_pool_create(&pool, NULL);
    for (int i = 0; i < 20; i++) {
        crmd_relay_enter(&crmd_relay_maildir, config);
        crmd_relay_send(&receipt, &crmd_relay_maildir, &message, config, pool);
        crmd_relay_leave(&crmd_relay_maildir);
        if (receipt.verdict != CRMD_SENT) {
            break;
        }
    }
    apr_pool_destroy(pool);
    return receipt.verdict == CRMD_SENT ? argument : NULL;
}

START_TEST(threads_make_one_file_too)
{
    crmd_config_t *config = config_of();
    pthread_t threads[4];
    void *result;

    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, hand_over_often, config);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        ck_assert_ptr_nonnull(result);
    }
    ck_assert_int_eq(count(config, "new"), 1);
    ck_assert_int_eq(count(config, "tmp"), 0);
}
END_TEST

START_TEST(no_folder_is_not_now)
{
    crmd_config_t *config = config_of();
    crmd_receipt_t receipt;
    int fd;

    /* A file where a folder should be stops even root. */
    fd = open(apr_pstrcat(crm_check_pool(), root, "/a", NULL),
              O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    receipt = hand_over(config, &message);
    ck_assert_int_eq(receipt.verdict, CRMD_NOT_NOW);
    ck_assert_msg(strstr(receipt.reason, "/a/outbox"), "%s", receipt.reason);
}
END_TEST

/* Whether the mail was read there is not known. */
START_TEST(what_was_read_must_be_known)
{
    crmd_config_t *config = config_of();
    apr_int64_t forgotten;
    int fd;

    ck_assert_int_eq(hand_over(config, &message).verdict, CRMD_SENT);
    ck_assert_ptr_null(crmd_outbox_forget(&forgotten, apr_pstrcat(
        crm_check_pool(), root, "/none", NULL), NULL, crm_check_pool()));
    ck_assert_int_eq(unlink(apr_pstrcat(crm_check_pool(), config->maildir,
                                        "/new/" ID ".crmapi", NULL)), 0);
    ck_assert_int_eq(rmdir(apr_pstrcat(crm_check_pool(), config->maildir,
                                       "/cur", NULL)), 0);
    fd = open(apr_pstrcat(crm_check_pool(), config->maildir, "/cur", NULL),
              O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(hand_over(config, &message).verdict, CRMD_NOT_NOW);
    ck_assert_int_eq(count(config, "new"), 0);
    ck_assert_ptr_nonnull(crmd_outbox_forget(&forgotten, config->maildir,
                                             NULL, crm_check_pool()));
}
END_TEST

START_TEST(no_room_is_not_now)
{
    crmd_config_t *config = config_of();
    crmd_message_t msg = message;
    char *text = apr_pcalloc(crm_check_pool(), 200001);
    struct rlimit limit, before;
    crmd_receipt_t receipt;

    signal(SIGXFSZ, SIG_IGN);
    msg.text = memset(text, 'x', 200000);
    /* Files of 100,000 bytes, which is enough for Check's own: write() fails as
     * it does when the disk is full. */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    receipt = hand_over(config, &msg);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(receipt.verdict, CRMD_NOT_NOW);
    ck_assert_int_eq(count(config, "tmp"), 0);
    ck_assert_int_eq(count(config, "new"), 0);
}
END_TEST

START_TEST(an_id_is_no_path)
{
    static const char *const ids[] = {"../x", "a/b", "/etc/x", "", "a\nb"};
    crmd_config_t *config = config_of();
    crmd_message_t msg = message;

    for (size_t i = 0; i < CRM_NELTS(ids); i++) {
        msg.id = ids[i];
        ck_assert_int_eq(hand_over(config, &msg).verdict, CRMD_REFUSED);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relay");
    TCase *maildir = tcase_create("maildir");

    tcase_add_checked_fixture(maildir, make_root, remove_root);
    tcase_add_test(maildir, the_configuration_chooses);
    tcase_add_test(maildir, a_message_is_a_file);
    tcase_add_test(maildir, handed_over_again_it_stays_one);
    tcase_add_test(maildir, threads_make_one_file_too);
    tcase_add_test(maildir, no_folder_is_not_now);
    tcase_add_test(maildir, what_was_read_must_be_known);
    tcase_add_test(maildir, no_room_is_not_now);
    tcase_add_test(maildir, an_id_is_no_path);
    suite_add_tcase(suite, maildir);
    return crm_check_main(suite);
}
