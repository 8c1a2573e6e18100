/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_get.c: GET /workspace (contract 20.6) */
#include "apr_strings.h"

#include "crm_operations.h"
#include "crm_params.h"
#include "crm_rest.h"

/* Return the limit of CALL's key for requests of CLASS as a bind; NULL:
 * unlimited. */
static const char *limit_of(const crm_call_t *call, crm_limit_class_t class)
{
    const crm_service_t *service = call->service;
    crm_limit_verdict_t verdict;

    crm_limit_look(&verdict, service->limit, call->key.hash, call->key.realm,
                   class, service->settings.limits[class],
                   service->settings.limit_ceiling);
    return verdict.limit ? apr_psprintf(call->pool, "%u", verdict.limit)
           : NULL;
}

/* Make the statement that reads the workspace and the key, if the key permits
 * it. */
static void make_get(crm_sql_t *sql, crm_call_t *call)
{
    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", crm_rest(call)->endpoint->shape->columns,
                 " FROM crmapi.workspace t JOIN crmapi.live_key k ON"
                 " k.workspace_id = t.id CROSS JOIN (SELECT"
                 " jsonb_build_object('read', ", NULL);
    crm_sql_bind(sql, limit_of(call, CRM_LIMIT_READ), "integer");
    crm_sql_add(sql, ", 'write', ");
    crm_sql_bind(sql, limit_of(call, CRM_LIMIT_WRITE), "integer");
    crm_sql_add(sql, ") AS limits) l WHERE t.id = " CRM_SQL_WORKSPACE " AND "
                CRM_SQL_OWN("k") " AND k.terms = " CRM_SQL_TERMS
                " AND k.read AND k.plan_api");
}

crm_error_t *crm_workspace_get(crm_call_t *call)
{
    crm_error_t *error = crm_rest_params(call);
    PGresult *result;
    crm_sql_t sql;

    if (error) {
        return crm_rest_refuse(call, error, NULL);
    }
    make_get(&sql, call);
    CRM_ERR(crm_call_query(&result, call, &sql));
    if (!PQntuples(result)) {
        error = crm_rest_refuse(call, NULL, NULL);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    crm_rest_answer(call, 200, result, 0);
    return NULL;
}
