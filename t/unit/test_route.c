/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c: paths, methods, and the tables of resources */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_api.h"
#include "crm_domain.h"
#include "crm_endpoint.h"
#include "crm_resources.h"

static const crm_router_t *router;

static void setup(void)
{
    crm_api_init(&crm_domain, crm_check_pool());
    router = crm_api_mount.router;
}

/* Return the path that PATH fits, or NULL. */
static const crm_path_t *find(const char *path)
{
    crm_arg_t args[CRM_ROUTE_ARGS];

    return crm_router_find(args, router, path, 1);
}

/* A path, the template it fits (NULL: none) and its parameter. */
static const struct {
    const char *path;
    const char *template;
    const char *parameter;
} paths[] = {
    {"/agents", "/agents", NULL},
    {"/agents/", "/agents", NULL},
    {"/agents//", NULL, NULL},
    {"//agents", NULL, NULL},
    {"/agents/x", "/agents/{id}", "x"},
    {"/agents/x/", "/agents/{id}", "x"},
    {"/agents/x//", NULL, NULL},
    {"/agents/x/y", NULL, NULL},
    {"/contacts/by-email", "/contacts/by-email", NULL},
    {"/contacts/by-email/", "/contacts/by-email", NULL},
    {"/contacts/upsert", "/contacts/upsert", NULL},
    {"/contacts/upser", "/contacts/{id}", "upser"},
    {"/contacts/upserts", "/contacts/{id}", "upserts"},
    {"/contacts/x/activities", "/contacts/{id}/activities", "x"},
    {"/contacts/by-email/activities", "/contacts/{id}/activities",
     "by-email"},
    {"/contacts/x/activity", NULL, NULL},
    {"/contacts//activities", NULL, NULL},
    {"/sequences/start", "/sequences/start", NULL},
    {"/sequences/enrollments/x", "/sequences/enrollments/{id}", "x"},
    {"/sequences/enrollments", "/sequences/enrollments", NULL},
    {"/sequences", NULL, NULL},
    {"/Agents", NULL, NULL},
    {"/agent", NULL, NULL},
    {"/agentsx", NULL, NULL},
    {"agents", NULL, NULL},
    {"", NULL, NULL},
    {"/", NULL, NULL},
    {"//", NULL, NULL},
    {"/a/b/c/d/e/f/g/h/i", NULL, NULL},
};

START_TEST(contract_5_2_what_a_path_fits)
{
    crm_arg_t args[CRM_ROUTE_ARGS] = {{NULL, 0}};
    const crm_path_t *path = crm_router_find(args, router, paths[_i].path,
                                             1);

    ck_assert_msg(!strcmp(path ? path->template : "none",
                          paths[_i].template ? paths[_i].template : "none"),
                  "%s is %s", paths[_i].path, path ? path->template : "none");
    if (path && paths[_i].parameter) {
        ck_assert_ptr_nonnull(args[0].text);
        ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), args[0].text,
                                        args[0].len), paths[_i].parameter);
    }
    else if (path) {
        ck_assert_ptr_null(args[0].text);
    }
}
END_TEST

/* A router of its own: two parameters, no method beside the routes'. */
START_TEST(a_path_may_have_two_parameters)
{
    static const crm_route_t routes[] = {
        {.method = "GET", .path = "/a/{x}/b/{y}"},
        {.method = "OPTIONS", .path = "/a/{x}/b/{y}"},
        {.method = NULL}
    };
    static const crm_route_t *const tables[] = {routes, NULL};
    crm_arg_t args[CRM_ROUTE_ARGS];
    const crm_path_t *path = crm_router_find(
        args, crm_router_create(tables, "mount", NULL, crm_check_pool()),
        "/a/one/b/two", 0);

    ck_assert_ptr_nonnull(path);
    ck_assert_str_eq(path->allow, "GET, HEAD, OPTIONS");
    ck_assert_str_eq(crm_path_name(path, &routes[1]),
                     "OPTIONS mount/a/{x}/b/{y}");
    ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), args[0].text,
                                    args[0].len), "one");
    ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), args[1].text,
                                    args[1].len), "two");
}
END_TEST

START_TEST(contract_3_3_all_but_get_write)
{
    ck_assert_int_gt(router->nelts, 0);
    for (int i = 0; i < router->nelts; i++) {
        const crm_path_t *path = &APR_ARRAY_IDX(router, i, crm_path_t);

        for (int j = 0; path->routes[j]; j++) {
            const crm_endpoint_t *endpoint = path->routes[j]->data;

            ck_assert_msg(!endpoint || endpoint->write
                          == (strcmp(path->routes[j]->method, "GET") != 0),
                          "scope of %s %s", path->routes[j]->method,
                          path->template);
        }
    }
}
END_TEST

