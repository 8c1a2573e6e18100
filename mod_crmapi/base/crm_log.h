/* SPDX-License-Identifier: Apache-2.0 */
/* crm_log.h: the callback through which the core writes to somebody's log */
#ifndef CRM_LOG_H
#define CRM_LOG_H

/* Levels, ordered and numbered as syslog's and httpd's APLOG_* are. */
typedef enum crm_level_t {
    CRM_LOG_ERR = 3,
    CRM_LOG_WARNING = 4,
    CRM_LOG_NOTICE = 5,
    CRM_LOG_INFO = 6,
    CRM_LOG_DEBUG = 7
} crm_level_t;

/* Write TEXT, one line without an end of line, at LEVEL for BATON, which is
 * the one given beside the function. Texts begin with "CRMnnnn: ". */
typedef void (*crm_log_fn)(void *baton, crm_level_t level, const char *text);

/* A log: a function and what it is called with. */
typedef struct crm_log_t {
    crm_log_fn write;
    void *baton;
} crm_log_t;

#endif /* CRM_LOG_H */
