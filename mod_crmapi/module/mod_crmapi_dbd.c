/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_dbd.c: connections from mod_dbd, for as long as they are needed */
#include "mod_crmapi.h"

#include <string.h>

#include "apr_optional.h"
#include "apr_shm.h"
#include "apr_strings.h"
#include "apr_thread_cond.h"
#include "apr_thread_mutex.h"

#include "ap_mpm.h"
#include "http_main.h"
#include "mod_dbd.h"

#include "crm_migrate.h"

APLOG_USE_MODULE(crmapi);

/* How long a database that had the right schema is believed to have it. */
#define SCHEMA_TRUST apr_time_from_sec(5)

/* After how long what has not changed is logged again. */
#define LOG_AGAIN apr_time_from_sec(60)

/* A database that has given no connection back for so long hangs. */
#define HANGS_AFTER apr_time_from_msec(500)

/* States of a database for the log: these, or another one for each version of
 * the schema. */
enum { READY, MISCONFIGURED, UNREACHABLE, SCHEMA_OF };

struct crmapi_gate_t {
    crmapi_news_t *state_news;  /* what was logged of its state; waits are told */
    crmapi_news_t *busy_news;   /* apart: they come and go */
    const dbd_cfg_t *config;    /* mod_dbd's; NULL: not loaded */
    const char *missing;        /* why it cannot be used at all, or NULL */
    const char *name;           /* for the log: " (dbname=crm)", or "" */
    apr_uint32_t realm;
    int max;                    /* connections in a process; 0: any number */
    int share;                  /* threads, if it hangs; 0: any number */
    apr_thread_mutex_t *mutex;  /* over what follows */
    apr_thread_cond_t *freed;
    int used;
    int waiting;
    apr_time_t moved;           /* when one was given back, or the first taken */
    apr_time_t schema_seen;     /* when the right schema was seen last */
};

static apr_array_header_t *gates;       /* of crmapi_gate_t * */
static APR_OPTIONAL_FN_TYPE(ap_dbd_open) *dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) *dbd_close;

void crmapi_gates_clear(apr_pool_t *pconf)
{
    gates = apr_array_make(pconf, 4, sizeof(crmapi_gate_t *));
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
}

/* Return mod_dbd's configuration of S, NULL if there is none. What mod_dbd
 * keeps for a server is a struct of its own that begins with a pointer to the
 * dbd_cfg_t of its header. That names the server (the main one, where a vhost
 * says nothing of its own), which tells whether all this is still so. */
static const dbd_cfg_t *dbd_config(const server_rec *s)
{
    module *dbd = ap_find_linked_module("mod_dbd.c");
    dbd_cfg_t *const *config = dbd && dbd_open && dbd_close
                               ? ap_get_module_config(s->module_config, dbd)
                               : NULL;

    return config && *config
           && ((*config)->server == s || (*config)->server == ap_server_conf)
           ? *config : NULL;
}

/* Return why CONFIG cannot serve the API, in POOL, or NULL. */
static const char *find_missing(const dbd_cfg_t *config, apr_pool_t *pool)
{
    if (!config) {
        return "CRM1101: mod_dbd is not loaded: add LoadModule dbd_module, "
               "DBDriver pgsql and DBDParams";
    }
    if (*config->name == '[') {         /* mod_dbd's "[DBDriver unset]" */
        return "CRM1102: there is no DBDriver: add DBDriver pgsql and "
               "DBDParams";
    }
    if (strcmp(config->name, "pgsql")) {
        return apr_psprintf(pool, "CRM1103: DBDriver is %s, but must be "
                            "pgsql",
                            config->name);
    }
    return NULL;
}

/* Return a hash (FNV-1a) of driver and parameters of CONFIG: the same for the
 * same database over restarts. The parameters may hold a password. */
static apr_uint32_t realm_of(const dbd_cfg_t *config)
{
    apr_uint32_t hash = 2166136261U;

    for (const char *c = config->name; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    }
    for (const char *c = config->params; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    }
    return hash;
}

/* Return how CONFIG's database is called in the log, in POOL: by that of its
 * parameters which says where it is, never by a password. */
