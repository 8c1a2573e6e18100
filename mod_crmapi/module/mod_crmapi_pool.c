/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_pool.c: mod_dbd's connection pools, and waiting for a place in
 * them */
#include "mod_crmapi_pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"

#include "ap_mpm.h"
#include "unixd.h"

#include <libpq-fe.h>

#include "crm_cond.h"
#include "crm_hash.h"
#include "crm_hosts.h"
#include "crm_time.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_metrics.h"
#include "mod_crmapi_shm.h"

APLOG_USE_MODULE(crmapi);

/* For how long a database that gave no connection is not asked for another one, if
 * the process has some. */
#define FEW_FOR apr_time_from_sec(1)

/* A database hangs if no connection was released for this time: one of several, and one
 * that is alone. */
#define HANGS_AFTER apr_time_from_msec(500)
#define HANGS_ALONE_AFTER apr_time_from_sec(5)

static apr_array_header_t *pools;       /* of crmapi_pool_t * */

void crmapi_pools_clear(apr_pool_t *pconf)
{
    pools = apr_array_make(pconf, 4, sizeof(crmapi_pool_t *));
}

int crmapi_pools_count(void)
{
    return pools ? pools->nelts : 0;
}

crmapi_pool_t *crmapi_pool_at(int index)
{
    return APR_ARRAY_IDX(pools, index, crmapi_pool_t *);
}

/* Return the reason, allocated in P, why SETTINGS cannot serve the API, or
 * NULL. */
static const char *find_missing(const crmapi_dbd_t *settings, apr_pool_t *p)
{
    const char *fault;

    if (!ap_find_linked_module("mod_dbd.c")) {
        return "CRM1101: mod_dbd is not loaded: add LoadModule dbd_module, "
               "DBDriver pgsql and DBDParams";
    }
    if (!settings->driver) {
        return "CRM1102: there is no DBDriver: add DBDriver pgsql and "
               "DBDParams";
    }
    if (strcmp(settings->driver, "pgsql")) {
        return apr_psprintf(p, "CRM1103: DBDriver is %s, but must be pgsql",
                            settings->driver);
    }
    fault = crm_hosts_fault(settings->params, p);
    return fault ? apr_pstrcat(p, "CRM1108: DBDParams is not a connection "
                               "string of libpq: ", fault, NULL) : NULL;
}

/* Return a hash (FNV-1a) of SETTINGS' driver and parameters. It is the same for
 * the same database after restarts. The parameters may hold a password. */
static apr_uint32_t realm_of(const crmapi_dbd_t *settings)
{
    apr_uint32_t hash = 2166136261U;

    for (const char *c = settings->driver; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    }
    for (const char *c = settings->params; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    }
    return hash;
}

/* Return, in P, the role that libpq uses if a conninfo names none: PGUSER, or
 * the system user that children of httpd run as. */
static const char *default_role(apr_pool_t *p)
{
    PQconninfoOption *options;
    const char *role;

    if (!geteuid() && !getenv("PGUSER")) {
        return ap_unixd_config.user_name;
    }
    options = PQconndefaults();
    role = apr_pstrdup(p, crm_hosts_value(options, "user"));
    PQconninfoFree(options);
    return role;
}

/* Return whether mod_dbd has one pool for A and B. (If a label of DBDPrepareSQL
 * has different statements in A and B, it has two, which then share the places
 * of one.) */
static int same_pool(const crmapi_dbd_t *a, const crmapi_dbd_t *b)
{
    return !strcmp(a->driver ? a->driver : "", b->driver ? b->driver : "")
           && !strcmp(a->params, b->params) && !a->persist == !b->persist
           && a->min == b->min && a->keep == b->keep && a->max == b->max
           && a->exptime == b->exptime;
}

/* Return the pool of SETTINGS, NULL if there is none. */
static crmapi_pool_t *find_pool(const crmapi_dbd_t *settings)
{
    for (int i = 0; i < pools->nelts; i++) {
        crmapi_pool_t *pool = APR_ARRAY_IDX(pools, i, crmapi_pool_t *);

        if (same_pool(pool->settings, settings)) {
            return pool;
        }
    }
    return NULL;
}

