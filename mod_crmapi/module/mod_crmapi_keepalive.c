/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_keepalive.c: a short wait for the next request of a connection
 *
 * After a response, an MPM with an event loop returns a kept connection to its
 * listener. The listener hands the next request to a worker thread again. If a
 * client sends its next request at once, these two steps cost more than the
 * request itself. So the worker first waits a short time for it.
 *
 * After each response, httpd looks for a pipelined request by a non-blocking
 * read (ap_check_pipeline()). An input filter sees that read, sends the
 * response, which is still buffered, and waits. */
#include "mod_crmapi_keepalive.h"

#include <poll.h>

#include "ap_mpm.h"
#include "http_core.h"
#include "util_filter.h"

static ap_filter_rec_t *keepalive_filter;

/* The filter of a connection. */
typedef struct keepalive_t {
    apr_interval_time_t wait;   /* microseconds; 0: the last request was not for
                                   a mount */
    apr_bucket_brigade *bb;
} keepalive_t;

/* Send the output that is buffered for C. */
static apr_status_t flush(conn_rec *c, apr_bucket_brigade *bb)
{
    apr_status_t status;

    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(c->bucket_alloc));
    status = ap_pass_brigade(c->output_filters, bb);
    apr_brigade_cleanup(bb);
    return status;
}

/* Wait for input on C, at most WAIT microseconds. Return whether there is
 * any. */
static int wait_input(conn_rec *c, apr_interval_time_t wait)
{
    struct timespec time = {wait / APR_USEC_PER_SEC,
                            wait % APR_USEC_PER_SEC * 1000};
    struct pollfd poller = {-1, POLLIN, 0};
    apr_socket_t *socket = ap_get_conn_socket(c);

    return socket && apr_os_sock_get(&poller.fd, socket) == APR_SUCCESS
           && ppoll(&poller, 1, &time, NULL) == 1;
}

static apr_status_t filter_input(ap_filter_t *f, apr_bucket_brigade *bb,
                                 ap_input_mode_t mode, apr_read_type_e block,
                                 apr_off_t len)
{
    apr_status_t status = ap_get_brigade(f->next, bb, mode, block, len);
    keepalive_t *keepalive = f->ctx;
    apr_interval_time_t wait = keepalive->wait;

    keepalive->wait = 0;
    if (!wait || mode != AP_MODE_SPECULATIVE || block != APR_NONBLOCK_READ
        || !(status == APR_SUCCESS ? APR_BRIGADE_EMPTY(bb)
             : APR_STATUS_IS_EAGAIN(status))) {
        return status;
    }
    if (flush(f->c, keepalive->bb) != APR_SUCCESS
        || !wait_input(f->c, wait)) {
        return status;
    }
    apr_brigade_cleanup(bb);
    return ap_get_brigade(f->next, bb, mode, block, len);
}

/* Return the state of C's filter. Add the filter if it is absent. */
static keepalive_t *connection_state(conn_rec *c)
{
    keepalive_t *keepalive = ap_get_module_config(c->conn_config,
                                                  &crmapi_module);

    if (!keepalive) {
        keepalive = apr_pcalloc(c->pool, sizeof(*keepalive));
        keepalive->bb = apr_brigade_create(c->pool, c->bucket_alloc);
        ap_set_module_config(c->conn_config, &crmapi_module, keepalive);
        ap_add_input_filter_handle(keepalive_filter, keepalive, NULL, c);
    }
    return keepalive;
}

void crmapi_keepalive(request_rec *r, apr_interval_time_t wait)
{
    conn_rec *c = r->connection;
    int async = 0;

    if (wait && !c->master && c->cs && c->keepalive != AP_CONN_CLOSE
        && ap_mpm_query(AP_MPMQ_IS_ASYNC, &async) == APR_SUCCESS && async) {
        connection_state(c)->wait = wait;
    }
}

void crmapi_keepalive_register(void)
{
    keepalive_filter = ap_register_input_filter("CRMAPI_KEEPALIVE",
                                                filter_input, NULL,
                                                AP_FTYPE_CONNECTION);
}
