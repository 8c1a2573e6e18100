/* SPDX-License-Identifier: Apache-2.0 */
/* crm_probe.c: whether a database can be reached, within a time limit */
#include "crm_probe.h"

#include <poll.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_hosts.h"
#include "crm_time.h"

/* SQLSTATE too_many_connections. */
#define TOO_MANY "53300: "

/* Wait until END for PG's socket to be ready for EVENTS. Return whether it
 * is. */
static int wait_socket(PGconn *pg, short events, apr_time_t end)
{
    struct pollfd poller = {PQsocket(pg), events, 0};
    apr_interval_time_t left = end - crm_time_monotonic();

    return left > 0 && poll(&poller, 1, (int)((left + 999) / 1000)) > 0;
}

/* Open a connection with PARAMS before END. Return NULL if there is no memory.
 * Otherwise the caller calls PQfinish(), also if it failed. */
static PGconn *open_until(const crm_params_t *params, apr_time_t end)
{
    PGconn *pg = PQconnectStartParams(params->keywords, params->values, 0);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    if (pg) {
        PQsetErrorVerbosity(pg, PQERRORS_VERBOSE);
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

/* Return whether PG was given up while it waited for the server. */
static int is_late(PGconn *pg)
{
    return PQstatus(pg) == CONNECTION_OK ? !*PQerrorMessage(pg)
           : PQstatus(pg) != CONNECTION_BAD;
}

/* Return why PG (NULL: no memory) does not answer, in POOL. While PG waits, its
 * message says which server it talks to, and "failed: ". */
static const char *cause_of(PGconn *pg, apr_pool_t *pool)
{
    const char *text = pg ? PQerrorMessage(pg) : "no memory";

    if (pg && is_late(pg)) {
        text = apr_pstrcat(pool, text, "no answer in time", NULL);
    }
    return crm_hosts_cause(text, pool);
}

/* Add CAUSE to those of PROBE, in POOL. */
static void add_cause(crm_probe_t *probe, const char *cause, apr_pool_t *pool)
{
    probe->full |= strstr(cause, TOO_MANY) != NULL;
    probe->cause = probe->cause
                   ? apr_pstrcat(pool, probe->cause, "; ", cause, NULL)
                   : cause;
}

/* Return, in POOL, the parameters (crm_params_t) for each address of each host of
 * CONNINFO, and add to PROBE why a host has none. That takes at most TIME. NAME: see
 * crm_hosts_one(). */
static apr_array_header_t *find_places(crm_probe_t *probe,
                                       const char *conninfo, const char *name,
                                       apr_interval_time_t time,
                                       apr_pool_t *pool)
{
    apr_time_t until = crm_time_monotonic() + time;
    apr_array_header_t *places = apr_array_make(pool, 2, sizeof(crm_params_t));
    PQconninfoOption *options = crm_hosts_options(conninfo);
    int hosts = crm_hosts_count(conninfo);

    crm_hosts_ask(options, pool);
    PQconninfoFree(options);
    for (int i = 0; i < hosts; i++) {
        const char *fault;
        const apr_array_header_t *addresses = crm_hosts_addresses(
            &fault, conninfo, i, until, pool);

        if (fault) {
            add_cause(probe, fault, pool);
        }
        for (int j = 0; j < addresses->nelts; j++) {
            APR_ARRAY_PUSH(places, crm_params_t) = crm_hosts_one(
                conninfo, i, APR_ARRAY_IDX(addresses, j, const char *), name,
                pool);
        }
    }
    return places;
}

void crm_probe_open(crm_probe_t *probe, const char *conninfo,
                    const char *name, apr_interval_time_t time,
                    apr_pool_t *result_pool)
{
    const apr_array_header_t *places;
    apr_time_t begun;

    memset(probe, 0, sizeof(*probe));
    places = find_places(probe, conninfo, name, time, result_pool);
    begun = crm_time_monotonic();
    for (int i = 0; i < places->nelts; i++) {
        apr_time_t end = begun + time * (i + 1) / places->nelts;
        PGconn *pg = open_until(&APR_ARRAY_IDX(places, i, crm_params_t), end);

        if (pg && answers_until(pg, end)) {
            PQsetErrorVerbosity(pg, PQERRORS_DEFAULT);
            probe->pg = pg;
            probe->cause = NULL;
            return;
        }
        add_cause(probe, cause_of(pg, result_pool), result_pool);
        PQfinish(pg);
    }
}
