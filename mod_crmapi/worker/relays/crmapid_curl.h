/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_curl.h: an HTTP client on libcurl, and handles for other protocols */
#ifndef CRMAPID_CURL_H
#define CRMAPID_CURL_H

#include <sys/socket.h>

#include <curl/curl.h>

#include "apr_pools.h"
#include "apr_time.h"

/* One request. Members that are 0 or NULL are not used. No text may contain CR
 * or LF, except BODY, which may contain anything. */
typedef struct crmd_http_request_t {
    const char *url;            /* http:// or https:// */
    const char *method;         /* NULL: POST if there is a BODY, else GET */
    const char *const *headers; /* "Name: value", NULL at the end */
    const char *body;
    apr_size_t body_len;
    const char *user;           /* Basic authentication (RFC 7617) */
    const char *password;
    apr_interval_time_t timeout; /* of the whole request, including the name
                                   lookup; at least 1 ms */
    const char *ca_file;        /* CA certificates; NULL or "": the system's */
    int harmless;               /* it does nothing there: it is given up once the
                                   daemon ends */
    apr_size_t max_answer;      /* maximum bytes of the answer's body; the rest
                                   is not read */
    /* Return whether a connection to ADDRESS is allowed. It is called with the
     * result of the name lookup (contract 12.4). */
    int (*allowed)(const struct sockaddr *address, socklen_t len, void *baton);
    void *baton;
    const char *const *resolve; /* "HOST:PORT:ADDRESS", NULL at the end: fixed
                                   name lookups for tests (CURLOPT_RESOLVE) */
} crmd_http_request_t;

/* The result of a request. */
typedef struct crmd_http_answer_t {
    int status;                 /* of the final answer, 200 to 999; 0: no
                                   answer. If ERROR is set, too, the body is
                                   incomplete. */
    const char *body;           /* NUL-terminated, never NULL */
    apr_size_t len;             /* at most the request's max_answer */
    int cut;                    /* the body was longer than max_answer */
    apr_interval_time_t retry_after; /* of Retry-After, from its seconds or its
                                   date, at most a day; 0: none */
    const char *error;          /* NULL, or why there is no complete answer:
                                   one line; may name hosts and addresses, no
                                   secrets */
    int sent;                   /* whether a part of the request may have
                                   reached the server */
} crmd_http_answer_t;

/* Send REQUEST, wait for the answer, and fill *ANSWER, in RESULT_POOL. It does
 * not follow redirects, uses no proxy, and never sends a request twice. For any
 * thread. */
void crmd_http_send(crmd_http_answer_t *answer,
                    const crmd_http_request_t *request,
                    apr_pool_t *result_pool);

/* Return a handle for one transfer with URL, NULL without memory. It allows
 * PROTOCOLS only ("http,https" or "smtp,smtps"), uses no signals and no proxy,
 * has TIMEOUT for the whole transfer, and verifies certificates with CA_FILE
 * (NULL or "": the system's). libcurl writes its error message to ERROR_TEXT
 * (CURL_ERROR_SIZE bytes, which must live as long). The caller frees the handle
 * by curl_easy_cleanup(). */
CURL *crmd_curl_create(const char *url, const char *protocols,
                       apr_interval_time_t timeout, const char *ca_file,
                       char *error_text);

/* The largest error code of a service that is logged. A larger number could be
 * a phone number. */
#define CRMD_CODE_MAX 999999

/* Maximum bytes of a server's text that a log line or a reason quotes. */
#define CRMD_LINE_MAX 200

/* Return, in RESULT_POOL, the reason why the transfer of CURL failed with CODE and
 * ERROR_TEXT, as one line. */
const char *crmd_curl_reason(CURL *curl, CURLcode code,
                             const char *error_text, apr_pool_t *result_pool);

#endif /* CRMAPID_CURL_H */
