/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_shm.c: the shared memory of limits, over restarts */
#include "mod_crmapi.h"

#include "apr_shm.h"
#include "apr_strings.h"

APLOG_USE_MODULE(crmapi);

/* What outlives a restart of the same parent process (contract 4.4): it and
 * the memory itself hang on the process's own pool. */
typedef struct retained_t {
    apr_pool_t *pool;           /* of the memory in use */
    apr_shm_t *shm;
    crm_limit_config_t config;  /* that it was made for */
} retained_t;

/* Set *CONFIG to what the servers from MAIN_SERVER on ask for. */
static void wanted_config(crm_limit_config_t *config, server_rec *main_server)
{
    memset(config, 0, sizeof(*config));
    config->keys = (apr_uint32_t)crmapi_config(main_server)->keys;
    for (server_rec *s = main_server; s; s = s->next) {
        const crmapi_config_t *server = crmapi_config(s);

        if (server->enabled != 1) {
            continue;
        }
        if (server->read_limit > (int)config->ring[CRM_LIMIT_READ]) {
            config->ring[CRM_LIMIT_READ] = (apr_uint32_t)server->read_limit;
        }
        if (server->write_limit > (int)config->ring[CRM_LIMIT_WRITE]) {
            config->ring[CRM_LIMIT_WRITE] = (apr_uint32_t)server->write_limit;
        }
    }
}

static crm_limit_t *block_of(const retained_t *retained)
{
    return apr_shm_baseaddr_get(retained->shm);
}

/* Return why RETAINED's memory cannot serve CONFIG, NULL if it can. */
static const char *unfit(const retained_t *retained,
                         const crm_limit_config_t *config)
{
    return crm_limit_check(block_of(retained),
                           apr_shm_size_get(retained->shm), config);
}

/* Make new memory for CONFIG, *MADE. */
static const char *make_block(retained_t *made,
                              const crm_limit_config_t *config,
                              server_rec *main_server, apr_pool_t *ptemp)
{
    apr_size_t size = crm_limit_size(config);
    apr_status_t status;
    const char *wrong;

    if (!size) {
        return "CRM1401: CrmApiRateLimitKeys and the limits need more memory "
               "than there can be";
    }
    made->config = *config;
    apr_pool_create(&made->pool, main_server->process->pool);
    status = apr_shm_create(&made->shm, size, NULL, made->pool);
    if (status) {
        apr_pool_destroy(made->pool);
        return apr_psprintf(ptemp, "CRM1402: no shared memory of %"
                            APR_SIZE_T_FMT " bytes for the rate limits: %pm: "
                            "lower CrmApiRateLimitKeys or the limits",
                            size, &status);
    }
    wrong = crm_limit_init(block_of(made), size, config);
    if (wrong) {
        apr_pool_destroy(made->pool);
        return apr_pstrcat(ptemp, "CRM1403: rate limits: ", wrong, NULL);
    }
    return NULL;
}

/* Let MADE know what RETAINED knew, which is given up here because of WHY:
 * children of the configuration before have it mapped until they end. */
static void replace_block(const retained_t *made, const retained_t *retained,
                          const server_rec *main_server, const char *why)
{
    apr_uint32_t lost = 0;

    if (!unfit(retained, &retained->config)) {
        lost = crm_limit_inherit(block_of(made), block_of(retained));
    }
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server,
                 "CRM1404: the rate limits' memory was made anew: %s; counted "
                 "requests were taken over, keys that found no room: %u",
                 why, lost);
    apr_pool_destroy(retained->pool);
}

const char *crmapi_shm_create(crm_limit_t **limit_p, server_rec *main_server,
                              apr_pool_t *ptemp)
{
    static const char key[] = "mod_crmapi_shm";
    retained_t *retained = ap_retained_data_get(key);
    crm_limit_config_t config;
    const char *why;

    if (!retained) {
        retained = ap_retained_data_create(key, sizeof(*retained));
    }
    wanted_config(&config, main_server);
    why = retained->shm ? unfit(retained, &config) : NULL;
    if (!retained->shm || why) {
        retained_t made = {NULL, NULL, {0, {0, 0}}};
        const char *wrong = make_block(&made, &config, main_server, ptemp);

        if (wrong) {
            return wrong;
        }
        if (why) {
            replace_block(&made, retained, main_server, why);
        }
        *retained = made;
    }
    *limit_p = block_of(retained);
    return NULL;
}
