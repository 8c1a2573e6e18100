/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_dbd.c: connections from mod_dbd for requests, and a count of those
 * that other modules use */
#include "mod_crmapi_dbd.h"

#include "apr_optional.h"
#include "apr_optional_hooks.h"
#include "apr_strings.h"

#include "http_request.h"

#include "crm_db_conn.h"
#include "crm_schema.h"
#include "crm_time.h"
#include "crm_touch.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_metrics.h"
#include "mod_crmapi_outage.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_request.h"
#include "mod_crmapi_turn.h"
#include "mod_crmapi_usable.h"

APLOG_USE_MODULE(crmapi);

/* The end of an outage is logged at the earliest after this time, so that a
 * database that fails every other request does not fill the log. */
#define REPORT_PAUSE apr_time_from_sec(1)

/* How long who borrows a connection waits for others, and for the database. */
#define BORROW_WAIT apr_time_from_sec(1)

/* Key of an APR pool's userdata: the crmapi_pool_t in which a connection of
 * another module has a place. */
#define PLACE "mod_crmapi place"

/* mod_dbd's own functions. */
static struct {
    APR_OPTIONAL_FN_TYPE(ap_dbd_open) *open;
    APR_OPTIONAL_FN_TYPE(ap_dbd_close) *close;
    APR_OPTIONAL_FN_TYPE(ap_dbd_acquire) *acquire;
    APR_OPTIONAL_FN_TYPE(ap_dbd_cacquire) *cacquire;
} dbd_functions;

/* Return the pool of S if other modules must take a place in it. NULL:
 * mod_crmapi does not use it, it has no limit, or this is the parent
 * process. */
static crmapi_pool_t *limited_pool(const server_rec *s)
{
    const crmapi_config_t *config = crmapi_config(s);
    crmapi_pool_t *pool = config ? config->pool : NULL;

    return pool && pool->max && pool->mutex ? pool : NULL;
}

/* ap_dbd_open() for other modules. */
static ap_dbd_t *open_counted(apr_pool_t *p, server_rec *s)
{
    crmapi_pool_t *pool = limited_pool(s);
    ap_dbd_t *dbd;

    if (!pool) {
        return dbd_functions.open(p, s);
    }
    crmapi_pool_enter_always(pool);
    dbd = dbd_functions.open(p, s);
    if (dbd) {
        apr_pool_userdata_setn(pool, PLACE, NULL, dbd->pool);
    }
    else {
        crmapi_outage_explain(pool, s, p);
        crmapi_pool_leave(pool, 0);
    }
    return dbd;
}

/* ap_dbd_close() for other modules. */
static void close_counted(server_rec *s, ap_dbd_t *dbd)
{
    void *pool;

    apr_pool_userdata_get(&pool, PLACE, dbd->pool);
    if (pool) {
        apr_pool_userdata_setn(NULL, PLACE, NULL, dbd->pool);
    }
    dbd_functions.close(s, dbd);
    if (pool) {
        crmapi_pool_leave(pool, 1);
    }
}

/* A cleanup of a connection's holder: release its place in the pool DATA. */
static apr_status_t leave(void *data)
{
    crmapi_pool_leave(data, 1);
    return APR_SUCCESS;
}

/* Take a place in POOL for the life of HOLDER, the APR pool of a request or of
 * a client's connection. Return 0 if HOLDER has one already. mod_dbd registers
 * its cleanup later, so it releases the connection before the place is free. */
static int hold_place(crmapi_pool_t *pool, apr_pool_t *holder)
{
    void *held;

    apr_pool_userdata_get(&held, PLACE, holder);
    if (held) {
        return 0;
    }
    crmapi_pool_enter_always(pool);
    apr_pool_userdata_setn(pool, PLACE, NULL, holder);
    apr_pool_cleanup_register(holder, pool, leave, apr_pool_cleanup_null);
    return 1;
}

/* Release HOLDER's place in POOL of S, because it got no connection. */
static void drop_place(crmapi_pool_t *pool, const server_rec *s,
                       apr_pool_t *holder)
{
    crmapi_outage_explain(pool, s, holder);
    apr_pool_userdata_setn(NULL, PLACE, NULL, holder);
    apr_pool_cleanup_kill(holder, pool, leave);
    crmapi_pool_leave(pool, 0);
}

/* ap_dbd_acquire() for other modules. Like mod_dbd's it gives subrequests and
 * internal redirects the connection of the client's request. */
