/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_status.c: the HTTP server for status_listen: /live, /ready and
 * /metrics (contract 15.3). One thread serves all clients with libmicrohttpd,
 * and none waits for the database. */
#include "crmapid_status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "apr_strings.h"
#include "apr_thread_proc.h"

#include "crm_metrics.h"
#include "crm_time.h"
#include "crmapid_listen.h"
#include "crmapid_pool.h"
#include "crmapid_scrape.h"
#include "crmapid_watch.h"

/* Limits of clients. A connection serves one request. */
#define CLIENTS 32              /* connections at the same time */
#define CLIENTS_OF_ADDRESS 8
#define CLIENT_MEMORY (16 * 1024) /* of a request's line and headers */
#define CLIENT_TIME apr_time_from_sec(5)

/* Milliseconds until a client is taken again for whom there was no descriptor. */
#define AGAIN 200

/* A connection. */
typedef struct client_t {
    int fd;                     /* -1: none */
    apr_time_t begun;
} client_t;

struct crmd_status_t {
    const crmd_config_t *config;
    crmd_listener_t listener;
    crmd_watch_t *watch;
    struct MHD_Daemon *server;
    apr_thread_t *thread;
    int stop[2];                /* a pipe: closing stop[1] ends the thread */
    int stopping;               /* atomic */
    client_t clients[CLIENTS];  /* of the thread */
    apr_pool_t *pool;           /* of the thread; cleared after a request */
};

/* ---- answers ------------------------------------------------------------- */

/* Answer CONNECTION with CODE and the LEN bytes of TEXT of TYPE. */
static enum MHD_Result respond(struct MHD_Connection *connection,
                               unsigned code, const char *type,
                               const char *text, size_t len)
{
    union { const char *in; void *out; } body = {text};
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, body.out, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    if (!response) {
        return MHD_NO;          /* no memory: the connection is closed */
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "Connection", "close");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_word(const crmd_status_t *status,
                                    struct MHD_Connection *connection,
                                    unsigned code, const char *word)
{
    const char *line = apr_pstrcat(status->pool, word, "\n", NULL);

    return respond(connection, code, "text/plain; charset=utf-8", line,
                   strlen(line));
}

static enum MHD_Result respond_ready(const crmd_status_t *status,
                                     struct MHD_Connection *connection)
{
    const char *fault = __atomic_load_n(&status->stopping, __ATOMIC_RELAXED)
                        ? "stopping" : crmd_watch_fault(status->watch);

    return respond_word(status, connection, fault
                        ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK,
                        fault ? fault : "ready");
}

static enum MHD_Result respond_metrics(const crmd_status_t *status,
                                       struct MHD_Connection *connection)
{
    const char *accept = MHD_lookup_connection_value(
        connection, MHD_HEADER_KIND, "Accept");
    crm_metrics_t metrics;

    crm_metrics_init(&metrics, accept, status->pool);
    crmd_scrape(&metrics, status->config, status->watch, status->pool);
    return respond(connection, MHD_HTTP_OK, crm_metrics_type(&metrics),
                   metrics.text.data, metrics.text.len);
}

/* Answer a request as soon as its headers are there: a body is never read. */
static enum MHD_Result answer(void *data, struct MHD_Connection *connection,
                              const char *path, const char *method,
                              const char *version, const char *body,
                              size_t *len, void **baton)
{
    crmd_status_t *status = data;
    enum MHD_Result result;

    (void)version;
    (void)body;
    (void)len;
    (void)baton;
    if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
        result = respond_word(status, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "method");
    }
    else if (!strcmp(path, "/live")) {
        result = respond_word(status, connection, MHD_HTTP_OK, "live");
    }
    else if (!strcmp(path, "/ready")) {
        result = respond_ready(status, connection);
    }
    else if (!strcmp(path, "/metrics")) {
        result = respond_metrics(status, connection);
    }
    else {
        result = respond_word(status, connection, MHD_HTTP_NOT_FOUND,
                              "not found");
    }
    apr_pool_clear(status->pool);
    return result;
}

/* ---- connections --------------------------------------------------------- */

/* Add CONNECTION, which began, to the clients, or remove it when it ends.
 * *BATON is its client_t. */
static void note_connection(void *data, struct MHD_Connection *connection,
                            void **baton,
                            enum MHD_ConnectionNotificationCode code)
{
    crmd_status_t *status = data;
    client_t *client = *baton;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED && client) {
        client->fd = -1;
    }
    for (int i = 0; code == MHD_CONNECTION_NOTIFY_STARTED && i < CLIENTS;
         i++) {
        client = &status->clients[i];
        if (client->fd < 0) {
            client->fd = MHD_get_connection_info(
                connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
            client->begun = crm_time_monotonic();
            *baton = client;
            return;
        }
    }
}

