/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.c: the module structure and its hooks */
#include "mod_crmapi.h"

#include <errno.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#include <unistd.h>
#endif

#include "apr_strings.h"

#include "http_core.h"
#include "mpm_common.h"
#include "http_protocol.h"

#include "crm_process.h"

#include "mod_crmapi_batch.h"
#include "mod_crmapi_body.h"
#include "mod_crmapi_client.h"
#include "mod_crmapi_config.h"
#include "mod_crmapi_dbd.h"
#include "mod_crmapi_directive.h"
#include "mod_crmapi_error.h"
#include "mod_crmapi_handler.h"
#include "mod_crmapi_health.h"
#include "mod_crmapi_keepalive.h"
#include "mod_crmapi_line.h"
#include "mod_crmapi_metrics.h"
#include "mod_crmapi_mount.h"
#include "mod_crmapi_outage.h"
#include "mod_crmapi_permit.h"
#include "mod_crmapi_pool.h"
#include "mod_crmapi_request.h"
#include "mod_crmapi_scrape.h"
#include "mod_crmapi_shm.h"
#include "mod_crmapi_status.h"
#include "mod_crmapi_store.h"
#include "mod_crmapi_usage.h"
#include "mod_crmapi_wait.h"

/* For all servers; NULL without CrmApiRateLimitStore. */
static crm_store_t *store;

/* Return a configuration that only S uses. A vhost without a directive of this
 * module shares MAIN_SERVER's configuration until then, but its database may be
 * another one. */
static crmapi_config_t *own_config(server_rec *s,
                                   const server_rec *main_server,
                                   apr_pool_t *pconf)
{
    crmapi_config_t *config = crmapi_config(s);

    if (s != main_server && config == crmapi_config(main_server)) {
        config = apr_pmemdup(pconf, config, sizeof(*config));
        ap_set_module_config(s->module_config, &crmapi_module, config);
    }
    return config;
}

/* Set the configuration of CONFIG's intake. */
static void complete_intake(crmapi_config_t *config, const crmapi_shm_t *shm)
{
    crm_intake_site_t *site = &config->intake;

    site->public_url = config->intake_url;
    site->twilio = config->twilio;
    site->places = shm->places;
    site->pollers = config->chat_polls;
}

/* Complete CONFIG with SHM, so that its server can serve. */
static void complete_server(crmapi_config_t *config,
                            const crmapi_shm_t *shm, apr_pool_t *pconf)
{
    crm_settings_t *settings = &config->service.settings;

    settings->key_prefix = config->key_prefix;
    settings->workspace = config->workspace;
    settings->limits[CRM_LIMIT_READ] = (apr_uint32_t)config->read_limit;
    settings->limits[CRM_LIMIT_WRITE] = (apr_uint32_t)config->write_limit;
    settings->limit_ceiling = (apr_uint32_t)config->limit_ceiling;
    settings->token_limit = (apr_uint32_t)config->intake_limit;
    settings->address_limit = (apr_uint32_t)config->address_limit;
    settings->unknown_key_limit = (apr_uint32_t)config->unknown_key_limit;
    settings->refuse_unknown = config->refuse_unknown;
    settings->request_id_in_database = config->request_id_in_database;
    settings->database_wait = config->database_wait;
    crmapi_pool_make(config, pconf);
    config->service.limit = shm->limit;
    config->service.store = store;
    config->service.keys = &config->pool->keys;
    config->service.addresses = shm->addresses;
    config->service.acquire = crmapi_acquire;
    config->service.distributed = crmapi_distributed;
    config->service.release = crmapi_release;
    config->service.add_waiting = crmapi_add_waiting;
    config->service.read_body = crmapi_read_body;
    config->service.decodes = crmapi_decodes;
    config->service.aborted = crmapi_aborted;
    config->service.client = crmapi_client;
    config->service.send = crmapi_send;
    config->service.watch = crmapi_watch;
    config->service.threads = crmapi_wait_threads;
    config->service.site = &config->intake;
    complete_intake(config, shm);
    config->mcp.origins = config->mcp_origins;
    config->mcp.tools = config->mcp_tools;
    config->service.mcp = &config->mcp;
}

/* Return whether any server from MAIN_SERVER on serves a mount. */
static int any_enabled(const server_rec *main_server)
{
    for (const server_rec *s = main_server; s; s = s->next) {
        if (crmapi_serves(crmapi_config(s))) {
            return 1;
        }
    }
    return 0;
}

/* Complete all servers from MAIN_SERVER on. A server without mounts may share
 * the pool of one with mounts. */
static void complete_servers(server_rec *main_server, const crmapi_shm_t *shm,
                             apr_pool_t *pconf)
{
    crmapi_pools_clear(pconf);
    for (server_rec *s = main_server; s; s = s->next) {
        if (crmapi_serves(crmapi_config(s))) {
            complete_server(crmapi_config(s), shm, pconf);
        }
    }
    for (server_rec *s = main_server; s; s = s->next) {
        if (!crmapi_config(s)->pool) {
            crmapi_pool_join(crmapi_config(s));
        }
    }
}

/* The check_config hook, of "httpd -t" too: what a directive alone cannot show, or
 * costs more to know. httpd ends if a hook after this one refuses to restart. */
