/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal.c: the journal of a daemon over days, restarts and failures
 * (contract 11.11, 14.4) */
#include "crm_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crmapid_journal.h"

#define ID "0197c0de-0000-7000-8000-000000000001"
#define OTHER "0197c0de-0000-7000-8000-000000000002"

#define DAY apr_time_from_sec(86400)
#define NOON (apr_time_from_sec(1769860800))    /* 2026-01-31T12:00:00Z */
#define KEEP (3 * DAY)

static char root[] = "/tmp/crm-journal-XXXXXX";
static crmd_numbers_t numbers;

/* The time that the journal sees. */
static apr_time_t now;

apr_time_t __wrap_apr_time_now(void);
apr_time_t __wrap_apr_time_now(void)
{
    return now;
}

/* How far the device of an open file is from that of its path. */
static dev_t moved;

int __real_fstat(int fd, struct stat *info);
int __wrap_fstat(int fd, struct stat *info);
int __wrap_fstat(int fd, struct stat *info)
{
    int result = __real_fstat(fd, info);

    info->st_dev += moved;
    return result;
}

static void make_root(void)
{
    umask(0);
    now = NOON;
    moved = 0;
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void)
{
    ck_assert_int_eq(system(apr_pstrcat(crm_check_pool(), "rm -rf ", root,
                                        NULL)), 0);
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
}

static const char *path_of(const char *name)
{
    return apr_pstrcat(crm_check_pool(), root, "/run/", name, NULL);
}

static void open_journal(void)
{
    crm_error_t *error = crmd_journal_open(&numbers, path_of(""), ID, KEEP,
                                           crm_check_pool());

    ck_assert_msg(!error, "%s", error ? error->message : "");
}

/* Write a line of NUMBER; the error. */
static crm_error_t *add(int number)
{
    const char *line = apr_psprintf(crm_check_pool(), "{\"mark\":%d}\n",
                                    number);

    return crmd_journal_add(line, strlen(line), 1, crm_check_pool());
}

/* A crmd_journal_each() taker: add LINE to the text at BATON. */
static crm_error_t *take(void *baton, const char *line)
{
    const char **text = baton;

    *text = apr_pstrcat(crm_check_pool(), *text, line, " ", NULL);
    return NULL;
}

static const char *lines(void)
{
    const char *text = "";

    ck_assert_ptr_null(crmd_journal_each(take, &text, crm_check_pool()));
    return text;
}

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int exists(const char *name)
{
    return !access(path_of(name), F_OK);
}

/* Return how many entries the folder PATH has. */
static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = -2;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* keep_sent: files of days that are older go, and nothing else does. */
START_TEST(days_are_kept_for_a_time)
{
    static const struct {
        const char *name;
        int stays;
    } files[] = {
        {"sent." ID ".20260131", 1}, {"sent." ID ".20260130", 1},
        {"sent." ID ".20260129", 1}, {"sent." ID ".20260128", 1},
        {"sent." ID ".20260127", 0}, {"sent." ID ".20251231", 0},
        {"sent." OTHER ".20250101", 1}, {"sent." ID ".2025010", 1},
        {"sent." ID ".20250101x", 1}, {"other." ID ".20250101", 1},
    };

    ck_assert_int_eq(mkdir(path_of(""), 0700), 0);
    for (size_t i = 0; i < CRM_NELTS(files); i++) {
        make_file(files[i].name, "{}\n");
    }
    open_journal();
    for (size_t i = 0; i < CRM_NELTS(files); i++) {
        ck_assert_msg(exists(files[i].name) == files[i].stays, "%s",
                      files[i].name);
    }
    now += DAY;                 /* and while it runs */
    ck_assert_ptr_null(add(16));
    ck_assert(!exists("sent." ID ".20260128"));
    ck_assert(exists("sent." ID ".20260131"));
}
END_TEST

/* A clock that is ahead for days, and is set right then, costs no day that is to be
 * kept; nor does one that was behind when something was sent. */
