/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.c: the mount of the REST API */
#include "crm_api.h"

#include "crm_docs.h"
#include "crm_endpoint.h"
#include "crm_rest.h"

crm_mount_t crm_api_mount = {
    .other = &crm_access_key, .rest = 1,
    .no_path = "There is no such path: " CRM_API_BASE "/docs has all",
};

crm_error_t *crm_api_init(const crm_domain_t *domain, apr_pool_t *pool)
{
    static const crm_route_t document[] = {
        {.method = "GET", .path = "/openapi.json",
         .access = &crm_access_anybody, .serve = crm_openapi_serve},
        {.method = "GET", .path = "/docs", .access = &crm_access_anybody,
         .serve = crm_docs_serve},
        {.method = "GET", .path = "/llms.txt", .access = &crm_access_anybody,
         .serve = crm_docs_serve_llms},
        {.method = NULL}
    };
    const crm_route_t *tables[] = {NULL, document, NULL};
    crm_router_t *router;

    CRM_ERR(crm_endpoint_init(domain->resources, domain->handlers, pool));
    tables[0] = crm_endpoint_routes(crm_rest_serve, &crm_access_key, pool);
    router = crm_router_create(tables, "", "OPTIONS", pool);
    CRM_ERR(crm_openapi_init(router, domain->openapi, domain->events, pool));
    CRM_ERR(crm_docs_init(pool));
    crm_api_mount.router = router;
    return NULL;
}
