/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_wait.c: requests that wait for something to happen (contract 19.4)
 *
 * MPM event lets a handler return SUSPENDED: the thread leaves the connection. The
 * MPM of httpd 2.4 offers two things more, calls at a time
 * (ap_mpm_register_timed_callback()) and a hook when the thread has left, but no
 * way back: a suspended connection is in no queue and no poll set of the MPM. So
 * one thread of this process looks at all of them: whether something has
 * happened, the time is over, or the client has gone. Then a thread of the MPM
 * responds, and the connection is closed here.
 *
 * Where a request cannot be suspended (other MPMs, HTTP/2, after an internal
 * redirect), its thread waits. */
#include "mod_crmapi_wait.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_portable.h"
#include "apr_ring.h"
#include "apr_thread_cond.h"

#include "ap_mpm.h"
#include "http_connection.h"
#include "http_core.h"
#include "http_protocol.h"

#include "crm_time.h"
#include "mod_crmapi_bell.h"

/* Whether something has happened is asked again after this time, once, if there
 * was nothing when the bell rang: GET /events shows nothing behind a transaction
 * that has not ended. */
#define AGAIN apr_time_from_sec(2)

/* A connection is closed this long after the response at the latest, and not
 * earlier than that after it was suspended: the MPM's thread touches it once more
 * after the hook. */
#define LINGER apr_time_from_sec(2)
#define SETTLED apr_time_from_sec(1)

/* Interval of looks at the state of the MPM. */
#define TICK 1000               /* milliseconds */

/* Requests whose threads wait may have this part of the threads, and those with a
 * place, which are visitors of chats, that one. */
#define SHARE 4
#define SHARE_PLACED 2

typedef enum state_t {
    HELD,                       /* its thread waits */
    SUSPENDED_REQUEST,
    CLOSING                     /* a connection without a request */
} state_t;

/* A request that waits, or its connection. If that can be suspended, it lives as
 * long as the connection, because the request may end earlier. */
typedef struct crmapi_waiter_t {
    APR_RING_ENTRY(crmapi_waiter_t) link;
    crmapi_request_t *request;
    conn_rec *c;
    state_t state;
    int ready;                  /* it may be put on the list */
    int fd;
    int gone;                   /* the client closed the connection */
    int woken;                  /* the thread that waits is woken */
    apr_thread_cond_t *cond;    /* for it; NULL: SUSPENDED_REQUEST */
    apr_time_t until;           /* look again at this time */
    apr_time_t suspended;       /* since when */
    apr_uint32_t count;         /* of the bell, before the last query */
} crmapi_waiter_t;

APR_RING_HEAD(waiters_t, crmapi_waiter_t);

static struct {
    apr_thread_mutex_t *mutex;  /* of what follows */
    struct waiters_t list;
    int listed;
    int waiting;                /* requests among them, without those that have a
                                   place */
    int held;                   /* those whose threads wait */
    int stopping;               /* atomic: crmapi_watch() has no lock */
    apr_thread_t *thread;       /* NULL: nobody has waited */
    int pipe[2];                /* wakes it */
    int ends;
    int async;                  /* the MPM can suspend */
    int threads;                /* of this process */
    apr_pool_t *p;
    crmapi_wait_t (*resume)(crmapi_request_t *request);
    /* for the thread alone: what it polls */
    struct pollfd *pollers;
    crmapi_waiter_t **polled;
    int room;
} waits;

static int is_stopping(void)
{
    return __atomic_load_n(&waits.stopping, __ATOMIC_RELAXED);
}

static void stop(void)
{
    __atomic_store_n(&waits.stopping, 1, __ATOMIC_RELAXED);
}

static void rouse(void)
{
    ssize_t written = write(waits.pipe[1], "", 1);

    (void)written;              /* full: it is being woken */
}

/* ---- closing ------------------------------------------------------------- */

/* Put WAITER on the list. The list is locked. */
static void put(crmapi_waiter_t *waiter)
{
    APR_RING_INSERT_TAIL(&waits.list, waiter, crmapi_waiter_t, link);
    waits.listed++;
    rouse();
}

/* Send what is left of the response to WAITER's connection, which has no request
 * any more, and have it closed. */
