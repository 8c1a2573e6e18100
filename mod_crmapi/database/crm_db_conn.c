/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_conn.c: opening, checking and resetting connections */
#include "crm_db_conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_array.h"
#include "crm_db_error.h"
#include "crm_db_prepared.h"
#include "crm_db_private.h"
#include "crm_dial.h"
#include "crm_hosts.h"
#include "crm_sql.h"
#include "crm_time.h"

/* The maximum number of reads that alive() makes. A socket that still has input
 * then counts as alive. */
#define MAX_READS 64

/* How long the name service may take for a connection of crm_conn_open() that is opened
 * again and again, and for one that is opened once. An answer that is late is found by
 * the next attempt: see crm_name_find(). */
#define NAMES_TIME apr_time_from_sec(2)
#define NAMES_ONCE apr_time_from_sec(20)

/* Required session settings that the server reports. SAME is another spelling
 * of VALUE. If PREFIX is not 0, only the first PREFIX characters are
 * compared. */
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

/* Citus finds the server of a workspace by a statement's values, so a
 * distributed database (crm_schema_t) does not get plans for all values. */
#define PLANS "SELECT set_config('plan_cache_mode', CASE WHEN" \
    " to_regclass('crmapi.key_home') IS NULL THEN 'force_generic_plan'" \
    " ELSE 'auto' END, false);"

/* Settings that the server does not report. The GENERIC ones are for
 * crm_conn_options_t.generic_plans. */
static const struct {
    const char *name;
    const char *value;
    int generic;
} unreported[] = {
    /* Otherwise NULL in an array in text format, as crm_sql_array() writes it,
     * is the text "NULL". */
    {"array_nulls", "on", 0},
    /* decode() of rest/crm_op_file.c and crm_roll_add() read this form. */
    {"bytea_output", "hex", 0},
    /* take_notice() needs a warning, which a role may not want to have. */
    {"client_min_messages", "warning", 0},
    /* Each statement sees what was committed before it: the page of GET /events
     * what event_end() has found committed, a statement behind a lock what its
     * holder did. */
    {"default_transaction_isolation", "read committed", 0},
    /* Connections are idle between requests, and those that listen always. A server
     * that ends such a session may do so while a statement is on its way. */
    {"idle_session_timeout", "0", 0},
    /* JIT compilation would take longer than it saves: statements are short,
     * but some estimated costs are too high, because OFFSET is a bind. */
    {"jit", "off", 0},
    /* In kB. New entries of a GIN index are in a pending list, which each
     * search reads completely. With the default, 4 MB, that takes ten times as
     * long as the rest of a search. Single writes cost the same with 256 kB. */
    {"gin_pending_list_limit", "256", 0},
    /* Otherwise a search finds a random part of the rows. */
    {"gin_fuzzy_search_limit", "0", 0},
    /* One plan suits all values, so statements are planned once. No plan scans
     * a whole table because a workspace is large, or a whole workspace because
     * the statistics are older than its rows. */
    {"plan_cache_mode", "force_generic_plan", 1},
    {"enable_seqscan", "off", 1},
};

/* A PQnoticeReceiver for the crm_conn_t BATON. Two notices matter; the server's
 * log has all. One says that the server has stopped waiting for its synchronous
 * standby, because of a timeout or a shutdown; the statement is still reported
 * as a success (syncrep.c). The other says that the server ends an idle
 * session. */
static void take_notice(void *baton, const PGresult *notice)
{
    const char *source = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    crm_conn_t *conn = baton;

    conn->broken |= crm_db_ends_session(notice);
    if (source && !strcmp(source, "SyncRepWaitForLSN")) {
        conn->unconfirmed = 1;
    }
}

/* Pool cleanup: forget the crm_conn_t at DATA. */
static apr_status_t forget_cleanup(void *data)
{
    crm_prepared_forget(data);
    return APR_SUCCESS;
}

/* Return a new crm_conn_t for PG with OPTIONS, in POOL. */
static crm_conn_t *conn_create(PGconn *pg, const crm_conn_options_t *options,
                               apr_pool_t *pool)
{
    crm_conn_t *conn = apr_pcalloc(pool, sizeof(*conn));

    conn->pg = pg;
    conn->options = *options;
    conn->epoch = (apr_uint32_t)apr_time_now();
    conn->by_sql = crm_prepared_table(pool);
    apr_pool_cleanup_register(pool, conn, forget_cleanup,
                              apr_pool_cleanup_null);
    return conn;
}

/* Return whether PG's socket has input. */
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

/* Return whether PG is alive, without a round trip. A server that ends a
 * session sends a message, closes the socket, or both: all input is read. */