/* Return a new pool of SETTINGS, allocated in PCONF. */
static crmapi_pool_t *make_pool(const crmapi_dbd_t *settings,
                                apr_pool_t *pconf)
{
    crmapi_pool_t *pool = apr_pcalloc(pconf, sizeof(*pool));

    pool->settings = settings;
    pool->missing = find_missing(settings, pconf);
    pool->name = pool->label = "";
    if (!pool->missing) {
        pool->label = crm_hosts_label(settings->params, default_role(pconf),
                                      pconf);
        pool->name = apr_pstrcat(pconf, " (", pool->label, ")", NULL);
        pool->realm = realm_of(settings);
        pool->max = settings->persist ? settings->max : 0;
    }
    APR_ARRAY_PUSH(pools, crmapi_pool_t *) = pool;
    return pool;
}

void crmapi_pool_make(crmapi_config_t *config, apr_pool_t *pconf)
{
    config->pool = find_pool(&config->dbd);
    if (!config->pool) {
        config->pool = make_pool(&config->dbd, pconf);
    }
    config->service.settings.realm = config->pool->realm;
}

void crmapi_pool_join(crmapi_config_t *config)
{
    config->pool = find_pool(&config->dbd);
}

/* The memory lives as long as the configuration, so errors are logged again
 * after a restart. */
const char *crmapi_pools_share(const crm_keys_t *keys, apr_pool_t *pconf,
                               apr_pool_t *ptemp)
{
    apr_size_t size = (apr_size_t)pools->nelts * sizeof(crmapi_pool_shared_t);
    crmapi_pool_shared_t *shared;
    void *memory;
    const char *problem = crmapi_shm_make(&memory, size,
                                          "the states of databases", pconf,
                                          ptemp);

    if (problem) {
        return problem;
    }
    shared = memory;
    for (int i = 0; i < pools->nelts; i++) {
        crmapi_pool_t *pool = APR_ARRAY_IDX(pools, i, crmapi_pool_t *);

        pool->state_news = &shared[i].state_news;
        pool->busy_news = &shared[i].busy_news;
        pool->refusal_news = shared[i].refusal_news;
        pool->health = &shared[i].health;
        pool->keys = *keys;
        pool->keys.state = &shared[i].roll;
    }
    return NULL;
}

/* Return the interval at which STATE is logged again. */
static apr_interval_time_t again(apr_uint32_t state)
{
    return state == CRMAPI_POOL_READY ? 0 : CRMAPI_POOL_LOG_AGAIN;
}

void crmapi_pool_report(const crmapi_pool_t *pool, apr_uint32_t state,
                        int level, const server_rec *s, const char *text)
{
    if (crmapi_news(pool->state_news, state, again(state))) {
        if (state != CRMAPI_POOL_READY) {
            /* let the next who asks for it check again */
            __atomic_store_n(&pool->health->at, 0, __ATOMIC_RELEASE);
        }
        ap_log_error(APLOG_MARK, level, 0, s, "%s%s", text, pool->name);
    }
}

int crmapi_pool_refusal_is_news(const crmapi_pool_t *pool, const char *line)
{
    apr_uint32_t hash = (apr_uint32_t)crm_hash(CRM_HASH_START, line,
                                               strlen(line));

    return crmapi_news(&pool->refusal_news[hash % CRMAPI_POOL_REFUSALS], hash,
                       CRMAPI_POOL_LOG_AGAIN);
}

int crmapi_pool_is_news(const crmapi_pool_t *pool, apr_uint32_t state)
{
    return crmapi_is_news(pool->state_news, state, again(state));
}

void crmapi_pool_report_missing(const crmapi_pool_t *pool,
                                const server_rec *s, apr_pool_t *p)
{
    crmapi_pool_report(pool, CRMAPI_POOL_MISCONFIGURED, APLOG_ERR, s,
                       apr_pstrcat(p, pool->missing, "; the API answers 503 "
                                   "until then", NULL));
}

