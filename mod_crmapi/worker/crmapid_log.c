/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_log.c: the worker's log */
#include "crmapid_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_text.h"
#include "crmapid_stats.h"

/* Names of levels by crm_level_t, in the log and in the configuration. */
static const char *const names[] = {
    "", "", "", "error", "warning", "notice", "info", "debug"
};

/* The longest line, without what the journal gets before it. Pipes take 4,096
 * bytes in one piece. */
#define LINE 4080

/* Room for what follows a message that was cut. */
#define TAIL 8

static crm_level_t limit = CRM_LOG_NOTICE;
static int descriptor = STDERR_FILENO;
static int journal;             /* whether stderr is the systemd journal */
static int json;                /* one object per line */
static const char *path;        /* of the log; NULL: it is stderr */
static unsigned long lost;      /* lines that could not be written */
static int lost_why;            /* errno of the last one; both atomic */

/* The job that this thread runs, or NULL. */
static __thread const crmd_log_job_t *current;

crm_error_t *crmd_log_open(const char *level, const char *format,
                           const char *file, apr_pool_t *pool)
{
    int fd = STDERR_FILENO;

    if (*file) {
        fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
        if (fd < 0) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool,
                                     "log_file: %s: %s", file,
                                     strerror(errno));
        }
    }
    for (int i = CRM_LOG_ERR; i <= CRM_LOG_DEBUG; i++) {
        if (!strcmp(names[i], level)) {
            limit = (crm_level_t)i;
        }
    }
    if (descriptor != STDERR_FILENO) {
        close(descriptor);
    }
    descriptor = fd;
    path = *file ? apr_pstrdup(pool, file) : NULL;
    journal = fd == STDERR_FILENO && getenv("JOURNAL_STREAM");
    json = !strcmp(format, "json");
    return NULL;
}

int crmd_log_is_json(void)
{
    return json;
}

int crmd_log_is_file(void)
{
    return path != NULL;
}

void crmd_log_job(const crmd_log_job_t *job)
{
    current = job;
}

/* ---- lines --------------------------------------------------------------- */

/* Write the present time to OUT of SIZE bytes (RFC 3339). */
static void write_time(char *out, apr_size_t size)
{
    apr_time_exp_t now;

    apr_time_exp_gmt(&now, apr_time_now());
    apr_snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                 now.tm_year + 1900, now.tm_mon + 1, now.tm_mday, now.tm_hour,
                 now.tm_min, now.tm_sec, now.tm_usec / 1000);
}

/* Return the length of the character at TEXT if it is one of control or direction,
 * which lines do not have, otherwise 0. */
static apr_size_t unwanted(const char *text)
{
    unsigned code;

    return (unsigned char)*text < ' ' ? 1 : crm_text_steers(&code, text);
}

/* Write TEXT at LEVEL to LINE as text. Return its length. Characters of control and
 * direction become spaces. */
static int write_text(char *line, crm_level_t level, const char *text)
{
    char time[32];
    int len = 0;

    if (!journal) {
        write_time(time, sizeof(time));
        len = apr_snprintf(line, LINE, "%s [%d] %s: ", time, (int)getpid(),
                           names[level]);
    }
    while (*text && len < LINE - TAIL) {
        apr_size_t n = unwanted(text);

        line[len++] = n ? ' ' : *text;
        text += n ? n : 1;
    }
    return len;
}

/* Write TEXT to LINE at LEN as the inside of a JSON string, until LINE is full.
 * Return the new length. Characters of control and direction become spaces; invalid
 * UTF-8 becomes U+FFFD. */
static int write_string(char *line, int len, const char *text)
{
    apr_size_t left = strlen(text);

    while (left && len < LINE - TAIL) {
        apr_size_t n = unwanted(text);

        if (n) {
            line[len++] = ' ';
        }
        else if (*text == '"' || *text == '\\') {
            line[len++] = '\\';
            line[len++] = *text;
            n = 1;
        }
        else if (crm_text_next(&n, text, left) < 0) {
            memcpy(line + len, "\xef\xbf\xbd", 3);
            len += 3;
            n = 1;
        }
        else {
            memcpy(line + len, text, n);
            len += (int)n;
        }
        text += n;
        left -= n;
    }
    return len;
}