static ap_dbd_t *acquire_counted(request_rec *r)
{
    crmapi_pool_t *pool;
    ap_dbd_t *dbd;
    int is_new;

    while (!ap_is_initial_req(r)) {
        r = r->prev ? r->prev : r->main;
    }
    pool = limited_pool(r->server);
    is_new = pool && hold_place(pool, r->pool);
    dbd = dbd_functions.acquire(r);
    if (!dbd && is_new) {
        drop_place(pool, r->server, r->pool);
    }
    return dbd;
}

/* ap_dbd_cacquire() for other modules. */
static ap_dbd_t *cacquire_counted(conn_rec *c)
{
    crmapi_pool_t *pool = limited_pool(c->base_server);
    int is_new = pool && hold_place(pool, c->pool);
    ap_dbd_t *dbd = dbd_functions.cacquire(c);

    if (!dbd && is_new) {
        drop_place(pool, c->base_server, c->pool);
    }
    return dbd;
}

/* The pre_config hook, after all modules were loaded and before directives are
 * read: let other modules find the functions above instead of mod_dbd's.
 * mod_dbd registers its own again whenever it is loaded. If mod_dbd is linked
 * into httpd, its functions are not replaced: other modules may keep them over
 * a restart, while this module is loaded at another address. */
static int pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    const module *dbd = ap_find_linked_module("mod_dbd.c");

    (void)pconf;
    (void)plog;
    (void)ptemp;
    if (!dbd) {
        return OK;
    }
    dbd_functions.open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_functions.close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
    dbd_functions.acquire = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_acquire);
    dbd_functions.cacquire = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_cacquire);
    if (dbd->dynamic_load_handle) {
        apr_dynamic_fn_register("ap_dbd_open", (apr_opt_fn_t *)open_counted);
        apr_dynamic_fn_register("ap_dbd_close",
                                (apr_opt_fn_t *)close_counted);
        apr_dynamic_fn_register("ap_dbd_acquire",
                                (apr_opt_fn_t *)acquire_counted);
        apr_dynamic_fn_register("ap_dbd_cacquire",
                                (apr_opt_fn_t *)cacquire_counted);
    }
    return OK;
}

/* A cleanup of a connection that mod_dbd has made: the pool DATA has one less. */
static apr_status_t unmake(void *data)
{
    crmapi_pool_t *pool = data;

    __atomic_sub_fetch(&pool->made, 1, __ATOMIC_RELAXED);
    return APR_SUCCESS;
}

/* The dbd_post_connect hook: mod_dbd has made a connection by its configuration
 * CONFIG. If its limit differs from the one that mod_crmapi took from the
 * directives (another release of httpd may have other defaults), use mod_dbd's.
 * mod_dbd holds its lock, so none of its functions may be called here. */
static apr_status_t post_connect(apr_pool_t *p, dbd_cfg_t *config,
                                 ap_dbd_t *dbd)
{
    crmapi_pool_t *pool = limited_pool(config->server);
    int before;

    (void)p;
    if (pool) {
        __atomic_store_n(&pool->opened, config->server, __ATOMIC_RELEASE);
        __atomic_add_fetch(&pool->made, 1, __ATOMIC_RELAXED);
        apr_pool_cleanup_register(dbd->pool, pool, unmake,
                                  apr_pool_cleanup_null);
    }
    if (pool && config->nmax > 0) {
        before = crmapi_pool_limit(pool, config->nmax);
        if (before != config->nmax) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, config->server,
                         "CRM1105: DBDMax is %d for mod_dbd, but %d for "
                         "mod_crmapi, which uses %d from now on%s",
                         config->nmax, before, config->nmax, pool->name);
        }
    }
    return APR_SUCCESS;
}

void crmapi_dbd_register(void)
{
    APR_OPTIONAL_HOOK(dbd, post_connect, post_connect, NULL, NULL,
                      APR_HOOK_LAST);
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_FIRST);
}

static crm_error_t *unavailable(apr_pool_t *p)
{
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, p);
}

/* Return the error of REQUEST, which got no connection in time. */
static crm_error_t *give_up(const crmapi_request_t *request, apr_pool_t *p)
{
    const crmapi_pool_t *pool = request->config->pool;

    if (!request->answered) {
        if (crmapi_news(pool->busy_news, 1, CRMAPI_POOL_LOG_AGAIN)) {
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, request->r,
                          "CRM1303: none of the %d connections of the process "
                          "became free in time, so requests are answered "
                          "503: raise DBDMax, or see what they wait for "
                          "(%s)%s", pool->max, request->id, pool->name);
        }
    }
    return unavailable(p);
}

/* Return whether POOL's schema need not be checked at NOW: it was valid a short
 * time ago, and no error was logged since. After an error, the next request
 * that gets a connection checks the schema and so logs the end of the outage;
 * otherwise a second outage would not be logged. */
