/* SPDX-License-Identifier: Apache-2.0 */
/* crm_route.c: from a path to the operations there */
#include "crm_route.h"

#include <string.h>

#include "apr_strings.h"

/* Made once in a process, before there are threads; read only after. */
static apr_array_header_t *routes;      /* of crm_route_t */
static apr_array_header_t *shapes;      /* of crm_shape_t */

/* Return whether FIELD is in SHAPE. */
static int is_shown(const crm_shape_t *shape, const crm_field_t *field)
{
    return !(field->flags & CRM_F_HIDDEN)
           || (shape->asked && field->flags & CRM_F_ASKED);
}

/* Add to shapes that of RESOURCE; ASKED: with the CRM_F_ASKED fields. */
static void add_shape(const crm_resource_t *resource, int asked,
                      apr_pool_t *pool)
{
    crm_shape_t *shape = apr_array_push(shapes);
    size_t count = (size_t)crm_resource_fields(resource);
    const char *columns = "";

    memset(shape, 0, sizeof(*shape));
    shape->resource = resource;
    shape->asked = asked;
    shape->fields = apr_palloc(pool, count * sizeof(*shape->fields));
    shape->indexes = apr_palloc(pool, count * sizeof(*shape->indexes));
    shape->keys = apr_palloc(pool, count * sizeof(*shape->keys));
    shape->key_lens = apr_palloc(pool, count * sizeof(*shape->key_lens));
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        int i = shape->count;

        if (!is_shown(shape, field)) {
            continue;
        }
        shape->fields[i] = field;
        shape->indexes[i] = (int)(field - resource->fields);
        shape->keys[i] = apr_pstrcat(pool, i ? ",\"" : "\"", field->name,
                                     "\":", NULL);
        shape->key_lens[i] = strlen(shape->keys[i]);
        columns = field->sql
                  ? apr_pstrcat(pool, columns, i ? ", (" : "(", field->sql,
                                ")", NULL)
                  : apr_pstrcat(pool, columns, i ? ", t." : "t.",
                                field->name, NULL);
        shape->count++;
    }
    shape->columns = columns;
    shape->has_updated_at = crm_resource_field(resource, "updated_at") != NULL;
}

static const crm_shape_t *find_shape(const crm_resource_t *resource,
                                     int asked)
{
    for (int i = 0; i < shapes->nelts; i++) {
        const crm_shape_t *shape = &APR_ARRAY_IDX(shapes, i, crm_shape_t);

        if (shape->resource == resource && shape->asked == asked) {
            return shape;
        }
    }
    return NULL;
}

const crm_shape_t *crm_shape_of(const crm_resource_t *resource)
{
    return find_shape(resource, 0);
}

/* Split the template of ROUTE into its segments. */
static void split_template(crm_route_t *route, apr_pool_t *pool)
{
    char *last, *copy = apr_pstrdup(pool, route->path);

    for (char *segment = apr_strtok(copy, "/", &last);
         segment && route->count < CRM_ROUTE_SEGMENTS;
         segment = apr_strtok(NULL, "/", &last)) {
        int parameter = *segment == '{';

        route->segments[route->count++] = parameter ? NULL : segment;
        route->literals += !parameter;
    }
}

/* Return the route whose template is PATH, made if there is none yet. Names
 * of parameters do not tell templates apart. */
static crm_route_t *route_of(const char *path, apr_pool_t *pool)
{
    crm_route_t *route;

    for (int i = 0; i < routes->nelts; i++) {
        route = &APR_ARRAY_IDX(routes, i, crm_route_t);
        if (!strcmp(route->path, path)) {
            return route;
        }
    }
    route = apr_array_push(routes);
    memset(route, 0, sizeof(*route));
    route->path = path;
    split_template(route, pool);
    return route;
}

static void add_endpoint(const crm_resource_t *resource,
                         const crm_operation_t *operation, apr_pool_t *pool)
{
    crm_route_t *route = route_of(operation->path, pool);
    crm_endpoint_t *endpoint = apr_pcalloc(pool, sizeof(*endpoint));
    int i = 0;

    endpoint->operation = operation;
    endpoint->resource = resource;
    endpoint->shape = crm_shape_of(resource);
    endpoint->asked = find_shape(resource, 1);
    endpoint->name = apr_pstrcat(pool, operation->method, " ",
                                 operation->path, NULL);
    endpoint->write = strcmp(operation->method, "GET") != 0;
    while (route->endpoints[i] && i < CRM_ROUTE_ENDPOINTS - 2) {
        i++;
    }
    route->endpoints[i] = endpoint;
}

