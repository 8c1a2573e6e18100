/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_health.c: the handler crmapi-health: whether httpd serves requests
 * and the vhost's database answers (contract 15.2) */
#include "mod_crmapi_health.h"

#include <poll.h>
#include <string.h>

#include "apr_strings.h"

#include "http_protocol.h"
#include "http_request.h"

#include <libpq-fe.h>

#include "crm_db_conn.h"
#include "crm_hosts.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_dbd.h"
#include "mod_crmapi_permit.h"
#include "mod_crmapi_pool.h"

APLOG_USE_MODULE(crmapi);

#define HANDLER "crmapi-health"

/* The database must answer within this time, a little less than the second of
 * contract 15.2. */
#define TIME apr_time_from_msec(900)

/* All processes use a verdict for this time. It leaves some of the second within
 * which a database that was stopped is noticed. */
#define SHARED_FOR apr_time_from_msec(750)

/* Polling interval of a thread that waits for another thread's verdict. */
#define CHECK_AGAIN apr_time_from_msec(5)

/* SQLSTATE too_many_connections. */
#define TOO_MANY "53300"

typedef enum verdict_t {
    NEVER_CHECKED,
    READY,
    NO_CONFIGURATION,
    NO_DATABASE,
    DATABASE_FULL,
    OTHER_SCHEMA
} verdict_t;

static const struct {
    int status;
    const char *word;
} answers[] = {
    [NEVER_CHECKED] = {HTTP_SERVICE_UNAVAILABLE, "unknown"},
    [READY] = {HTTP_OK, "ready"},
    [NO_CONFIGURATION] = {HTTP_SERVICE_UNAVAILABLE, "configuration"},
    [NO_DATABASE] = {HTTP_SERVICE_UNAVAILABLE, "database"},
    [DATABASE_FULL] = {HTTP_SERVICE_UNAVAILABLE, "connections"},
    [OTHER_SCHEMA] = {HTTP_SERVICE_UNAVAILABLE, "schema"},
};

/* Wait until END for PG's socket to be ready for EVENTS. Return whether it
 * is. */
static int wait_socket(PGconn *pg, short events, apr_time_t end)
{
    struct pollfd poller = {PQsocket(pg), events, 0};
    apr_interval_time_t left = end - apr_time_now();

    return left > 0 && poll(&poller, 1, (int)((left + 999) / 1000)) > 0;
}

/* Open a connection with PARAMS before END. Return NULL if there is no memory.
 * Otherwise the caller calls PQfinish(), also if it failed. */
static PGconn *open_until(const crm_params_t *params, apr_time_t end)
{
    PGconn *pg = PQconnectStartParams(params->keywords, params->values, 0);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    if (pg) {
        PQsetErrorVerbosity(pg, PQERRORS_SQLSTATE);
    }
    while (pg && PQstatus(pg) != CONNECTION_BAD
           && (state == PGRES_POLLING_READING
               || state == PGRES_POLLING_WRITING)
           && wait_socket(pg, state == PGRES_POLLING_READING
                          ? POLLIN : POLLOUT, end)) {
        state = PQconnectPoll(pg);
    }
    return pg;
}

/* Return whether PG answers a statement before END. Afterwards it is idle. */
static int answers_until(PGconn *pg, apr_time_t end)
{
    PGresult *result;
    int good = 0;

    if (PQstatus(pg) != CONNECTION_OK || !PQsendQuery(pg, "SELECT 1")) {
        return 0;
    }
    do {
        while (PQisBusy(pg)) {
            if (!wait_socket(pg, POLLIN, end) || !PQconsumeInput(pg)) {
                return 0;
            }
        }
        result = PQgetResult(pg);
        good |= PQresultStatus(result) == PGRES_TUPLES_OK;
        PQclear(result);
    } while (result);
    return good;
}

/* Return the verdict about the schema of PG, which answers. */
static verdict_t judge_schema(PGconn *pg, request_rec *r)
{
    crmapi_config_t *config = crmapi_config(r->server);
    const crm_conn_options_t options = {.generic_plans = 1,
                                        .timeout = TIME};
    crm_conn_t *conn;
    crm_error_t *error;

    error = crm_conn_adopt(&conn, pg, &options, r->pool, r->pool);
    if (!error) {
        error = crmapi_schema_check(config->pool, conn, r->server, r->pool);
    }
    if (!error) {
        return READY;
    }
    return error->log ? NO_DATABASE : OTHER_SCHEMA;
}

/* Return the verdict about a database that does not answer. FULL: it refused
 * the connection because it has too many. Then BEFORE, the last verdict, stays,
 * because the database still serves its other connections. */
static verdict_t judge_silence(int full, verdict_t before)
{
    return !full ? NO_DATABASE : before == READY ? READY : DATABASE_FULL;
}

/* Return a connection to the first host of R's server, of HOSTS, that answers,
 * or NULL. *FULL_P = whether a host refused because it has too many
 * connections. Each host gets an equal share of the time, so that a silent one
 * does not hide the next. */
