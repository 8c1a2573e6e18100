/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_shm.c: shared memory that survives restarts */
#include "mod_crmapi_shm.h"

#include "apr_shm.h"
#include "apr_strings.h"

#include "crm_address.h"
#include "crm_limit_key.h"

#include "mod_crmapi_config.h"

APLOG_USE_MODULE(crmapi);

/* State that survives a restart of the same parent process (contract 4.4). It
 * and the shared memory belong to the process pool. */
typedef struct retained_t {
    apr_pool_t *pool;           /* of the memory in use */
    apr_shm_t *shm;
    crm_limit_config_t config;  /* the configuration of the memory */
} retained_t;

/* Raise *RING to LIMIT, the value of a directive, if that is higher. */
static void raise_ring(apr_uint32_t *ring, int limit)
{
    if (limit > 0 && (apr_uint32_t)limit > *ring) {
        *ring = (apr_uint32_t)limit;
    }
}

/* Set *CONFIG to the sizes that keys and tokens of the servers from MAIN_SERVER
 * on need. An intake token has one budget, that of writes. */
static void configure_keys(crm_limit_config_t *config, server_rec *main_server)
{
    memset(config, 0, sizeof(*config));
    config->keys = (apr_uint32_t)crmapi_config(main_server)->keys;
    for (server_rec *s = main_server; s; s = s->next) {
        const crmapi_config_t *server = crmapi_config(s);

        if (server->enabled == 1) {
            raise_ring(&config->ring[CRM_LIMIT_READ], server->read_limit);
            raise_ring(&config->ring[CRM_LIMIT_WRITE], server->write_limit);
            /* any key may have limits of its own */
            raise_ring(&config->ring[CRM_LIMIT_READ], server->limit_ceiling);
            raise_ring(&config->ring[CRM_LIMIT_WRITE], server->limit_ceiling);
        }
        if (*server->intake_path) {
            raise_ring(&config->ring[CRM_LIMIT_WRITE], server->intake_limit);
        }
    }
}

/* The same for addresses. In this table "reads" are look-ups of unknown keys
 * and polls of chats, and "writes" are all other requests without proven
 * rights. Each ring has room for the budget of a /48. */
static void configure_addresses(crm_limit_config_t *config,
                                server_rec *main_server)
{
    memset(config, 0, sizeof(*config));
    config->keys = (apr_uint32_t)crmapi_config(main_server)->addresses;
    config->evict = 1;
    for (server_rec *s = main_server; s; s = s->next) {
        const crmapi_config_t *server = crmapi_config(s);

        if (crmapi_serves(server)) {
            raise_ring(&config->ring[CRM_LIMIT_READ],
                       CRM_ADDRESS_SITE * server->unknown_key_limit);
            raise_ring(&config->ring[CRM_LIMIT_WRITE],
                       CRM_ADDRESS_SITE * server->address_limit);
        }
        if (*server->intake_path) {
            raise_ring(&config->ring[CRM_LIMIT_READ], CRM_ADDRESS_SITE
                       * CRM_ACCESS_POLLS * server->address_limit);
        }
    }
}

static crm_limit_t *block_of(const retained_t *retained)
{
    return apr_shm_baseaddr_get(retained->shm);
}

/* Return the reason why RETAINED's memory cannot be used for CONFIG, or
 * NULL. */
static const char *unfit(const retained_t *retained,
                         const crm_limit_config_t *config)
{
    return crm_limit_check(block_of(retained),
                           apr_shm_size_get(retained->shm), config);
}

/* Create memory for CONFIG in *MADE. Return NULL or an error. */
static const char *make_block(retained_t *made,
                              const crm_limit_config_t *config,
                              server_rec *main_server, apr_pool_t *ptemp)
{
    apr_size_t size = crm_limit_size(config);
    apr_status_t status;
    crm_error_t *error;

    if (!size) {
        return "CRM1401: CrmApiRateLimitKeys or CrmApiAddresses with these "
               "limits exceeds the address space";
    }
    made->config = *config;
    apr_pool_create(&made->pool, main_server->process->pool);
    status = apr_shm_create(&made->shm, size, NULL, made->pool);
    if (status) {
        apr_pool_destroy(made->pool);
        return apr_psprintf(ptemp, "CRM1402: cannot create shared memory of %"
                            APR_SIZE_T_FMT " bytes for the rate limits: %pm: "
                            "lower CrmApiRateLimitKeys, CrmApiAddresses or "
                            "the limits", size, &status);
    }
    error = crm_limit_init(block_of(made), size, config, ptemp);
    if (error) {
        apr_pool_destroy(made->pool);
        return apr_pstrcat(ptemp, "CRM1403: rate limits: ", error->log, NULL);
    }
    return NULL;
}

/* Replace RETAINED's memory by MADE: copy its counts, log the reason WHY, and
 * release it. Processes of the previous configuration keep it mapped until they
 * end. */
static void replace_block(const retained_t *made, const retained_t *retained,
                          const server_rec *main_server, const char *why)
{
    apr_uint32_t lost = 0;

    if (!unfit(retained, &retained->config)) {
        lost = crm_limit_inherit(block_of(made), block_of(retained));
    }
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server,
                 "CRM1404: the shared memory of the rate limits was replaced: "
                 "%s; counts were copied, except those of %u keys for lack of "
                 "room",
                 why, lost);
    apr_pool_destroy(retained->pool);
}