static void make_allow(crm_route_t *route, apr_pool_t *pool)
{
    const char *allow = "";

    for (int i = 0; route->endpoints[i]; i++) {
        const char *method = route->endpoints[i]->operation->method;

        allow = apr_pstrcat(pool, allow, method, ", ",
                            strcmp(method, "GET") ? "" : "HEAD, ", NULL);
    }
    route->allow = apr_pstrcat(pool, allow, "OPTIONS", NULL);
}

crm_error_t *crm_route_init(const crm_resource_t *const *resources,
                            apr_pool_t *pool)
{
    CRM_ERR(crm_registry_init(resources, pool));
    routes = apr_array_make(pool, 40, sizeof(crm_route_t));
    shapes = apr_array_make(pool, 40, sizeof(crm_shape_t));
    for (int i = 0; resources[i]; i++) {
        add_shape(resources[i], 0, pool);
        add_shape(resources[i], 1, pool);
    }
    for (int i = 0; resources[i]; i++) {
        const crm_operation_t *operation = resources[i]->operations;

        for (; operation && operation->id; operation++) {
            add_endpoint(resources[i], operation, pool);
        }
    }
    for (int i = 0; i < routes->nelts; i++) {
        make_allow(&APR_ARRAY_IDX(routes, i, crm_route_t), pool);
    }
    return NULL;
}

const apr_array_header_t *crm_route_all(void)
{
    return routes;
}

/* A segment of a path. */
typedef struct segment_t {
    const char *text;
    apr_size_t len;
} segment_t;

/* Split PATH into at most CRM_ROUTE_SEGMENTS SEGMENTS; return their number,
 * or -1 if there are more or an empty one (but for one trailing slash). */
static int split_path(segment_t *segments, const char *path)
{
    int count = 0;

    while (*path == '/') {
        const char *end;

        path++;
        if (!*path && count) {
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

/* Return whether ROUTE fits the COUNT SEGMENTS, and its parameter's index. */
static int route_fits(int *parameter_p, const crm_route_t *route,
                      const segment_t *segments, int count)
{
    *parameter_p = -1;
    if (route->count != count) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        const char *literal = route->segments[i];

        if (!literal) {
            *parameter_p = i;
        }
        else if (strncmp(literal, segments[i].text, segments[i].len)
                 || literal[segments[i].len]) {
            return 0;
        }
    }
    return 1;
}

const crm_route_t *crm_route_find(const char **parameter_p, apr_size_t *len_p,
                                  const char *path)
{
    segment_t segments[CRM_ROUTE_SEGMENTS];
    int count = split_path(segments, path);
    const crm_route_t *found = NULL;

    *parameter_p = NULL;
    for (int i = 0; count > 0 && i < routes->nelts; i++) {
        const crm_route_t *route = &APR_ARRAY_IDX(routes, i, crm_route_t);
        int parameter;

        if (!route_fits(&parameter, route, segments, count)
            || (found && found->literals >= route->literals)) {
            continue;
        }
        found = route;
        *parameter_p = parameter < 0 ? NULL : segments[parameter].text;
        *len_p = parameter < 0 ? 0 : segments[parameter].len;
    }
    return found;
}

const crm_endpoint_t *crm_route_endpoint(const crm_route_t *route,
                                         const char *method)
{
    if (!strcmp(method, "HEAD")) {
        method = "GET";
    }
    for (int i = 0; route->endpoints[i]; i++) {
        if (!strcmp(route->endpoints[i]->operation->method, method)) {
            return route->endpoints[i];
        }
    }
    return NULL;
}

void crm_shape_write(crm_buf_t *buf, const crm_shape_t *shape,
                     const PGresult *result, int row, int first_column)
{
    crm_buf_putc(buf, '{');
    for (int i = 0; i < shape->count; i++) {
        int column = first_column + i;

        crm_buf_add(buf, shape->keys[i], shape->key_lens[i]);
        crm_type_write(buf, shape->fields[i],
                       crm_db_value(result, row, column),
                       (apr_size_t)PQgetlength(result, row, column));
    }
    crm_buf_putc(buf, '}');
}
