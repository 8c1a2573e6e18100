/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether settings and database can be used */
#include "crmapid_check.h"

#include "apr_strings.h"

#include "crm_channel.h"
#include "crm_hosts.h"
#include "crmapid_conn.h"
#include "crmapid_generate.h"
#include "crmapid_relay.h"

crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool)
{
    if (!*config->database) {
        return crm_error_create(CRM_E_BAD_REQUEST, "no database: set"
                                " \"database\", or $CRMAPI_DATABASE", pool);
    }
    for (int i = 0; i < CRM_CHANNELS; i++) {
        const crm_channel_t *channel = &crm_channels[i];

        if (channel->way) {
            CRM_ERR(crmd_relay_of(config, channel)->check(config, channel,
                                                          pool));
        }
    }
    return crmd_generator_of(config)->check(config, pool);
}

/* Add to ERROR, about CONFIG's database, which one that is and who could not use
 * it. */
static void name_database(crm_error_t *error, const crmd_config_t *config,
                          apr_pool_t *pool)
{
    PQconninfoOption *options = PQconndefaults();
    const char *label = crm_hosts_label(config->database, crm_hosts_value(
                                            options, "user"), pool);

    PQconninfoFree(options);
    if (error->log && *label) {
        error->log = apr_pstrcat(pool, error->log, " (", label, ")", NULL);
    }
}

crm_error_t *crmd_check_conn(crm_conn_t **conn_p, const crmd_config_t *config,
                             apr_interval_time_t timeout, apr_pool_t *conn_pool,
                             apr_pool_t *scratch_pool)
{
    crm_error_t *error = crmd_conn_first(conn_p, config, timeout, conn_pool,
                                         scratch_pool);

    if (error) {
        name_database(error, config, scratch_pool);
    }
    return error;
}

crm_error_t *crmd_check_database(const crmd_config_t *config,
                                 apr_pool_t *scratch_pool)
{
    crm_conn_t *conn = NULL;
    apr_pool_t *pool;
    crm_error_t *error;

    apr_pool_create(&pool, scratch_pool);
    error = crmd_check_conn(&conn, config, config->answer_time, pool,
                            scratch_pool);
    apr_pool_destroy(pool);
    return error;
}
