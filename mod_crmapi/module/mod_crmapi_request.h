/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_request.h: the state of a request, and claiming requests */
#ifndef MOD_CRMAPI_REQUEST_H
#define MOD_CRMAPI_REQUEST_H

/* apr_dbd.h first: mod_dbd.h does not include it. */
#include "apr_dbd.h"

#include "mod_dbd.h"

#include "crm_request.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_mount.h"

/* The state of a request, created once it is known to be for a mount. */
typedef struct crmapi_request_t {
    request_rec *r;
    crmapi_config_t *config;
    const crmapi_mount_t *mount; /* set if CLAIMED */
    const char *path;           /* the path below the mount, in R's uri */
    const char *id;             /* X-Request-Id */
    const char *trace;          /* its valid traceparent, or NULL */
    apr_int64_t begun;          /* R's request_time by crm_time_monotonic() */
    int reached;                /* its path is still that of a mount, after
                                   rewrite rules */
    int claimed;                /* this module serves it */
    ap_dbd_t *dbd;              /* the connection held, or NULL */
    int dbd_failed;             /* the connection cannot be used */
    int answered;               /* the response was sent: wait for a connection
                                   for CRM_TOUCH_WAIT, and report nothing */
    int body_read;              /* the body was read to its end */
    int caught;                 /* status of an error response that httpd sent
                                   while the body was read, or 0 */
    /* of mod_crmapi_wait.c */
    struct crmapi_watch_t *watch; /* of its workspace, or NULL */
    struct crmapi_waiter_t *waiter;
    int line;                   /* of WATCH: crmapi_bell_line() */
    apr_uint32_t count;         /* of LINE, before the last query */
    int served;                 /* COUNT is set */
    int rung;                   /* it was another one before */
    int placed;                 /* it is counted among those that wait */
    crm_response_t response;
    int result;                 /* of sending it, if RESPONSE.SENT */
} crmapi_request_t;

/* Register the hooks that claim requests. */
void crmapi_request_register(void);

/* Return whether errors from httpd itself are sent to R as JSON. */
int crmapi_has_json_errors(const request_rec *r);

/* Return the state of R, NULL if it has none. */
crmapi_request_t *crmapi_request_find(const request_rec *r);

/* Return the state of R. Create it if R has none. */
crmapi_request_t *crmapi_request_begin(request_rec *r);

#endif /* MOD_CRMAPI_REQUEST_H */
