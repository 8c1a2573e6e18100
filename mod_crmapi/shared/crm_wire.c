/* SPDX-License-Identifier: Apache-2.0 */
/* crm_wire.c: a stream to a server, with deadlines and TLS */
#include "crm_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "apr_strings.h"

#include "crm_certificates.h"
#include "crm_name.h"
#include "crm_time.h"

#define LATE "no answer in time"

/* Return, in WIRE's reason, that WHAT failed with the error number ERROR. */
static const char *failed(crm_wire_t *wire, const char *what, int error)
{
    char text[80];

    apr_snprintf(wire->reason, sizeof(wire->reason), "%s: %s", what,
                 apr_strerror(error, text, sizeof(text)));
    return wire->reason;
}

/* Wait for EVENTS of WIRE's socket. */
static const char *await(crm_wire_t *wire, short events)
{
    struct pollfd poll_fd = {wire->fd, events, 0};
    int count;

    do {
        apr_int64_t left = wire->deadline - crm_time_monotonic();

        if (left <= 0) {
            return LATE;
        }
        count = poll(&poll_fd, 1, (int)((left + 999) / 1000));
    } while (!count || (count < 0 && errno == EINTR));
    return count < 0 ? failed(wire, "cannot wait", errno) : NULL;
}

/* ---- connecting ---------------------------------------------------------- */

/* Connect WIRE, which has a new socket, to ADDRESS. */
static const char *connect_to(crm_wire_t *wire, const struct sockaddr *address,
                              socklen_t len)
{
    const char *problem;
    int error = 0;
    socklen_t size = sizeof(error);

    if (wire->fd < 0) {
        return failed(wire, "no socket", errno);
    }
    if (!connect(wire->fd, address, len)) {
        return NULL;
    }
    if (errno != EINPROGRESS) {
        return failed(wire, "cannot connect", errno);
    }
    problem = await(wire, POLLOUT);
    if (problem) {
        return problem;
    }
    getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? failed(wire, "cannot connect", error) : NULL;
}

static const char *open_unix(crm_wire_t *wire, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path)) {
        return "the path of the socket is too long";
    }
    apr_cpystrn(address.sun_path, path, sizeof(address.sun_path));
    wire->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return connect_to(wire, (const struct sockaddr *)&address,
                      sizeof(address));
}

static int count_addresses(const crm_wire_place_t *place)
{
    int count = 0;

    while (count < CRM_WIRE_ADDRESSES && place->lengths[count]) {
        count++;
    }
    return count;
}

/* Connect WIRE to the first address of PLACE that can be reached. Each has an equal
 * share of the time that is left, so that a silent one does not hide the next. */
static const char *open_first(crm_wire_t *wire, const crm_wire_place_t *place)
{
    const char *problem = "the host has no address";
    const apr_int64_t end = wire->deadline;
    const int on = 1;

    for (int left = count_addresses(place), i = 0; left; left--, i++) {
        const struct sockaddr *address
            = (const struct sockaddr *)&place->addresses[i];
        apr_int64_t now = crm_time_monotonic();

        wire->deadline = now + (end - now) / left;
        wire->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC
                          | SOCK_NONBLOCK, 0);
        problem = connect_to(wire, address, place->lengths[i]);
        if (!problem) {
            setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            break;
        }
        crm_wire_close(wire);
    }
    wire->deadline = end;
    return problem;
}

void crm_wire_forget(crm_wire_place_t *place)
{
    place->lengths[0] = 0;
}

static const char *open_tcp(crm_wire_t *wire, crm_wire_place_t *place)
{
    const char *problem = place->lengths[0] ? NULL
        : crm_name_find(place->addresses, place->lengths, CRM_WIRE_ADDRESSES,
                        place->host, place->port, wire->deadline);

    return problem ? problem : open_first(wire, place);
}

/* ---- TLS ----------------------------------------------------------------- */

const char *crm_wire_tls(SSL_CTX **tls_p, const char *ca)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    const char *fault = ca ? crm_certificates_fault(ca) : NULL;
    int ok = tls && SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);

    *tls_p = tls;
    if (!ok) {
        return "TLS cannot be used";
    }
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(tls, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                          | SSL_MODE_ENABLE_PARTIAL_WRITE);
    if (fault) {
        return fault;
    }
    ok = ca ? SSL_CTX_load_verify_locations(tls, ca, NULL)
         : SSL_CTX_set_default_verify_paths(tls);
    ERR_clear_error();
    return ok ? NULL : "the file has no certificates";
}

/* Handle RESULT of a TLS operation on WIRE that did not succeed. Return NULL
 * after waiting for the socket: try the operation again. Otherwise return the
 * reason of the failure. */
