/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_batch.c: which servers' requests may share statements */
#include "mod_crmapi_batch.h"

#include "ap_mpm.h"

#include "mod_crmapi_client.h"
#include "mod_crmapi_config.h"

/* Return whether the requests of the server with CONFIG may share statements:
 * with CrmApiRequestIdInDatabase On, each statement is for one request. */
static int shares(const crmapi_config_t *config)
{
    return crmapi_serves(config) && config->batches
           && !config->request_id_in_database;
}

/* Return whether requests of the servers with A and B may share a statement:
 * both servers use the same database with the same settings. */
static int are_alike(const crmapi_config_t *a, const crmapi_config_t *b)
{
    return a->pool == b->pool && a->database_timeout == b->database_timeout
           && a->named_statements == b->named_statements;
}

/* Return the service of a server from MAIN_SERVER on, before END, whose batcher
 * CONFIG's server can use, too. NULL: there is none. */
static const crm_service_t *find_alike(const server_rec *main_server,
                                       const server_rec *end,
                                       const crmapi_config_t *config)
{
    for (const server_rec *s = main_server; s != end; s = s->next) {
        if (crmapi_config(s)->service.batcher
            && are_alike(crmapi_config(s), config)) {
            return &crmapi_config(s)->service;
        }
    }
    return NULL;
}

void crmapi_batches_create(server_rec *main_server, apr_pool_t *pchild)
{
    int threaded = AP_MPMQ_NOT_SUPPORTED;

    ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded);
    if (threaded == AP_MPMQ_NOT_SUPPORTED) {
        return;
    }
    crmapi_client_init();
    for (server_rec *s = main_server; s; s = s->next) {
        crmapi_config_t *config = crmapi_config(s);
        const crm_service_t *alike;

        if (shares(config)) {
            alike = find_alike(main_server, s, config);
            config->service.batcher = alike ? alike->batcher
                                            : crm_batcher_create(pchild);
            config->service.settings.clients_max = crmapi_clients_max();
        }
    }
}