static void begin_to_close(crmapi_waiter_t *waiter)
{
    apr_time_t now = crm_time_monotonic();
    int over = ap_start_lingering_close(waiter->c);

    waiter->state = CLOSING;
    waiter->gone = 0;
    waiter->until = over ? 0 : now + LINGER;
    if (waiter->until < waiter->suspended + SETTLED) {
        waiter->until = waiter->suspended + SETTLED;
        waiter->fd = -1;
    }
    apr_thread_mutex_lock(waits.mutex);
    put(waiter);
    apr_thread_mutex_unlock(waits.mutex);
}

/* Close WAITER's connection: the MPM counts it as suspended. */
static void close_connection(crmapi_waiter_t *waiter)
{
    conn_rec *c = waiter->c;

    c->cs->state = CONN_STATE_SUSPENDED;
    apr_pool_destroy(c->pool);
}

/* ---- waking -------------------------------------------------------------- */

/* A callback of the MPM: serve the request of BATON again. */
static void resume(void *baton)
{
    crmapi_waiter_t *waiter = baton;

    if (waits.resume(waiter->request) != CRMAPI_WAIT_SUSPENDED) {
        begin_to_close(waiter);
    }
}

/* Wake WAITER, which is not on the list any more. The list is locked. */
static void wake(crmapi_waiter_t *waiter)
{
    if (waiter->state == HELD) {
        waiter->woken = 1;
        apr_thread_cond_signal(waiter->cond);
    }
    else {
        ap_mpm_register_timed_callback(0, resume, waiter);
    }
}

/* Return whether WAITER has waited long enough at NOW. A stream of HTTP/2 has no
 * socket: mod_http2 marks its connection. */
static int is_due(crmapi_waiter_t *waiter, apr_time_t now)
{
    waiter->gone |= waiter->state == HELD && waiter->c->aborted;
    return now >= waiter->until || waiter->gone
           || (waiter->state != CLOSING
               && (is_stopping()
                   || crmapi_bell_count(waiter->request->watch,
                                    waiter->request->line)
                      != waiter->count));
}

/* Take waiters that are due at NOW from the list and wake them. Move connections
 * to be closed to CLOSED. Return the milliseconds until the next one is due. The
 * list is locked. */
static int take_due(struct waiters_t *closed, apr_time_t now)
{
    apr_time_t next = now + apr_time_from_msec(TICK);
    crmapi_waiter_t *waiter, *after;

    APR_RING_FOREACH_SAFE(waiter, after, &waits.list, crmapi_waiter_t, link) {
        if (!is_due(waiter, now)) {
            next = waiter->until < next ? waiter->until : next;
            continue;
        }
        APR_RING_REMOVE(waiter, link);
        waits.listed--;
        if (waiter->state == CLOSING) {
            APR_RING_INSERT_TAIL(closed, waiter, crmapi_waiter_t, link);
        }
        else {
            wake(waiter);
        }
    }
    return !waits.listed ? -1
           : next > now ? (int)apr_time_as_msec(next - now + 999) : 0;
}

/* ---- the thread ---------------------------------------------------------- */

/* Have room to poll the listed waiters. The list is locked. Return 0 if there is
 * no memory. */
static int make_room(void)
{
    int wanted = waits.listed + 1;
    struct pollfd *pollers;
    crmapi_waiter_t **polled;

    if (wanted <= waits.room) {
        return 1;
    }
    pollers = realloc(waits.pollers, 2 * (size_t)wanted * sizeof(*pollers));
    waits.pollers = pollers ? pollers : waits.pollers;
    polled = realloc(waits.polled, 2 * (size_t)wanted * sizeof(*polled));
    waits.polled = polled ? polled : waits.polled;
    if (!pollers || !polled) {
        return 0;
    }
    waits.room = 2 * wanted;
    return 1;
}

/* Fill the array to be polled. Return the number of its elements. The list is
 * locked. */
static int fill(void)
{
    struct pollfd self = {waits.pipe[0], POLLIN, 0};
    crmapi_waiter_t *waiter;
    int count = 1;

    if (!make_room()) {
        return 0;
    }
    waits.pollers[0] = self;
    APR_RING_FOREACH(waiter, &waits.list, crmapi_waiter_t, link) {
        struct pollfd poller = {waiter->fd, POLLRDHUP, 0};

        waits.pollers[count] = poller;
        waits.polled[count++] = waiter;
    }
    return count;
}

/* Sleep for TIMEOUT milliseconds, until rouse(), or until a client has gone. Only
 * this thread takes waiters from the list, so those that are polled stay. */