static int alive(PGconn *pg)
{
    if (PQstatus(pg) != CONNECTION_OK) {
        return 0;
    }
    for (int i = 0; i < MAX_READS && readable(pg); i++) {
        if (!PQconsumeInput(pg) || PQstatus(pg) != CONNECTION_OK) {
            return 0;
        }
        PQisBusy(pg);           /* parses the input */
    }
    return 1;
}

int crm_conn_alive(const crm_conn_t *conn)
{
    return alive(conn->pg);
}

/* Return whether PG is neither in a transaction nor in pipeline mode, as an
 * interrupted use may have left it. */
static int idle(PGconn *pg)
{
    return PQpipelineStatus(pg) == PQ_PIPELINE_OFF
           && PQtransactionStatus(pg) == PQTRANS_IDLE;
}

/* Return whether PG's session has the setting number INDEX. */
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

/* The statements of set_session(). */
typedef char session_t[1024];

/* Add the statement that sets NAME to VALUE to TEXT. */
static void add_setting(session_t text, const char *name, const char *value)
{
    size_t len = strlen(text);

    apr_snprintf(text + len, sizeof(session_t) - len, "SET %s TO '%s';", name,
                 value);
}

/* Apply the settings that CONN's session lacks, in one round trip. Usually only
 * a FRESH session lacks any. */