START_TEST(contract_5_1_head_is_served_by_get)
{
    const crm_path_t *path = find("/agents");

    ck_assert_ptr_nonnull(crm_path_route(path, "GET"));
    ck_assert_ptr_eq(crm_path_route(path, "HEAD"),
                     crm_path_route(path, "GET"));
    ck_assert_ptr_null(crm_path_route(path, "POST"));
    ck_assert_ptr_null(crm_path_route(path, "get"));
    ck_assert_ptr_null(crm_path_route(path, ""));
    ck_assert_ptr_null(crm_path_route(find("/contacts/upsert"), "HEAD"));
}
END_TEST

START_TEST(contract_5_1_allow_lists_the_methods)
{
    static const struct {
        const char *path, *allow;
    } allows[] = {
        {"/agents", "GET, HEAD, OPTIONS"},
        {"/contacts", "GET, HEAD, POST, OPTIONS"},
        {"/contacts/x", "GET, HEAD, PATCH, DELETE, OPTIONS"},
        {"/contacts/upsert", "POST, OPTIONS"},
        {"/openapi.json", "GET, HEAD, OPTIONS"},
    };

    for (size_t i = 0; i < sizeof(allows) / sizeof(*allows); i++) {
        ck_assert_str_eq(find(allows[i].path)->allow, allows[i].allow);
    }
}
END_TEST

START_TEST(the_registry_is_sound)
{
    crm_error_t *error = crm_api_init(&crm_domain, crm_check_pool());

    ck_assert_msg(!error, "%s", error->log);
}
END_TEST

START_TEST(operation_ids_are_unique)
{
    apr_table_t *seen = apr_table_make(crm_check_pool(), 40);

    for (int i = 0; crm_resources[i]; i++) {
        const crm_operation_t *operation = crm_resources[i]->operations;

        for (; operation && operation->id; operation++) {
            ck_assert_msg(!apr_table_get(seen, operation->id),
                          "%s is there twice", operation->id);
            apr_table_setn(seen, operation->id, "");
        }
    }
}
END_TEST

START_TEST(contract_9_3_every_field_is_shown_in_order)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_shape_t *shape = crm_shape_of(crm_resources[i]);
        const crm_field_t *field = crm_resources[i]->fields;
        int count = 0;

        if (!crm_resources[i]->operations) {
            continue;
        }
        ck_assert_ptr_nonnull(shape);
        for (; field->name; field++) {
            if (!(field->flags & CRM_F_HIDDEN)) {
                ck_assert_int_lt(count, shape->count);
                ck_assert_ptr_eq(shape->fields[count], field);
                count++;
            }
        }
        ck_assert_int_eq(count, shape->count);
    }
}
END_TEST

START_TEST(each_route_has_a_number)
{
    int number = 0;

    for (int i = 0; i < router->nelts; i++) {
        const crm_path_t *path = &APR_ARRAY_IDX(router, i, crm_path_t);

        for (int j = 0; path->routes[j]; j++) {
            ck_assert_int_eq(crm_path_number(path, path->routes[j]),
                             ++number);
        }
    }
    ck_assert_int_gt(number, 30);
    ck_assert_int_eq(crm_router_count(router), number);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *routes = tcase_create("routes"), *tables = tcase_create("tables");

    tcase_add_unchecked_fixture(routes, setup, NULL);
    tcase_add_unchecked_fixture(tables, setup, NULL);
    tcase_add_loop_test(routes, contract_5_2_what_a_path_fits, 0,
                        COUNT(paths));
    tcase_add_test(routes, a_path_may_have_two_parameters);
    tcase_add_test(routes, each_route_has_a_number);
    tcase_add_test(routes, contract_3_3_all_but_get_write);
    tcase_add_test(routes, contract_5_1_head_is_served_by_get);
    tcase_add_test(routes, contract_5_1_allow_lists_the_methods);
    tcase_add_test(tables, the_registry_is_sound);
    tcase_add_test(tables, operation_ids_are_unique);
    tcase_add_test(tables, contract_9_3_every_field_is_shown_in_order);
    suite_add_tcase(suite, routes);
    suite_add_tcase(suite, tables);
    return crm_check_main(suite);
}