/* Set *LIMIT_P to the memory KEY for CONFIG, created or retained. Return NULL
 * or an error. */
static const char *share_limit(crm_limit_t **limit_p, const char *key,
                               const crm_limit_config_t *config,
                               server_rec *main_server, apr_pool_t *ptemp)
{
    retained_t *retained = ap_retained_data_get(key);
    const char *why;

    if (!retained) {
        retained = ap_retained_data_create(key, sizeof(*retained));
    }
    why = retained->shm ? unfit(retained, config) : NULL;
    if (!retained->shm || why) {
        retained_t made = {NULL, NULL, {0, {0, 0}, 0}};
        const char *problem = make_block(&made, config, main_server, ptemp);

        if (problem) {
            return problem;
        }
        if (why) {
            replace_block(&made, retained, main_server, why);
        }
        *retained = made;
    }
    *limit_p = block_of(retained);
    return NULL;
}

const char *crmapi_shm_make(void **memory_p, apr_size_t size, const char *what,
                            apr_pool_t *pool, apr_pool_t *ptemp)
{
    apr_shm_t *shm;
    apr_status_t status = apr_shm_create(&shm, size, NULL, pool);

    if (status) {
        return apr_psprintf(ptemp, "CRM1406: cannot create shared memory of %"
                            APR_SIZE_T_FMT " bytes for %s: %pm", size, what,
                            &status);
    }
    *memory_p = memset(apr_shm_baseaddr_get(shm), 0, size);
    return NULL;
}

/* Set *MEMORY_P to the SIZE bytes of shared memory KEY for WHAT. They are
 * retained from before a restart, or new and zeroed. Return NULL or an
 * error. */
static const char *share_bytes(void **memory_p, const char *key,
                               apr_size_t size, const char *what,
                               server_rec *main_server, apr_pool_t *ptemp)
{
    void **retained = ap_retained_data_get(key);
    const char *problem;

    if (!retained) {
        problem = crmapi_shm_make(memory_p, size, what,
                                  main_server->process->pool, ptemp);
        if (problem) {
            return problem;
        }
        retained = ap_retained_data_create(key, sizeof(*retained));
        *retained = *memory_p;
    }
    *memory_p = *retained;
    return NULL;
}

/* Return whether any server from MAIN_SERVER on has intake. */
static int any_intake(const server_rec *main_server)
{
    for (const server_rec *s = main_server; s; s = s->next) {
        if (*crmapi_config(s)->intake_path) {
            return 1;
        }
    }
    return 0;
}

/* Make KEYS, which live as long as the configuration: processes of the previous
 * one have their own. Return NULL or an error. */
static const char *make_keys(crm_keys_t *keys, server_rec *main_server,
                             apr_pool_t *ptemp)
{
    apr_pool_t *pconf = main_server->process->pconf;
    void *flights = NULL, *roll = NULL;
    const char *problem = crmapi_shm_make(&flights, crm_flights_size(),
                                          "look-ups of keys", pconf, ptemp);

    if (!problem && !crm_flights_init(flights)) {
        problem = "CRM1403: rate limits: the system has no robust shared locks";
    }
    if (!problem) {
        problem = crmapi_shm_make(&roll, sizeof(crm_roll_t),
                                  "the roll of keys", pconf, ptemp);
    }
    keys->flights = flights;
    keys->roll = roll;
    return problem;
}

/* Set *USAGE_P to the table for KEYS keys. Return NULL or an error. */
static const char *share_usage(crm_usage_t **usage_p, apr_uint32_t keys,
                               server_rec *main_server, apr_pool_t *ptemp)
{
    apr_size_t size = crm_usage_size(keys);
    const char *key = apr_psprintf(ptemp, "mod_crmapi_usage %" APR_SIZE_T_FMT,
                                   size);
    void *memory = NULL;
    const char *problem = share_bytes(&memory, key, size, "usage", main_server,
                                      ptemp);

    if (!problem) {
        *usage_p = crm_usage_open(memory, size);
    }
    return problem;
}

const char *crmapi_shm_create(crmapi_shm_t *shm, server_rec *main_server,
                              apr_pool_t *ptemp)
{
    crm_limit_config_t config;
    const char *problem;
    void *memory = NULL;

    memset(shm, 0, sizeof(*shm));
    configure_keys(&config, main_server);
    problem = share_limit(&shm->limit, "mod_crmapi_shm", &config, main_server,
                          ptemp);
    if (!problem) {
        problem = make_keys(&shm->keys, main_server, ptemp);
    }
    if (!problem) {
        problem = share_usage(&shm->usage, config.keys, main_server, ptemp);
    }
    configure_addresses(&config, main_server);
    if (!problem && (config.ring[CRM_LIMIT_READ]
                     || config.ring[CRM_LIMIT_WRITE])) {
        problem = share_limit(&shm->addresses, "mod_crmapi_addresses", &config,
                              main_server, ptemp);
    }
    if (!problem) {
        problem = share_bytes(&memory, "mod_crmapi_store",
                              sizeof(crm_store_shared_t),
                              "the state of the store", main_server, ptemp);
        shm->store = memory;
    }
    if (!problem && any_intake(main_server)) {
        problem = share_bytes(&memory, "mod_crmapi_places",
                              sizeof(crm_places_t), "chats", main_server,
                              ptemp);
        shm->places = memory;
    }
    return problem;
}