static const char *name_of(const dbd_cfg_t *config, apr_pool_t *pool)
{
    static const char *const keywords[] = {
        "service", "host", "hostaddr", "port", "dbname", NULL
    };
    PQconninfoOption *options = PQconninfoParse(config->params, NULL);
    const char *name = NULL;

    for (PQconninfoOption *o = options; o && o->keyword; o++) {
        for (const char *const *word = keywords; *word && o->val; word++) {
            if (!strcmp(*word, o->keyword)) {
                name = apr_pstrcat(pool, name ? name : "", name ? " " : " (",
                                   *word, "=", o->val, NULL);
            }
        }
    }
    PQconninfoFree(options);
    return name ? apr_pstrcat(pool, name, ")", NULL) : "";
}

/* Do A and B share mod_dbd's pool of connections? */
static int same_pool(const dbd_cfg_t *a, const dbd_cfg_t *b)
{
    if (!a || !b) {
        return a == b;
    }
    return !strcmp(a->name, b->name) && !strcmp(a->params, b->params)
           && !a->persist == !b->persist && a->nmin == b->nmin
           && a->nkeep == b->nkeep && a->nmax == b->nmax
           && a->exptime == b->exptime;
}

/* Return the database of CONFIG, made in POOL if it is the first of it. */
static crmapi_gate_t *gate_of(const dbd_cfg_t *config, apr_pool_t *pool)
{
    crmapi_gate_t *gate;

    for (int i = 0; i < gates->nelts; i++) {
        gate = APR_ARRAY_IDX(gates, i, crmapi_gate_t *);
        if (same_pool(gate->config, config)) {
            return gate;
        }
    }
    gate = apr_pcalloc(pool, sizeof(*gate));
    gate->config = config;
    gate->missing = find_missing(config, pool);
    gate->name = "";
    if (!gate->missing) {
        gate->name = name_of(config, pool);
        gate->realm = realm_of(config);
        gate->max = config->persist ? config->nmax : 0;
    }
    APR_ARRAY_PUSH(gates, crmapi_gate_t *) = gate;
    return gate;
}

void crmapi_gate_find(crmapi_gate_t **gate_p, crm_settings_t *settings,
                      const server_rec *s, apr_pool_t *pconf)
{
    *gate_p = gate_of(dbd_config(s), pconf);
    settings->realm = (*gate_p)->realm;
}

/* The memory goes with the configuration: after a restart what is wrong is said
 * again. */
const char *crmapi_gates_share(apr_pool_t *pconf, apr_pool_t *ptemp)
{
    apr_size_t size = 2 * (apr_size_t)gates->nelts * sizeof(crmapi_news_t);
    crmapi_news_t *news;
    apr_status_t status;
    apr_shm_t *shm;

    status = apr_shm_create(&shm, size, NULL, pconf);
    if (status) {
        return apr_psprintf(ptemp, "CRM1407: no shared memory for the states"
                            " of databases: %pm", &status);
    }
    news = apr_shm_baseaddr_get(shm);
    memset(news, 0, size);
    for (int i = 0; i < gates->nelts; i++) {
        crmapi_gate_t *gate = APR_ARRAY_IDX(gates, i, crmapi_gate_t *);

        gate->state_news = news++;
        gate->busy_news = news++;
    }
    return NULL;
}

/* Log TEXT about GATE, which is in STATE, if that is news. */
static void report(const crmapi_gate_t *gate, apr_uint32_t state,
                   int level, const server_rec *s, const char *text)
{
    if (crmapi_status_news(gate->state_news, state,
                           state == READY ? 0 : LOG_AGAIN)) {
        ap_log_error(APLOG_MARK, level, 0, s, "%s%s", text, gate->name);
    }
}

/* Report that GATE cannot be used as it is configured. */
static void report_missing(const crmapi_gate_t *gate,
                           const server_rec *s, apr_pool_t *pool)
{
    report(gate, MISCONFIGURED, APLOG_ERR, s,
           apr_pstrcat(pool, gate->missing, "; the API answers 503 until "
                       "then", NULL));
}

void crmapi_gates_complain(const server_rec *main_server, apr_pool_t *ptemp)
{
    for (int i = 0; i < gates->nelts; i++) {
        crmapi_gate_t *gate = APR_ARRAY_IDX(gates, i, crmapi_gate_t *);

        if (gate->missing) {
            report_missing(gate, main_server, ptemp);
        }
    }
}

/* Return how many threads of this process requests for a database that hangs
 * may hold, so that others are left to those for other databases; 0: any
 * number. */
