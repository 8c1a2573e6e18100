/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether settings and database can be used */
#include "crmapid_check.h"

#include "crm_array.h"
#include "crm_certificates.h"
#include "crm_channel.h"
#include "crmapid_conn.h"
#include "crmapid_generate.h"
#include "crmapid_relay.h"

/* Refuse files of certificates that fail each message or webhook. */
static crm_error_t *check_files(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *const files[][2] = {
        {"smtp_ca_file", config->smtp_ca_file},
        {"provider_ca_file", config->provider_ca_file},
        {"webhook_ca_file", config->webhook_ca_file},
    };

    for (size_t i = 0; i < CRM_NELTS(files); i++) {
        const char *fault = *files[i][1] ? crm_certificates_fault(files[i][1])
                                         : NULL;

        if (fault) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s: %s: %s",
                                     files[i][0], files[i][1], fault);
        }
    }
    return NULL;
}

crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool)
{
    if (!*config->database) {
        return crm_error_create(CRM_E_BAD_REQUEST, "no database: set"
                                " \"database\", or $CRMAPI_DATABASE", pool);
    }
    CRM_ERR(check_files(config, pool));
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
