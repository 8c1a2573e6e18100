/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_usage.c: requests are counted in shared memory. A thread of one process
 * adds the counts to the database, with a connection of its own, so no request
 * waits. Counts are taken out of memory before they are written: nothing is counted
 * twice, and a process that is killed meanwhile loses these alone. */
#include "mod_crmapi_usage.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_thread_proc.h"

#include "http_log.h"

#include "crm_db.h"
#include "crm_probe.h"
#include "crm_sql.h"
#include "crm_text.h"
#include "crm_time.h"

#include "mod_crmapi_pool.h"

APLOG_USE_MODULE(crmapi);

#define DAY_SECONDS 86400

/* Slots that one statement writes. */
#define BATCH 1000

#define CONNECT_TIME apr_time_from_sec(2)
#define STATEMENT_TIME apr_time_from_sec(5)

static crm_usage_t *usage;
static apr_interval_time_t interval;

typedef struct writer_t {
    server_rec *s;
    apr_pool_t *p;
    apr_thread_t *thread;
    int pipe[2];                /* wakes the thread, which ends */
} writer_t;

void crmapi_usage_init(crm_usage_t *of, apr_interval_time_t every)
{
    usage = of;
    interval = every;
}

void crmapi_usage_count(const crmapi_request_t *request, int status)
{
    const char *workspace_id = request->response.workspace_id;
    crm_use_t use;

    if (!usage || !workspace_id || strlen(workspace_id) != CRM_UUID_LEN) {
        return;
    }
    memcpy(use.workspace_id, workspace_id, CRM_UUID_LEN + 1);
    use.realm = request->config->service.settings.realm;
    use.day = (apr_uint32_t)(apr_time_sec(request->r->request_time)
                             / DAY_SECONDS);
    use.requests = 1;
    use.limited = status == HTTP_TOO_MANY_REQUESTS;
    crm_usage_add(usage, &use);
}

/* ---- writing ------------------------------------------------------------- */

/* By workspace and day, so that two hosts lock rows in the same order. */
static int compare(const void *a, const void *b)
{
    const crm_use_t *one = a, *other = b;
    int order = strcmp(one->workspace_id, other->workspace_id);

    return order ? order : (one->day > other->day) - (one->day < other->day);
}

/* Write the COUNT USES to the database of CONN. */
static crm_error_t *write_uses(crm_conn_t *conn, crm_use_t *uses, int count,
                               apr_pool_t *p)
{
    apr_array_header_t *columns[4];
    const char *values[4];
    crm_stmt_t stmt = {"SELECT crmapi.usage_add(u.workspace, u.day, u.requests,"
                       " u.limited) FROM unnest($1::uuid[], $2::integer[],"
                       " $3::bigint[], $4::bigint[]) u (workspace, day, requests,"
                       " limited)", 4, values};
    PGresult *result;

    qsort(uses, (size_t)count, sizeof(*uses), compare);
    for (int i = 0; i < 4; i++) {
        columns[i] = apr_array_make(p, count, sizeof(char *));
    }
    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(columns[0], const char *) = uses[i].workspace_id;
        APR_ARRAY_PUSH(columns[1], const char *) =
            apr_psprintf(p, "%u", uses[i].day);
        APR_ARRAY_PUSH(columns[2], const char *) =
            apr_psprintf(p, "%u", uses[i].requests);
        APR_ARRAY_PUSH(columns[3], const char *) =
            apr_psprintf(p, "%u", uses[i].limited);
    }
    for (int i = 0; i < 4; i++) {
        values[i] = crm_sql_array(columns[i], p);
    }
    return crm_db_query(&result, conn, &stmt, p);
}

/* Connect to the database of POOL. Return NULL if that fails. */
static crm_conn_t *open_database(PGconn **pg_p, const crmapi_pool_t *pool,
                                 apr_pool_t *p)
{
    const crm_conn_options_t options = {.named_statements = CRM_NAMES_OFF,
                                        .timeout = STATEMENT_TIME};
    crm_conn_t *conn;
    crm_probe_t probe;

    crm_probe_open(&probe, pool->settings->params, "crmapi usage",
                   CONNECT_TIME, p);
    *pg_p = probe.pg;
    return probe.pg && !crm_conn_adopt(&conn, probe.pg, &options, p, p)
           ? conn : NULL;
}

/* Fill USES with counts of REALM that are taken from *PLACE on. Return their
 * number. */
