/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_outage.c: what error_log says when a database cannot be used: one
 * line with host, user and cause, instead of mod_dbd's for each request and
 * process */
#include "mod_crmapi_outage.h"

#include <stdlib.h>

#include "apr_strings.h"

#include "http_config.h"
#include "http_log.h"

#include "crm_hosts.h"
#include "crm_probe.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_usable.h"

APLOG_USE_MODULE(crmapi);

#define CANNOT "CRM1305: the database cannot be used, so requests are answered 503: "

/* mod_dbd has no message above APLOG_CRIT. */
#define QUIET APLOG_ALERT

/* How long libpq waits for each host, unless DBDParams has a connect_timeout or the
 * environment says it. Its own default is to wait for ever. */
#define CONNECT_SECONDS "5"

/* ---- mod_dbd's log level -------------------------------------------------- */

/* Set the level of S for the module INDEX to LEVEL. Servers may share a table of
 * levels, so S gets its own, in PCONF. */
static void set_level(server_rec *s, int index, int level, apr_pool_t *pconf)
{
    struct ap_logconf own = s->log;

    own.module_levels = NULL;
    for (module **m = ap_loaded_modules; *m; m++) {
        int i = (*m)->module_index;

        if (s->log.module_levels && s->log.module_levels[i] >= 0) {
            ap_set_module_loglevel(pconf, &own, i, s->log.module_levels[i]);
        }
    }
    ap_set_module_loglevel(pconf, &own, index, level);
    s->log.module_levels = own.module_levels;
}

/* Return whether LogLevel names the module INDEX for S. */
static int has_level(const server_rec *s, int index)
{
    return s->log.module_levels && s->log.module_levels[index] >= 0;
}

void crmapi_outage_quiet(server_rec *main_server, apr_pool_t *pconf)
{
    const module *dbd = ap_find_linked_module("mod_dbd.c");

    for (server_rec *s = main_server; s && dbd; s = s->next) {
        if (crmapi_config(s)->pool && !has_level(s, dbd->module_index)) {
            set_level(s, dbd->module_index, QUIET, pconf);
        }
    }
}

/* ---- the message ---------------------------------------------------------- */

void crmapi_outage_report(const crmapi_pool_t *pool, int checked,
                          const char *cause, const server_rec *s, apr_pool_t *p)
{
    crmapi_pool_report(pool, CRMAPI_POOL_UNREACHABLE, APLOG_ERR, s,
                       apr_pstrcat(p, checked ? "CRM1305: the database does not "
                                   "answer a check of it: " : CANNOT,
                                   cause ? cause : "no answer", NULL));
}

/* Return, in P, why there is no connection to POOL's database; NULL if there is one
 * now. */
static const char *find_cause(const crmapi_pool_t *pool, apr_pool_t *p)
{
    crm_probe_t probe;

    crm_probe_open(&probe, pool->settings->params, "crmapi health",
                   CRMAPI_CHECK_TIME, p);
    PQfinish(probe.pg);
    return probe.pg ? NULL : probe.cause ? probe.cause : "no answer";
}

/* Log why POOL gives no connection; if it gives one now, TEXT, of LEVEL. */
static void explain(crmapi_pool_t *pool, const char *text, int level,
                    const server_rec *s, apr_pool_t *p)
{
    const char *cause;

    if (!crmapi_pool_is_news(pool, CRMAPI_POOL_UNREACHABLE)
        || __atomic_exchange_n(&pool->explaining, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    cause = find_cause(pool, p);
    if (cause) {
        crmapi_outage_report(pool, 0, cause, s, p);
    }
    else {
        crmapi_pool_report(pool, CRMAPI_POOL_UNREACHABLE, level, s, text);
    }
    __atomic_store_n(&pool->explaining, 0, __ATOMIC_RELEASE);
}

void crmapi_outage_explain(crmapi_pool_t *pool, const server_rec *s,
                           apr_pool_t *p)
{
    explain(pool, CANNOT "mod_dbd got no connection, though there is one now; "
            "\"LogLevel dbd:error\" shows why", APLOG_ERR, s, p);
}

void crmapi_outage_tell(crmapi_pool_t *pool, const char *text, int level,
                        const server_rec *s, apr_pool_t *p)
{
    if (crm_hosts_tells(text)) {
        crmapi_pool_report(pool, CRMAPI_POOL_UNREACHABLE, level, s, text);
    }
    else {
        explain(pool, text, level, s, p);
    }
}

void crmapi_outage_few(const crmapi_pool_t *pool, const crm_conn_t *conn,
                       const server_rec *s, apr_pool_t *p)
{
    const char *cause;

    if (!crmapi_pool_refusal_is_news(pool, "CRM1306")) {
        return;
    }
    cause = find_cause(pool, p);
    if (cause && crm_conn_alive(conn)) {    /* else it is an outage */
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s, "CRM1306: the database gives "
                     "no more connections, so requests wait for those that this "
                     "process has: %s%s", cause, pool->name);
    }
}

/* ---- child_init ----------------------------------------------------------- */

/* The main server's levels before mod_dbd's child_init. */
static signed char *levels_before;

/* The hook before mod_dbd's, which logs for the main server that a connection
 * failed, whichever server it is for, with the level crit, and makes connections while
 * it holds a lock: a server that says nothing would end all requests. Nothing else runs
 * in this process yet. */
static void before_dbd(apr_pool_t *pchild, server_rec *main_server)
{
    const module *dbd = ap_find_linked_module("mod_dbd.c");

    setenv("PGCONNECT_TIMEOUT", CONNECT_SECONDS, 0);
    levels_before = main_server->log.module_levels;
    if (dbd && crmapi_pools_count()
        && !has_level(main_server, dbd->module_index)) {
        set_level(main_server, dbd->module_index, QUIET, pchild);
    }
}

/* The hook after it: say what mod_dbd could not. */
static void after_dbd(apr_pool_t *pchild, server_rec *main_server)
{
    main_server->log.module_levels = levels_before;
    for (int i = 0; i < crmapi_pools_count(); i++) {
        crmapi_pool_t *pool = crmapi_pool_at(i);

        if (!pool->missing && pool->settings->persist
            && pool->settings->min > 0
            && !__atomic_load_n(&pool->opened, __ATOMIC_RELAXED)) {
            crmapi_outage_explain(pool, main_server, pchild);
        }
    }
}

void crmapi_outage_register(void)
{
    static const char *const dbd[] = {"mod_dbd.c", NULL};

    ap_hook_child_init(before_dbd, NULL, dbd, APR_HOOK_FIRST);
    ap_hook_child_init(after_dbd, dbd, NULL, APR_HOOK_LAST);
}