static int share_of_threads(void)
{
    int threads = 0;

    if (gates->nelts < 2
        || ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads) != APR_SUCCESS) {
        return 0;
    }
    return threads / 2;
}

apr_status_t crmapi_gates_create(apr_pool_t *pchild)
{
    int share = share_of_threads();

    for (int i = 0; i < gates->nelts; i++) {
        crmapi_gate_t *gate = APR_ARRAY_IDX(gates, i, crmapi_gate_t *);
        apr_status_t status;

        gate->share = share;
        status = apr_thread_mutex_create(&gate->mutex,
                                         APR_THREAD_MUTEX_DEFAULT, pchild);
        if (!status) {
            status = apr_thread_cond_create(&gate->freed, pchild);
        }
        if (status) {
            return status;
        }
    }
    return APR_SUCCESS;
}

static int is_full(const crmapi_gate_t *gate)
{
    return gate->max && gate->used >= gate->max;
}

/* Return whether GATE's database hangs and requests for it, COUNT of them, hold
 * more than their share of the threads. */
static int is_crowded(const crmapi_gate_t *gate, int count)
{
    return gate->share && count > gate->share && gate->used
           && apr_time_now() - gate->moved > HANGS_AFTER;
}

/* Wait at most WAIT for GATE to have a free connection. Whoever comes
 * while others wait, waits behind them. Its mutex is held. */
static void wait_free(crmapi_gate_t *gate, apr_interval_time_t wait)
{
    apr_time_t end = apr_time_now() + wait;

    if (!is_full(gate) && !gate->waiting) {
        return;
    }
    gate->waiting++;
    do {
        wait = end - apr_time_now();
        if (wait <= 0 || is_crowded(gate, gate->used + gate->waiting)) {
            break;
        }
        apr_thread_cond_timedwait(gate->freed, gate->mutex,
                                  gate->share && wait > HANGS_AFTER
                                  ? HANGS_AFTER : wait);
    } while (is_full(gate));
    gate->waiting--;
}

/* Count a connection of GATE as taken, waiting at most WAIT for one.
 * mod_dbd itself would let threads queue for ever. Return 0 if none became
 * free. */
static int enter(crmapi_gate_t *gate, apr_interval_time_t wait)
{
    int entered;

    apr_thread_mutex_lock(gate->mutex);
    wait_free(gate, wait);
    entered = !is_full(gate)
              && !is_crowded(gate, gate->used + gate->waiting + 1);
    if (entered && !gate->used) {
        gate->moved = apr_time_now();
    }
    gate->used += entered;
    if (!is_full(gate) && gate->waiting) {
        apr_thread_cond_signal(gate->freed);
    }
    apr_thread_mutex_unlock(gate->mutex);
    return entered;
}

/* Count a connection of GATE as given back; SERVED: it was one indeed. */
static void leave(crmapi_gate_t *gate, int served)
{
    apr_thread_mutex_lock(gate->mutex);
    gate->used--;
    if (served) {
        gate->moved = apr_time_now();
    }
    apr_thread_cond_signal(gate->freed);
    apr_thread_mutex_unlock(gate->mutex);
}

static crm_error_t *unavailable(apr_pool_t *pool)
{
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, pool);
}

/* Return the error of a wait for GATE that was in vain. */
static crm_error_t *give_up(const crmapi_request_t *request, apr_pool_t *pool)
{
    const crmapi_gate_t *gate = request->config->gate;

    if (!request->no_wait) {
        crmapi_status_busy();
        if (crmapi_status_news(gate->busy_news, 1, LOG_AGAIN)) {
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, request->r,
                          "CRM1303: none of the %d connections of the process "
                          "became free in time, so requests are answered "
                          "503: raise DBDMax, or see what they wait for "
                          "(%s)%s", gate->max, request->id, gate->name);
        }
    }
    return unavailable(pool);
}

/* Return what is to be logged of a database whose schema is VERSION. */
static const char *schema_text(int version, apr_pool_t *pool)
{
    if (!version) {
        return "CRM1301: the database has no schema, so requests are "
               "answered 503: run crmapictl migrate";
    }
    return apr_psprintf(pool, "CRM1302: the database's schema is version %d, "
                        "this module's is %d, so requests are answered 503: "
                        "%s", version, CRM_SCHEMA_VERSION,
                        version < CRM_SCHEMA_VERSION
                        ? "run crmapictl migrate" : "upgrade mod_crmapi");
}

