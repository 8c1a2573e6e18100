/* SPDX-License-Identifier: Apache-2.0 */
/* crm_route.c: routes as data, and the router */
#include "crm_route.h"

#include <string.h>

#include "apr_strings.h"

/* ---- making a router ----------------------------------------------------- */

static void split_template(crm_path_t *path, apr_pool_t *pool)
{
    char *last, *copy = apr_pstrdup(pool, path->template);

    for (char *segment = apr_strtok(copy, "/", &last);
         segment && path->count < CRM_ROUTE_SEGMENTS;
         segment = apr_strtok(NULL, "/", &last)) {
        int parameter = *segment == '{';

        path->segments[path->count++] = parameter ? NULL : segment;
        path->literals += !parameter;
    }
}

/* Return the path of ROUTER whose template is TEMPLATE. Add it if it is new. */
static crm_path_t *path_of(crm_router_t *router, const char *template)
{
    crm_path_t *path;

    for (int i = 0; i < router->nelts; i++) {
        path = &APR_ARRAY_IDX(router, i, crm_path_t);
        if (!strcmp(path->template, template)) {
            return path;
        }
    }
    path = apr_array_push(router);
    memset(path, 0, sizeof(*path));
    path->template = template;
    split_template(path, router->pool);
    return path;
}

static void add_route(crm_router_t *router, const crm_route_t *route)
{
    crm_path_t *path = path_of(router, route->path);
    int i = 0;

    while (path->routes[i] && i < CRM_ROUTE_METHODS - 1) {
        i++;
    }
    path->routes[i] = route;
}

/* Return the number of PATH's routes. */
static int count_routes(const crm_path_t *path)
{
    int count = 0;

    while (path->routes[count]) {
        count++;
    }
    return count;
}

static void make_allow(crm_path_t *path, const char *more, apr_pool_t *pool)
{
    const char *allow = "", *comma = "";

    for (int i = 0; path->routes[i]; i++) {
        const char *method = path->routes[i]->method;

        allow = apr_pstrcat(pool, allow, comma, method,
                            strcmp(method, "GET") ? "" : ", HEAD", NULL);
        comma = ", ";
    }
    path->allow = more ? apr_pstrcat(pool, allow, comma, more, NULL) : allow;
}

static void make_names(crm_path_t *path, const char *prefix, apr_pool_t *pool)
{
    for (int i = 0; path->routes[i]; i++) {
        path->names[i] = apr_pstrcat(pool, path->routes[i]->method, " ", prefix,
                                     path->template, NULL);
    }
}

crm_router_t *crm_router_create(const crm_route_t *const *tables,
                                const char *prefix, const char *more,
                                apr_pool_t *pool)
{
    crm_router_t *router = apr_array_make(pool, 40, sizeof(crm_path_t));
    int number = 1;

    for (; *tables; tables++) {
        for (const crm_route_t *route = *tables; route->method; route++) {
            add_route(router, route);
        }
    }
    for (int i = 0; i < router->nelts; i++) {
        crm_path_t *path = &APR_ARRAY_IDX(router, i, crm_path_t);

        make_names(path, prefix, pool);
        make_allow(path, more, pool);
        path->first = number;
        number += count_routes(path);
    }
    return router;
}

/* Return the index of ROUTE among PATH's. */
static int index_of(const crm_path_t *path, const crm_route_t *route)
{
    int i = 0;

    while (path->routes[i] != route) {
        i++;
    }
    return i;
}

const char *crm_path_name(const crm_path_t *path, const crm_route_t *route)
{
    return path->names[index_of(path, route)];
}

int crm_path_number(const crm_path_t *path, const crm_route_t *route)
{
    return path->first + index_of(path, route);
}

int crm_router_count(const crm_router_t *router)
{
    const crm_path_t *last = &APR_ARRAY_IDX(router, router->nelts - 1,
                                            crm_path_t);

    return last->first + count_routes(last) - 1;
}

