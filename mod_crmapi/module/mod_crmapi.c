/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.c: the module's record and hooks */
#include "mod_crmapi.h"

#include "ap_mpm.h"
#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"

int crmapi_is_ours(const char *path)
{
    static const size_t len = sizeof(CRM_API_BASE) - 1;

    return path && !strncmp(path, CRM_API_BASE, len)
           && (!path[len] || strchr("/?# ", path[len]));
}

/* Return whether R is for the API. */
static int is_api(const request_rec *r)
{
    return crmapi_config(r->server)->enabled == 1 && crmapi_is_ours(r->uri);
}

/* What is below /api/v1 is no file: no other module is to look for one. */
static int translate_name(request_rec *r)
{
    if (!is_api(r)) {
        return DECLINED;
    }
    r->handler = "crmapi";
    crmapi_request_id(r);
    return OK;
}

static int map_to_storage(request_rec *r)
{
    return is_api(r) ? OK : DECLINED;
}

/* Return why CONFIG's server cannot serve anything, or NULL. */
static const char *what_is_missing(const crmapi_config_t *config)
{
    if (!ap_find_linked_module("mod_dbd.c")) {
        return "CRM1101: mod_dbd is not loaded: add LoadModule dbd_module";
    }
    if (!config->database.driver) {
        return "CRM1102: there is no DBDriver: add \"DBDriver pgsql\" and "
               "DBDParams";
    }
    if (strcasecmp(config->database.driver, "pgsql")) {
        return "CRM1103: DBDriver is not pgsql";
    }
    return NULL;
}

/* Make CONFIG of S ready to serve with LIMIT. */
static void complete_server(crmapi_config_t *config, server_rec *s,
                            apr_pool_t *pconf)
{
    crm_settings_t *settings = &config->service.settings;

    crmapi_database_find(&config->database, s, pconf);
    config->missing = what_is_missing(config);
    settings->key_prefix = config->key_prefix;
    settings->workspace = config->workspace;
    settings->limits[CRM_LIMIT_READ] = (apr_uint32_t)config->read_limit;
    settings->limits[CRM_LIMIT_WRITE] = (apr_uint32_t)config->write_limit;
    settings->realm = config->database.realm;
    settings->request_id_in_database = config->request_id_in_database;
    config->service.acquire = crmapi_acquire;
    config->service.release = crmapi_release;
    config->service.read_body = crmapi_read_body;
    if (config->missing) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "%s; the API answers 503 "
                     "until then", config->missing);
    }
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *main_server)
{
    crm_limit_t *limit = NULL;
    const char *wrong;
    int enabled = 0;

    (void)plog;
    for (server_rec *s = main_server; s; s = s->next) {
        crmapi_config_complete(crmapi_config(s));
        enabled |= crmapi_config(s)->enabled;
    }
    if (!enabled
        || ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    wrong = crmapi_shm_create(&limit, main_server, ptemp);
    if (wrong) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, main_server, "%s", wrong);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    crmapi_status_init(main_server, limit);
    for (server_rec *s = main_server; s; s = s->next) {
        crmapi_config(s)->service.limit = limit;
        if (crmapi_config(s)->enabled) {
            complete_server(crmapi_config(s), s, pconf);
        }
    }
    return OK;
}

static void child_init(apr_pool_t *pchild, server_rec *main_server)
{
    const char *wrong = NULL;
    int enabled = 0;

    for (server_rec *s = main_server; s; s = s->next) {
        enabled |= crmapi_config(s)->enabled;
    }
    if (!enabled) {
        return;
    }
    wrong = crm_api_init(pchild);
    if (wrong) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, 0, main_server, "%s", wrong);
    }
    crmapi_gates_create(pchild, main_server);
}

static void register_hooks(apr_pool_t *p)
{
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_translate_name(translate_name, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(crmapi_handler, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(crmapi_log_transaction, NULL, NULL,
                            APR_HOOK_LAST);
    ap_hook_insert_error_filter(crmapi_insert_error_filter, NULL, NULL,
                                APR_HOOK_LAST);
    ap_hook_insert_filter(crmapi_insert_filter, NULL, NULL, APR_HOOK_LAST);
    crmapi_error_register();
    crmapi_status_register(p);
}

AP_DECLARE_MODULE(crmapi) = {
    STANDARD20_MODULE_STUFF,
    NULL,
    NULL,
    crmapi_config_create,
    crmapi_config_merge,
    crmapi_commands,
    register_hooks,
#if defined(AP_MODULE_FLAG_NONE)
    AP_MODULE_FLAG_NONE
#endif
};
