/* SPDX-License-Identifier: Apache-2.0 */
/* crm_log.h: the callback for log lines */
#ifndef CRM_LOG_H
#define CRM_LOG_H

/* Levels, numbered as syslog's and httpd's APLOG_* are. */
typedef enum crm_level_t {
    CRM_LOG_ERR = 3,
    CRM_LOG_WARNING = 4,
    CRM_LOG_NOTICE = 5,
    CRM_LOG_INFO = 6,
    CRM_LOG_DEBUG = 7
} crm_level_t;

/* Log TEXT, one line without a newline, at LEVEL. BATON is that of the
 * crm_log_t. Texts begin with "CRMnnnn: ". */
typedef void (*crm_log_fn)(void *baton, crm_level_t level, const char *text);

/* A log: a function and its BATON. */
typedef struct crm_log_t {
    crm_log_fn write;
    void *baton;
} crm_log_t;

#endif /* CRM_LOG_H */