/* Return the length of the code that TEXT begins with, "CRM3001", 0 if it has
 * none. */
static int code_len(const char *text)
{
    int len = strncmp(text, "CRM", 3) ? 0
              : 3 + (int)strspn(text + 3, "0123456789");

    return len > 3 && !strncmp(text + len, ": ", 2) ? len : 0;
}

/* Write TEXT at LEVEL to LINE as a JSON object. Return its length. The message
 * is its last member, because it may be cut. */
static int write_json(char *line, crm_level_t level, const char *text)
{
    int code = code_len(text);
    char time[32];
    int len;

    write_time(time, sizeof(time));
    len = apr_snprintf(line, LINE, "{\"time\":\"%s\",\"level\":\"%s\","
                       "\"pid\":%d,\"thread\":%ld", time, names[level],
                       (int)getpid(), (long)syscall(SYS_gettid));
    if (code) {
        len += apr_snprintf(line + len, (apr_size_t)(LINE - len),
                            ",\"code\":\"%.*s\"", code, text);
        text += code + 2;
    }
    if (current) {
        len += apr_snprintf(line + len, (apr_size_t)(LINE - len),
                            ",\"workspace\":\"%s\",\"job\":\"%s\","
                            "\"lane\":\"%.*s\"", current->workspace_id,
                            current->id, (int)strcspn(current->kind, "."),
                            current->kind);
    }
    len += apr_snprintf(line + len, (apr_size_t)(LINE - len),
                        ",\"message\":\"");
    len = write_string(line, len, text);
    memcpy(line + len, "\"}", 2);
    return len + 2;
}

/* Write a line to the file FD by a single write(), so that lines of several threads
 * are not mixed. The journal takes its level from a prefix. Return whether it was
 * written, with errno set. */
static int put_line(int fd, crm_level_t level, const char *text)
{
    char line[LINE + TAIL];
    ssize_t written;
    int len = 0;

    if (journal) {
        len = apr_snprintf(line, sizeof(line), "<%d>", (int)level);
    }
    len += json ? write_json(line + len, level, text)
                : write_text(line + len, level, text);
    line[len++] = '\n';
    written = write(fd, line, (size_t)len);
    if (written >= 0 && written < len) {
        errno = ENOSPC;
    }
    return written == len;
}

/* The log could not be written, because of errno. Tell it on standard error, once. */
static void tell_lost(void)
{
    char text[512], why[128];
    int error = errno;

    __atomic_store_n(&lost_why, error, __ATOMIC_RELAXED);
    if (!__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED) && path) {
        apr_snprintf(text, sizeof(text), "log_file: %s: %s", path,
                     apr_strerror(error, why, sizeof(why)));
        put_line(STDERR_FILENO, CRM_LOG_ERR, text);
    }
}

/* The log can be written. Tell how many lines it lacks. */
static void tell_found(void)
{
    unsigned long count = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
    char text[256], why[128];

    if (count) {
        apr_snprintf(text, sizeof(text), "CRM3016: lines of the log that could"
                     " not be written: %lu (%s)", count, apr_strerror(
                         __atomic_load_n(&lost_why, __ATOMIC_RELAXED), why,
                         sizeof(why)));
        put_line(descriptor, CRM_LOG_WARNING, text);
    }
}

static void write_line(void *baton, crm_level_t level, const char *text)
{
    (void)baton;
    if (level > limit || level < CRM_LOG_ERR) {
        return;
    }
    if (put_line(descriptor, level, text)) {
        tell_found();
    }
    else {
        crm_metrics_add(&crmd_stats.log_lost, 1);
        tell_lost();
    }
}

const crm_log_t crmd_log = {write_line, NULL};

void crmd_logf(crm_level_t level, const char *format, ...)
{
    char text[1536];
    va_list args;

    va_start(args, format);
    apr_vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_line(NULL, level, text);
}

void crmd_log_error(crm_level_t level, const crm_error_t *error)
{
    write_line(NULL, level, error->log ? error->log : error->message);
}