void crmapi_pools_complain(const server_rec *main_server, apr_pool_t *ptemp)
{
    for (int i = 0; i < pools->nelts; i++) {
        crmapi_pool_t *pool = APR_ARRAY_IDX(pools, i, crmapi_pool_t *);

        if (pool->missing) {
            crmapi_pool_report_missing(pool, main_server, ptemp);
        }
    }
}

/* Return the maximum number of this process's threads that requests to a
 * hanging database may hold, so that threads are left for the rest of the site. 0:
 * no limit. */
static int share_of_threads(void)
{
    int threads = 0;

    return ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads) == APR_SUCCESS
           ? threads / 2 : 0;
}

void crmapi_pools_create(apr_pool_t *pchild)
{
    int share = share_of_threads();

    for (int i = 0; i < pools->nelts; i++) {
        crmapi_pool_t *pool = APR_ARRAY_IDX(pools, i, crmapi_pool_t *);

        pool->share = share;
        pool->hangs_after = pools->nelts > 1 ? HANGS_AFTER : HANGS_ALONE_AFTER;
        pool->freed = apr_palloc(pchild, sizeof(*pool->freed));
        crm_cond_init(pool->freed);
        pool->turned = apr_palloc(pchild, sizeof(*pool->turned));
        crm_cond_init(pool->turned);
        pool->mutex = apr_palloc(pchild, sizeof(*pool->mutex));
        pthread_mutex_init(pool->mutex, NULL);
    }
}

int crmapi_pool_busy(const crmapi_pool_t *pool)
{
    return pool->used - (pool->turn_since != 0);
}

static int is_full(const crmapi_pool_t *pool)
{
    return pool->max
           && (pool->used >= pool->max
               || (pool->few && crmapi_pool_busy(pool) >= pool->few
                   && crm_time_monotonic() < pool->few_until));
}

/* Return whether POOL's database hangs, if it is in use. */
static int stands_still(const crmapi_pool_t *pool)
{
    return crm_time_monotonic()
           - __atomic_load_n(&pool->moved, __ATOMIC_RELAXED)
           > pool->hangs_after;
}

/* Return whether POOL's database hangs, and its threads with MORE others exceed
 * its share. */
static int is_overloaded(const crmapi_pool_t *pool, int more)
{
    int count = pool->used + pool->waiting + more
                + __atomic_load_n(&pool->sharing, __ATOMIC_RELAXED);

    return pool->share && count > pool->share && pool->used
           && stands_still(pool);
}

/* Add CHANGE to the number of threads that wait for a place in POOL. Its mutex
 * is held. */
static void change_waiting(crmapi_pool_t *pool, int change)
{
    pool->waiting += change;
    crmapi_metrics_waiting(change);
}

/* Return how long a thread that may wait WAIT sleeps at most until it looks again
 * whether there is a place in POOL, whose mutex is held: time alone can change that. */
static apr_interval_time_t sleep_time(const crmapi_pool_t *pool,
                                      apr_interval_time_t wait)
{
    apr_interval_time_t few = pool->few_until - crm_time_monotonic();

    if (pool->few && few > 0 && few < wait) {
        wait = few;
    }
    return pool->share && wait > pool->hangs_after ? pool->hangs_after : wait;
}

/* Wait at most WAIT for a free place in POOL, whose mutex is held. If others
 * wait already, queue behind them. Return the time waited. */
static apr_interval_time_t wait_free(crmapi_pool_t *pool,
                                     apr_interval_time_t wait)
{
    apr_time_t began, end;

    if (!is_full(pool) && !pool->waiting) {
        return 0;
    }
    began = crm_time_monotonic();
    end = began + wait;
    change_waiting(pool, 1);
    do {
        wait = end - crm_time_monotonic();
        if (wait <= 0 || is_overloaded(pool, 0)) {
            break;
        }
        crm_cond_wait(pool->freed, pool->mutex, sleep_time(pool, wait));
    } while (is_full(pool));
    change_waiting(pool, -1);
    return crm_time_monotonic() - began;
}

