/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_client.c: a response that another thread sends
 *
 * The thread that has the rows of several requests sends their responses
 * (crm_batch.h). The thread of each request sleeps meanwhile, and touches nothing
 * of its request, so that the other one has its request_rec, pools and filters to
 * itself. It sleeps until the client has sent its next request. This is done only
 * if all output filters are known to work in any thread, and if the response
 * cannot block. */
#include "mod_crmapi_client.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ap_mpm.h"
#include "http_core.h"
#include "util_filter.h"

#include "crm_array.h"

#include "mod_crmapi_handler.h"

/* The largest body that is sent so, in bytes, and the largest that an empty send
 * buffer of any size takes without blocking. */
#define BODY_MAX 32768
#define BODY_SMALL 8192

/* Output filters that work in any thread. */
static const char *const names[] = {
    "byterange", "content_length", "http_header", "http_outerror",
    "fixup_headers_out", "log_input_output", "reqtimeout", "core"
};
static const ap_filter_rec_t *known[CRM_NELTS(names)];

void crmapi_client_init(void)
{
    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        known[i] = ap_get_output_filter_handle(names[i]);
    }
}

/* With an MPM that has an event loop, a connection has a thread only while it
 * needs one: a quarter of the threads is left to others. */
int crmapi_clients_max(void)
{
    int threads = 0, async = 0;

    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    ap_mpm_query(AP_MPMQ_IS_ASYNC, &async);
    return async ? threads * 3 / 4 : threads;
}

static int is_known(const ap_filter_rec_t *filter)
{
    for (size_t i = 0; i < CRM_NELTS(known); i++) {
        if (known[i] == filter) {
            return 1;
        }
    }
    return 0;
}

/* Return whether all output filters of R are known. */
static int is_plain(const request_rec *r)
{
    for (const ap_filter_t *f = r->output_filters; f; f = f->next) {
        if (!is_known(f->frec)) {
            return 0;
        }
    }
    return 1;
}

/* Return whether a part of R's client's next request was read already, so that
 * its connection does not become readable, or the client has gone. */
static int has_input(request_rec *r)
{
    conn_rec *c = r->connection;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, c->bucket_alloc);
    apr_status_t status = ap_get_brigade(c->input_filters, bb,
                                         AP_MODE_SPECULATIVE,
                                         APR_NONBLOCK_READ, 1);
    int has = status == APR_SUCCESS ? !APR_BRIGADE_EMPTY(bb)
              : !APR_STATUS_IS_EAGAIN(status);

    apr_brigade_destroy(bb);
    return has;
}

/* Return whether the body of REQUEST was read, or it has none. */
static int has_no_rest(const crmapi_request_t *request)
{
    const apr_table_t *headers = request->r->headers_in;

    return request->body_read || (!apr_table_get(headers, "Content-Length")
                                  && !apr_table_get(headers,
                                                    "Transfer-Encoding"));
}

/* Return the socket of R's client, or -1. */
static int socket_of(const request_rec *r)
{
    apr_socket_t *socket = ap_get_conn_socket(r->connection);
    apr_os_sock_t fd;

    return socket && apr_os_sock_get(&fd, socket) == APR_SUCCESS ? fd : -1;
}

int crmapi_client(void *baton)
{
    const crmapi_request_t *request = baton;
    request_rec *r = request->r;

    return request->mount->mount->rest && request->config->keepalive_wait
           && !r->main && !r->connection->master && r->proto_num >= 1001
           && has_no_rest(request) && is_plain(r) && !has_input(r)
           ? socket_of(r) : -1;
}

/* Return whether the send buffer of R's client takes LEN bytes of a body. */
static int has_room(const request_rec *r, apr_size_t len)
{
    int fd = socket_of(r), unsent = 1, size = 0;
    socklen_t size_len = sizeof(size);

    if (len > BODY_MAX || ioctl(fd, SIOCOUTQ, &unsent) || unsent) {
        return 0;
    }
    return len <= BODY_SMALL
           || (!getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &size_len)
               && (apr_size_t)size >= 3 * len);
}

crm_answered_t crmapi_send(void *baton)
{
    crmapi_request_t *request = baton;
    const crm_response_t *response = &request->response;
    const conn_rec *c = request->r->connection;

    if (response->stream || !has_room(request->r, response->body.len)) {
        return CRM_ANSWERED_NOT;
    }
    request->result = crmapi_send_answer(request, 1);
    return request->result == OK && !c->aborted
           && c->keepalive == AP_CONN_KEEPALIVE
           ? CRM_ANSWERED : CRM_ANSWERED_LAST;
}
