/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_listen.c: sockets on which the worker listens */
#include "crmapid_listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apr_strings.h"

#define BACKLOG 64

/* What is opened, for errors. */
typedef struct place_t {
    const char *setting;
    const char *where;
    apr_pool_t *pool;
} place_t;

static crm_error_t *fault(const place_t *place, const char *what)
{
    return crm_error_logf(CRM_E_CONFLICT, place->pool, "%s: %s: %s",
                          place->setting, place->where, what);
}

/* ---- Unix ---------------------------------------------------------------- */

/* Remove the socket that a dead server left at ADDRESS. */
static crm_error_t *remove_stale(const place_t *place,
                                 const struct sockaddr_un *address)
{
    const char *path = address->sun_path;
    crm_error_t *error = NULL;
    struct stat info;
    int probe;

    if (lstat(path, &info)) {
        return errno == ENOENT ? NULL : fault(place, strerror(errno));
    }
    if (!S_ISSOCK(info.st_mode)) {
        return fault(place, "the file is not a socket");
    }
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) {
        return fault(place, strerror(errno));
    }
    /* A live server whose backlog is full causes EAGAIN. */
    if (!connect(probe, (const struct sockaddr *)address, sizeof(*address))
        || errno != ECONNREFUSED) {
        error = fault(place, "another process is listening on it");
    }
    else if (unlink(path)) {
        error = fault(place, strerror(errno));
    }
    close(probe);
    return error;
}

static crm_error_t *open_unix(crmd_listener_t *listener, const place_t *place,
                              mode_t mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(place->where) >= sizeof(address.sun_path)) {
        return fault(place, "the path is too long");
    }
    apr_cpystrn(address.sun_path, place->where, sizeof(address.sun_path));
    CRM_ERR(remove_stale(place, &address));
    listener->path = place->where;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          0);
    /* No client can connect before listen(): the mode is set in time. */
    if (listener->fd < 0
        || bind(listener->fd, (struct sockaddr *)&address, sizeof(address))
        || chmod(place->where, mode)
        || lstat(place->where, &listener->file)
        || listen(listener->fd, BACKLOG)) {
        return fault(place, strerror(errno));
    }
    return NULL;
}

/* ---- TCP ----------------------------------------------------------------- */

int crmd_listener_split(char **host_p, const char **port_p, const char *where,
                        apr_pool_t *pool)
{
    const char *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : 0;
    char *end;
    long port;

    if (len > 2 && *where == '[' && where[len - 1] == ']') {
        where++;
        len -= 2;
    }
    else if (!len || memchr(where, ':', len) || memchr(where, '[', len)) {
        return 0;
    }
    port = strtol(colon + 1, &end, 10);
    *host_p = apr_pstrmemdup(pool, where, len);
    *port_p = colon + 1;
    return strspn(*port_p, "0123456789") == strlen(*port_p) && !*end
           && port > 0 && port < 65536;
}

static crm_error_t *open_tcp(crmd_listener_t *listener, const place_t *place)
{
    const struct addrinfo hints = {
        .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM
    };
    struct addrinfo *address = NULL;
    crm_error_t *error = NULL;
    const char *port;
    int code, on = 1;
    char *host;

    if (!crmd_listener_split(&host, &port, place->where, place->pool)) {
        return fault(place, "it is not ADDRESS:PORT");
    }
    code = getaddrinfo(host, port, &hints, &address);
    if (code) {
        return fault(place, gai_strerror(code));
    }
    listener->fd = socket(address->ai_family,
                          SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0
        || setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))
        || bind(listener->fd, address->ai_addr, address->ai_addrlen)
        || listen(listener->fd, BACKLOG)) {
        error = fault(place, strerror(errno));
    }
    freeaddrinfo(address);
    return error;
}

/* ---- both ---------------------------------------------------------------- */

crm_error_t *crmd_listener_open(crmd_listener_t *listener,
                                const char *setting, const char *where,
                                mode_t mode, apr_pool_t *pool)
{
    const place_t place = {setting, where, pool};

    memset(listener, 0, sizeof(*listener));
    listener->fd = -1;
    return *where == '/' ? open_unix(listener, &place, mode)
                         : open_tcp(listener, &place);
}

void crmd_listener_close(crmd_listener_t *listener)
{
    struct stat info;

    if (listener->file.st_ino && !lstat(listener->path, &info)
        && info.st_ino == listener->file.st_ino
        && info.st_dev == listener->file.st_dev) {
        unlink(listener->path);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
        listener->fd = -1;
    }
}