/* Shut down connections that have lasted longer than CLIENT_TIME. libmicrohttpd
 * does not: for it a client that sends a byte now and then is not idle. */
static void end_slow(crmd_status_t *status)
{
    apr_time_t now = crm_time_monotonic();

    for (int i = 0; i < CLIENTS; i++) {
        client_t *client = &status->clients[i];

        if (client->fd >= 0 && now - client->begun > CLIENT_TIME) {
            shutdown(client->fd, SHUT_RDWR);
        }
    }
}

/* Return whether a client waits for whom there is no descriptor. libmicrohttpd does
 * not wait then if it has no other client: it tries again at once, for ever. */
static int is_starved(const crmd_status_t *status)
{
    struct pollfd waiting = {status->listener.fd, POLLIN, 0};
    int spare;

    if (poll(&waiting, 1, 0) != 1) {
        return 0;
    }
    spare = fcntl(status->listener.fd, F_DUPFD_CLOEXEC, 0);
    if (spare >= 0) {
        close(spare);
    }
    return spare < 0;
}

static void *APR_THREAD_FUNC status_main(apr_thread_t *thread, void *data)
{
    crmd_status_t *status = data;
    struct pollfd pollers[2] = {{status->stop[0], POLLIN, 0}, {-1, POLLIN, 0}};

    pollers[1].fd = MHD_get_daemon_info(status->server,
                                        MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    while (!pollers[0].revents) {
        MHD_UNSIGNED_LONG_LONG wait = 1000;

        if (MHD_get_timeout(status->server, &wait) != MHD_YES || wait > 1000) {
            wait = 1000;
        }
        poll(pollers, 2, (int)wait);
        MHD_run(status->server);
        end_slow(status);
        if (is_starved(status)) {
            poll(pollers, 1, AGAIN);
        }
    }
    (void)thread;
    return NULL;
}

/* ---- start and stop ------------------------------------------------------ */

static crm_error_t *fault(const crmd_status_t *status, apr_pool_t *pool)
{
    return crm_error_logf(CRM_E_CONFLICT, pool, "status_listen: %s: the server"
                          " cannot be started: %s",
                          status->config->status_listen, strerror(errno));
}

static crm_error_t *start_all(crmd_status_t *status, apr_pool_t *pool)
{
    const crmd_config_t *config = status->config;

    CRM_ERR(crmd_listener_open(&status->listener, "status_listen",
                               config->status_listen, 0666, pool));
    CRM_ERR(crmd_watch_start(&status->watch, config, pool));
    status->server = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, answer, status,
        MHD_OPTION_LISTEN_SOCKET, status->listener.fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CLIENTS_OF_ADDRESS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)apr_time_sec(CLIENT_TIME),
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, status,
        MHD_OPTION_END);
    if (!status->server || pipe2(status->stop, O_CLOEXEC)
        || apr_thread_create(&status->thread, NULL, status_main, status, pool)
           != APR_SUCCESS) {
        return fault(status, pool);
    }
    return NULL;
}

crm_error_t *crmd_status_start(crmd_status_t **status_p,
                               const crmd_config_t *config, apr_pool_t *pool)
{
    crmd_status_t *status;
    crm_error_t *error;

    *status_p = NULL;
    if (!*config->status_listen) {
        return NULL;
    }
    status = apr_pcalloc(pool, sizeof(*status));
    status->pool = crmd_pool_create(pool, 0);
    status->config = config;
    status->stop[0] = status->stop[1] = -1;
    for (int i = 0; i < CLIENTS; i++) {
        status->clients[i].fd = -1;
    }
    error = start_all(status, pool);
    if (error) {
        crmd_status_stop(status);
        return error;
    }
    *status_p = status;
    return NULL;
}

void crmd_status_stopping(crmd_status_t *status)
{
    if (status) {
        __atomic_store_n(&status->stopping, 1, __ATOMIC_RELAXED);
    }
}

void crmd_status_stop(crmd_status_t *status)
{
    apr_status_t ended;

    if (!status) {
        return;
    }
    if (status->stop[1] >= 0) {
        close(status->stop[1]);
    }
    if (status->thread) {
        apr_thread_join(&ended, status->thread);
    }
    if (status->stop[0] >= 0) {
        close(status->stop[0]);
    }
    if (status->server) {
        MHD_stop_daemon(status->server);
        status->listener.fd = -1; /* it was closed */
    }
    crmd_watch_stop(status->watch);
    crmd_listener_close(&status->listener);
}
