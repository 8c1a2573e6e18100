/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_listen.h: sockets on which the worker listens */
#ifndef CRMAPID_LISTEN_H
#define CRMAPID_LISTEN_H

#include <sys/stat.h>

#include "apr_pools.h"

#include "crm_error.h"

/* A listening socket. */
typedef struct crmd_listener_t {
    int fd;                     /* -1: none */
    const char *path;           /* of a Unix socket, else NULL */
    struct stat file;           /* of the socket: no other file is removed */
} crmd_listener_t;

/* Open LISTENER, not blocking, for the SETTING with the value WHERE: the path of
 * a Unix socket, whose file gets MODE, or "ADDRESS:PORT", with an IPv6 address
 * in brackets. A Unix socket that a dead process left is replaced. LISTENER may
 * be closed in any case. Errors, in POOL: CRM_E_CONFLICT. */
crm_error_t *crmd_listener_open(crmd_listener_t *listener,
                                const char *setting, const char *where,
                                mode_t mode, apr_pool_t *pool);

/* Close LISTENER's socket, and remove its file unless another one has its
 * name. */
void crmd_listener_close(crmd_listener_t *listener);

/* Split WHERE, "ADDRESS:PORT" or "[ADDRESS]:PORT", into *HOST_P and *PORT_P, in
 * POOL. Return 0 if it has another form. */
int crmd_listener_split(char **host_p, const char **port_p, const char *where,
                        apr_pool_t *pool);

#endif /* CRMAPID_LISTEN_H */