static const char *tls_again(crm_wire_t *wire, int result)
{
    int error = SSL_get_error(wire->ssl, result);
    long verified = SSL_get_verify_result(wire->ssl);
    const char *why = ERR_reason_error_string(ERR_peek_error());

    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        return await(wire, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
    }
    if (verified != X509_V_OK) {
        apr_snprintf(wire->reason, sizeof(wire->reason),
                     "the server's certificate: %s",
                     X509_verify_cert_error_string(verified));
        return wire->reason;
    }
    if (error == SSL_ERROR_ZERO_RETURN || error == SSL_ERROR_SYSCALL) {
        return "the connection was closed";
    }
    apr_snprintf(wire->reason, sizeof(wire->reason), "TLS failed%s%s",
                 why ? ": " : "", why ? why : "");
    return wire->reason;
}

/* Require that the server's certificate is for HOST, a name or an address. */
static int expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host)) {
        return 1;
    }
    ERR_clear_error();
    /* SSL_set_tlsext_host_name() does the same, but its cast drops a const. */
    return SSL_set1_host(ssl, host)
           && SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                       TLSEXT_NAMETYPE_host_name,
                       (void *)(apr_uintptr_t)host);
}

static const char *open_tls(crm_wire_t *wire, const crm_wire_place_t *place)
{
    int result;

    wire->ssl = SSL_new(place->tls);
    if (!wire->ssl || !SSL_set_fd(wire->ssl, wire->fd)
        || !expect_host(wire->ssl, place->host)) {
        return "TLS cannot be used";
    }
    while ((result = SSL_connect(wire->ssl)) != 1) {
        const char *problem = tls_again(wire, result);

        if (problem) {
            return problem;
        }
    }
    return NULL;
}

const char *crm_wire_open(crm_wire_t *wire, crm_wire_place_t *place)
{
    const char *problem = place->path ? open_unix(wire, place->path)
                                      : open_tcp(wire, place);

    return problem || !place->tls ? problem : open_tls(wire, place);
}

/* ---- bytes --------------------------------------------------------------- */

int crm_wire_is_quiet(crm_wire_t *wire)
{
    char c;
    int quiet;

    if (wire->fd < 0) {
        return 0;
    }
    if (!wire->ssl) {
        return recv(wire->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0
               && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    /* The peer may have sent messages of TLS itself. */
    quiet = SSL_get_error(wire->ssl, SSL_peek(wire->ssl, &c, 1))
            == SSL_ERROR_WANT_READ;
    ERR_clear_error();
    return quiet;
}

/* Send some of the LEN bytes at DATA and set *SENT_P to their number. */
static const char *send_some(crm_wire_t *wire, const char *data, size_t len,
                             size_t *sent_p)
{
    ssize_t sent;

    *sent_p = 0;
    if (wire->ssl) {
        int result = SSL_write_ex(wire->ssl, data, len, sent_p);

        return result ? NULL : tls_again(wire, result);
    }
    sent = send(wire->fd, data, len, MSG_NOSIGNAL);
    if (sent >= 0) {
        *sent_p = (size_t)sent;
        return NULL;
    }
    return errno == EAGAIN || errno == EINTR
           ? await(wire, POLLOUT) : failed(wire, "cannot send", errno);
}

const char *crm_wire_send(crm_wire_t *wire, const char *data, size_t len)
{
    const char *problem = NULL;
    size_t sent;

    for (; len && !problem; data += sent, len -= sent) {
        problem = send_some(wire, data, len, &sent);
    }
    return problem;
}

/* Receive up to SIZE bytes into DATA. Set *LEN_P to their number; 0: try
 * again. */
static const char *receive_some(crm_wire_t *wire, char *data, size_t size,
                                size_t *len_p)
{
    ssize_t len;

    *len_p = 0;
    if (crm_time_monotonic() >= wire->deadline) {
        return LATE;
    }
    if (wire->ssl) {
        int result = SSL_read_ex(wire->ssl, data, size, len_p);

        return result ? NULL : tls_again(wire, result);
    }
    len = recv(wire->fd, data, size, 0);
    if (len > 0) {
        *len_p = (size_t)len;
        return NULL;
    }
    if (!len) {
        return "the connection was closed";
    }
    return errno == EAGAIN || errno == EINTR
           ? await(wire, POLLIN) : failed(wire, "cannot receive", errno);
}

const char *crm_wire_receive(crm_wire_t *wire, char *data, size_t size,
                             size_t *len_p)
{
    const char *problem;

    do {
        problem = receive_some(wire, data, size, len_p);
    } while (!problem && !*len_p);
    return problem;
}

void crm_wire_close(crm_wire_t *wire)
{
    SSL_free(wire->ssl);
    wire->ssl = NULL;
    if (wire->fd >= 0) {
        close(wire->fd);
        wire->fd = -1;
    }
}