START_TEST(a_clock_that_is_wrong)
{
    const char *all = "";

    now -= 5 * DAY;
    open_journal();
    for (int day = 0; day <= 5; day++, now += DAY) {
        ck_assert_ptr_null(add(16 * day));
    }
    now = _i ? NOON + 1000 * DAY : NOON - 1000 * DAY;
    for (int day = 0; day < 3; day++, now += DAY) {
        open_journal();
        ck_assert_ptr_null(crmd_journal_save(&numbers, crm_check_pool()));
        ck_assert_ptr_null(add(16 * 7 + day));
    }
    now = NOON + 3 * DAY;
    ck_assert_ptr_null(add(16 * 8));
    open_journal();
    for (int slot = 0; slot < 3; slot++) {
        ck_assert_int_eq(numbers.slot[slot], slot ? 7 : 8);
    }
    ck_assert_ptr_null(add(16 * 9));
    all = lines();
    for (int day = 5; day <= 9; day += day == 5 ? 2 : 1) {
        ck_assert_msg(strstr(all, apr_psprintf(crm_check_pool(), "{\"mark\":%d}",
                                               16 * day)) != NULL,
                      "%d: %s", day, all);
    }
}
END_TEST

/* A daemon that sends nothing begins each day all the same, with a heartbeat. */
START_TEST(a_day_without_a_message)
{
    open_journal();
    ck_assert_ptr_null(add(16 * 7 + 1));
    for (int day = 0; day < 4; day++) {
        now += DAY;
        ck_assert_ptr_null(crmd_journal_save(&numbers, crm_check_pool()));
    }
    ck_assert(!exists("sent." ID ".20260131"));
    ck_assert(exists("sent." ID ".20260204"));
    open_journal();
    ck_assert_int_eq(numbers.slot[1], 7);
}
END_TEST

/* Only the last day is read again: what the days before have said is the mark's. */
START_TEST(a_new_day)
{
    open_journal();
    ck_assert_ptr_null(add(16 * 7 + 1));
    ck_assert_ptr_null(add(16 * 5 + 1));
    now += DAY;
    ck_assert_ptr_null(add(16 * 9 + 2));
    ck_assert_ptr_null(add(16 * 8 + 2));
    ck_assert_str_eq(lines(), "{\"mark\":113} {\"mark\":81} {\"mark\":146}"
                     " {\"mark\":130} ");
    open_journal();             /* after a crash: there was no other mark */
    ck_assert_int_eq(numbers.slot[1], 7);
    ck_assert_int_eq(numbers.slot[2], 9);
    ck_assert_int_eq(numbers.slot[0], 0);
    ck_assert_int_eq(numbers.slot[CRMD_SLOTS - 1], 0);
}
END_TEST

/* Two daemons with one folder: neither takes back what the other one knows. */
START_TEST(the_mark_only_rises)
{
    crmd_numbers_t one = {{5, 1}}, two = {{3, 4}};

    open_journal();
    ck_assert_ptr_null(crmd_journal_save(&one, crm_check_pool()));
    ck_assert_ptr_null(crmd_journal_save(&two, crm_check_pool()));
    open_journal();
    ck_assert_int_eq(numbers.slot[0], 5);
    ck_assert_int_eq(numbers.slot[1], 4);
    crmd_numbers_raise(&numbers, 16 * 4);
    crmd_numbers_raise(&numbers, 16 * 6 + 15);
    ck_assert_int_eq(numbers.slot[0], 5);
    ck_assert_int_eq(numbers.slot[15], 6);
}
END_TEST

