/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_journal.c: what a daemon has sent, in files outside of the database
 *
 *     RUN_DIR/mark.INSTANCE            the numbers of the mark, in one line
 *     RUN_DIR/sent.INSTANCE.20260131   a line for each message of that day, UTC
 *
 * The mark is older than the last lines, at most by a heartbeat: both are read.
 * It is replaced before a new day begins, so older days need not be read.
 *
 * The host's clock may be wrong for hours or days. A clock that was set back does not
 * begin an older day: its lines would be taken for old ones. One that is ahead deletes
 * no more days than have come, as there is a file for each day that a daemon ran. */
#include "crmapid_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apr_file_io.h"
#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_file.h"
#include "crm_uuid.h"

/* The longest line. */
#define LINE_SIZE 4096

#define DAY_LEN 8               /* 20260131 */

/* The journal in use. */
static struct {
    char run_dir[1024];         /* "": none is */
    char instance[CRM_UUID_LEN + 1];
    char day[DAY_LEN + 1];      /* of FD; "": it must be opened again */
    char last[DAY_LEN + 1];     /* the last day that has begun */
    int fd;                     /* the file of that day; -1: not open */
    apr_interval_time_t keep;
} journal = {"", "", "", "", -1, 0};

/* What could not be written at the last attempt: bits. Read without the lock. */
enum { MARK = 1, LINES = 2 };
static int failed;

int crmd_journal_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

/* Return ERROR, the result of an attempt to write WHAT, and remember it. */
static crm_error_t *wrote(int what, crm_error_t *error)
{
    int others = failed & ~what;

    __atomic_store_n(&failed, error ? others | what : others,
                     __ATOMIC_RELAXED);
    return error;
}

/* Return an error of CODE about PATH with the text of errno, in POOL. A folder
 * that is full may have room later. */
static crm_error_t *fault(crm_code_t code, const char *path, apr_pool_t *pool)
{
    const char *text = strerror(errno);
    crm_error_t *error;

    if (errno == ENOSPC || errno == EDQUOT) {
        code = CRM_E_UNAVAILABLE;
    }
    error = crm_error_createf(code, pool, "run_dir: %s: %s", path, text);
    error->sqlstate = CRMD_RUN_DIR;
    return error;
}

/* Return the error that the folder PATH cannot be used because of STATUS. */
static crm_error_t *no_folder(const char *path, apr_status_t status,
                              apr_pool_t *pool)
{
    errno = APR_TO_OS_ERROR(status);
    return fault(CRM_E_BAD_REQUEST, path, pool);
}

void crmd_numbers_raise(crmd_numbers_t *numbers, apr_int64_t number)
{
    apr_int64_t *slot = &numbers->slot[number % CRMD_SLOTS];

    if (*slot < number / CRMD_SLOTS) {
        *slot = number / CRMD_SLOTS;
    }
}

/* Set DAY to the day of TIME. */
static void day_of(char day[DAY_LEN + 1], apr_time_t time)
{
    time_t seconds = (time_t)apr_time_sec(time);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(day, DAY_LEN + 1, "%Y%m%d", &tm);
}

/* Set DAY to the day that lines belong to. */
static void set_today(char day[DAY_LEN + 1])
{
    day_of(day, apr_time_now());
    if (strcmp(day, journal.last) < 0) {
        memcpy(day, journal.last, DAY_LEN + 1);
    }
}

static const char *mark_path(apr_pool_t *pool)
{
    return apr_pstrcat(pool, journal.run_dir, "/mark.", journal.instance,
                       NULL);
}

static const char *day_path(const char *day, apr_pool_t *pool)
{
    return apr_pstrcat(pool, journal.run_dir, "/sent.", journal.instance, ".",
                       day, NULL);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Set *DAYS_P to the days that have a file, oldest first (const char *), in POOL. */
static crm_error_t *find_days(apr_array_header_t **days_p, apr_pool_t *pool)
{
    const char *head = apr_pstrcat(pool, "sent.", journal.instance, ".", NULL);
    apr_array_header_t *found = apr_array_make(pool, 32, sizeof(char *)), *names;
    apr_status_t status = crm_file_names(&names, journal.run_dir, pool);
    apr_size_t len = strlen(head);

    if (status) {
        return no_folder(journal.run_dir, status, pool);
    }
    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        if (!strncmp(name, head, len) && strlen(name) == len + DAY_LEN) {
            APR_ARRAY_PUSH(found, const char *) = name + len;
        }
    }
    qsort(found->elts, (size_t)found->nelts, sizeof(char *), by_name);
    *days_p = found;
    return NULL;
}