static int trusts_schema(const crmapi_pool_t *pool, apr_time_t now)
{
    const crmapi_news_t *news = pool->state_news;
    apr_int64_t seen = __atomic_load_n(&pool->schema_seen, __ATOMIC_RELAXED);

    if (!seen || now - seen >= CRMAPI_SCHEMA_TRUST) {
        return 0;
    }
    return __atomic_load_n(&news->state, __ATOMIC_ACQUIRE) == CRMAPI_POOL_READY
           || now - __atomic_load_n(&news->at, __ATOMIC_ACQUIRE)
              < REPORT_PAUSE;
}

crm_error_t *crmapi_schema_check(crmapi_pool_t *pool, crm_conn_t *conn,
                                 const server_rec *s, apr_pool_t *p)
{
    crm_schema_t schema;
    const char *fault;
    apr_time_t now;

    CRM_ERR(crm_schema_read(&schema, conn, p));
    __atomic_store_n(&pool->dialect, schema.distributed ? 2 : 1,
                     __ATOMIC_RELAXED);
    fault = crm_schema_fault(&schema, "mod_crmapi", p);
    if (fault) {
        __atomic_store_n(&pool->schema_seen, 0, __ATOMIC_RELAXED);
        crmapi_pool_report(pool, CRMAPI_POOL_SCHEMA
                           + (apr_uint32_t)schema.number, APLOG_ERR, s,
                           apr_pstrcat(p, schema.number ? "CRM1302: "
                                       : "CRM1301: ", fault,
                                       "; requests are answered 503", NULL));
        return unavailable(p);
    }
    now = crm_time_monotonic();
    __atomic_store_n(&pool->schema_seen, now, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->health->served, now, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->health->verdict, CRMAPI_USABLE, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->health->at, now, __ATOMIC_RELEASE);
    crmapi_pool_report(pool, CRMAPI_POOL_READY, APLOG_NOTICE, s,
                       "CRM1304: the database is ready now");
    return NULL;
}

/* Check the schema of CONN, REQUEST's, unless it was checked a short time ago.
 * While it is not valid, every request checks it, so that the next one after a
 * migration is served. */
static crm_error_t *check_schema(crmapi_request_t *request, crm_conn_t *conn,
                                 apr_pool_t *p)
{
    crmapi_pool_t *pool = request->config->pool;

    if (trusts_schema(pool, crm_time_monotonic())) {
        return NULL;
    }
    return crmapi_schema_check(pool, conn, request->r->server, p);
}

/* Return a connection of POOL, in which the caller has a place, for S; NULL if there is
 * none. WAIT: how long to wait for others, and TIME: for the database, before mod_dbd
 * is asked. */
static ap_dbd_t *open_in_time(crmapi_pool_t *pool, apr_interval_time_t wait,
                              apr_interval_time_t time, server_rec *s,
                              apr_pool_t *p)
{
    apr_time_t now = crm_time_monotonic();
    crmapi_turn_t turn = crmapi_turn_take(pool, now + wait, now + time, p);
    ap_dbd_t *dbd = turn ? dbd_functions.open(p, s) : NULL;

    if (turn == CRMAPI_TURN_MINE) {
        crmapi_turn_end(pool, dbd != NULL);
    }
    if (!dbd && !__atomic_load_n(&pool->made, __ATOMIC_RELAXED)) {
        __atomic_store_n(&pool->failing, 1, __ATOMIC_RELAXED);
    }
    return dbd;
}

int crmapi_dbd_borrow(ap_dbd_t **dbd_p, crmapi_pool_t *pool, apr_pool_t *p)
{
    server_rec *s = __atomic_load_n(&pool->opened, __ATOMIC_ACQUIRE);
    apr_interval_time_t waited;

    *dbd_p = NULL;
    if (!s) {
        return 1;
    }
    if (!crmapi_pool_enter(&waited, pool, 0)) {
        return 0;
    }
    *dbd_p = open_in_time(pool, BORROW_WAIT, BORROW_WAIT, s, p);
    if (!*dbd_p) {
        crmapi_pool_leave(pool, 0);
    }
    return 1;
}

void crmapi_dbd_return(ap_dbd_t *dbd, crmapi_pool_t *pool, int served)
{
    dbd_functions.close(pool->opened, dbd);
    crmapi_pool_leave(pool, served);
}

