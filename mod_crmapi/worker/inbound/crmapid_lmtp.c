/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp.c: the LMTP server's socket and threads */
#include "crmapid_lmtp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apr_atomic.h"
#include "apr_thread_proc.h"

#include "crm_mail.h"
#include "crmapid_listen.h"
#include "crmapid_lmtp_session.h"
#include "crmapid_pool.h"

struct crmd_lmtp_t {
    const crmd_config_t *config;
    crmd_listener_t listener;
    crmd_lmtp_door_t door;
    int stop[2];                /* a pipe: closing stop[1] stops all threads */
    apr_array_header_t *threads; /* of apr_thread_t * */
};

/* A thread that serves sessions, one at a time. */
typedef struct server_t {
    crmd_lmtp_t *lmtp;
    apr_pool_t *pool;           /* for a session */
    apr_pool_t *conn_pool;
    crm_conn_t *conn;           /* NULL: not open */
} server_t;

/* ---- sessions ------------------------------------------------------------ */

/* Wait for a client. Return its socket, -1 on an error, -2 when the server
 * stops. */
static int next_client(crmd_lmtp_t *lmtp)
{
    struct pollfd pollers[2] = {
        {lmtp->stop[0], POLLIN, 0}, {lmtp->listener.fd, POLLIN, 0}
    };
    int client = -1;

    apr_atomic_inc32(&lmtp->door.free);
    if (poll(pollers, 2, -1) > 0) {
        client = pollers[0].revents ? -2
                 : accept4(lmtp->listener.fd, NULL, NULL,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    apr_atomic_dec32(&lmtp->door.free);
    return client;
}

static void *APR_THREAD_FUNC server_main(apr_thread_t *thread, void *data)
{
    server_t *server = data;
    crmd_lmtp_t *lmtp = server->lmtp;
    int client;

    while ((client = next_client(lmtp)) != -2) {
        if (client >= 0) {
            crmd_lmtp_serve(&server->conn, client, &lmtp->door, lmtp->config,
                            server->conn_pool, server->pool);
            close(client);
            apr_pool_clear(server->pool);
        }
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            poll(NULL, 0, 200); /* until descriptors or memory are free */
        }
    }
    apr_pool_clear(server->conn_pool);
    (void)thread;
    return NULL;
}

static crm_error_t *start_server(crmd_lmtp_t *lmtp, apr_pool_t *pool)
{
    server_t *server = apr_pcalloc(pool, sizeof(*server));
    apr_thread_t *thread;
    apr_pool_t *own = crmd_pool_create(pool, 1024 * 1024);

    server->lmtp = lmtp;
    apr_pool_create(&server->pool, own);
    apr_pool_create(&server->conn_pool, own);
    if (apr_thread_create(&thread, NULL, server_main, server, pool)
        != APR_SUCCESS) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "a thread for lmtp_socket"
                              " cannot be started");
    }
    APR_ARRAY_PUSH(lmtp->threads, apr_thread_t *) = thread;
    return NULL;
}

/* ---- start and stop ------------------------------------------------------ */

static crm_error_t *start_all(crmd_lmtp_t *lmtp, apr_pool_t *pool)
{
    const crmd_config_t *config = lmtp->config;

    CRM_ERR(crmd_listener_open(&lmtp->listener, "lmtp_socket",
                               config->lmtp_socket,
                               (mode_t)strtol(config->lmtp_mode, NULL, 8),
                               pool));
    if (pipe2(lmtp->stop, O_CLOEXEC)) {
        return crm_error_logf(CRM_E_CONFLICT, pool, "lmtp_socket: %s",
                              strerror(errno));
    }
    lmtp->door.stop = lmtp->stop[0];
    lmtp->door.listener = lmtp->listener.fd;
    for (int i = 0; i < config->lmtp_threads; i++) {
        CRM_ERR(start_server(lmtp, pool));
    }
    return NULL;
}

crm_error_t *crmd_lmtp_start(crmd_lmtp_t **lmtp_p,
                             const crmd_config_t *config, apr_pool_t *pool)
{
    crmd_lmtp_t *lmtp;
    crm_error_t *error;

    *lmtp_p = NULL;
    if (!*config->lmtp_socket) {
        return NULL;
    }
    crm_mail_init();
    lmtp = apr_pcalloc(pool, sizeof(*lmtp));
    lmtp->config = config;
    lmtp->listener.fd = lmtp->stop[0] = lmtp->stop[1] = -1;
    lmtp->threads = apr_array_make(pool, 8, sizeof(apr_thread_t *));
    error = start_all(lmtp, pool);
    if (error) {
        crmd_lmtp_stop(lmtp);
        return error;
    }
    *lmtp_p = lmtp;
    return NULL;
}

void crmd_lmtp_stop(crmd_lmtp_t *lmtp)
{
    if (!lmtp) {
        return;
    }
    if (lmtp->stop[1] >= 0) {
        close(lmtp->stop[1]);
    }
    for (int i = 0; i < lmtp->threads->nelts; i++) {
        apr_status_t status;

        apr_thread_join(&status, APR_ARRAY_IDX(lmtp->threads, i,
                                               apr_thread_t *));
    }
    if (lmtp->stop[0] >= 0) {
        close(lmtp->stop[0]);
    }
    crmd_listener_close(&lmtp->listener);
}
