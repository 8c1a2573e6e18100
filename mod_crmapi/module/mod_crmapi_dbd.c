/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_dbd.c: connections from mod_dbd, for as long as they are needed */
#include "mod_crmapi.h"

#include "apr_hash.h"
#include "apr_optional.h"
#include "apr_strings.h"
#include "apr_thread_cond.h"
#include "apr_thread_mutex.h"

#include "ap_mpm.h"
#include "util_md5.h"

#include "crm_migrate.h"

#define DBD_MAX_DEFAULT 10      /* mod_dbd's DBDMax */
#define COMPLAIN_EVERY apr_time_from_sec(60)

struct crmapi_gate_t {
    crmapi_gate_t *next;
    apr_uint32_t realm;
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *freed;
    int used;
    int max;
};

/* Of this process. */
static crmapi_gate_t *gates;
static APR_OPTIONAL_FN_TYPE(ap_dbd_open) *dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) *dbd_close;

/* ---- what mod_dbd has been told ---- */

/* Return the arguments of the last directive NAME among LIST and what
 * <IfModule> and the like hold of it, or VALUE if there is none. */
static const char *directive_in(const ap_directive_t *list, const char *name,
                                const char *value)
{
    for (; list; list = list->next) {
        if (!strcasecmp(list->directive, name)) {
            value = list->args;
        }
        else if (!strncasecmp(list->directive, "<If", 3)) {
            value = directive_in(list->first_child, name, value);
        }
    }
    return value;
}

/* Return the <VirtualHost> among LIST that made S, or NULL. */
static const ap_directive_t *find_vhost(const ap_directive_t *list,
                                        const server_rec *s)
{
    for (; list; list = list->next) {
        const ap_directive_t *found = NULL;

        if (!strcasecmp(list->directive, "<VirtualHost")) {
            found = s->defn_name && list->filename
                    && list->line_num == (int)s->defn_line_number
                    && !strcmp(list->filename, s->defn_name) ? list : NULL;
        }
        else if (!strncasecmp(list->directive, "<If", 3)) {
            found = find_vhost(list->first_child, s);
        }
        if (found) {
            return found;
        }
    }
    return NULL;
}

/* Return the arguments of the directive NAME that holds for S, or NULL. */
static const char *directive_of(const server_rec *s, const char *name)
{
    const char *value = directive_in(ap_conftree, name, NULL);
    const ap_directive_t *vhost = s->is_virtual
                                  ? find_vhost(ap_conftree, s) : NULL;

    return vhost ? directive_in(vhost->first_child, name, value) : value;
}

void crmapi_database_find(crmapi_database_t *database, const server_rec *s,
                          apr_pool_t *pool)
{
    const char *params = directive_of(s, "DBDParams");
    const char *max = directive_of(s, "DBDMax");
    const char *text;
    apr_ssize_t len = APR_HASH_KEY_STRING;

    database->driver = directive_of(s, "DBDriver");
    database->max = max ? atoi(max) : DBD_MAX_DEFAULT;
    if (database->max < 1) {
        database->max = DBD_MAX_DEFAULT;
    }
    text = apr_pstrcat(pool, database->driver ? database->driver : "", " ",
                       params ? params : "", NULL);
    database->realm = apr_hashfunc_default(text, &len);
}

/* ---- gates ---- */

static crmapi_gate_t *gate_of(const crmapi_database_t *database,
                              apr_pool_t *pchild)
{
    crmapi_gate_t *gate;
    int threaded = 0;

    for (gate = gates; gate; gate = gate->next) {
        if (gate->realm == database->realm && gate->max == database->max) {
            return gate;
        }
    }
    gate = apr_pcalloc(pchild, sizeof(*gate));
    gate->realm = database->realm;
    gate->max = database->max;
    ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded);
    if (threaded) {
        apr_thread_mutex_create(&gate->mutex, APR_THREAD_MUTEX_DEFAULT,
                                pchild);
        apr_thread_cond_create(&gate->freed, pchild);
    }
    gate->next = gates;
    gates = gate;
    return gate;
}

void crmapi_gates_create(apr_pool_t *pchild, server_rec *main_server)
{
    gates = NULL;
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
    for (server_rec *s = main_server; s; s = s->next) {
        crmapi_config_t *config = crmapi_config(s);

        if (config->enabled == 1) {
            config->gate = gate_of(&config->database, pchild);
        }
    }
}

/* Count one more connection in use, waiting until TIMEOUT for one to be given
 * back; return 0 if none is. */