static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *main_server)
{
    const char *problem = crmapi_store_check(main_server, ptemp);

    (void)pconf;
    (void)plog;
    for (server_rec *s = main_server; s && !problem; s = s->next) {
        problem = crmapi_mounts_overlap(s, ptemp);
    }
    if (problem) {
        ap_log_error(APLOG_MARK, APLOG_ERR | APLOG_STARTUP, 0, main_server, "%s",
                     problem);
    }
    return problem ? HTTP_INTERNAL_SERVER_ERROR : OK;
}

/* The post_config hook. It runs twice at start, the first time as a check only.
 * A module that is loaded by a graceful restart sees only the second run. */
static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *main_server)
{
    crmapi_shm_t shm;
    crm_error_t *error;
    const char *problem;

    (void)plog;
    for (server_rec *s = main_server; s; s = s->next) {
        crmapi_config_complete(own_config(s, main_server, pconf));
    }
    if (!any_enabled(main_server)
        || ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    error = crmapi_mounts_create(pconf);
    problem = error ? error->log : crmapi_shm_create(&shm, main_server, ptemp);
    if (!problem) {
        crmapi_status_init(&shm);
        crmapi_usage_init(shm.usage, apr_time_from_sec(
            crmapi_config(main_server)->usage_interval));
        problem = crmapi_metrics_create(main_server, pconf, ptemp);
    }
    if (!problem) {
        problem = crmapi_store_create(&store, main_server, shm.store, pconf);
    }
    if (!problem) {
        complete_servers(main_server, &shm, pconf);
        problem = crmapi_pools_share(&shm.keys, pconf, ptemp);
    }
    if (problem) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, main_server, "%s", problem);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    crmapi_pools_complain(main_server, ptemp);
    crmapi_outage_quiet(main_server, pconf);
    return OK;
}

/* Initialise this process for the servers from MAIN_SERVER on, in POOL. */
static void init_process(server_rec *main_server, apr_pool_t *pool)
{
    crmapi_pools_create(pool);
    if (crmapi_waits_create(crmapi_resume, pool)) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, 0, main_server, "CRM1104: cannot "
                     "create a mutex for the requests that wait; all requests "
                     "get a 503");
        crmapi_mounts_close();
        return;
    }
    crmapi_batches_create(main_server, pool);
    crmapi_metrics_open(pool);
    crmapi_usage_open(main_server, pool);
    if (store) {
        crm_store_open(store, pool);
    }
}

/* Blocks of this size are mapped, and unmapped when they are freed. */
#define MAPPED_BYTES (256 * 1024)

/* Unused memory at the end of a heap that is kept. */
#define TRIM_BYTES (1024 * 1024)

/* Let malloc() return the memory of large bodies to the system. By default,
 * glibc maps large blocks only until the first of them is freed. From then on
 * it keeps them in its heaps, of which there are eight for each processor, in
 * each process: after upserts of 2 MiB, 15 times as much stayed resident. An
 * operator's GLIBC_TUNABLES and MALLOC_ARENA_MAX have precedence. */
static void bound_memory(void)
{
#ifdef __GLIBC__
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (!getenv("GLIBC_TUNABLES") && !getenv("MALLOC_ARENA_MAX")) {
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
        mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
        mallopt(M_ARENA_MAX, processors > 2 ? (int)processors : 2);
    }
#endif
}

/* Let a crash of this process leave no core file, unless CoreDumpDirectory asks
 * for one: its memory has keys, passwords and contacts. A process that runs as
 * another user than httpd's first one is so already, but not one in a container
 * that has a single user. Children of this process, such as CGI programs, keep
 * their hard limit. */
static void leave_no_core(server_rec *main_server)
{
    if (!ap_coredumpdir_configured && crm_process_seal()) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, errno, main_server, "CRM1107: "
                     "a crash may leave a core file with keys and contacts");
    }
}

/* The child_init hook. */
static void child_init(apr_pool_t *pchild, server_rec *main_server)
{
    if (any_enabled(main_server)) {
        bound_memory();
        leave_no_core(main_server);
        init_process(main_server, pchild);
    }
}

#if AP_MODULE_MAGIC_AT_LEAST(20120211, 110)
/* The child_stopping hook. Requests that wait respond. */
static void child_stopping(apr_pool_t *pchild, int graceful)
{
    (void)pchild;
    (void)graceful;
    crmapi_waits_stop();
}
#endif

static void register_hooks(apr_pool_t *p)
{
    static const char *const loggers[] = {"mod_log_config.c", NULL};

    (void)p;
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    /* First, before any module can get a connection from mod_dbd. */
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_FIRST);
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 110)
    ap_hook_child_stopping(child_stopping, NULL, NULL, APR_HOOK_MIDDLE);
#endif
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 33)
    ap_hook_suspend_connection(crmapi_suspended, NULL, NULL, APR_HOOK_MIDDLE);
#endif
    ap_hook_handler(crmapi_handler, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(crmapi_health_handler, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(crmapi_metrics_handler, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(crmapi_log_transaction, loggers, NULL,
                            APR_HOOK_LAST);
    crmapi_dbd_register();
    crmapi_outage_register();
    crmapi_request_register();
    crmapi_error_register();
    crmapi_body_register();
    crmapi_keepalive_register();
    crmapi_line_register();
    crmapi_status_register();
}

AP_DECLARE_MODULE(crmapi) = {
    STANDARD20_MODULE_STUFF,
    crmapi_permit_create,
    crmapi_permit_merge,
    crmapi_config_create,
    crmapi_config_merge,
    crmapi_commands,
    register_hooks,
#if defined(AP_MODULE_FLAG_NONE)
    AP_MODULE_FLAG_NONE
#endif
};