/* See to it that the database of CONN, REQUEST's, has the schema of this
 * version. As long as it has not, every request looks again, so that a
 * migration is noticed at once. */
static crm_error_t *check_schema(crmapi_request_t *request, crm_conn_t *conn,
                                 apr_pool_t *pool)
{
    crmapi_gate_t *gate = request->config->gate;
    apr_time_t now = apr_time_now();
    int version;

    if (now - __atomic_load_n(&gate->schema_seen, __ATOMIC_RELAXED)
        < SCHEMA_TRUST) {
        return NULL;
    }
    CRM_ERR(crm_migrate_version(&version, conn, pool));
    if (version != CRM_SCHEMA_VERSION) {
        __atomic_store_n(&gate->schema_seen, 0, __ATOMIC_RELAXED);
        report(gate, SCHEMA_OF + (apr_uint32_t)version, APLOG_ERR,
               request->r->server, schema_text(version, pool));
        return unavailable(pool);
    }
    __atomic_store_n(&gate->schema_seen, now, __ATOMIC_RELAXED);
    report(gate, READY, APLOG_NOTICE, request->r->server,
           "CRM1304: the database is ready now");
    return NULL;
}

/* Set *CONN_P to the connection DBD, ready for statements. */
static crm_error_t *adopt(crm_conn_t **conn_p, crmapi_request_t *request,
                          ap_dbd_t *dbd, apr_pool_t *pool)
{
    crm_conn_options_t options;
    PGconn *pg = apr_dbd_native_handle(dbd->driver, dbd->handle);
    crm_error_t *error;

    options.named_statements = request->config->named_statements;
    options.timeout = request->config->database_timeout;
    error = crm_conn_adopt(conn_p, pg, &options, dbd->pool, pool);
    if (!error) {
        error = check_schema(request, *conn_p, pool);
    }
    if (error && error->log) {
        report(request->config->gate, UNREACHABLE, APLOG_ERR,
               request->r->server,
               apr_pstrcat(pool, error->log, " (", request->id, ")",
                           NULL));
        error->log = NULL;
    }
    return error;
}

/* Give the connection of the request at DATA back. This is also a cleanup of
 * the request's pool: where a prefork child is told to end, its pools go at
 * once, and mod_dbd's must find its connections in their places. */
static apr_status_t give_back(void *data)
{
    crmapi_request_t *request = data;

    dbd_close(request->r->server, request->dbd);
    request->dbd = NULL;
    leave(request->config->gate, !request->dbd_failed);
    return APR_SUCCESS;
}

crm_error_t *crmapi_acquire(crm_conn_t **conn_p, void *baton,
                            apr_pool_t *pool)
{
    crmapi_request_t *request = baton;
    crmapi_gate_t *gate = request->config->gate;
    server_rec *s = request->r->server;
    crm_error_t *error;
    ap_dbd_t *dbd;

    if (gate->missing) {
        report_missing(gate, s, pool);
        return unavailable(pool);
    }
    if (!enter(gate, request->no_wait ? 0 : request->config->database_wait)) {
        return give_up(request, pool);
    }
    dbd = dbd_open(pool, s);
    if (!dbd) {                 /* mod_dbd has logged why */
        leave(gate, 0);
        return unavailable(pool);
    }
    request->dbd = dbd;
    apr_pool_cleanup_register(request->r->pool, request, give_back,
                              apr_pool_cleanup_null);
    *conn_p = NULL;
    error = adopt(conn_p, request, dbd, pool);
    request->dbd_failed = error != NULL;
    if (error) {
        crmapi_release(*conn_p, request);
        *conn_p = NULL;
    }
    return error;
}

void crmapi_release(crm_conn_t *conn, void *baton)
{
    crmapi_request_t *request = baton;

    (void)conn;
    apr_pool_cleanup_run(request->r->pool, request, give_back);
}

void crmapi_gates_stats(int *used_p, int *max_p)
{
    *used_p = *max_p = 0;
    for (int i = 0; gates && i < gates->nelts; i++) {
        crmapi_gate_t *gate = APR_ARRAY_IDX(gates, i, crmapi_gate_t *);

        *used_p += __atomic_load_n(&gate->used, __ATOMIC_RELAXED);
        *max_p += gate->max;
    }
}