static int enter(crmapi_gate_t *gate, apr_interval_time_t timeout)
{
    apr_time_t end = apr_time_now() + timeout;
    int entered;

    if (!gate->mutex) {
        gate->used++;
        return 1;
    }
    apr_thread_mutex_lock(gate->mutex);
    while (gate->used >= gate->max) {
        apr_interval_time_t left = end - apr_time_now();

        if (left <= 0) {
            break;
        }
        apr_thread_cond_timedwait(gate->freed, gate->mutex, left);
    }
    entered = gate->used < gate->max;
    gate->used += entered;
    apr_thread_mutex_unlock(gate->mutex);
    return entered;
}

static void leave(crmapi_gate_t *gate)
{
    if (!gate->mutex) {
        gate->used--;
        return;
    }
    apr_thread_mutex_lock(gate->mutex);
    gate->used--;
    apr_thread_cond_signal(gate->freed);
    apr_thread_mutex_unlock(gate->mutex);
}

void crmapi_gates_stats(int *used_p, int *max_p)
{
    *used_p = *max_p = 0;
    for (const crmapi_gate_t *gate = gates; gate; gate = gate->next) {
        *used_p += gate->used;
        *max_p += gate->max;
    }
}

/* ---- taking and giving back ---- */

/* Say WHAT about the database, unless that was said lately. */
static crm_error_t *not_ready(crmapi_request_t *request, const char *what,
                              apr_pool_t *pool)
{
    crmapi_config_t *config = request->config;
    crm_error_t *error = crm_error_create(CRM_E_UNAVAILABLE, NULL, pool);
    apr_time_t now = apr_time_now();

    if (now - config->complained > COMPLAIN_EVERY) {
        config->complained = now;
        error->log = what;
    }
    return error;
}

/* Check that CONN's database has the schema that this module was made for. */
static crm_error_t *check_schema(crmapi_request_t *request, crm_conn_t *conn,
                                 apr_pool_t *pool)
{
    crmapi_config_t *config = request->config;
    int version;

    if (config->ready) {
        return NULL;
    }
    CRM_ERR(crm_migrate_version(&version, conn, pool));
    if (version != CRM_SCHEMA_VERSION) {
        return not_ready(request, apr_psprintf(pool, version
            ? "CRM1302: the database has schema version %d, this module "
              "expects %d: run crmapictl migrate with the same release, or "
              "install the module that goes with it"
            : "CRM1301: the database is not migrated: run crmapictl migrate",
            version, CRM_SCHEMA_VERSION), pool);
    }
    config->ready = 1;
    config->complained = 0;
    return NULL;
}

/* Take a connection out of mod_dbd's pool and make it ours. */
static crm_error_t *take(crm_conn_t **conn_p, crmapi_request_t *request,
                         apr_pool_t *pool)
{
    const crm_conn_options_t options = {request->config->named_statements};
    request_rec *r = request->r;
    ap_dbd_t *dbd = dbd_open(r->pool, r->server);

    if (!dbd) {
        /* mod_dbd has said why */
        return crm_error_create(CRM_E_UNAVAILABLE, NULL, pool);
    }
    request->dbd = dbd;
    CRM_ERR(crm_conn_adopt(conn_p,
                           apr_dbd_native_handle(dbd->driver, dbd->handle),
                           &options, dbd->pool, pool));
    return check_schema(request, *conn_p, pool);
}

static void give_back(crmapi_request_t *request)
{
    if (request->dbd) {
        dbd_close(request->r->server, request->dbd);
        request->dbd = NULL;
    }
    leave(request->config->gate);
}

crm_error_t *crmapi_acquire(crm_conn_t **conn_p, void *baton,
                            apr_pool_t *pool)
{
    crmapi_request_t *request = baton;
    crmapi_config_t *config = request->config;
    crm_error_t *error;

    if (!dbd_open || !dbd_close || !config->gate) {
        return crm_error_create(CRM_E_UNAVAILABLE, NULL, pool);
    }
    if (!enter(config->gate, request->no_wait ? 0 : config->database_wait)) {
        return crm_error_logf(CRM_E_UNAVAILABLE, pool, "CRM1303: all %d "
                              "database connections of this process stayed "
                              "busy: raise DBDMax", config->gate->max);
    }
    error = take(conn_p, request, pool);
    if (error) {
        *conn_p = NULL;
        give_back(request);
    }
    return error;
}

void crmapi_release(crm_conn_t *conn, void *baton)
{
    (void)conn;
    give_back(baton);
}
