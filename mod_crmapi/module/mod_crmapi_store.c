/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_store.c: the store of budgets that several hosts share */
#include "mod_crmapi_store.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "http_config.h"

#include "crm_array.h"
#include "crm_redis_url.h"
#include "crm_secret.h"

#include "mod_crmapi_config.h"

APLOG_USE_MODULE(crmapi);

#define TIMEOUT_MAX apr_time_from_sec(10)
#define TIMEOUT apr_time_from_msec(100)

/* ---- the directive ------------------------------------------------------- */

/* Set the member of STORE for an option to VALUE. Return NULL or an error. */
static const char *set_ca(crmapi_store_t *store, const char *value,
                          cmd_parms *cmd)
{
    store->redis.ca = ap_server_root_relative(cmd->pool, value);
    return store->redis.tls ? NULL : "it needs a rediss:// URL";
}

static const char *set_prefix(crmapi_store_t *store, const char *value,
                              cmd_parms *cmd)
{
    size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:");

    (void)cmd;
    store->redis.prefix = value;
    return len && !value[len] && len <= CRM_REDIS_PREFIX_MAX
           ? NULL : "it must have 1 to 64 characters of A-Z, a-z, 0-9, -, _, "
                    ". and :";
}

static const char *set_timeout(crmapi_store_t *store, const char *value,
                               cmd_parms *cmd)
{
    (void)cmd;
    return apr_isdigit(*value)
           && !ap_timeout_parameter_parse(value, &store->timeout, "ms")
           && store->timeout >= apr_time_from_msec(1)
           && store->timeout <= TIMEOUT_MAX
           ? NULL : "it must be a time from 1 ms to 10 s, such as 100ms";
}

static const struct {
    const char *name;           /* with '=' */
    const char *(*set)(crmapi_store_t *store, const char *value,
                       cmd_parms *cmd);
} options[] = {
    {"ca=", set_ca}, {"prefix=", set_prefix}, {"timeout=", set_timeout},
};

static const char *set_option(crmapi_store_t *store, const char *option,
                              cmd_parms *cmd)
{
    for (size_t i = 0; i < CRM_NELTS(options); i++) {
        size_t len = strlen(options[i].name);

        if (!strncmp(option, options[i].name, len)) {
            return options[i].set(store, option + len, cmd);
        }
    }
    return "options are ca=, prefix= and timeout=";
}

/* Read the file with STORE's password, if it has one. */
static const char *read_password(crmapi_store_t *store, cmd_parms *cmd)
{
    const char *path = store->redis.password_file, *file;

    if (!path) {
        return NULL;
    }
    file = ap_server_root_relative(cmd->pool, path);
    return file ? crm_secret_read(&store->redis.password, file, cmd->pool)
                : "invalid path";
}

const char *crmapi_set_store(cmd_parms *cmd, void *dir, int argc,
                             char *const argv[])
{
    crmapi_store_t *store = apr_pcalloc(cmd->pool, sizeof(*store));
    const char *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    const char *what = NULL;

    (void)dir;
    if (problem) {
        return problem;
    }
    if (!argc) {
        return "CrmApiRateLimitStore takes a URL and options";
    }
    problem = crm_redis_parse(&store->redis, argv[0], cmd->pool);
    store->redis.prefix = CRM_REDIS_PREFIX;
    store->timeout = TIMEOUT;
    what = "the URL";
    if (!problem) {
        problem = read_password(store, cmd);
        what = "the password file";
    }
    for (int i = 1; i < argc && !problem; i++) {
        problem = set_option(store, argv[i], cmd);
        what = argv[i];
    }
    crmapi_config(cmd->server)->store = store;
    return problem ? apr_psprintf(cmd->pool, "CrmApiRateLimitStore: %s: %s",
                                  what, problem)
                   : NULL;
}

/* ---- the store ----------------------------------------------------------- */

/* A crm_log_fn. */
static void write_log(void *main_server, crm_level_t level, const char *text)
{
    ap_log_error(APLOG_MARK, (int)level, 0, (const server_rec *)main_server,
                 "%s", text);
}

/* Return the message, in P, that CONFIG has PROBLEM. NULL for none. */
static const char *refusal(const crmapi_store_t *config, const char *problem,
                           apr_pool_t *p)
{
    return problem ? apr_psprintf(p, "CRM1408: CrmApiRateLimitStore: %s: %s",
                                  config->redis.ca ? config->redis.ca : "TLS",
                                  problem)
                   : NULL;
}

const char *crmapi_store_check(const server_rec *main_server, apr_pool_t *p)
{
    const crmapi_store_t *config = crmapi_config(main_server)->store;

    return config ? refusal(config, crm_redis_check(&config->redis), p) : NULL;
}

const char *crmapi_store_create(crm_store_t **store_p,
                                server_rec *main_server,
                                crm_store_shared_t *shared, apr_pool_t *pconf)
{
    const crmapi_store_t *config = crmapi_config(main_server)->store;
    crm_log_t log = {write_log, main_server};
    crm_store_backend_t backend;
    const char *problem;

    *store_p = NULL;
    if (!config) {
        return NULL;
    }
    problem = crm_redis_create(&backend, &config->redis, pconf);
    if (problem) {
        return refusal(config, problem, pconf);
    }
    /* After a restart the directive may name another store, so forget that the
     * old one was away. */
    shared->away = shared->logged = 0;
    shared->retry_at = shared->logged_at = 0;
    *store_p = crm_store_create(&backend, config->timeout, shared, &log,
                                pconf);
    return NULL;
}
