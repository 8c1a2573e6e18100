/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_turn.c: turns of threads that may have to make a connection */
#include "mod_crmapi_turn.h"

#include <libpq-fe.h>

#include "crm_cond.h"
#include "crm_hosts.h"
#include "crm_probe.h"
#include "crm_time.h"

/* How long a probe takes at most, and if the process has connections, for which the
 * request can wait then. */
#define PROBE_TIME apr_time_from_sec(2)
#define PROBE_TIME_BESIDE apr_time_from_msec(900)

/* Return whether mod_dbd may have to make a connection of POOL, whose mutex is
 * held. */
static int lacks(const crmapi_pool_t *pool)
{
    return (pool->max && crmapi_pool_busy(pool)
                         > __atomic_load_n(&pool->made, __ATOMIC_RELAXED))
           || __atomic_load_n(&pool->failing, __ATOMIC_RELAXED);
}

/* Wait for the turn in POOL, whose mutex is held, until END. Return 0 if a turn that
 * began meanwhile has failed, or if one did not end in time. After a failure, who can
 * have a connection that there is does not wait. */
static int wait_turn(crmapi_pool_t *pool, apr_time_t end)
{
    apr_uint64_t turn = pool->turn;

    while (pool->turn_since && pool->failed_turn <= turn) {
        apr_interval_time_t wait = end - crm_time_monotonic();

        if (wait <= 0 || (pool->failed_turn && crmapi_pool_usable(pool))) {
            return 0;
        }
        crm_cond_wait(pool->turned, pool->mutex, wait);
    }
    return pool->failed_turn <= turn;
}

/* Return how long a probe of POOL's database may take for who has time until UNTIL. */
static apr_interval_time_t probe_time(const crmapi_pool_t *pool,
                                      apr_time_t until)
{
    apr_interval_time_t left = until - crm_time_monotonic();
    apr_interval_time_t most = crmapi_pool_usable(pool) ? PROBE_TIME_BESIDE
                               : PROBE_TIME;

    return left < most ? left : most;
}

/* Return whether the database of POOL answers by UNTIL. If the last turn FAILED, it is
 * asked; otherwise only its names are looked up, because libpq does so without a
 * limit. Scratch memory is in P. */
static int answers(const crmapi_pool_t *pool, int failed, apr_time_t until,
                   apr_pool_t *p)
{
    const char *params = pool->settings->params;
    PQconninfoOption *options;
    crm_probe_t probe;
    int silent;

    if (failed) {
        crm_probe_open(&probe, params, "crmapi", probe_time(pool, until), p);
        PQfinish(probe.pg);
        return probe.pg != NULL;
    }
    options = crm_hosts_options(params);
    silent = crm_hosts_silent(options, until, p);
    PQconninfoFree(options);
    return !silent;
}

crmapi_turn_t crmapi_turn_take(crmapi_pool_t *pool, apr_time_t end,
                               apr_time_t until, apr_pool_t *p)
{
    crmapi_turn_t turn = CRMAPI_TURN_FREE;
    int failed;

    pthread_mutex_lock(pool->mutex);
    if (lacks(pool)) {
        turn = wait_turn(pool, end) ? CRMAPI_TURN_MINE : CRMAPI_TURN_NO;
    }
    if (turn == CRMAPI_TURN_MINE) {
        pool->turn++;
        pool->turn_since = crm_time_monotonic();
        pthread_cond_signal(pool->freed);       /* crmapi_pool_busy() */
    }
    failed = pool->failed_turn != 0;
    pthread_mutex_unlock(pool->mutex);
    if (turn == CRMAPI_TURN_MINE && !answers(pool, failed, until, p)) {
        crmapi_turn_end(pool, 0);
        turn = CRMAPI_TURN_NO;
    }
    return turn;
}

void crmapi_turn_end(crmapi_pool_t *pool, int opened)
{
    pthread_mutex_lock(pool->mutex);
    pool->turn_since = 0;
    pool->failed_turn = opened ? 0 : pool->turn;
    pthread_cond_broadcast(pool->turned);
    pthread_mutex_unlock(pool->mutex);
}
