/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_path.c: the path and query of a request, down to its operation */
/* libFuzzer: -max_len=8190 */

#include "fuzz.h"

#include "crm_api.h"
#include "crm_domain.h"
#include "crm_query.h"
#include "crm_uuid.h"

/* Return how many segments PATH has, without one trailing slash. */
static int count_segments(const char *path)
{
    int count = 0;

    for (; *path; path++) {
        count += path[0] == '/' && path[1];
    }
    return count;
}

/* Look at ROUTE, which PATH is said to fit, with its parameter. */
static void found(const crm_path_t *route, const char *path,
                  const char *parameter, apr_size_t len)
{
    char id[CRM_UUID_LEN + 1];

    must(path[0] == '/' && !strstr(path, "//"));
    must(route->count == count_segments(path));
    must(route->allow && crm_path_route(route, "OPTIONS") == NULL);
    must((parameter != NULL) == (route->literals < route->count));
    if (!parameter) {
        /* a template without parameters is the path */
        must(!strncmp(path, route->template, strlen(route->template)));
        return;
    }
    must(parameter > path && parameter[-1] == '/' && len > 0);
    must(parameter + len <= path + strlen(path));
    must(!parameter[len] || parameter[len] == '/');
    must(!memchr(parameter, '/', len));
    if (crm_uuid_parse(id, parameter, len)) {
        must(strlen(id) == CRM_UUID_LEN);
    }
}

static void init(apr_pool_t *pool)
{
    crm_api_init(&crm_domain, pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    crm_arg_t args[CRM_ROUTE_ARGS] = {{NULL, 0}};
    apr_array_header_t *params;
    const crm_path_t *route;
    char *path = fuzz_text(data, size), *query = strchr(path, '?');

    if (query) {
        *query++ = '\0';
    }
    route = crm_router_find(args, crm_api_mount.router, path, 1);
    if (route) {
        found(route, path, args[0].text, args[0].len);
    }
    crm_query_parse(&params, query, pool);
    must(params->nelts >= 0 && (query || !params->nelts));
    free(path);
    apr_pool_destroy(pool);
    return 0;
}