/* A line that a full disk has cut off is none, and spoils none after it. */
START_TEST(a_write_that_fails)
{
    struct rlimit limit, before;
    int there;
    char *long_line = apr_pcalloc(crm_check_pool(), 3001);
    crm_error_t *error;

    signal(SIGXFSZ, SIG_IGN);
    memset(long_line, 'x', 3000);
    long_line[2999] = '\n';
    open_journal();
    ck_assert(!crmd_journal_failed());
    for (int i = 0; i < 33; i++) {  /* 99,000 bytes; Check needs some, too */
        ck_assert_ptr_null(crmd_journal_add(long_line, 3000, 0,
                                            crm_check_pool()));
    }
    ck_assert_ptr_null(add(16));
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    error = crmd_journal_add(long_line, 3000, 1, crm_check_pool());
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert_str_eq(error->sqlstate, CRMD_RUN_DIR);
    ck_assert(crmd_journal_failed());
    ck_assert_ptr_null(add(32));
    ck_assert(!crmd_journal_failed());
    ck_assert_str_eq(lines(), "{\"mark\":16} {\"mark\":32} ");
    /* a mark of which there is a part leaves nothing */
    there = entries(path_of(""));
    limit.rlim_cur = 8;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    error = crmd_journal_save(&numbers, crm_check_pool());
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(entries(path_of("")), there);
}
END_TEST

/* What is written is where the next start finds it. */
START_TEST(a_file_or_folder_that_is_removed)
{
    const char *away = apr_pstrcat(crm_check_pool(), root, "/away", NULL);
    crm_error_t *error;

    open_journal();
    ck_assert_ptr_null(add(16));
    ck_assert_int_eq(unlink(path_of("sent." ID ".20260131")), 0);
    ck_assert_ptr_null(add(32));
    ck_assert_str_eq(lines(), "{\"mark\":32} ");

    ck_assert_int_eq(rename(path_of(""), away), 0);
    error = add(48);
    ck_assert_msg(error && crm_error_is(error, CRMD_RUN_DIR), "no folder");
    ck_assert(crmd_journal_failed());
    ck_assert_int_eq(mkdir(path_of(""), 0700), 0);
    /* that it can be written again is known without a message */
    ck_assert_ptr_null(crmd_journal_save(&numbers, crm_check_pool()));
    ck_assert(exists("sent." ID ".20260131"));
    ck_assert(!crmd_journal_failed());
    ck_assert_ptr_null(add(64));
    ck_assert_str_eq(lines(), "{\"mark\":64} ");
}
END_TEST

/* Another file system may have a file with the same number. */
START_TEST(a_file_system_that_is_mounted_over_the_folder)
{
    open_journal();
    ck_assert_ptr_null(add(16));
    ck_assert(!exists("mark." ID));
    moved = 1;
    ck_assert_ptr_null(add(32));
    ck_assert(exists("mark." ID));  /* as when a file begins */
}
END_TEST

/* A mark that cannot be replaced stays, and leaves no file behind. */
START_TEST(a_mark_that_fails)
{
    crmd_numbers_t one = {{5}};
    crm_error_t *error;
    int before;

    open_journal();
    ck_assert_int_eq(mkdir(path_of("mark." ID), 0700), 0);
    before = entries(path_of(""));
    error = crmd_journal_save(&one, crm_check_pool());
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_UNAVAILABLE);
    ck_assert(crmd_journal_failed());
    ck_assert_int_eq(entries(path_of("")), before);
    ck_assert_int_eq(rmdir(path_of("mark." ID)), 0);
    ck_assert_ptr_null(crmd_journal_save(&one, crm_check_pool()));
    ck_assert(!crmd_journal_failed());
}
END_TEST

/* Check that reading the lines fails. */
static void lines_fail(void)
{
    const char *text = "";
    crm_error_t *error = crmd_journal_each(take, &text, crm_check_pool());

    ck_assert_msg(error && crm_error_is(error, CRMD_RUN_DIR), "%s", text);
}

/* Check that a start fails. */
static void open_fails(void)
{
    crm_error_t *error = crmd_journal_open(&numbers, path_of(""), ID, KEEP,
                                           crm_check_pool());

    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, CRM_E_BAD_REQUEST);
}

