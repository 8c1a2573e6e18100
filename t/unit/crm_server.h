/* SPDX-License-Identifier: Apache-2.0 */
/* crm_server.h: small servers in test programs, on 127.0.0.1 */
#ifndef CRM_SERVER_H
#define CRM_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "apr_time.h"

/* Time-outs of clients, in microseconds: where the server will not answer, and
 * where it will, however slow the machine is. A call that has ended before
 * SERVER_SOON did not wait for the latter. */
#define SERVER_SHORT 600000
#define SERVER_SOON 60000000
#define SERVER_LONG 90000000

/* A server, which serves one connection after the other in a thread. */
typedef struct server_t {
    int fd;                     /* the listening socket */
    int port;
    int connections;            /* so far; read it after server_stop() */
    apr_time_t started;
    pthread_t thread;
    void (*serve)(int fd, void *baton); /* closes nothing */
    void *baton;
} server_t;

static inline void *server_run(void *argument)
{
    server_t *server = argument;
    int fd;

    while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
        server->connections++;
        server->serve(fd, server->baton);
        close(fd);
    }
    return NULL;
}

/* Open a socket on a port of its own. LISTENING: connections are taken, and
 * wait; otherwise they are refused, and the port stays taken. */
static inline int server_open(int *port_p, int listening)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    if (listening) {
        ck_assert_int_eq(listen(fd, 16), 0);
    }
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port_p = ntohs(address.sin_port);
    return fd;
}

/* Start SERVER, which calls SERVE with each connection and BATON. */
static inline void server_start(server_t *server,
                                void (*serve)(int fd, void *baton),
                                void *baton)
{
    memset(server, 0, sizeof(*server));
    server->started = apr_time_now();
    server->fd = server_open(&server->port, 1);
    server->serve = serve;
    server->baton = baton;
    ck_assert_int_eq(pthread_create(&server->thread, NULL, server_run,
                                    server), 0);
}

/* End SERVER; what it has written can be looked at after that. */
static inline void server_stop(server_t *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
}

/* The same of a server that had COUNT connections, and was not needed for long. */
static inline void server_stop_soon(server_t *server, int count)
{
    apr_time_t took;

    server_stop(server);
    took = apr_time_now() - server->started;
    ck_assert_msg(took < SERVER_SOON, "it took %d ms", (int)(took / 1000));
    ck_assert_int_eq(server->connections, count);
}

/* Send TEXT; return whether the client was still there. */
static inline int server_puts(int fd, const char *text)
{
    size_t len = strlen(text);

    return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Read an HTTP request into BUFFER of SIZE bytes, with a NUL: its head, and its
 * body, as long as Content-Length says. A TLS handshake has no end that is seen:
 * stop at its beginning. */
static inline void server_read_http(int fd, char *buffer, size_t size)
{
    size_t len = 0, want = 0;

    while (!want || len < want) {
        const char *length, *end;
        ssize_t n = read(fd, buffer + len, size - 1 - len);

        if (n <= 0 || *buffer == 0x16) {
            break;
        }
        len += (size_t)n;
        buffer[len] = '\0';
        end = strstr(buffer, "\r\n\r\n");
        length = strstr(buffer, "Content-Length: ");
        if (end) {
            want = (size_t)(end - buffer) + 4
                + (length ? (size_t)atol(length + 16) : 0);
        }
    }
}

/* Neither read nor send until SERVER is stopped. */
static inline void server_stall(const server_t *server)
{
    struct pollfd stopped = {.fd = server->fd, .events = POLLIN};

    poll(&stopped, 1, -1);
}

/* Read until the client goes. */
static inline void server_hang(int fd)
{
    char buffer[4096];

    while (read(fd, buffer, sizeof(buffer)) > 0) {
    }
}

/* Send TEXT again and again until the client goes. */
static inline void server_flood(int fd, const char *text)
{
    while (server_puts(fd, text)) {
    }
}

#endif /* CRM_SERVER_H */
