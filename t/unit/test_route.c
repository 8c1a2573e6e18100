/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c: paths, methods, and the tables of resources */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_route.h"

static void setup(void)
{
    crm_route_init(crm_resources, crm_check_pool());
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
    {"/sequences/enrollments", NULL, NULL},
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
    const char *parameter;
    apr_size_t len = 0;
    const crm_route_t *route = crm_route_find(&parameter, &len,
                                              paths[_i].path);

    ck_assert_msg(!strcmp(route ? route->path : "none",
                          paths[_i].template ? paths[_i].template : "none"),
                  "%s is %s", paths[_i].path, route ? route->path : "none");
    if (route && paths[_i].parameter) {
        ck_assert_ptr_nonnull(parameter);
        ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), parameter, len),
                         paths[_i].parameter);
    }
    else if (route) {
        ck_assert_ptr_null(parameter);
    }
}
END_TEST

START_TEST(contract_3_3_all_but_get_write)
{
    const apr_array_header_t *routes = crm_route_all();

    ck_assert_int_gt(routes->nelts, 0);
    for (int i = 0; i < routes->nelts; i++) {
        const crm_route_t *route = &APR_ARRAY_IDX(routes, i, crm_route_t);

        for (int j = 0; route->endpoints[j]; j++) {
            const crm_endpoint_t *endpoint = route->endpoints[j];

            ck_assert_str_eq(endpoint->name,
                             apr_pstrcat(crm_check_pool(),
                                         endpoint->operation->method, " ",
                                         route->path, NULL));
            ck_assert_msg(endpoint->write
                          == (strcmp(endpoint->operation->method, "GET") != 0),
                          "scope of %s", endpoint->name);
        }
    }
}
END_TEST

START_TEST(contract_5_1_head_is_served_by_get)
{
    const char *parameter;
    apr_size_t len;
    const crm_route_t *route = crm_route_find(&parameter, &len, "/agents");

    ck_assert_ptr_eq(crm_route_endpoint(route, "HEAD"),
                     crm_route_endpoint(route, "GET"));
    ck_assert_ptr_null(crm_route_endpoint(route, "POST"));
    ck_assert_ptr_null(crm_route_endpoint(route, "get"));
    ck_assert_ptr_null(crm_route_endpoint(route, ""));
    route = crm_route_find(&parameter, &len, "/contacts/upsert");
    ck_assert_ptr_null(crm_route_endpoint(route, "HEAD"));
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
    };

    for (int i = 0; i < 4; i++) {
        const char *parameter;
        apr_size_t len;
        const crm_route_t *route = crm_route_find(&parameter, &len,
                                                  allows[i].path);

        ck_assert_str_eq(route->allow, allows[i].allow);
    }
}
END_TEST

START_TEST(the_registry_is_sound)
{
    crm_error_t *error = crm_route_init(crm_resources, crm_check_pool());

    ck_assert_msg(!error, "%s", error->log);
}
END_TEST

START_TEST(operation_ids_are_unique)
{
    const apr_array_header_t *routes = crm_route_all();
    apr_table_t *seen = apr_table_make(crm_check_pool(), 40);

    for (int i = 0; i < routes->nelts; i++) {
        const crm_route_t *route = &APR_ARRAY_IDX(routes, i, crm_route_t);

        for (int j = 0; route->endpoints[j]; j++) {
            const char *id = route->endpoints[j]->operation->id;

            ck_assert_msg(!apr_table_get(seen, id), "%s is there twice", id);
            apr_table_setn(seen, id, "");
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

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *routes = tcase_create("routes"), *tables = tcase_create("tables");

    tcase_add_unchecked_fixture(routes, setup, NULL);
    tcase_add_unchecked_fixture(tables, setup, NULL);
    tcase_add_loop_test(routes, contract_5_2_what_a_path_fits, 0,
                        COUNT(paths));
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