static int take_uses(crm_use_t uses[BATCH], apr_uint32_t realm,
                     apr_uint32_t *place)
{
    int count = 0;

    while (count < BATCH && crm_usage_take(&uses[count], usage, realm, place)) {
        count++;
    }
    return count;
}

/* Log that the COUNT USES were not written because of WHY. Keep them, unless they
 * may have been written. */
static void keep_uses(const crm_use_t *uses, int count, const crm_error_t *why,
                      const writer_t *writer)
{
    for (int i = 0; why->sqlstate && i < count; i++) {
        crm_usage_add(usage, &uses[i]);
    }
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, writer->s, "CRM1109: the requests"
                 " of %d workspace%s %s: %s", count, CRM_TEXT_S(count),
                 why->sqlstate
                 ? "are not recorded yet" : "may be missing in crmapictl usage",
                 why->log ? why->log : why->message);
}

/* Write what was counted for the database of POOL to CONN. */
static void write_realm(const writer_t *writer, const crmapi_pool_t *pool,
                        crm_conn_t *conn, apr_pool_t *p)
{
    crm_use_t *uses = apr_palloc(p, BATCH * sizeof(*uses));
    crm_error_t *error = NULL;
    apr_uint32_t place = 0;
    int count;

    while (!error && (count = take_uses(uses, pool->realm, &place))) {
        error = write_uses(conn, uses, count, p);
        if (error) {
            keep_uses(uses, count, error, writer);
        }
    }
}

/* Write what was counted for the database of POOL. Counts stay in memory until
 * there is a connection. */
static void write_pool(const writer_t *writer, const crmapi_pool_t *pool,
                       apr_pool_t *p)
{
    PGconn *pg = NULL;
    crm_conn_t *conn;

    if (!crm_usage_has(usage, pool->realm)) {
        return;
    }
    conn = open_database(&pg, pool, p);
    if (conn) {
        write_realm(writer, pool, conn, p);
    }
    else {
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, writer->s, "CRM1109: requests"
                     " are not recorded yet: the database cannot be reached");
    }
    PQfinish(pg);
}

/* Write what was counted for all databases. */
static void write_all(const writer_t *writer)
{
    apr_uint64_t lost = crm_usage_lost(usage);
    apr_pool_t *p;

    apr_pool_create(&p, writer->p);
    for (int i = 0; i < crmapi_pools_count(); i++) {
        const crmapi_pool_t *pool = crmapi_pool_at(i);

        if (!pool->missing) {
            write_pool(writer, pool, p);
        }
        apr_pool_clear(p);
    }
    apr_pool_destroy(p);
    if (lost) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, writer->s, "CRM1110: %"
                     APR_UINT64_T_FMT " requests are missing in crmapictl usage:"
                     " too many workspaces at the same time", lost);
    }
}

/* ---- the thread ---------------------------------------------------------- */

static void *APR_THREAD_FUNC writer_main(apr_thread_t *thread, void *baton)
{
    writer_t *writer = baton;
    struct pollfd poller = {writer->pipe[0], POLLIN, 0};
    sigset_t signals;

    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    while (poll(&poller, 1, (int)apr_time_as_msec(interval)) < 1) {
        if (crm_usage_due(usage, crm_time_monotonic(), interval)) {
            write_all(writer);
        }
    }
    write_all(writer);
    apr_thread_exit(thread, APR_SUCCESS);
    return NULL;
}

/* Pool cleanup: let the thread write the rest, and end. */
static apr_status_t writer_end(void *baton)
{
    writer_t *writer = baton;
    apr_status_t status, joined = APR_SUCCESS;
    ssize_t written = write(writer->pipe[1], "", 1);

    if (written == 1) {
        joined = apr_thread_join(&status, writer->thread);
    }
    close(writer->pipe[0]);
    close(writer->pipe[1]);
    return joined;
}

void crmapi_usage_open(server_rec *main_server, apr_pool_t *pool)
{
    writer_t *writer = apr_pcalloc(pool, sizeof(*writer));

    writer->s = main_server;
    apr_pool_create(&writer->p, pool);
    if (pipe2(writer->pipe, O_CLOEXEC)) {
        return;                 /* other processes write the counts of this one */
    }
    if (apr_thread_create(&writer->thread, NULL, writer_main, writer,
                          writer->p)) {
        close(writer->pipe[0]);
        close(writer->pipe[1]);
        return;
    }
    apr_pool_pre_cleanup_register(writer->p, writer, writer_end);
}
