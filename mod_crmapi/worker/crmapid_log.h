/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_log.h: the worker's log */
#ifndef CRMAPID_LOG_H
#define CRMAPID_LOG_H

#include "crm_error.h"
#include "crm_log.h"

/* Write lines up to LEVEL to FILE ("" for stderr), which is opened anew. Under
 * systemd lines begin with the journal's level, otherwise with the time.
 * Errors: the file cannot be opened; the log stays as it was. */
crm_error_t *crmd_log_open(const char *level, const char *file,
                           apr_pool_t *pool);

/* The log as the core wants it; may be used by all threads. */
extern const crm_log_t crmd_log;

/* Write a line at LEVEL made from FORMAT. */
void crmd_logf(crm_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write what ERROR has for the log at LEVEL. */
void crmd_log_error(crm_level_t level, const crm_error_t *error);

#endif /* CRMAPID_LOG_H */