static PGconn *find_host(int *full_p, request_rec *r, int hosts)
{
    const char *conninfo = crmapi_config(r->server)->dbd.params;
    apr_time_t begun = apr_time_now();

    *full_p = 0;
    for (int i = 0; i < hosts; i++) {
        crm_params_t params = crm_hosts_one(conninfo, i, "crmapi health",
                                            r->pool);
        apr_time_t end = begun + TIME * (i + 1) / hosts;
        PGconn *pg = open_until(&params, end);

        if (pg && answers_until(pg, end)) {
            return pg;
        }
        *full_p |= pg && strstr(PQerrorMessage(pg), TOO_MANY);
        PQfinish(pg);
    }
    return NULL;
}

/* Check the database of R's server with a new connection. mod_dbd cannot
 * provide it: it may have to connect, and that has no time limit. */
static verdict_t check(request_rec *r, verdict_t before)
{
    const crmapi_config_t *config = crmapi_config(r->server);
    int full;
    PGconn *pg = find_host(&full, r, crm_hosts_count(config->dbd.params));
    verdict_t verdict = pg ? judge_schema(pg, r)
                        : judge_silence(full, before);

    if (verdict == NO_DATABASE || verdict == DATABASE_FULL) {
        crmapi_pool_report(config->pool, CRMAPI_POOL_UNREACHABLE, APLOG_ERR,
                           r->server, "CRM1305: the database does not answer "
                           "the health check, so it is answered 503");
    }
    PQfinish(pg);
    return verdict;
}

/* Set *VERDICT_P to the last verdict in HEALTH. Return whether it is recent
 * enough at NOW. */
static int recall(verdict_t *verdict_p, crmapi_health_t *health,
                  apr_time_t now)
{
    apr_int64_t at = __atomic_load_n(&health->at, __ATOMIC_ACQUIRE);

    *verdict_p = (verdict_t)__atomic_load_n(&health->verdict,
                                            __ATOMIC_RELAXED);
    return at && now - at < SHARED_FOR && now >= at;
}

/* Return whether this thread must check HEALTH's database at NOW: no other
 * thread does, or it has taken so long that its process must have been killed.
 * */
static int begin(crmapi_health_t *health, apr_time_t now)
{
    apr_int64_t since = __atomic_load_n(&health->checking, __ATOMIC_ACQUIRE);

    return (!since || now - since > 2 * TIME)
           && __atomic_compare_exchange_n(&health->checking, &since, now, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Return the verdict about the database of R's server: the last one, another
 * thread's, or a new one. */
static verdict_t find_verdict(request_rec *r)
{
    crmapi_health_t *health = crmapi_config(r->server)->pool->health;
    apr_time_t now = apr_time_now(), end = now + TIME;
    verdict_t verdict;

    while (!recall(&verdict, health, now)) {
        if (begin(health, now)) {
            verdict = check(r, verdict);
            __atomic_store_n(&health->verdict, verdict, __ATOMIC_RELAXED);
            __atomic_store_n(&health->at, apr_time_now(), __ATOMIC_RELEASE);
            __atomic_store_n(&health->checking, 0, __ATOMIC_RELEASE);
            return verdict;
        }
        if (now > end) {
            return NO_DATABASE;
        }
        apr_sleep(CHECK_AGAIN);
        now = apr_time_now();
    }
    return verdict;
}

/* Return the verdict about R's server for a load balancer. */
static verdict_t readiness(request_rec *r)
{
    const crmapi_config_t *config = crmapi_config(r->server);

    if (!config->pool || config->pool->missing || !config->pool->health) {
        return NO_CONFIGURATION;
    }
    return find_verdict(r);
}

/* Respond to R with STATUS and WORD. */
static int respond(request_rec *r, int status, const char *word)
{
    r->status = status;
    r->no_local_copy = 1;
    ap_set_content_type(r, "text/plain; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    ap_set_content_length(r, (apr_off_t)strlen(word) + 1);
    if (!r->header_only) {
        ap_rvputs(r, word, "\n", NULL);
    }
    return OK;
}

/* Return whether R's path ends with NAME. */
static int ends_with(const request_rec *r, const char *name)
{
    size_t len = strlen(r->uri), more = strlen(name);

    return len >= more && !strcmp(r->uri + len - more, name);
}

int crmapi_health_handler(request_rec *r)
{
    verdict_t verdict;

    if (!r->handler || strcmp(r->handler, HANDLER)) {
        return DECLINED;
    }
    if (!crmapi_permitted(r)) {
        return HTTP_NOT_FOUND;
    }
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1);
    if (r->method_number != M_GET) {
        return HTTP_METHOD_NOT_ALLOWED;
    }
    if (ends_with(r, "/live")) {
        return respond(r, HTTP_OK, "live");
    }
    if (!ends_with(r, "/ready")) {
        return HTTP_NOT_FOUND;
    }
    verdict = readiness(r);
    return respond(r, answers[verdict].status, answers[verdict].word);
}
