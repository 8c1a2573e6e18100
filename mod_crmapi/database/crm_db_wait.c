/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_wait.c: waiting for a server, with a deadline */
#include "crm_db_error.h"
#include "crm_db_private.h"
#include "crm_hosts.h"
#include "crm_thread.h"
#include "crm_time.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Time for the server to confirm a cancellation. */
#define CANCEL_TIME apr_time_from_sec(2)

/* The maximum number of threads that send cancel requests. */
#define CANCELS_MAX 16

static int cancels;             /* running threads */

void crm_db_deadline(crm_conn_t *conn)
{
    conn->until = conn->options.timeout
        ? crm_time_monotonic() + conn->options.timeout : 0;
    conn->cancelled = conn->unneeded = conn->silent = conn->unconfirmed = 0;
    conn->nameless = 0;
}

void crm_db_prolong(crm_conn_t *conn)
{
    if (!conn->cancelled) {
        crm_db_deadline(conn);
    }
}

/* The thread that sends the cancel request at DATA. */
static void *cancel_main(void *data)
{
    char reason[256];

    PQcancel(data, reason, sizeof(reason));
    PQfreeCancel(data);
    __atomic_sub_fetch(&cancels, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Ask the server to cancel PG's statement. PQcancel() connects to the server
 * and has no timeout, so it runs in a thread of its own. The thread hangs if
 * the server does not answer, so the number of these threads is limited. */
static void cancel(PGconn *pg)
{
    PGcancel *request = NULL;

    if (__atomic_add_fetch(&cancels, 1, __ATOMIC_RELAXED) <= CANCELS_MAX
        && (request = PQgetCancel(pg)) && crm_thread_start(cancel_main, request)) {
        return;
    }
    PQfreeCancel(request);
    __atomic_sub_fetch(&cancels, 1, __ATOMIC_RELAXED);
}

/* Return poll()'s timeout in milliseconds: CONN's deadline, or when to ask
 * whether the result is still wanted. */
static int poll_time(const crm_conn_t *conn)
{
    apr_interval_time_t left = conn->until - crm_time_monotonic();

    if (conn->unwanted && !conn->cancelled
        && (!conn->until || left > CRM_DB_WATCH_TIME)) {
        left = CRM_DB_WATCH_TIME;
    }
    else if (!conn->until) {
        return -1;
    }
    if (left <= 0) {
        return 0;
    }
    return left / 1000 < INT_MAX ? (int)((left + 999) / 1000) : INT_MAX;
}

/* Wait for one of EVENTS on CONN's socket. Set *EVENTS_P to those that have
 * occurred, 0 after poll_time(). Return 0 if poll() fails. */
static int wait_events(short *events_p, const crm_conn_t *conn, int events)
{
    struct pollfd poller = {PQsocket(conn->pg), (short)events, 0};
    int count = poll(&poller, 1, poll_time(conn));

    *events_p = poller.revents;
    return count >= 0 || errno == EINTR;
}

/* If CONN's deadline has passed, or the result is unwanted, cancel its
 * statement. If that was tried before, give the connection up and return 0. */
static int expire(crm_conn_t *conn)
{
    int late = conn->until && crm_time_monotonic() >= conn->until;

    if (!late && (conn->cancelled || !crm_conn_unwanted(conn))) {
        return 1;
    }
    if (conn->cancelled) {
        conn->silent = 1;
        /* the server then ends the session and releases its locks */
        shutdown(PQsocket(conn->pg), SHUT_RDWR);
        return 0;
    }
    cancel(conn->pg);
    conn->cancelled = 1;
    conn->unneeded = !late;
    conn->until = crm_time_monotonic() + CANCEL_TIME;
    return 1;
}

int crm_db_await(crm_conn_t *conn)
{
    PGconn *pg = conn->pg;
    int unsent;
    short events;

    while ((unsent = PQflush(pg)) >= 0 && PQisBusy(pg)) {
        if (!wait_events(&events, conn, unsent ? POLLIN | POLLOUT : POLLIN)) {
            return 0;
        }
        if (!events && !expire(conn)) {
            return 0;
        }
        if ((events & ~POLLOUT) && !PQconsumeInput(pg)) {
            break;
        }
    }
    return 1;
}

int crm_db_await_input(crm_conn_t *conn)
{
    short events;

    return wait_events(&events, conn, POLLIN) && (events || expire(conn))
           && (!events || PQconsumeInput(conn->pg));
}

int crm_db_flush(crm_conn_t *conn)
{
    short events;
    int unsent;

    while ((unsent = PQflush(conn->pg)) > 0) {
        if (!wait_events(&events, conn, POLLIN | POLLOUT)
            || (!events && !expire(conn))
            || ((events & ~POLLOUT) && !PQconsumeInput(conn->pg))) {
            return 0;
        }
    }
    return unsent == 0;
}

int crm_db_ends_session(const PGresult *result)
{
    const char *severity = PQresultErrorField(result,
                                              PG_DIAG_SEVERITY_NONLOCALIZED);

    return severity && (!strcmp(severity, "FATAL")
                        || !strcmp(severity, "PANIC"));
}

/* Return whether RESULT begins a COPY. No further result follows then. */
static int begins_copy(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_COPY_IN
           || PQresultStatus(result) == PGRES_COPY_OUT;
}

PGresult *crm_db_results(crm_conn_t *conn)
{
    PGresult *last = NULL, *result;

    while (crm_db_await(conn)) {
        result = PQgetResult(conn->pg);
        if (!result) {
            return last;
        }
        PQclear(last);
        last = result;
        if (crm_db_ends_session(last)) {
            conn->broken = 1;
            return last;
        }
        if (begins_copy(last) || PQstatus(conn->pg) != CONNECTION_OK) {
            return last;
        }
    }
    conn->broken = 1;
    PQclear(last);
    return NULL;
}

PGresult *crm_db_command(crm_conn_t *conn, const char *sql)
{
    return PQsendQuery(conn->pg, sql) ? crm_db_results(conn) : NULL;
}

int crm_db_reset(crm_conn_t *conn, apr_pool_t *pool)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    PGconn *pg = conn->pg;
    PQconninfoOption *options;
    int limited;
    short events;

    if (conn->conninfo) {
        return crm_conn_connect(conn, pool);
    }
    options = PQconninfo(pg);
    limited = atoi(crm_hosts_value(options, "connect_timeout")) > 0;
    conn->nameless = conn->until
                     && crm_hosts_silent(options, conn->until, pool);
    PQconninfoFree(options);
    if (conn->nameless) {
        return 0;
    }
    /* With a connect_timeout, libpq limits the time itself, and tries the next
     * host afterwards. */
    if (!conn->until || limited) {
        PQreset(pg);
        return PQstatus(pg) == CONNECTION_OK;
    }
    if (!PQresetStart(pg)) {
        return 0;
    }
    while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
        if (!wait_events(&events, conn, state == PGRES_POLLING_READING
                         ? POLLIN : POLLOUT)) {
            return 0;
        }
        if (!events && crm_time_monotonic() >= conn->until) {
            conn->silent = 1;
            return 0;
        }
        if (events) {
            state = PQresetPoll(pg);
        }
    }
    return state == PGRES_POLLING_OK;
}

