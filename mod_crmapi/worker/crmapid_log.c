/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_log.c: the worker's log */
#include "crmapid_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_time.h"

/* Names of levels by crm_level_t, in the log and in the configuration. */
static const char *const names[] = {
    "", "", "", "error", "warning", "notice", "info", "debug"
};

static crm_level_t limit = CRM_LOG_NOTICE;
static int descriptor = STDERR_FILENO;
static int journal;             /* whether stderr is the systemd journal */

crm_error_t *crmd_log_open(const char *level, const char *file,
                           apr_pool_t *pool)
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
    journal = fd == STDERR_FILENO && getenv("JOURNAL_STREAM");
    return NULL;
}

/* Write PREFIX for LEVEL to OUT of SIZE bytes; return its length. */
static int write_prefix(char *out, apr_size_t size, crm_level_t level)
{
    apr_time_exp_t now;

    if (journal) {
        return apr_snprintf(out, size, "<%d>", (int)level);
    }
    apr_time_exp_gmt(&now, apr_time_now());
    return apr_snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ [%d]"
                        " %s: ", now.tm_year + 1900, now.tm_mon + 1,
                        now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec,
                        now.tm_usec / 1000, (int)getpid(), names[level]);
}

/* Write a line by a single write(), so that lines of several threads are not
 * mixed. Control characters become spaces. */
static void write_line(void *baton, crm_level_t level, const char *text)
{
    char line[2048];
    int len;

    (void)baton;
    if (level > limit || level < CRM_LOG_ERR) {
        return;
    }
    len = write_prefix(line, sizeof(line), level);
    for (; *text && len < (int)sizeof(line) - 1; text++) {
        line[len++] = (unsigned char)*text < ' ' ? ' ' : *text;
    }
    line[len++] = '\n';
    /* A failure cannot be logged. */
    if (write(descriptor, line, (size_t)len) < 0) {
        return;
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
