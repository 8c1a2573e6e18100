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
    apr_pool_t *old_pool;       /* of the memory before: children of the
                                   generation before may use it still */
} retained_t;

/* Set *CONFIG to what the servers from MAIN_SERVER on ask for. */
static void wanted_config(crm_limit_config_t *config, server_rec *main_server)
{
    memset(config, 0, sizeof(*config));
    config->keys = (apr_uint32_t)crmapi_config(main_server)->keys;
    for (server_rec *s = main_server; s; s = s->next) {
        const crmapi_config_t *server = crmapi_config(s);

        if (server->read_limit > (int)config->ring[CRM_LIMIT_READ]) {
            config->ring[CRM_LIMIT_READ] = (apr_uint32_t)server->read_limit;
        }
        if (server->write_limit > (int)config->ring[CRM_LIMIT_WRITE]) {
            config->ring[CRM_LIMIT_WRITE] = (apr_uint32_t)server->write_limit;
        }
    }
}

/* Make new memory for CONFIG that knows what RETAINED's knew. */
static const char *make_block(retained_t *retained,
                              const crm_limit_config_t *config,
                              server_rec *main_server, apr_pool_t *ptemp)
{
    apr_size_t size = crm_limit_size(config);
    apr_pool_t *pool;
    apr_shm_t *shm;
    apr_status_t status;
    const char *wrong;

    if (!size) {
        return "CRM1401: CrmApiRateLimitKeys and the limits need more memory "
               "than there can be";
    }
    apr_pool_create(&pool, main_server->process->pool);
    status = apr_shm_create(&shm, size, NULL, pool);
    if (status) {
        apr_pool_destroy(pool);
        return apr_psprintf(ptemp, "CRM1402: no shared memory of %"
                            APR_SIZE_T_FMT " bytes for the rate limits: %pm",
                            size, &status);
    }
    wrong = crm_limit_init(apr_shm_baseaddr_get(shm), size, config);
    if (wrong) {
        apr_pool_destroy(pool);
        return apr_pstrcat(ptemp, "CRM1403: rate limits: ", wrong, NULL);
    }
    if (retained->shm) {
        crm_limit_inherit(apr_shm_baseaddr_get(shm),
                          apr_shm_baseaddr_get(retained->shm));
        if (retained->old_pool) {
            apr_pool_destroy(retained->old_pool);
        }
        retained->old_pool = retained->pool;
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server,
                     "CRM1404: the rate limits' memory was made anew, as the "
                     "configuration asks; counters were taken over");
    }
    retained->pool = pool;
    retained->shm = shm;
    return NULL;
}

const char *crmapi_shm_create(crm_limit_t **limit_p, server_rec *main_server,
                              apr_pool_t *ptemp)
{
    static const char key[] = "mod_crmapi_shm";
    retained_t *retained = ap_retained_data_get(key);
    crm_limit_config_t config;

    if (!retained) {
        retained = ap_retained_data_create(key, sizeof(*retained));
    }
    wanted_config(&config, main_server);
    if (!retained->shm
        || crm_limit_check(apr_shm_baseaddr_get(retained->shm),
                           apr_shm_size_get(retained->shm), &config)) {
        const char *wrong = make_block(retained, &config, main_server, ptemp);

        if (wrong) {
            return wrong;
        }
    }
    *limit_p = apr_shm_baseaddr_get(retained->shm);
    return NULL;
}
