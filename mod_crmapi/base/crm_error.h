/* SPDX-License-Identifier: Apache-2.0 */
/* crm_error.h: the error type: a message for the client, a line for the log */
#ifndef CRM_ERROR_H
#define CRM_ERROR_H

#include "apr_pools.h"
#include "apr_tables.h"

/* The error codes of contract 5.5. */
typedef enum crm_code_t {
    CRM_E_BAD_REQUEST,
    CRM_E_UNAUTHORIZED,
    CRM_E_FORBIDDEN,
    CRM_E_NOT_FOUND,
    CRM_E_METHOD_NOT_ALLOWED,
    CRM_E_REQUEST_TIMEOUT,
    CRM_E_CONFLICT,
    CRM_E_GONE,
    CRM_E_PRECONDITION_FAILED,
    CRM_E_PAYLOAD_TOO_LARGE,
    CRM_E_URI_TOO_LONG,
    CRM_E_UNSUPPORTED_MEDIA_TYPE,
    CRM_E_RANGE,
    CRM_E_VALIDATION,
    CRM_E_HEADER_TOO_LARGE,
    CRM_E_RATE_LIMITED,
    CRM_E_INTERNAL,
    CRM_E_UNAVAILABLE,
    CRM_E_COUNT
} crm_code_t;

/* An invalid field of a 422 response (contract 5.6). */
typedef struct crm_detail_t {
    const char *field;          /* "emails[1].email" */
    const char *message;        /* "must be ..." */
} crm_detail_t;

/* What LOG of an error tells of the database, if many requests get the same: that it
 * is away, or that it refuses what they ask for until somebody changes something:
 * rights, the schema, a full disk. */
typedef enum crm_outage_t {
    CRM_OUTAGE_NONE, CRM_OUTAGE_AWAY, CRM_OUTAGE_REFUSAL
} crm_outage_t;

/* An error; NULL means success. MESSAGE and DETAILS are sent to clients: they
 * never mention SQL, constraints, paths or hosts. LOG is for the server's log
 * and may, but contains no secrets. */
typedef struct crm_error_t {
    crm_code_t code;
    const char *message;        /* for the client */
    const char *log;            /* for the log; NULL: not logged */
    apr_array_header_t *details; /* of crm_detail_t, or NULL */
    int retry_after;            /* seconds; 0: none */
    const char *sqlstate;       /* five characters, or NULL */
    crm_outage_t outage;
} crm_error_t;

/* The properties of a crm_code_t. */
typedef struct crm_code_info_t {
    int status;                 /* HTTP status */
    const char *code;           /* the envelope's error.code */
    const char *message;        /* the default message */
} crm_code_info_t;

/* Return the properties of CODE; never NULL. */
const crm_code_info_t *crm_code_info(crm_code_t code);

/* Return the code with the HTTP status STATUS. Without one: CRM_E_BAD_REQUEST
 * for 4xx, otherwise CRM_E_INTERNAL. */
crm_code_t crm_code_from_status(int status);

/* Return a new error in RESULT_POOL with CODE and, for the client, MESSAGE (not
 * copied; NULL: the code's default message). */
crm_error_t *crm_error_create(crm_code_t code, const char *message,
                              apr_pool_t *result_pool);

/* The same with a message made from FORMAT. */
crm_error_t *crm_error_createf(crm_code_t code, apr_pool_t *result_pool,
                               const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Return a new error in RESULT_POOL with CODE, the code's default message for
 * the client, and a log line made from FORMAT. */
crm_error_t *crm_error_logf(crm_code_t code, apr_pool_t *result_pool,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a crm_detail_t to *ERROR_P: the invalid FIELD (copied) and MESSAGE (not
 * copied), the rule that it breaks. If *ERROR_P is NULL, create a 422 in
 * RESULT_POOL. A 422 names all invalid fields (contract 5.6). */
void crm_error_detail(crm_error_t **error_p, const char *field,
                      const char *message, apr_pool_t *result_pool);

/* Return whether ERROR, which may be NULL, has the SQLSTATE STATE. */
int crm_error_is(const crm_error_t *error, const char *state);

/* Return whether ERROR, which may be NULL, says that the database refuses a value: as
 * such (SQLSTATE class 22), or because of what its tables have or may have (23). */
int crm_error_refuses(const crm_error_t *error);

/* Return from the calling function if EXPR is an error. */
#define CRM_ERR(expr)                           \
    do {                                        \
        crm_error_t *crm_err_ = (expr);         \
        if (crm_err_) {                         \
            return crm_err_;                    \
        }                                       \
    } while (0)

#endif /* CRM_ERROR_H */