static void nap(int count, int timeout)
{
    char drop[64];

    poll(waits.pollers, (nfds_t)count, count ? timeout : TICK);
    for (int i = 1; i < count; i++) {
        waits.polled[i]->gone = waits.pollers[i].revents != 0;
    }
    while (read(waits.pipe[0], drop, sizeof(drop)) > 0) {
    }
}

static void look_for_stop(void)
{
    int state = AP_MPMQ_RUNNING;

    ap_mpm_query(AP_MPMQ_MPM_STATE, &state);
    if (state == AP_MPMQ_STOPPING) {
        stop();
    }
}

static void *APR_THREAD_FUNC wait_main(apr_thread_t *thread, void *baton)
{
    int ends = 0;
    sigset_t signals;

    (void)baton;
    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    while (!ends) {
        struct waiters_t closed;
        int timeout, count;

        APR_RING_INIT(&closed, crmapi_waiter_t, link);
        apr_thread_mutex_lock(waits.mutex);
        look_for_stop();
        timeout = take_due(&closed, crm_time_monotonic());
        count = fill();
        ends = waits.ends;
        apr_thread_mutex_unlock(waits.mutex);
        while (!APR_RING_EMPTY(&closed, crmapi_waiter_t, link)) {
            crmapi_waiter_t *waiter = APR_RING_FIRST(&closed);

            APR_RING_REMOVE(waiter, link);
            close_connection(waiter);
        }
        if (!ends) {
            nap(count, timeout);
        }
    }
    apr_thread_exit(thread, APR_SUCCESS);
    return NULL;
}

static apr_status_t end_thread(void *baton)
{
    apr_status_t status = APR_SUCCESS;

    (void)baton;
    apr_thread_mutex_lock(waits.mutex);
    waits.ends = 1;
    stop();
    apr_thread_mutex_unlock(waits.mutex);
    rouse();
    if (waits.thread) {
        apr_thread_join(&status, waits.thread);
    }
    free(waits.pollers);
    free(waits.polled);
    return APR_SUCCESS;         /* bells may still write to the pipe */
}

apr_status_t crmapi_waits_create(crmapi_wait_t (*resume_function)
                                 (crmapi_request_t *), apr_pool_t *pchild)
{
    apr_status_t status;

    memset(&waits, 0, sizeof(waits));
    APR_RING_INIT(&waits.list, crmapi_waiter_t, link);
    waits.resume = resume_function;
    waits.p = pchild;
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 33)
    ap_mpm_query(AP_MPMQ_IS_ASYNC, &waits.async);
#endif
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &waits.threads);
    status = apr_thread_mutex_create(&waits.mutex, APR_THREAD_MUTEX_DEFAULT,
                                     pchild);
    if (!status && pipe2(waits.pipe, O_NONBLOCK | O_CLOEXEC)) {
        status = APR_FROM_OS_ERROR(errno);
    }
    if (!status) {
        status = crmapi_bells_create(rouse, pchild);
        apr_pool_pre_cleanup_register(pchild, NULL, end_thread);
    }
    return status;
}

/* Start the thread, unless it runs. The list is locked. Return whether it
 * runs. */
static int has_thread(void)
{
    return waits.thread
           || !apr_thread_create(&waits.thread, NULL, wait_main, NULL,
                                 waits.p);
}

/* ---- requests ------------------------------------------------------------ */

int crmapi_watch(const char *workspace_id, const char *visitor, void *baton)
{
    crmapi_request_t *request = baton;

    if ((!visitor && !request->config->waiters) || !request->config->pool
        || is_stopping()) {
        return 0;
    }
    if (!request->watch) {
        request->watch = crmapi_bell_enter(request->config->pool,
                                           workspace_id);
    }
    if (request->watch) {
        apr_uint32_t count;

        request->line = crmapi_bell_line(visitor);
        count = crmapi_bell_count(request->watch, request->line);
        request->rung = request->served && count != request->count;
        request->count = count;
        request->served = 1;
    }
    return request->watch != NULL;
}

/* Return whether REQUEST's connection can be suspended. */
static int can_suspend(const crmapi_request_t *request)
{
    const request_rec *r = request->r;
    const conn_rec *c = r->connection;

    return waits.async && !r->main && !r->prev && !c->master && c->cs
           && !c->clogging_input_filters;
}

/* Return how many of this process's threads SHARE of them are. */
static int part(int share)
{
    return waits.threads > share ? waits.threads / share : 1;
}