/* Set *CONN_P to the connection DBD of REQUEST, ready for statements. */
static crm_error_t *adopt(crm_conn_t **conn_p, crmapi_request_t *request,
                          ap_dbd_t *dbd, apr_pool_t *p)
{
    const crm_conn_options_t options = {
        .named_statements = (crm_names_t)request->config->named_statements,
        .generic_plans = 1,
        .timeout = request->config->database_timeout};
    PGconn *pg = apr_dbd_native_handle(dbd->driver, dbd->handle);
    crm_error_t *error;

    error = crm_conn_adopt(conn_p, pg, &options, dbd->pool, p);
    if (!error) {
        error = check_schema(request, *conn_p, p);
    }
    if (error && error->log) {
        crmapi_outage_tell(request->config->pool,
                           apr_pstrcat(p, error->log, " (", request->id, ")",
                                       NULL), APLOG_ERR, request->r->server, p);
        error->log = NULL;
    }
    return error;
}

/* Release the connection of the request DATA. This is also a cleanup of the
 * request's pool: a prefork child that ends destroys its pools at once, and
 * mod_dbd must have its connections back before that. */
static apr_status_t give_back(void *data)
{
    crmapi_request_t *request = data;

    dbd_functions.close(request->r->server, request->dbd);
    request->dbd = NULL;
    crmapi_pool_leave(request->config->pool, !request->dbd_failed);
    return APR_SUCCESS;
}

/* Return how long REQUEST may wait for a connection now. It has waited since
 * SINCE. */
static apr_interval_time_t wait_left(const crmapi_request_t *request,
                                     apr_time_t since)
{
    apr_interval_time_t limit = request->config->database_wait, left;

    if (request->answered && limit > CRM_TOUCH_WAIT) {
        limit = CRM_TOUCH_WAIT;
    }
    left = limit - (crm_time_monotonic() - since);
    return left < 0 ? 0 : left;
}

int crmapi_distributed(void *baton)
{
    const crmapi_request_t *request = baton;

    return __atomic_load_n(&request->config->pool->dialect, __ATOMIC_RELAXED)
           - 1;
}

/* Take a place in the pool of REQUEST, which has waited since SINCE. Return 0 if none
 * became free in time. */
static int enter(const crmapi_request_t *request, apr_time_t since)
{
    apr_interval_time_t waited;
    int entered = crmapi_pool_enter(&waited, request->config->pool,
                                    wait_left(request, since));

    if (!request->answered) {
        crmapi_metrics_wait(request->config, waited, entered);
    }
    return entered;
}

/* Set *DBD_P to a connection for REQUEST, which has waited since SINCE. If the
 * database gives none, set *REFUSED_P and wait for one of those that this process
 * has. */
static crm_error_t *open_connection(ap_dbd_t **dbd_p, int *refused_p,
                                    const crmapi_request_t *request,
                                    apr_time_t since, apr_pool_t *p)
{
    crmapi_pool_t *pool = request->config->pool;
    server_rec *s = request->r->server;

    *refused_p = 0;
    while (enter(request, since)) {
        *dbd_p = open_in_time(pool, wait_left(request, since),
                              request->config->database_timeout, s, p);
        if (*dbd_p) {
            return NULL;
        }
        *refused_p = 1;
        if (!crmapi_pool_refuse(pool)) {
            break;
        }
    }
    if (!*refused_p) {
        return give_up(request, p);
    }
    crmapi_outage_explain(pool, s, p);
    return unavailable(p);
}

crm_error_t *crmapi_acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *p)
{
    crmapi_request_t *request = baton;
    crmapi_pool_t *pool = request->config->pool;
    crm_error_t *error;
    ap_dbd_t *dbd;
    int refused;

    if (pool->missing) {
        crmapi_pool_report_missing(pool, request->r->server, p);
        return unavailable(p);
    }
    CRM_ERR(open_connection(&dbd, &refused, request, since, p));
    request->dbd = dbd;
    apr_pool_cleanup_register(request->r->pool, request, give_back,
                              apr_pool_cleanup_null);
    *conn_p = NULL;
    error = adopt(conn_p, request, dbd, p);
    request->dbd_failed = error != NULL;
    __atomic_store_n(&pool->failing, error != NULL, __ATOMIC_RELAXED);
    if (error) {
        crmapi_release(*conn_p, request);
        *conn_p = NULL;
    }
    else if (refused) {
        crmapi_outage_few(pool, *conn_p, request->r->server, p);
    }
    return error;
}

void crmapi_release(crm_conn_t *conn, void *baton)
{
    crmapi_request_t *request = baton;

    (void)conn;
    apr_pool_cleanup_run(request->r->pool, request, give_back);
}

int crmapi_add_waiting(int change, void *baton)
{
    const crmapi_request_t *request = baton;

    return crmapi_pool_add_waiting(request->config->pool, change);
}
