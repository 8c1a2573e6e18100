/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether settings and database can be used */
#include "crmapid_check.h"

#include "crm_channel.h"
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

crm_error_t *crmd_check_database(const crmd_config_t *config,
                                 apr_pool_t *scratch_pool)
{
    crm_conn_t *conn = NULL;
    apr_pool_t *pool;
    crm_error_t *error;

    apr_pool_create(&pool, scratch_pool);
    error = crmd_conn_first(&conn, config, config->answer_time, pool,
                            scratch_pool);
    apr_pool_destroy(pool);
    return error;
}
