/* SPDX-License-Identifier: Apache-2.0 */
/* crm_wire.h: a stream to a server, with deadlines and TLS */
#ifndef CRM_WIRE_H
#define CRM_WIRE_H

#include <sys/socket.h>

#include <openssl/ssl.h>

#include "apr.h"

/* How many addresses of a host are tried. */
#define CRM_WIRE_ADDRESSES 4

/* A connection. All functions return NULL, or why they failed: a text for the
 * log, constant or in REASON. Then crm_wire_close() is to be called. */
typedef struct crm_wire_t {
    int fd;                     /* -1: not connected */
    SSL *ssl;                   /* NULL: no TLS */
    apr_int64_t deadline;       /* of all functions: a crm_time_monotonic() */
    char reason[128];
} crm_wire_t;

/* Where to connect. */
typedef struct crm_wire_place_t {
    const char *path;           /* of a Unix socket; NULL: HOST and PORT */
    const char *host;           /* name or address; the name in the server's
                                   certificate */
    const char *port;           /* decimal */
    SSL_CTX *tls;               /* NULL: no TLS */
    /* Addresses of HOST; LENGTHS is 0 from where there are no more. */
    struct sockaddr_storage addresses[CRM_WIRE_ADDRESSES];
    socklen_t lengths[CRM_WIRE_ADDRESSES];
} crm_wire_place_t;

/* Set *TLS_P to what TLS needs: certificates are verified by those in the file
 * CA, or by the system's if it is NULL. Free it with SSL_CTX_free(). Return
 * NULL or an error. */
const char *crm_wire_tls(SSL_CTX **tls_p, const char *ca);

/* Resolve PLACE's host. It takes as long as the name service does. */
const char *crm_wire_resolve(crm_wire_place_t *place);

/* Connect WIRE to PLACE. Only if it is not resolved, which it is not after an
 * attempt that failed, resolve it, which no deadline bounds. */
const char *crm_wire_open(crm_wire_t *wire, crm_wire_place_t *place);

/* Return whether WIRE is connected and the server has sent nothing and not
 * closed the connection. */
int crm_wire_is_quiet(crm_wire_t *wire);

/* Send the LEN bytes at DATA. */
const char *crm_wire_send(crm_wire_t *wire, const char *data, size_t len);

/* Wait for bytes, at most SIZE, and set *LEN_P to their number, at least 1. */
const char *crm_wire_receive(crm_wire_t *wire, char *data, size_t size,
                             size_t *len_p);

/* Close WIRE, if it is connected. */
void crm_wire_close(crm_wire_t *wire);

#endif /* CRM_WIRE_H */