crm_error_t *crm_db_late(apr_interval_time_t timeout, int cancelled,
                         apr_pool_t *result_pool)
{
    return crm_error_logf(CRM_E_UNAVAILABLE, result_pool,
                          "CRM2005: database: no answer within %d ms%s",
                          (int)(timeout / 1000), cancelled
                          ? ", so the statement was cancelled" : "");
}

/* Return, in POOL, the error of a statement that was cancelled, or of a connection that
 * was given up, because it was unwanted. */
static crm_error_t *unneeded(apr_pool_t *pool)
{
    return crm_error_logf(CRM_E_REQUEST_TIMEOUT, pool,
                          "CRM2008: database: nobody wants the answer any"
                          " more, so the statement was cancelled");
}

crm_error_t *crm_db_lost(apr_pool_t *result_pool)
{
    crm_error_t *error = crm_error_logf(CRM_E_UNAVAILABLE, result_pool,
        "CRM2006: database: a statement that was sent for several requests has"
        " no answer");

    error->retry_after = 1;
    return error;
}

crm_error_t *crm_db_unconfirmed(apr_pool_t *result_pool)
{
    crm_error_t *error = crm_error_logf(CRM_E_UNAVAILABLE, result_pool,
        "CRM2007: database: a statement was committed, but the synchronous"
        " standby has not confirmed it");

    error->retry_after = 1;
    return error;
}

crm_error_t *crm_db_failure(crm_conn_t *conn, const PGresult *result,
                            apr_pool_t *result_pool)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    int ended = conn->cancelled && state && !strcmp(state, "57014");

    conn->read_only |= state && !strcmp(state, "25006");
    if (conn->unneeded && (ended || !conn->pg)) {
        return unneeded(result_pool);
    }
    if (conn->nameless) {
        return crm_db_nameless(result_pool);
    }
    if (conn->silent || ended) {
        return crm_db_late(conn->unneeded ? CANCEL_TIME
                           : conn->options.timeout, ended, result_pool);
    }
    return crm_db_error(result, conn->pg, result_pool);
}
