/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_usable.c: whether the database of a pool can be used. One thread of
 * the host checks it, with a connection of its own: mod_dbd cannot provide it,
 * since it may have to connect, and that has no time limit. */
#include "mod_crmapi_usable.h"

#include "crm_db_conn.h"
#include "crm_probe.h"
#include "crm_time.h"

#include "mod_crmapi_dbd.h"
#include "mod_crmapi_outage.h"

/* Polling interval of a thread that waits for another thread's verdict. */
#define CHECK_AGAIN apr_time_from_msec(5)

/* A database that takes no more connections counts as usable for this time after a
 * process has used it: each one that has requests looks at the schema more often. */
#define SERVED_FOR (2 * CRMAPI_SCHEMA_TRUST)

/* Return the verdict about the schema of PG, a connection that OWNER, a pool, has. */
static crmapi_verdict_t judge_schema(PGconn *pg, apr_pool_t *owner,
                                     crmapi_pool_t *pool, const server_rec *s,
                                     apr_pool_t *p)
{
    const crm_conn_options_t options = {.generic_plans = 1,
                                        .timeout = CRMAPI_CHECK_TIME};
    crm_conn_t *conn;
    crm_error_t *error;

    error = crm_conn_adopt(&conn, pg, &options, owner, p);
    if (!error) {
        error = crmapi_schema_check(pool, conn, s, p);
    }
    if (!error) {
        return CRMAPI_USABLE;
    }
    return error->log ? CRMAPI_NO_DATABASE : CRMAPI_OTHER_SCHEMA;
}

/* Return the verdict about the database of POOL, which takes no more connections:
 * whether it serves those that this process has, or has lately served another's. */
static crmapi_verdict_t judge_full(crmapi_pool_t *pool, const server_rec *s,
                                   apr_pool_t *p)
{
    apr_int64_t served = __atomic_load_n(&pool->health->served,
                                         __ATOMIC_RELAXED);
    crmapi_verdict_t verdict = CRMAPI_NO_DATABASE;
    ap_dbd_t *dbd;

    if (!crmapi_dbd_borrow(&dbd, pool, p)) {
        return CRMAPI_USABLE;
    }
    if (dbd) {
        verdict = judge_schema(apr_dbd_native_handle(dbd->driver, dbd->handle),
                               dbd->pool, pool, s, p);
        crmapi_dbd_return(dbd, pool, verdict != CRMAPI_NO_DATABASE);
    }
    return verdict != CRMAPI_NO_DATABASE ? verdict
           : served && crm_time_monotonic() - served < SERVED_FOR
             ? CRMAPI_USABLE : CRMAPI_DATABASE_FULL;
}

/* Check the database of POOL. */
static crmapi_verdict_t check(crmapi_pool_t *pool, const server_rec *s,
                              apr_pool_t *p)
{
    crmapi_verdict_t verdict;
    crm_probe_t probe;

    crm_probe_open(&probe, pool->settings->params, "crmapi health",
                   CRMAPI_CHECK_TIME, p);
    verdict = probe.pg ? judge_schema(probe.pg, p, pool, s, p)
              : probe.full ? judge_full(pool, s, p) : CRMAPI_NO_DATABASE;
    if (verdict == CRMAPI_NO_DATABASE || verdict == CRMAPI_DATABASE_FULL) {
        crmapi_outage_report(pool, 1, probe.cause, s, p);
    }
    PQfinish(probe.pg);
    return verdict;
}

/* Set *VERDICT_P to the last verdict in HEALTH. Return whether it is at most
 * TRUST old at NOW. */
static int recall(crmapi_verdict_t *verdict_p, const crmapi_health_t *health,
                  apr_interval_time_t trust, apr_time_t now)
{
    apr_int64_t at = __atomic_load_n(&health->at, __ATOMIC_ACQUIRE);

    *verdict_p = (crmapi_verdict_t)__atomic_load_n(&health->verdict,
                                                   __ATOMIC_RELAXED);
    return at && now - at < trust && now >= at;
}

/* Return whether this thread must check HEALTH's database at NOW: no other
 * thread does, or it has taken so long that its process must have been killed. */
static int begin(crmapi_health_t *health, apr_time_t now)
{
    apr_int64_t since = __atomic_load_n(&health->checking, __ATOMIC_ACQUIRE);

    return (!since || now - since > 2 * CRMAPI_CHECK_TIME)
           && __atomic_compare_exchange_n(&health->checking, &since, now, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

crmapi_verdict_t crmapi_usable(crmapi_pool_t *pool, apr_interval_time_t trust,
                               const server_rec *s, apr_pool_t *p)
{
    crmapi_health_t *health = pool ? pool->health : NULL;
    apr_time_t now = crm_time_monotonic(), end = now + CRMAPI_CHECK_TIME;
    crmapi_verdict_t verdict;

    if (!health || pool->missing) {
        return CRMAPI_NO_CONFIGURATION;
    }
    while (!recall(&verdict, health, trust, now)) {
        if (begin(health, now)) {
            verdict = check(pool, s, p);
            __atomic_store_n(&health->verdict, verdict, __ATOMIC_RELAXED);
            __atomic_store_n(&health->at, crm_time_monotonic(),
                             __ATOMIC_RELEASE);
            __atomic_store_n(&health->checking, 0, __ATOMIC_RELEASE);
            return verdict;
        }
        if (now > end) {
            return CRMAPI_NO_DATABASE;
        }
        apr_sleep(CHECK_AGAIN);
        now = crm_time_monotonic();
    }
    return verdict;
}

crmapi_verdict_t crmapi_usable_last(const crmapi_pool_t *pool)
{
    crmapi_verdict_t verdict;

    if (!pool->health || pool->missing) {
        return CRMAPI_NO_CONFIGURATION;
    }
    recall(&verdict, pool->health, 0, 0);
    return verdict;
}
