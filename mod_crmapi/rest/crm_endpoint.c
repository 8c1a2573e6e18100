/* SPDX-License-Identifier: Apache-2.0 */
/* crm_endpoint.c: operations as routes */
#include "crm_endpoint.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_op.h"
#include "crm_op_file.h"
#include "crm_op_list.h"
#include "crm_op_log.h"
#include "crm_op_update.h"

/* Of crm_endpoint_t; set once in each process before threads start, read-only
 * afterwards. */
static apr_array_header_t *endpoints;

/* How the engine serves the kinds that it knows. */
static const crm_handler_t own[CRM_OPS] = {
    [CRM_OP_LIST] = crm_op_list,
    [CRM_OP_LOG] = crm_op_log,
    [CRM_OP_GET] = crm_op_get,
    [CRM_OP_FILE] = crm_op_file,
    [CRM_OP_CREATE] = crm_op_create,
    [CRM_OP_UPDATE] = crm_op_update,
    [CRM_OP_DELETE] = crm_op_delete,
};

/* Set ENDPOINT's permits. In the call the row's id has no effect, but as a column
 * of the row it lets the row's server make it. */
static void set_permits(crm_endpoint_t *endpoint, apr_pool_t *pool)
{
    int sequences = endpoint->operation->sequences;
    const char *may = apr_pstrcat(pool, endpoint->write ? "k.write" : "k.read",
                                  " AND ", sequences ? "k.plan_sequences"
                                                     : "k.plan_api", NULL);
    const char *key = apr_pstrcat(pool, "(SELECT ", may, " FROM" CRM_PERMIT_ROW
                                  ")", NULL);
    const char *one = apr_pstrcat(pool, "crmapi.key_may(t.id, "
                                  CRM_SQL_WORKSPACE ", " CRM_SQL_TERMS ", ",
                                  endpoint->write ? "true" : "false", ", ",
                                  sequences ? "true)" : "false)", NULL);
    const char *const permits[CRM_PERMITS] = {
        [CRM_PERMIT] = key, [CRM_PERMIT_KEY] = key, [CRM_PERMIT_ONE] = one,
        [CRM_PERMIT_KEY_ONE] = one,
        [CRM_PERMIT_FROM] = apr_pstrcat(pool, CRM_PERMIT_ROW " AND ", may,
                                        NULL),
        [CRM_PERMIT_WHERE] = "", [CRM_PERMIT_BEFORE] = CRM_PERMIT_USED,
    };

    memcpy(endpoint->permits, permits, sizeof(permits));
    endpoint->before = apr_pstrcat(pool, "SELECT FROM",
                                   permits[CRM_PERMIT_FROM], NULL);
}

static crm_error_t *add_endpoint(const crm_resource_t *resource,
                                 const crm_operation_t *operation,
                                 const crm_handler_t *handlers,
                                 apr_pool_t *pool)
{
    crm_endpoint_t *endpoint = apr_array_push(endpoints);

    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->operation = operation;
    endpoint->resource = resource;
    endpoint->shape = crm_shape_of(resource);
    endpoint->serve = own[operation->kind] ? own[operation->kind]
                      : handlers[operation->kind];
    if (!endpoint->serve) {
        return crm_error_logf(CRM_E_INTERNAL, pool, "CRM1002: invalid resource"
                              " tables: %s: nothing serves it", operation->id);
    }
    endpoint->write = strcmp(operation->method, "GET") != 0;
    set_permits(endpoint, pool);
    endpoint->tagged = crm_kind_of(operation)->tagged
                       && (crm_kind_of(operation)->status != 201
                           || operation->location);
    if (operation->deprecated.since) {
        endpoint->deprecation = crm_deprecation_since(&operation->deprecated,
                                                      pool);
        endpoint->sunset = crm_deprecation_sunset(&operation->deprecated,
                                                  pool);
    }
    return NULL;
}

crm_error_t *crm_endpoint_init(const crm_resource_t *const *resources,
                               const crm_handler_t *handlers, apr_pool_t *pool)
{
    CRM_ERR(crm_shape_init(resources, pool));
    endpoints = apr_array_make(pool, 80, sizeof(crm_endpoint_t));
    for (int i = 0; resources[i]; i++) {
        const crm_operation_t *operation = resources[i]->operations;

        for (; operation && operation->id; operation++) {
            CRM_ERR(add_endpoint(resources[i], operation, handlers, pool));
        }
    }
    return NULL;
}

const crm_route_t *crm_endpoint_routes(crm_error_t *(*serve)(crm_call_t *call),
                                       const crm_access_t *access,
                                       apr_pool_t *pool)
{
    crm_route_t *routes = apr_pcalloc(pool, sizeof(*routes)
                                      * (size_t)(endpoints->nelts + 1));

    for (int i = 0; i < endpoints->nelts; i++) {
        const crm_endpoint_t *endpoint = &APR_ARRAY_IDX(endpoints, i,
                                                        crm_endpoint_t);

        routes[i].method = endpoint->operation->method;
        routes[i].path = endpoint->operation->path;
        routes[i].access = access;
        routes[i].max_body = endpoint->operation->max_body;
        routes[i].serve = serve;
        routes[i].data = endpoint;
    }
    return routes;
}