/* Delete the days that are too old, and that so many newer ones follow. */
static void trim(apr_pool_t *pool)
{
    apr_int64_t newer = journal.keep / apr_time_from_sec(86400);
    apr_array_header_t *all;
    char oldest[DAY_LEN + 1];

    if (find_days(&all, pool)) {
        return;
    }
    day_of(oldest, apr_time_now() - journal.keep);
    for (int i = 0; i + 1 < all->nelts - newer; i++) {
        const char *day = APR_ARRAY_IDX(all, i, const char *);

        if (strcmp(day, oldest) < 0) {
            unlink(day_path(day, pool));
        }
    }
}

/* ---- reading ------------------------------------------------------------- */

/* Call TAKE with BATON for each line of the file of DAY; see
 * crmd_journal_each(). A line that a crash has cut off has no closing brace. */
static crm_error_t *each_of_day(const char *day,
                                crm_error_t *(*take)(void *, const char *),
                                void *baton, apr_pool_t *pool)
{
    const char *path = day_path(day, pool);
    FILE *file = fopen(path, "re");
    crm_error_t *error = NULL;
    char line[LINE_SIZE];

    if (!file) {
        return errno == ENOENT ? NULL : fault(CRM_E_BAD_REQUEST, path, pool);
    }
    while (!error && fgets(line, sizeof(line), file)) {
        apr_size_t len = strlen(line);

        if (len > 2 && line[len - 1] == '\n' && line[len - 2] == '}') {
            line[len - 1] = '\0';
            error = take(baton, line);
        }
    }
    if (!error && ferror(file)) {
        error = fault(CRM_E_BAD_REQUEST, path, pool);
    }
    fclose(file);
    return error;
}

crm_error_t *crmd_journal_each(crm_error_t *(*take)(void *, const char *),
                               void *baton, apr_pool_t *scratch_pool)
{
    apr_array_header_t *all;

    CRM_ERR(find_days(&all, scratch_pool));
    for (int i = 0; i < all->nelts; i++) {
        CRM_ERR(each_of_day(APR_ARRAY_IDX(all, i, const char *), take, baton,
                            scratch_pool));
    }
    return NULL;
}

/* Raise the numbers BATON by that of LINE. */
static crm_error_t *raise_by(void *baton, const char *line)
{
    static const char head[] = "{\"mark\":";

    if (!strncmp(line, head, sizeof(head) - 1)) {
        crmd_numbers_raise(baton, apr_atoi64(line + sizeof(head) - 1));
    }
    return NULL;
}

/* Raise NUMBERS by those in the file of the mark, if there is one. */
static crm_error_t *read_mark(crmd_numbers_t *numbers, apr_pool_t *pool)
{
    const char *path = mark_path(pool);
    FILE *file = fopen(path, "re");
    crm_error_t *error = NULL;
    char line[LINE_SIZE] = "";
    char *at = line;

    if (!file) {
        return errno == ENOENT ? NULL : fault(CRM_E_BAD_REQUEST, path, pool);
    }
    if (!fgets(line, sizeof(line), file) && ferror(file)) {
        error = fault(CRM_E_BAD_REQUEST, path, pool);
    }
    fclose(file);
    for (int i = 0; i < CRMD_SLOTS; i++) {
        apr_int64_t n = apr_strtoi64(at, &at, 10);

        if (numbers->slot[i] < n) {
            numbers->slot[i] = n;
        }
    }
    return error;
}

/* ---- writing ------------------------------------------------------------- */

/* Open the file of DAY for appending. A line that a crash has cut off ends
 * there. */
static crm_error_t *open_day(const char *day, apr_pool_t *pool)
{
    const char *path = day_path(day, pool);

    if (journal.fd >= 0) {
        close(journal.fd);
    }
    journal.fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (journal.fd < 0 || (lseek(journal.fd, 0, SEEK_END) > 0
                           && !crm_file_write(journal.fd, "\n", 1))
        || !crm_file_sync_folder(journal.run_dir)) {
        return fault(CRM_E_BAD_REQUEST, path, pool);
    }
    apr_cpystrn(journal.day, day, sizeof(journal.day));
    apr_cpystrn(journal.last, day, sizeof(journal.last));
    trim(pool);
    return NULL;
}

