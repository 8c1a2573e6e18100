/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether settings and database can be used */
#include "crmapid_check.h"

#include "crm_array.h"
#include "crm_certificates.h"
#include "crm_channel.h"
#include "crm_process.h"
#include "crmapid_conn.h"
#include "crmapid_generate.h"
#include "crmapid_poll.h"
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

/* Files that a thread may have open at once. A job: a connection to the database,
 * one to a server, libcurl's own, the resolver's, a file of certificates. A session
 * of LMTP: the two connections and a spare one. */
#define FILES_OF_JOB 8
#define FILES_OF_SESSION 3

/* The log, the journal, other threads' connections, and clients of status_listen. */
#define FILES_BESIDE 64

/* Refuse more threads than the system gives files to. */
static crm_error_t *check_limit(const crmd_config_t *config, apr_pool_t *pool)
{
    unsigned long needed = (unsigned long)(
        crmd_job_threads(config) * FILES_OF_JOB
        + config->lmtp_threads * FILES_OF_SESSION + FILES_BESIDE);
    unsigned long allowed = crm_process_allow(needed);

    return allowed >= needed ? NULL
           : crm_error_createf(CRM_E_BAD_REQUEST, pool, "crmapid may need up to"
                               " %lu open files with its threads, and the"
                               " system allows %lu (ulimit -n, systemd's"
                               " LimitNOFILE)", needed, allowed);
}

crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool)
{
    if (!*config->database) {
        return crm_error_create(CRM_E_BAD_REQUEST, "no database: set"
                                " \"database\", or $CRMAPI_DATABASE", pool);
    }
    CRM_ERR(check_limit(config, pool));
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
                                 int (*unwanted)(void *baton),
                                 apr_pool_t *scratch_pool)
{
    crm_conn_t *conn = NULL;
    apr_pool_t *pool;
    crm_error_t *error;

    apr_pool_create(&pool, scratch_pool);
    error = crmd_conn_first(&conn, config, config->answer_time, unwanted,
                            pool, scratch_pool);
    apr_pool_destroy(pool);
    return error;
}
