/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_conn.c: connections: found again, found dead, opened anew */
#include "crm_db_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_array.h"

/* How often a socket is read before a connection that always has more to say
 * unasked is taken for sound. */
#define MAX_READS 64

/* What a session must be set to. SAME is another spelling of VALUE; only
 * the first PREFIX characters of what the server reports count, if not 0. */
static const struct {
    const char *name;
    const char *value;
    const char *same;
    size_t prefix;
} settings[] = {
    {"client_encoding", "UTF8", "UTF8", 0},
    {"TimeZone", "UTC", "Etc/UTC", 0},
    {"DateStyle", "ISO", "ISO", 3},
    {"standard_conforming_strings", "on", "on", 0},
};

/* What the server does not report. Our statements are short, and their costs
 * often guessed at (how far a page is from the beginning is a bind): compiling
 * them would take longer than doing them. */
#define SESSION "SET jit TO off;"

/* Requests bring the same statements with other values all the time. They are
 * made so that one plan is good for all: no planning for each, and no plan that
 * serves a large workspace by reading the rows of all. */
#define ADOPTED_SESSION SESSION "SET plan_cache_mode TO force_generic_plan;" \
    "SET enable_seqscan TO off;"

/* A PQnoticeProcessor: what a server remarks is for its own log. */
static void ignore_notice(void *baton, const char *message)
{
    (void)baton;
    (void)message;
}

void crm_conn_forget(crm_conn_t *conn)
{
    apr_hash_clear(conn->by_sql);
    for (int i = 0; i < CRM_DB_PREPARED_MAX; i++) {
        free(conn->prepared[i].sql);
        memset(&conn->prepared[i], 0, sizeof(conn->prepared[i]));
    }
}

/* A pool's cleanup of the crm_conn_t at DATA. */
static apr_status_t forget_cleanup(void *data)
{
    crm_conn_forget(data);
    return APR_SUCCESS;
}

/* Return what is to be remembered of PG, empty, in POOL. */
static crm_conn_t *conn_create(PGconn *pg, apr_pool_t *pool)
{
    crm_conn_t *conn = apr_pcalloc(pool, sizeof(*conn));

    conn->pg = pg;
    conn->named = 1;
    conn->epoch = (apr_uint32_t)apr_time_now();
    conn->by_sql = apr_hash_make(pool);
    apr_pool_cleanup_register(pool, conn, forget_cleanup,
                              apr_pool_cleanup_null);
    return conn;
}

/* Return whether PG's socket has something to read at this moment. */
static int readable(PGconn *pg)
{
    struct pollfd poller;
    int count;

    poller.fd = PQsocket(pg);
    poller.events = POLLIN;
    poller.revents = 0;
    if (poller.fd < 0) {
        return 0;
    }
    do {
        count = poll(&poller, 1, 0);
    } while (count < 0 && errno == EINTR);
    return count > 0;
}

/* Return whether PG lives, as far as can be known without asking the server.
 * A server that ends a session says so, or closes the socket, or both: what
 * has arrived is read until there is no more. */
static int alive(PGconn *pg)
{
    if (PQstatus(pg) != CONNECTION_OK) {
        return 0;
    }
    for (int i = 0; i < MAX_READS && readable(pg); i++) {
        if (!PQconsumeInput(pg) || PQstatus(pg) != CONNECTION_OK) {
            return 0;
        }
        PQisBusy(pg);           /* takes in what was read */
    }
    return 1;
}

/* Return whether a use of PG that was given up has left it in a state in
 * which no statement can be sent. */
static int idle(PGconn *pg)
{
    return PQpipelineStatus(pg) == PQ_PIPELINE_OFF
           && PQtransactionStatus(pg) == PQTRANS_IDLE;
}

/* Return whether PG's session has SETTINGS[INDEX]. */
static int has_setting(PGconn *pg, size_t index)
{
    const char *value = PQparameterStatus(pg, settings[index].name);

    if (!value) {
        return 0;
    }
    if (settings[index].prefix) {
        return !strncmp(value, settings[index].value, settings[index].prefix);
    }
    return !strcmp(value, settings[index].value)
           || !strcmp(value, settings[index].same);
}

/* Set what CONN's session has otherwise than it must be, in one round trip;
 * mostly there is nothing to do unless it is FRESH. */
static crm_error_t *set_session(crm_conn_t *conn, int fresh, apr_pool_t *pool)
{
    char text[512] = "";
    crm_error_t *error = NULL;
    PGresult *result;

    for (size_t i = 0; i < CRM_NELTS(settings); i++) {
        if (!has_setting(conn->pg, i)) {
            char *end = text + strlen(text);

            apr_snprintf(end, (apr_size_t)(text + sizeof(text) - end),
                         "SET %s TO '%s';", settings[i].name,
                         settings[i].value);
        }
    }
    if (fresh) {
        apr_cpystrn(text + strlen(text), conn->adopted ? ADOPTED_SESSION
                    : SESSION, sizeof(text) - strlen(text));
    }
    if (!*text) {
        return NULL;
    }
    result = crm_db_command(conn, text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        error = crm_db_failure(conn, result, pool);
        conn->broken = 1;
    }
    PQclear(result);
    return error;
}

