/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_curl.h: what all that use libcurl share: an HTTP client */
#ifndef CRMAPID_CURL_H
#define CRMAPID_CURL_H

#include <sys/socket.h>

#include <curl/curl.h>

#include "apr_pools.h"
#include "apr_time.h"

/* One request. What is 0 or NULL is not wanted; no text may hold CR or LF,
 * but for BODY, which may hold anything. */
typedef struct crmd_http_request_t {
    const char *url;            /* http:// or https:// */
    const char *method;         /* NULL: POST if there is a BODY, else GET */
    const char *const *headers; /* "Name: value", NULL at the end */
    const char *body;
    apr_size_t body_len;
    const char *user;           /* Basic authentication (RFC 7617) */
    const char *password;
    apr_interval_time_t timeout; /* over all, names too; at least 1 ms */
    const char *ca_file;        /* NULL or "": the system's */
    apr_size_t max_answer;      /* bytes of the answer's body that are kept */
    /* Return whether ADDRESS may be connected to: asked with the address
     * itself, after the name was looked up (contract 12.4). */
    int (*allowed)(const struct sockaddr *address, socklen_t len, void *baton);
    void *baton;
    const char *const *resolve; /* "HOST:PORT:ADDRESS", NULL at the end: names
                                   as tests want them (CURLOPT_RESOLVE) */
} crmd_http_request_t;

/* What came of it. */
typedef struct crmd_http_answer_t {
    int status;                 /* of the final answer, 200 to 999; 0: none
                                   came. It may be there beside an ERROR: then
                                   the body is not whole. */
    const char *body;           /* NUL-terminated; "" if there is none */
    apr_size_t len;             /* at most the request's max_answer */
    int cut;                    /* there was more, which was not read */
    apr_interval_time_t retry_after; /* what Retry-After says, in seconds or
                                   as a date, 0 to a day; 0: nothing */
    const char *error;          /* NULL: a whole (or cut) answer came; else
                                   one line saying what went wrong. Hosts and
                                   addresses, but no secrets. */
    int sent;                   /* whether the request, or a part of it, may
                                   have reached the server */
} crmd_http_answer_t;

/* Make REQUEST and wait for *ANSWER, in RESULT_POOL. Never follows redirects,
 * uses no proxy, and never sends a request twice. For any thread. */
void crmd_http_send(crmd_http_answer_t *answer,
                    const crmd_http_request_t *request,
                    apr_pool_t *result_pool);

/* Return a handle for one transfer with URL, NULL if there is no memory:
 * PROTOCOLS alone ("http,https" or "smtp,smtps"), no signals, no proxy, TIMEOUT
 * over all, signed by CA_FILE (NULL or "": the system's). What goes wrong will
 * be told in ERROR_TEXT (CURL_ERROR_SIZE bytes, which live as long). The caller
 * ends it with curl_easy_cleanup(). */
CURL *crmd_curl_create(const char *url, const char *protocols,
                       apr_interval_time_t timeout, const char *ca_file,
                       char *error_text);

/* The most bytes of a server's text that a log line or a reason quotes. */
#define CRMD_LINE_MAX 200

/* Return, in RESULT_POOL, what went wrong when a transfer ended with CODE and
 * ERROR_TEXT, as one line. */
const char *crmd_curl_reason(CURLcode code, const char *error_text,
                             apr_pool_t *result_pool);

#endif /* CRMAPID_CURL_H */