/* Make NAME a link to itself. */
static void make_loop(const char *name)
{
    ck_assert_int_eq(symlink(path_of(name), path_of(name)), 0);
}

/* A file or a folder that cannot be read is not taken for an empty one: what it
 * says was sent would be sent again. */
START_TEST(what_cannot_be_read)
{
    const char *elsewhere = apr_pstrcat(crm_check_pool(), root, "/other", NULL);

    open_journal();
    ck_assert_ptr_null(add(16));
    ck_assert_int_eq(mkdir(path_of("sent." ID ".20260130"), 0700), 0);
    lines_fail();
    ck_assert_int_eq(rmdir(path_of("sent." ID ".20260130")), 0);
    ck_assert_str_eq(lines(), "{\"mark\":16} ");

    ck_assert_int_eq(rename(path_of(""), elsewhere), 0);
    lines_fail();
    ck_assert_int_eq(rename(elsewhere, path_of("")), 0);
    /* nor can it be opened, though it is there */
    make_loop("sent." ID ".20260130");
    lines_fail();
    ck_assert_int_eq(unlink(path_of("sent." ID ".20260130")), 0);
    make_loop("mark." ID);
    open_fails();
    ck_assert_int_eq(unlink(path_of("mark." ID)), 0);

    ck_assert_int_eq(mkdir(path_of("mark." ID), 0700), 0);
    open_fails();
}
END_TEST

/* Return how many descriptors programs inherit that are started. */
static int inherited(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);

        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

/* Files are the daemon's alone, and a new day or another database costs no
 * descriptor. */
START_TEST(files_and_descriptors)
{
    crmd_numbers_t one = {{1}};
    struct stat info;
    int open_files, passed_on = inherited();

    open_journal();
    ck_assert_int_eq(inherited(), passed_on);
    ck_assert_ptr_null(add(16));
    ck_assert_ptr_null(crmd_journal_save(&one, crm_check_pool()));
    ck_assert_int_eq(stat(path_of(""), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(path_of("mark." ID), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(stat(path_of("sent." ID ".20260131"), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
    open_files = entries("/proc/self/fd");
    for (int i = 0; i < 8; i++) {
        now += DAY;
        ck_assert_ptr_null(add(16));
        open_journal();
        ck_assert_ptr_null(crmd_journal_save(&one, crm_check_pool()));
        lines();
    }
    ck_assert_int_eq(entries("/proc/self/fd"), open_files);
    ck_assert(crmd_journal_is(path_of(""), ID));
    ck_assert(!crmd_journal_is(path_of(""), OTHER));
    ck_assert(!crmd_journal_is("/elsewhere", ID));
    /* one that could not be opened is opened again */
    now += DAY;
    ck_assert_int_eq(mkdir(path_of("sent." ID ".20260209"), 0700), 0);
    ck_assert_ptr_nonnull(crmd_journal_open(&numbers, path_of(""), ID, KEEP,
                                            crm_check_pool()));
    ck_assert(!crmd_journal_is(path_of(""), ID));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("journal");
    TCase *journal = tcase_create("journal");

    tcase_add_checked_fixture(journal, make_root, remove_root);
    tcase_add_test(journal, days_are_kept_for_a_time);
    tcase_add_loop_test(journal, a_clock_that_is_wrong, 0, 2);
    tcase_add_test(journal, a_day_without_a_message);
    tcase_add_test(journal, a_new_day);
    tcase_add_test(journal, the_mark_only_rises);
    tcase_add_test(journal, a_write_that_fails);
    tcase_add_test(journal, a_file_or_folder_that_is_removed);
    tcase_add_test(journal, a_file_system_that_is_mounted_over_the_folder);
    tcase_add_test(journal, a_mark_that_fails);
    tcase_add_test(journal, what_cannot_be_read);
    tcase_add_test(journal, files_and_descriptors);
    suite_add_tcase(suite, journal);
    return crm_check_main(suite);
}