crm_error_t *crm_conn_ready(crm_conn_t *conn, apr_pool_t *result_pool)
{
    int pid, fresh;

    if (conn->broken || !alive(conn->pg) || !idle(conn->pg)) {
        crm_conn_forget(conn);
        conn->broken = !crm_db_reset(conn);
        if (conn->broken) {
            return crm_db_failure(conn, NULL, result_pool);
        }
    }
    /* It is blocking again after each (re)connect. */
    PQsetnonblocking(conn->pg, 1);
    /* The owner may have opened it anew behind our back. */
    pid = PQbackendPID(conn->pg);
    fresh = pid != conn->pid;
    if (fresh) {
        crm_conn_forget(conn);
        conn->pid = pid;
    }
    return set_session(conn, fresh, result_pool);
}

crm_error_t *crm_conn_adopt(crm_conn_t **conn_p, PGconn *pg,
                            const crm_conn_options_t *options,
                            apr_pool_t *owner_pool, apr_pool_t *scratch_pool)
{
    static const char key[] = "crm_conn_t";
    crm_conn_t *conn;
    void *first;

    apr_pool_userdata_get(&first, key, owner_pool);
    for (conn = first; conn && conn->pg != pg; conn = conn->next) {
        continue;
    }
    if (!conn) {
        conn = conn_create(pg, owner_pool);
        conn->next = first;
        apr_pool_userdata_setn(conn, key, NULL, owner_pool);
    }
    conn->named = options->named_statements;
    conn->timeout = options->timeout;
    conn->adopted = 1;
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    crm_db_rollback(conn);
    crm_db_deadline(conn);
    CRM_ERR(crm_conn_ready(conn, scratch_pool));
    conn->ready = 1;
    *conn_p = conn;
    return NULL;
}

/* Return the value of KEYWORD in OPTIONS, NULL if it has none. */
static const char *conninfo_value(const PQconninfoOption *options,
                                  const char *keyword)
{
    for (; options && options->keyword; options++) {
        if (!strcmp(options->keyword, keyword)) {
            return options->val;
        }
    }
    return NULL;
}

/* Return TEXT, libpq's complaint of a connection string, without what it
 * quotes, which can be a piece of a password. */
static const char *without_quotes(const char *text, apr_pool_t *pool)
{
    const char *first = strchr(text, '"');
    const char *last = strrchr(text, '"');

    if (!first || first == last) {
        return text;
    }
    return apr_pstrcat(pool, apr_pstrmemdup(pool, text,
                                            (apr_size_t)(first - text)),
                       "\"...\"", last + 1, NULL);
}

/* Refuse a CONNINFO that libpq cannot read, or that has an '@' where the
 * host should be because one in its password was not written %40: libpq's
 * messages would show a part of the password. */
static crm_error_t *check_conninfo(const char *conninfo, apr_pool_t *pool)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    const char *reason = NULL;
    const char *host;

    if (!options) {
        reason = message ? without_quotes(message, pool) : "no memory";
    }
    else if ((host = conninfo_value(options, "host")) && strchr(host, '@')) {
        reason = "there is an '@' in the host's name; one in a password is"
                 " written %40";
    }
    if (reason) {
        reason = crm_db_line(reason, pool);
    }
    PQconninfoFree(options);
    PQfreemem(message);
    if (reason) {
        return crm_error_logf(CRM_E_UNAVAILABLE, pool, "the database's"
                              " connection string is wrong: %s",
                              reason);
    }
    return NULL;
}

/* Return the error for PG, which could not be opened. What a server answered
 * is said as it is; complaints of options quote them, and so perhaps what
 * was meant for the password. */
static crm_error_t *open_error(PGconn *pg, apr_pool_t *pool)
{
    const char *text = PQerrorMessage(pg);

    if (!strncmp(text, "connection to server", 20)) {
        return crm_db_error(NULL, pg, pool);
    }
    return crm_error_logf(CRM_E_UNAVAILABLE, pool, "CRM2002: database: %s",
                          crm_db_line(without_quotes(text, pool), pool));
}

/* A pool's cleanup of the PGconn at DATA. */
static apr_status_t finish_cleanup(void *data)
{
    PQfinish(data);
    return APR_SUCCESS;
}

crm_error_t *crm_conn_open(crm_conn_t **conn_p, const char *conninfo,
                           apr_interval_time_t timeout,
                           apr_pool_t *result_pool, apr_pool_t *scratch_pool)
{
    /* What CONNINFO says goes before what stands before it. */
    const char *const keywords[] = {"connect_timeout", "keepalives_idle",
        "keepalives_interval", "keepalives_count", "tcp_user_timeout",
        "dbname", "fallback_application_name", NULL};
    const char *const values[] = {"10", "30", "10", "3", "60000", conninfo,
        "crmapi", NULL};
    crm_conn_t *conn;
    PGconn *pg;

    CRM_ERR(check_conninfo(conninfo, scratch_pool));
    pg = PQconnectdbParams(keywords, values, 1);
    if (!pg) {
        return crm_error_logf(CRM_E_UNAVAILABLE, scratch_pool, "no memory");
    }
    apr_pool_cleanup_register(result_pool, pg, finish_cleanup,
                              apr_pool_cleanup_null);
    if (PQstatus(pg) != CONNECTION_OK) {
        return open_error(pg, scratch_pool);
    }
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    conn = conn_create(pg, result_pool);
    conn->timeout = timeout;
    crm_db_deadline(conn);
    CRM_ERR(crm_conn_ready(conn, scratch_pool));
    *conn_p = conn;
    return NULL;
}

PGconn *crm_conn_pg(crm_conn_t *conn)
{
    return conn->pg;
}
