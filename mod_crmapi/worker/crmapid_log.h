/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_log.h: the worker's log */
#ifndef CRMAPID_LOG_H
#define CRMAPID_LOG_H

#include "crm_error.h"
#include "crm_log.h"

/* Open FILE ("": stderr) and log lines up to LEVEL to it from now on, in FORMAT:
 * "text", or "json" for one object per line. Lines to the systemd journal begin
 * with its level. What cannot be written is counted, and told when it can be. POOL
 * lives as long as the log. Errors: the file cannot be opened; then the log does not
 * change. */
crm_error_t *crmd_log_open(const char *level, const char *format,
                           const char *file, apr_pool_t *pool);

/* Return whether lines are JSON. */
int crmd_log_is_json(void);

/* Return whether lines go to a file of the configuration, not to standard error. */
int crmd_log_is_file(void);

/* A job, for JSON lines. Texts without characters that JSON escapes. */
typedef struct crmd_log_job_t {
    const char *workspace_id;
    const char *id;
    const char *kind;
} crmd_log_job_t;

/* Name JOB in the lines of this thread, until it is NULL. It is not copied. */
void crmd_log_job(const crmd_log_job_t *job);

/* The log, for functions that take a crm_log_t. For any thread. */
extern const crm_log_t crmd_log;

/* Log a line made from FORMAT at LEVEL. */
void crmd_logf(crm_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Log ERROR at LEVEL. */
void crmd_log_error(crm_level_t level, const crm_error_t *error);

#endif /* CRMAPID_LOG_H */
