/* SPDX-License-Identifier: Apache-2.0 */
/* crm_error.h: the one error type: what a client is told and what the log is */
#ifndef CRM_ERROR_H
#define CRM_ERROR_H

#include <stdarg.h>

#include "apr_pools.h"
#include "apr_tables.h"

/* What a client is told, one for each code of contract 5.5.
 */
typedef enum crm_code_t {
    CRM_E_BAD_REQUEST,
    CRM_E_UNAUTHORIZED,
    CRM_E_FORBIDDEN,
    CRM_E_NOT_FOUND,
    CRM_E_METHOD_NOT_ALLOWED,
    CRM_E_REQUEST_TIMEOUT,
    CRM_E_CONFLICT,
    CRM_E_PAYLOAD_TOO_LARGE,
    CRM_E_URI_TOO_LONG,
    CRM_E_UNSUPPORTED_MEDIA_TYPE,
    CRM_E_VALIDATION,
    CRM_E_HEADER_TOO_LARGE,
    CRM_E_RATE_LIMITED,
    CRM_E_INTERNAL,
    CRM_E_UNAVAILABLE,
    CRM_E_COUNT
} crm_code_t;

/* One wrong field of a 422 (contract 5.6). */
typedef struct crm_detail_t {
    const char *field;          /* "emails[1].email" */
    const char *message;        /* "must be ..." */
} crm_detail_t;

/* An error on its way up. NULL means success. Nothing in MESSAGE or DETAILS
 * may tell of SQL, constraints, paths or hosts; LOG is for the server's log
 * only and may, but for secrets. */
typedef struct crm_error_t {
    crm_code_t code;
    const char *message;        /* for the client */
    const char *log;            /* for error_log; NULL: not worth a line */
    apr_array_header_t *details; /* of crm_detail_t, or NULL */
    int retry_after;            /* seconds; 0: none */
    const char *sqlstate;       /* five characters, or NULL */
} crm_error_t;

/* Status, code and usual phrase of a crm_code_t, in one table. */
typedef struct crm_code_info_t {
    int status;                 /* HTTP status */
    const char *code;           /* the envelope's error.code */
    const char *message;        /* what is said when nothing better is known */
} crm_code_info_t;

/* Return what is known of CODE; never NULL. */
const crm_code_info_t *crm_code_info(crm_code_t code);

/* Return the code whose HTTP status is STATUS; for one that has none of its
 * own CRM_E_BAD_REQUEST (4xx) or CRM_E_INTERNAL. */
crm_code_t crm_code_from_status(int status);

/* Return a new error of CODE, in RESULT_POOL, whose message for the client is
 * MESSAGE (kept, not copied; NULL: the code's usual phrase). */
crm_error_t *crm_error_create(crm_code_t code, const char *message,
                              apr_pool_t *result_pool);

/* Like crm_error_create() with a message made from FORMAT. */
crm_error_t *crm_error_createf(crm_code_t code, apr_pool_t *result_pool,
                               const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Return a new error of CODE with the code's usual phrase for the client and
 * a line for the log made from FORMAT. */
crm_error_t *crm_error_logf(crm_code_t code, apr_pool_t *result_pool,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add to *ERROR_P (NULL: a 422 is made in RESULT_POOL) that FIELD (copied) is
 * wrong because of MESSAGE (kept), as contract 5.6 wants every wrong field. */
void crm_error_detail(crm_error_t **error_p, const char *field,
                      const char *message, apr_pool_t *result_pool);

/* Return to the caller with the error of EXPR, if there is one. */
#define CRM_ERR(expr)                           \
    do {                                        \
        crm_error_t *crm_err_ = (expr);         \
        if (crm_err_) {                         \
            return crm_err_;                    \
        }                                       \
    } while (0)

#endif /* CRM_ERROR_H */
