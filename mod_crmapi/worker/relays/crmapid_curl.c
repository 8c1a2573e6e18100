/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_curl.c: an HTTP client on libcurl, and handles for other protocols */
#include "crmapid_curl.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"
#include "apr_uri.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_name.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crmapid_ending.h"

/* Maximum bytes of an answer's headers. */
#define HEADERS_MAX 65536

/* Longest Retry-After that is honoured, in seconds. */
#define RETRY_AFTER_MAX 86400

/* An answer that is being received. */
typedef struct receiving_t {
    const crmd_http_request_t *request;
    CURL *curl;
    apr_time_t begun;           /* on crm_time_monotonic() */
    crm_buf_t body;
    apr_size_t headers;         /* bytes of headers so far */
    int cut;                    /* the body is longer than max_answer */
    int forbidden;              /* the request's allowed() returned 0 */
    char text[CURL_ERROR_SIZE];
} receiving_t;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Why this thread's last transfer got no socket; 0: it did. libcurl does not tell. */
static __thread int socket_error;

static curl_socket_t make_socket(const struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                    address->protocol);

    socket_error = fd < 0 ? errno : 0;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static curl_socket_t open_any(void *baton, curlsocktype purpose,
                              struct curl_sockaddr *address)
{
    (void)baton;
    (void)purpose;
    return make_socket(address);
}

static void set_protocols(CURL *curl, const char *protocols)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS,
                     strncmp(protocols, "http", 4)
                     ? (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS)
                     : (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

CURL *crmd_curl_create(const char *url, const char *protocols,
                       apr_interval_time_t timeout, const char *ca_file,
                       char *error_text)
{
    CURL *curl;

    pthread_once(&once, init_library);
    *error_text = '\0';
    curl = curl_easy_init();
    if (!curl) {
        return NULL;
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    set_protocols(curl, protocols);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_any);
    socket_error = 0;
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     (long)apr_time_as_msec(timeout));
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Otherwise the end waits for a name service that is silent. */
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
    if (ca_file && *ca_file) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
        /* Newer releases of libcurl take NULL for their own folder. */
        curl_easy_setopt(curl, CURLOPT_CAPATH, "/dev/null");
    }
    return curl;
}

/* What libcurl says, by its beginning, and what it means. */
static const struct {
    const char *begin, *meaning;
} meanings[] = {
    /* followed by an errno, which is of something else */
    {"response reading failed", "the server closed the connection"},
    {"Received HTTP/0.9", "the server does not speak HTTP"},
    {"Weird server reply", "the server says what does not belong there"},
    {"Out of memory", "a line of the answer is too long, or there is no memory"},
    {"STARTTLS not supported", "it offers no STARTTLS, which smtp_tls"
     " requires"},
};

/* Return the reason in TEXT, which ends with OpenSSL's, such as
 * "error:0A00010B:SSL routines::wrong version number". NULL: it does not. */
static const char *tls_reason(const char *text, apr_pool_t *pool)
{
    const char *error = strstr(text, ":SSL routines:");
    const char *colon = error ? strchr(error + 14, ':') : NULL;

    return colon ? apr_pstrcat(pool, "TLS failed: ", colon + 1, NULL) : NULL;
}

/* Return the reason why CURL could not connect. TEXT is libcurl's, which says where to
 * and, at its end, that it could not. */
static const char *connect_reason(CURL *curl, const char *text,
                                  apr_pool_t *pool)
{
    const char *end = strstr(text, ": Could");
    long error = 0;
    apr_status_t status;

    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
    status = error ? (apr_status_t)error : socket_error;
    return !end || !status ? text
           : apr_psprintf(pool, "%.*s: %pm", (int)(end - text), text, &status);
}

/* Return the reason why the host of CURL's URL got no address in time. */
static const char *name_reason(CURL *curl, apr_pool_t *pool)
{
    char *url = NULL;
    apr_uri_t parts;

    curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
    return apr_pstrcat(pool, crm_name_late, ": ",
                       url && !apr_uri_parse(pool, url, &parts)
                       && parts.hostname ? parts.hostname : "", NULL);
}

const char *crmd_curl_reason(CURL *curl, CURLcode code,
                             const char *error_text, apr_pool_t *result_pool)
{
    const char *text = *error_text ? error_text : curl_easy_strerror(code);
    const char *tls = tls_reason(text, result_pool);

    if (code == CURLE_ABORTED_BY_CALLBACK && crmd_ending_over(0)) {
        return "no answer, and crmapid ends";
    }
    for (size_t i = 0; i < CRM_NELTS(meanings); i++) {
        if (!strncmp(text, meanings[i].begin, strlen(meanings[i].begin))) {
            return meanings[i].meaning;
        }
    }
    text = tls ? tls
           : !strncmp(text, "Resolving timed out", 19)
             ? name_reason(curl, result_pool)
           : code == CURLE_COULDNT_CONNECT
             ? connect_reason(curl, text, result_pool) : text;
    return crm_text_one_line(text, strlen(text), CRMD_LINE_MAX,
                             result_pool);
}

static size_t take_body(char *data, size_t size, size_t count, void *baton)
{
    receiving_t *receiving = baton;
    size_t len = size * count;
    size_t room = receiving->request->max_answer - receiving->body.len;

    if (len > room) {
        receiving->cut = 1;
        crm_buf_add(&receiving->body, data, room);
        return room;            /* less than LEN ends the transfer */
    }
    crm_buf_add(&receiving->body, data, len);
    return len;
}