int crmapi_wait_threads(int most, void *baton)
{
    int threads = part(SHARE_PLACED);

    return can_suspend(baton) || most < threads ? most : threads;
}

/* Return the waiter of REQUEST, which may be new. */
static crmapi_waiter_t *waiter_of(crmapi_request_t *request)
{
    conn_rec *c = request->r->connection;
    apr_socket_t *socket = c->master ? NULL : ap_get_conn_socket(c);
    crmapi_waiter_t *waiter = request->waiter;

    if (!waiter) {
        state_t state = can_suspend(request) ? SUSPENDED_REQUEST : HELD;

        waiter = apr_pcalloc(state == HELD ? request->r->pool : c->pool,
                             sizeof(*waiter));
        waiter->request = request;
        waiter->c = c;
        waiter->fd = -1;
        waiter->state = state;
        if (socket) {
            apr_os_sock_get(&waiter->fd, socket);
        }
        request->waiter = waiter;
    }
    return waiter;
}

/* Take a place for WAITER, unless it has one. Return 0 if there is none. The list
 * is locked. */
static int take_place(crmapi_waiter_t *waiter)
{
    crmapi_request_t *request = waiter->request;
    int placed = request->response.placed;
    int held = waiter->state == HELD;

    if (request->placed) {
        return 1;
    }
    if ((!placed && waits.waiting >= request->config->waiters)
        || (held && waits.held >= part(placed ? SHARE_PLACED : SHARE))
        || !has_thread()) {
        return 0;
    }
    waits.waiting += !placed;
    waits.held += held;
    request->placed = 1;
    return 1;
}

/* Wait in this thread. The list is locked, but not while it waits. */
static void hold(crmapi_waiter_t *waiter)
{
    waiter->woken = 0;
    put(waiter);
    while (!waiter->woken) {
        apr_thread_cond_wait(waiter->cond, waits.mutex);
    }
}

crmapi_wait_t crmapi_wait(crmapi_request_t *request)
{
    crmapi_waiter_t *waiter = waiter_of(request);
    apr_time_t until = request->response.wait_until;
    crmapi_wait_t what = CRMAPI_WAIT_OVER;

    if (waiter->state == HELD && !waiter->cond
        && apr_thread_cond_create(&waiter->cond, request->r->pool)) {
        return CRMAPI_WAIT_OVER;
    }
    waiter->count = request->count;
    waiter->until = request->rung && crm_time_monotonic() + AGAIN < until
                    ? crm_time_monotonic() + AGAIN : until;
    apr_thread_mutex_lock(waits.mutex);
    if (!is_stopping() && !waiter->gone && take_place(waiter)) {
        what = waiter->state == HELD ? CRMAPI_WAIT_AGAIN
                                     : CRMAPI_WAIT_SUSPENDED;
        if (waiter->state == HELD) {
            hold(waiter);
        }
        else if (waiter->suspended) {
            put(waiter);        /* it is suspended already */
        }
        else {
            waiter->ready = 1;
        }
    }
    apr_thread_mutex_unlock(waits.mutex);
    return waiter->state == HELD && waiter->gone ? CRMAPI_WAIT_OVER : what;
}

void crmapi_wait_end(crmapi_request_t *request)
{
    if (request->watch) {
        crmapi_bell_leave(request->watch);
        request->watch = NULL;
    }
    if (request->placed) {
        apr_thread_mutex_lock(waits.mutex);
        waits.waiting -= !request->response.placed;
        waits.held -= request->waiter->state == HELD;
        apr_thread_mutex_unlock(waits.mutex);
        request->placed = 0;
    }
}

void crmapi_suspended(conn_rec *c, request_rec *r)
{
    crmapi_request_t *request = r ? crmapi_request_find(r) : NULL;
    crmapi_waiter_t *waiter = request ? request->waiter : NULL;

    (void)c;
    if (waiter && waiter->ready) {
        apr_thread_mutex_lock(waits.mutex);
        waiter->ready = 0;
        waiter->suspended = crm_time_monotonic();
        put(waiter);
        apr_thread_mutex_unlock(waits.mutex);
    }
}

void crmapi_waits_stop(void)
{
    if (waits.mutex) {
        apr_thread_mutex_lock(waits.mutex);
        stop();
        apr_thread_mutex_unlock(waits.mutex);
        rouse();
    }
}
