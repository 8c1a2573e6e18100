/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_conn.c: connections of the worker's threads */
#include "crmapid_conn.h"

#include "apr_strings.h"

#include "crm_hosts.h"
#include "crm_schema.h"
#include "crmapid_ending.h"
#include "crmapid_mark.h"
#include "crmapid_stats.h"

/* A pool cleanup: the connection is closed. */
static apr_status_t count_less(void *data)
{
    crmd_stats_less(data);
    return APR_SUCCESS;
}

/* Return an error, in POOL, if this program cannot use SCHEMA. */
static crm_error_t *refuse(const crm_schema_t *schema, apr_pool_t *pool)
{
    const char *fault = crm_schema_fault(schema, "crmapid", pool);

    return fault ? crm_error_logf(CRM_E_CONFLICT, pool, "CRM3002: %s", fault)
                 : NULL;
}

/* Check that CONN's database has this version's schema. */
static crm_error_t *check_schema(crm_conn_t *conn, apr_pool_t *pool)
{
    crm_schema_t schema;

    CRM_ERR(crm_schema_read(&schema, conn, pool));
    return refuse(&schema, pool);
}

crm_error_t *crmd_conn_check(crm_conn_t *conn, apr_pool_t *scratch_pool)
{
    crm_schema_t schema = {.works = 1};

    CRM_ERR(crm_schema_range(&schema, conn, scratch_pool));
    return refuse(&schema, scratch_pool);
}

/* As crmd_conn_open(), with UNWANTED. FIRST: the schema is checked, too. */
static crm_error_t *open_conn(crm_conn_t **conn_p, const crmd_config_t *config,
                              apr_interval_time_t timeout,
                              int (*unwanted)(void *baton), int first,
                              apr_pool_t *conn_pool, apr_pool_t *scratch_pool)
{
    const crm_conn_options_t options = {
        .named_statements = config->named_statements ? CRM_NAMES_OWN
                                                      : CRM_NAMES_OFF,
        .generic_plans = 1, .timeout = timeout, .unwanted = unwanted};
    crm_error_t *error;

    if (*conn_p) {
        return NULL;
    }
    error = crm_conn_open(conn_p, config->database, &options, conn_pool,
                          scratch_pool);
    if (!error && first) {
        error = check_schema(*conn_p, scratch_pool);
    }
    if (!error) {
        error = crmd_mark_check(config, *conn_p, scratch_pool);
    }
    if (error) {
        *conn_p = NULL;
        apr_pool_clear(conn_pool);
        return error;
    }
    crm_metrics_add(&crmd_stats.connects, 1);
    crm_metrics_add(&crmd_stats.connections, 1);
    apr_pool_cleanup_register(conn_pool, &crmd_stats.connections, count_less,
                              apr_pool_cleanup_null);
    return NULL;
}

crm_error_t *crmd_conn_open(crm_conn_t **conn_p, const crmd_config_t *config,
                            apr_interval_time_t timeout, apr_pool_t *conn_pool,
                            apr_pool_t *scratch_pool)
{
    return open_conn(conn_p, config, timeout, crmd_ending_unwanted, 0,
                     conn_pool, scratch_pool);
}

const char *crmd_conn_label(const crmd_config_t *config,
                            apr_pool_t *result_pool)
{
    PQconninfoOption *options = PQconndefaults();
    const char *label = crm_hosts_label(config->database, crm_hosts_value(
                                            options, "user"), result_pool);

    PQconninfoFree(options);
    return *label ? apr_pstrcat(result_pool, " (", label, ")", NULL) : "";
}

crm_error_t *crmd_conn_first(crm_conn_t **conn_p, const crmd_config_t *config,
                             apr_interval_time_t timeout,
                             int (*unwanted)(void *baton), apr_pool_t *conn_pool,
                             apr_pool_t *scratch_pool)
{
    crm_error_t *error = open_conn(conn_p, config, timeout, unwanted, 1,
                                   conn_pool, scratch_pool);

    if (error && error->log) {
        error->log = apr_pstrcat(scratch_pool, error->log, crmd_conn_label(
                                     config, scratch_pool), NULL);
    }
    return error;
}