static size_t take_header(char *data, size_t size, size_t count, void *baton)
{
    receiving_t *receiving = baton;

    (void)data;
    receiving->headers += size * count;
    return receiving->headers > HEADERS_MAX ? 0 : size * count;
}

static curl_socket_t open_socket(void *baton, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    receiving_t *receiving = baton;
    const crmd_http_request_t *request = receiving->request;

    (void)purpose;
    if (!request->allowed(&address->addr, (socklen_t)address->addrlen,
                          request->baton)) {
        receiving->forbidden = 1;
        return CURL_SOCKET_BAD;
    }
    return make_socket(address);
}

static struct curl_slist *make_list(const char *const *texts,
                                    struct curl_slist *list)
{
    for (; texts && *texts; texts++) {
        struct curl_slist *longer = curl_slist_append(list, *texts);

        /* Without memory the rest is left out. */
        list = longer ? longer : list;
    }
    return list;
}

static void set_request(CURL *curl, const crmd_http_request_t *request)
{
    if (request->body) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)request->body_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    }
    if (request->method) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    }
    if (request->user) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, request->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD,
                         request->password ? request->password : "");
    }
    /* With HTTP/2 libcurl may send a refused stream a second time. */
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "crmapid/" CRM_VERSION);
}

/* Return whether CURL, may have sent its request to URL: the connection was
 * established, for https including TLS. */
static int was_sent(CURL *curl, const char *url)
{
    curl_off_t since = 0;

    curl_easy_getinfo(curl, strncasecmp(url, "https:", 6)
                      ? CURLINFO_CONNECT_TIME_T : CURLINFO_APPCONNECT_TIME_T,
                      &since);
    return since > 0;
}

/* CURLOPT_XFERINFOFUNCTION: give up a server that was sent nothing yet, or nothing that
 * matters. */
static int is_over(void *baton, curl_off_t down_total, curl_off_t down,
                   curl_off_t up_total, curl_off_t up)
{
    const receiving_t *receiving = baton;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return crmd_ending_over(receiving->begun)
           && (receiving->request->harmless
               || !was_sent(receiving->curl, receiving->request->url));
}

static void set_receiver(CURL *curl, receiving_t *receiving)
{
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, receiving);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, receiving);
    receiving->curl = curl;
    receiving->begun = crm_time_monotonic();
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_over);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, receiving);
    if (receiving->request->allowed) {
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, receiving);
    }
}

/* Return Retry-After of the answer that CURL has got. CURLINFO_RETRY_AFTER is at
 * most 6 hours in newer releases of libcurl. */
static apr_interval_time_t retry_after_of(CURL *curl)
{
    struct curl_header *header;
    apr_int64_t seconds;

    if (curl_easy_header(curl, "Retry-After", 0, CURLH_HEADER, -1, &header)
        != CURLHE_OK) {
        return 0;
    }
    seconds = apr_isdigit(*header->value)
              ? apr_strtoi64(header->value, NULL, 10)
              : curl_getdate(header->value, NULL)
                - apr_time_sec(apr_time_now());
    return seconds <= 0 ? 0
           : apr_time_from_sec(seconds < RETRY_AFTER_MAX ? seconds
                               : RETRY_AFTER_MAX);
}

/* Fill ANSWER from RECEIVING and CURL, whose transfer ended with CODE. */
static void fill_answer(crmd_http_answer_t *answer, receiving_t *receiving,
                        CURL *curl, CURLcode code, apr_pool_t *pool)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    answer->status = status < 200 ? 0 : (int)status;
    answer->len = receiving->body.len;
    crm_buf_putc(&receiving->body, '\0');
    answer->body = receiving->body.data;
    answer->cut = receiving->cut;
    answer->retry_after = retry_after_of(curl);
    answer->sent = was_sent(curl, receiving->request->url);
    if (receiving->headers > HEADERS_MAX) {
        answer->error = "the answer's headers are too long";
    }
    else if (receiving->forbidden && code == CURLE_COULDNT_CONNECT) {
        answer->error = "connections to this address are not allowed";
    }
    else if (code != CURLE_OK && !receiving->cut) {
        answer->error = crmd_curl_reason(curl, code, receiving->text,
                                         pool);
    }
    else if (!answer->status) {
        answer->error = "the server gave no final answer"; /* only 101 */
    }
}

/* Return whether no header of REQUEST contains a line break. */
static int headers_usable(const crmd_http_request_t *request)
{
    const char *const *header = request->headers;

    while (header && *header && !strpbrk(*header, "\r\n")) {
        header++;
    }
    return !header || !*header;
}

void crmd_http_send(crmd_http_answer_t *answer,
                    const crmd_http_request_t *request,
                    apr_pool_t *result_pool)
{
    static const char *const no_expect[] = {"Expect:", NULL};
    struct curl_slist *headers, *resolve;
    receiving_t receiving = {.request = request};
    CURL *curl;

    memset(answer, 0, sizeof(*answer));
    answer->body = "";
    if (!headers_usable(request)) {
        answer->error = "a header contains a line break";
        return;
    }
    curl = crmd_curl_create(request->url, "http,https", request->timeout,
                            request->ca_file, receiving.text);
    if (!curl) {
        answer->error = "out of memory";
        return;
    }
    crm_buf_init(&receiving.body, 1024, result_pool);
    headers = make_list(request->headers, make_list(no_expect, NULL));
    resolve = make_list(request->resolve, NULL);
    set_request(curl, request);
    set_receiver(curl, &receiving);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_RESOLVE, resolve);
    fill_answer(answer, &receiving, curl, curl_easy_perform(curl),
                result_pool);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    curl_slist_free_all(resolve);
}