static crm_error_t *set_session(crm_conn_t *conn, int fresh, apr_pool_t *pool)
{
    session_t text = "";
    crm_error_t *error = NULL;
    PGresult *result;

    for (size_t i = 0; i < CRM_NELTS(settings); i++) {
        if (!has_setting(conn->pg, i)) {
            add_setting(text, settings[i].name, settings[i].value);
        }
    }
    for (size_t i = 0; fresh && i < CRM_NELTS(unreported); i++) {
        if (!strcmp(unreported[i].name, "plan_cache_mode")
            && conn->options.generic_plans) {
            strcat(text, PLANS);
        }
        else if (conn->options.generic_plans || !unreported[i].generic) {
            add_setting(text, unreported[i].name, unreported[i].value);
        }
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

/* Return whether mod_dbd has reset CONN since its last use, as it does with a
 * connection that libpq knows to be dead. */
static int was_reset(const crm_conn_t *conn)
{
    return PQbackendPID(conn->pg) != conn->pid;
}

crm_error_t *crm_conn_ready(crm_conn_t *conn, apr_pool_t *result_pool)
{
    int pid, fresh;

    if (was_reset(conn)) {
        conn->broken = 0;       /* what alive() finds is new */
    }
    if (!alive(conn->pg) || conn->broken || !idle(conn->pg)) {
        conn->pid = 0;          /* another host may use the same pid */
        if (conn->kept) {
            conn->broken = 1;
            return crm_error_logf(CRM_E_UNAVAILABLE, result_pool,
                                  "CRM2009: database: the connection was lost,"
                                  " and its session's locks: run the command"
                                  " again");
        }
        conn->broken = !crm_db_reset(conn, result_pool);
        if (conn->broken) {
            return crm_db_failure(conn, NULL, result_pool);
        }
    }
    conn->broken = 0;
    /* A reset makes the connection blocking. */
    PQsetnonblocking(conn->pg, 1);
    pid = PQbackendPID(conn->pg);
    fresh = pid != conn->pid;
    if (fresh) {
        crm_prepared_forget(conn);
        conn->pid = pid;
        conn->session++;
        conn->read_only = 0;
    }
    return set_session(conn, fresh, result_pool);
}

void crm_conn_keep(crm_conn_t *conn, int keep)
{
    conn->kept = keep;
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
        conn = conn_create(pg, options, owner_pool);
        conn->next = first;
        apr_pool_userdata_setn(conn, key, NULL, owner_pool);
    }
    conn->options = *options;
    /* PG may be a new one at the address of one that was closed. */
    PQsetNoticeReceiver(pg, take_notice, conn);
    crm_conn_watch(conn, NULL, NULL);
    crm_db_rollback(conn);
    crm_db_deadline(conn);
    CRM_ERR(crm_conn_ready(conn, scratch_pool));
    conn->ready = 1;
    *conn_p = conn;
    return NULL;
}

/* Refuse CONNINFO if it cannot be used. */
static crm_error_t *check_conninfo(const char *conninfo, apr_pool_t *pool)
{
    const char *fault = crm_hosts_fault(conninfo, pool);

    return !fault ? NULL : crm_error_logf(
        CRM_E_UNAVAILABLE, pool, "the database's connection string is invalid:"
        " %s", fault);
}

/* Return the error of PG, which could not be opened. A message about the server
 * is kept. From any other message quoted parts are removed, because they may be
 * parts of a password. */
static crm_error_t *open_error(PGconn *pg, apr_pool_t *pool)
{
    const char *text = PQerrorMessage(pg);

    if (!strncmp(text, "connection to server", 20)) {
        return crm_db_error(NULL, pg, pool);
    }
    return crm_error_logf(CRM_E_UNAVAILABLE, pool, "CRM2002: database: %s",
                          crm_hosts_cause(text, pool));
}

/* Pool cleanup: close the connection of the crm_conn_t at DATA. */
static apr_status_t finish_cleanup(void *data)
{
    crm_conn_t *conn = data;

    PQfinish(conn->pg);
    conn->pg = NULL;
    return APR_SUCCESS;
}

/* Return the time by which the name service must have answered for CONN. */
static apr_time_t names_until(const crm_conn_t *conn)
{
    apr_interval_time_t timeout = conn->options.timeout;

    return crm_time_monotonic() + (!timeout ? NAMES_ONCE
                                   : timeout < NAMES_TIME ? timeout
                                   : NAMES_TIME);
}

int crm_conn_connect(crm_conn_t *conn, apr_pool_t *pool)
{
    crm_hosts_found_t found;

    conn->nameless = !crm_hosts_find(&found, conn->conninfo,
                                     names_until(conn), pool);
    if (!conn->nameless) {
        /* Defaults. The conninfo overrides those that precede dbname. */
        const char *const keywords[] = {"connect_timeout", "keepalives_idle",
            "keepalives_interval", "keepalives_count", "tcp_user_timeout",
            "dbname", "fallback_application_name", "host", "hostaddr", "port",
            NULL};
        const char *const values[] = {"10", "30", "10", "3", "60000",
            conn->conninfo, "crmapi", found.host, found.hostaddr, found.port,
            NULL};

        PQfinish(conn->pg);
        conn->pg = crm_dial(keywords, values, conn->unwanted,
                            conn->unwanted_baton);
        conn->unneeded = !conn->pg && crm_conn_unwanted(conn);
        PQsetNoticeReceiver(conn->pg, take_notice, conn);
    }
    return !conn->nameless && PQstatus(conn->pg) == CONNECTION_OK;
}

crm_error_t *crm_conn_open(crm_conn_t **conn_p, const char *conninfo,
                           const crm_conn_options_t *options,
                           apr_pool_t *result_pool, apr_pool_t *scratch_pool)
{
    crm_conn_t *conn;

    CRM_ERR(check_conninfo(conninfo, scratch_pool));
    conn = conn_create(NULL, options, result_pool);
    conn->conninfo = apr_pstrdup(result_pool, conninfo);
    crm_conn_watch(conn, options->unwanted, options->unwanted_baton);
    apr_pool_cleanup_register(result_pool, conn, finish_cleanup,
                              apr_pool_cleanup_null);
    if (!crm_conn_connect(conn, scratch_pool)) {
        return conn->nameless || conn->unneeded
               ? crm_db_failure(conn, NULL, scratch_pool)
               : conn->pg ? open_error(conn->pg, scratch_pool)
               : crm_error_logf(CRM_E_UNAVAILABLE, scratch_pool, "no memory");
    }
    crm_db_deadline(conn);
    CRM_ERR(crm_conn_ready(conn, scratch_pool));
    *conn_p = conn;
    return NULL;
}

void crm_conn_settings(const char **names_p, const char **values_p,
                       apr_pool_t *result_pool)
{
    apr_array_header_t *names = apr_array_make(result_pool, 8, sizeof(char *));
    apr_array_header_t *values = apr_array_make(result_pool, 8,
                                                sizeof(char *));

    for (size_t i = 0; i < CRM_NELTS(settings); i++) {
        APR_ARRAY_PUSH(names, const char *) = settings[i].name;
        APR_ARRAY_PUSH(values, const char *) = settings[i].value;
    }
    for (size_t i = 0; i < CRM_NELTS(unreported); i++) {
        APR_ARRAY_PUSH(names, const char *) = unreported[i].name;
        APR_ARRAY_PUSH(values, const char *) = unreported[i].value;
    }
    *names_p = crm_sql_array(names, result_pool);
    *values_p = crm_sql_array(values, result_pool);
}

void crm_conn_watch(crm_conn_t *conn, int (*unwanted)(void *baton), void *baton)
{
    conn->unwanted = unwanted;
    conn->unwanted_baton = baton;
}

int crm_conn_unwanted(const crm_conn_t *conn)
{
    return conn->unwanted && conn->unwanted(conn->unwanted_baton);
}

PGconn *crm_conn_pg(crm_conn_t *conn)
{
    return conn->pg;
}

unsigned crm_conn_session(const crm_conn_t *conn)
{
    return PQstatus(conn->pg) == CONNECTION_OK ? conn->session : 0;
}
