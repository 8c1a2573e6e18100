/* SPDX-License-Identifier: Apache-2.0 */
/* crm_wire.h: a stream to a server, with deadlines and TLS */
#ifndef CRM_WIRE_H
#define CRM_WIRE_H

#include <sys/socket.h>

#include <openssl/ssl.h>

#include "apr.h"

/* The maximum number of addresses of a host that are tried. */
#define CRM_WIRE_ADDRESSES 4

/* A connection. All functions return NULL, or the reason of a failure: a text
 * for the log, constant or in REASON. After a failure call crm_wire_close(). */
typedef struct crm_wire_t {
    int fd;                     /* -1: not connected */
    SSL *ssl;                   /* NULL: no TLS */
    apr_int64_t deadline;       /* of all functions, on the clock of
                                   crm_time_monotonic() */
    char reason[128];
} crm_wire_t;

/* Where to connect. */
typedef struct crm_wire_place_t {
    const char *path;           /* of a Unix socket; NULL: HOST and PORT */
    const char *host;           /* name or address; the server's certificate
                                   must be for it */
    const char *port;           /* decimal */
    SSL_CTX *tls;               /* NULL: no TLS */
    /* The addresses of HOST. A length of 0 ends them. */
    struct sockaddr_storage addresses[CRM_WIRE_ADDRESSES];
    socklen_t lengths[CRM_WIRE_ADDRESSES];
} crm_wire_place_t;

/* Set *TLS_P to a TLS context that trusts the certificates in the file CA, or
 * the system's if CA is NULL. Free it with SSL_CTX_free(). Return NULL or an
 * error. */
const char *crm_wire_tls(SSL_CTX **tls_p, const char *ca);

/* Connect WIRE to PLACE. Resolve its host first if it is not resolved: see
 * crm_name_find(). */
const char *crm_wire_open(crm_wire_t *wire, crm_wire_place_t *place);

/* Have PLACE's host resolved again by the next crm_wire_open(): its name may lead to
 * another server now. */
void crm_wire_forget(crm_wire_place_t *place);

/* Return whether WIRE is connected, and the server has neither sent anything
 * nor closed the connection. */
int crm_wire_is_quiet(crm_wire_t *wire);

/* Send the LEN bytes at DATA. */
const char *crm_wire_send(crm_wire_t *wire, const char *data, size_t len);

/* Wait for bytes, at most SIZE, and set *LEN_P to their number, at least 1. */
const char *crm_wire_receive(crm_wire_t *wire, char *data, size_t size,
                             size_t *len_p);

/* Close WIRE, if it is connected. */
void crm_wire_close(crm_wire_t *wire);

#endif /* CRM_WIRE_H */