/* Take a place in POOL, whose mutex is held. */
static void take_place(crmapi_pool_t *pool)
{
    if (!pool->used) {
        __atomic_store_n(&pool->moved, crm_time_monotonic(), __ATOMIC_RELAXED);
    }
    pool->used++;
    crmapi_metrics_used(1);
}

/* Wake the next thread that waits for POOL, if there is a place for it. The
 * mutex is held. */
static void wake_next(crmapi_pool_t *pool)
{
    if (!is_full(pool) && pool->waiting) {
        pthread_cond_signal(pool->freed);
    }
}

int crmapi_pool_enter(apr_interval_time_t *waited_p, crmapi_pool_t *pool,
                      apr_interval_time_t wait)
{
    int entered;

    pthread_mutex_lock(pool->mutex);
    *waited_p = wait_free(pool, wait);
    entered = !is_full(pool) && !is_overloaded(pool, 1);
    if (entered) {
        take_place(pool);
    }
    wake_next(pool);
    pthread_mutex_unlock(pool->mutex);
    return entered;
}

void crmapi_pool_enter_always(crmapi_pool_t *pool)
{
    pthread_mutex_lock(pool->mutex);
    if (is_full(pool) || pool->waiting) {
        change_waiting(pool, 1);
        do {
            pthread_cond_wait(pool->freed, pool->mutex);
        } while (is_full(pool));
        change_waiting(pool, -1);
    }
    take_place(pool);
    wake_next(pool);
    pthread_mutex_unlock(pool->mutex);
}

int crmapi_pool_add_waiting(crmapi_pool_t *pool, int change)
{
    int overloaded;

    if (change) {
        crmapi_metrics_waiting(change);
    }
    if (!pool->share) {
        return 0;
    }
    __atomic_add_fetch(&pool->sharing, change, __ATOMIC_RELAXED);
    if (!stands_still(pool)) {
        return 0;
    }
    pthread_mutex_lock(pool->mutex);
    overloaded = is_overloaded(pool, 0);
    pthread_mutex_unlock(pool->mutex);
    return !overloaded ? 0 : pools->nelts > 1 ? 2 : 1;
}

/* Release a place in POOL, whose mutex is held. */
static void free_place(crmapi_pool_t *pool)
{
    pool->used--;
    crmapi_metrics_used(-1);
    pthread_cond_signal(pool->freed);
}

void crmapi_pool_leave(crmapi_pool_t *pool, int served)
{
    pthread_mutex_lock(pool->mutex);
    free_place(pool);
    if (served) {
        __atomic_store_n(&pool->moved, crm_time_monotonic(), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(pool->mutex);
}

int crmapi_pool_usable(const crmapi_pool_t *pool)
{
    return pool->max && !__atomic_load_n(&pool->failing, __ATOMIC_RELAXED)
           ? __atomic_load_n(&pool->made, __ATOMIC_RELAXED) : 0;
}

int crmapi_pool_refuse(crmapi_pool_t *pool)
{
    int others = crmapi_pool_usable(pool);

    pthread_mutex_lock(pool->mutex);
    free_place(pool);
    pool->few = others;
    pool->few_until = crm_time_monotonic() + FEW_FOR;
    pthread_mutex_unlock(pool->mutex);
    return others > 0;
}

int crmapi_pool_limit(crmapi_pool_t *pool, int max)
{
    int before;

    pthread_mutex_lock(pool->mutex);
    before = pool->max;
    if (before != max) {
        pool->max = max;
    }
    pthread_mutex_unlock(pool->mutex);
    return before;
}

void crmapi_pools_stats(int *used_p, int *max_p)
{
    *used_p = *max_p = 0;
    for (int i = 0; pools && i < pools->nelts; i++) {
        crmapi_pool_t *pool = APR_ARRAY_IDX(pools, i, crmapi_pool_t *);

        if (pool->mutex) {      /* NULL: CRM1104 */
            pthread_mutex_lock(pool->mutex);
            *used_p += pool->used;
            *max_p += pool->max;
            pthread_mutex_unlock(pool->mutex);
        }
    }
}