/* Raise the numbers in the file of the mark to NUMBERS. */
static crm_error_t *save_mark(const crmd_numbers_t *numbers,
                              apr_pool_t *scratch_pool)
{
    const char *path = mark_path(scratch_pool);
    char *new = apr_pstrcat(scratch_pool, path, ".XXXXXX", NULL);
    crmd_numbers_t all = *numbers;
    crm_error_t *error;
    char text[CRMD_SLOTS * 21 + 2];
    apr_size_t len = 0;
    int fd, good;

    /* Another daemon may use the same folder. */
    error = read_mark(&all, scratch_pool);
    if (error) {
        error->code = CRM_E_UNAVAILABLE;
        return wrote(MARK, error);
    }
    for (int i = 0; i < CRMD_SLOTS; i++) {
        len += (apr_size_t)apr_snprintf(text + len, sizeof(text) - len,
                                        "%" APR_INT64_T_FMT "%c", all.slot[i],
                                        i + 1 < CRMD_SLOTS ? ' ' : '\n');
    }
    fd = mkostemp(new, O_CLOEXEC);
    good = fd >= 0 && crm_file_write(fd, text, len) && !fsync(fd);
    if (fd >= 0) {
        close(fd);
    }
    if (!good || rename(new, path) || !crm_file_sync_folder(journal.run_dir)) {
        error = fault(CRM_E_UNAVAILABLE, path, scratch_pool);
        unlink(new);
        return wrote(MARK, error);
    }
    return wrote(MARK, NULL);
}

/* Return whether the path of the open file still leads to it. Somebody may have
 * removed it, or the folder: a line would be lost with it. */
static int is_in_place(apr_pool_t *pool)
{
    struct stat by_path, by_fd;

    return !stat(day_path(journal.day, pool), &by_path)
           && !fstat(journal.fd, &by_fd) && by_path.st_ino == by_fd.st_ino
           && by_path.st_dev == by_fd.st_dev;
}

/* Begin the file of DAY, or go on with it where the path leads to now. */
static crm_error_t *begin_day(const char *day, apr_pool_t *pool)
{
    crmd_numbers_t none = {{0}};

    CRM_ERR(each_of_day(journal.day, raise_by, &none, pool));
    CRM_ERR(save_mark(&none, pool));
    return open_day(day, pool);
}

crm_error_t *crmd_journal_save(const crmd_numbers_t *numbers,
                               apr_pool_t *scratch_pool)
{
    char day[DAY_LEN + 1];

    CRM_ERR(save_mark(numbers, scratch_pool));
    set_today(day);
    if (!(failed & LINES) && !strcmp(day, journal.day)) {
        return NULL;
    }
    /* A day begins without a message, too: see trim(). And it says whether messages can
     * be sent again: none may be due. */
    return wrote(LINES, begin_day(day, scratch_pool));
}

crm_error_t *crmd_journal_add(const char *line, apr_size_t len, int sync,
                              apr_pool_t *scratch_pool)
{
    crm_error_t *error = NULL;
    char day[DAY_LEN + 1];

    set_today(day);
    if (strcmp(day, journal.day) || !is_in_place(scratch_pool)) {
        error = begin_day(day, scratch_pool);
    }
    if (!error && (!crm_file_write(journal.fd, line, len)
                   || (sync && fdatasync(journal.fd)))) {
        *journal.day = '\0';    /* the next line opens the file again */
        error = fault(CRM_E_UNAVAILABLE, day_path(day, scratch_pool),
                      scratch_pool);
    }
    return wrote(LINES, error);
}

int crmd_journal_is(const char *run_dir, const char *instance)
{
    return !strcmp(journal.run_dir, run_dir)
        && !strcmp(journal.instance, instance);
}

crm_error_t *crmd_journal_open(crmd_numbers_t *numbers, const char *run_dir,
                               const char *instance, apr_interval_time_t keep,
                               apr_pool_t *scratch_pool)
{
    apr_status_t status = apr_dir_make_recursive(
        run_dir, APR_UREAD | APR_UWRITE | APR_UEXECUTE, scratch_pool);
    apr_array_header_t *all;
    char day[DAY_LEN + 1];
    crm_error_t *error;

    if (status && !APR_STATUS_IS_EEXIST(status)) {
        return no_folder(run_dir, status, scratch_pool);
    }
    memset(numbers, 0, sizeof(*numbers));
    apr_cpystrn(journal.run_dir, run_dir, sizeof(journal.run_dir));
    apr_cpystrn(journal.instance, instance, sizeof(journal.instance));
    journal.keep = keep;
    error = find_days(&all, scratch_pool);
    if (!error) {
        error = read_mark(numbers, scratch_pool);
    }
    if (!error && all->nelts) {
        error = each_of_day(APR_ARRAY_IDX(all, all->nelts - 1, const char *),
                            raise_by, numbers, scratch_pool);
    }
    if (!error) {
        apr_cpystrn(journal.last, all->nelts ? APR_ARRAY_IDX(
                        all, all->nelts - 1, const char *) : "",
                    sizeof(journal.last));
        set_today(day);
        error = open_day(day, scratch_pool);
    }
    if (error) {
        *journal.run_dir = '\0';
    }
    return error;
}