/* ---- finding a route ----------------------------------------------------- */

/* Split PATH into at most CRM_ROUTE_SEGMENTS SEGMENTS and return their number,
 * or -1 if there are more or one is empty. If SLASH, a trailing slash is
 * ignored. */
static int split_path(crm_arg_t *segments, const char *path, int slash)
{
    int count = 0;

    while (*path == '/') {
        const char *end;

        path++;
        if (!*path && slash) {
            return count;
        }
        end = strchr(path, '/');
        end = end ? end : path + strlen(path);
        if (end == path || count == CRM_ROUTE_SEGMENTS) {
            return -1;
        }
        segments[count].text = path;
        segments[count].len = (apr_size_t)(end - path);
        count++;
        path = end;
    }
    return *path ? -1 : count;
}

/* Return whether PATH matches the COUNT SEGMENTS. */
static int path_fits(const crm_path_t *path, const crm_arg_t *segments,
                     int count)
{
    if (path->count != count) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        const char *literal = path->segments[i];

        if (literal && (strncmp(literal, segments[i].text, segments[i].len)
                        || literal[segments[i].len])) {
            return 0;
        }
    }
    return 1;
}

const crm_path_t *crm_router_find(crm_arg_t args[CRM_ROUTE_ARGS],
                                  const crm_router_t *router,
                                  const char *path, int slash)
{
    crm_arg_t segments[CRM_ROUTE_SEGMENTS];
    int count = split_path(segments, path, slash), n = 0;
    const crm_path_t *best = NULL;

    for (int i = 0; count >= 0 && i < router->nelts; i++) {
        const crm_path_t *one = &APR_ARRAY_IDX(router, i, crm_path_t);

        if (path_fits(one, segments, count)
            && (!best || best->literals < one->literals)) {
            best = one;
        }
    }
    for (int i = 0; best && i < count && n < CRM_ROUTE_ARGS; i++) {
        if (!best->segments[i]) {
            args[n++] = segments[i];
        }
    }
    return best;
}

/* Return whether a segment of PATH is the word ARG. */
static int has_word(const crm_path_t *path, const crm_arg_t *arg)
{
    for (int i = 0; i < path->count; i++) {
        const char *word = path->segments[i];

        if (word && strlen(word) == arg->len
            && !strncmp(word, arg->text, arg->len)) {
            return 1;
        }
    }
    return 0;
}

/* Return the path of ROUTER that has the word ARG: one that begins as PATH does,
 * if there is one. NULL: none has it. */
static const crm_path_t *path_with(const crm_router_t *router,
                                   const crm_path_t *path, const crm_arg_t *arg)
{
    const crm_path_t *found = NULL;

    for (int i = 0; i < router->nelts; i++) {
        const crm_path_t *one = &APR_ARRAY_IDX(router, i, crm_path_t);

        if (!has_word(one, arg)) {
            continue;
        }
        if (!strcmp(one->segments[0], path->segments[0])) {
            return one;
        }
        found = found ? found : one;
    }
    return found;
}

const char *crm_router_hint(const crm_router_t *router, const crm_path_t *path,
                            const crm_arg_t args[CRM_ROUTE_ARGS],
                            apr_pool_t *pool)
{
    for (int i = 0; i < CRM_ROUTE_ARGS && args[i].text; i++) {
        const crm_path_t *one = path_with(router, path, &args[i]);

        if (one) {
            return apr_pstrcat(pool, " (\"",
                               apr_pstrmemdup(pool, args[i].text, args[i].len),
                               "\" is no id, but a part of ", one->template,
                               ")", NULL);
        }
    }
    return "";
}

const crm_route_t *crm_path_route(const crm_path_t *path, const char *method)
{
    if (!strcmp(method, "HEAD")) {
        method = "GET";
    }
    for (int i = 0; path->routes[i]; i++) {
        if (!strcmp(path->routes[i]->method, method)) {
            return path->routes[i];
        }
    }
    return NULL;
}
