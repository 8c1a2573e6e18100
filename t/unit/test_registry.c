/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry.c: the tables are sound; that they say what the specification's
 * tables say is t/81-specification.t's */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_shape.h"

/* Return the operation whose method and path are NAME, "GET /agents". */
static const crm_operation_t *operation_of(const char *name)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_operation_t *operation = crm_resources[i]->operations;

        for (; operation && operation->id; operation++) {
            if (!strcmp(name, apr_pstrcat(crm_check_pool(), operation->method,
                                          " ", operation->path, NULL))) {
                return operation;
            }
        }
    }
    return NULL;
}

static void setup(void)
{
    crm_registry_init(crm_resources, crm_check_pool());
}

START_TEST(resources_and_fields_are_found_by_name)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_resource_t *resource = crm_resources[i];
        int count = crm_resource_fields(resource);

        ck_assert_ptr_eq(crm_resource_find(resource->name), resource);
        ck_assert_int_gt(count, 0);
        ck_assert_ptr_null(resource->fields[count].name);
        for (int j = 0; j < count; j++) {
            ck_assert_ptr_eq(crm_resource_field(resource,
                                                resource->fields[j].name),
                             &resource->fields[j]);
        }
        ck_assert_ptr_null(crm_resource_field(resource, "nothing"));
        ck_assert_ptr_null(crm_resource_field(resource, ""));
    }
    ck_assert_ptr_null(crm_resource_find("contacts"));
    ck_assert_ptr_null(crm_resource_find("Contact"));
    ck_assert_ptr_null(crm_resource_find(""));
}
END_TEST

/* The registry's order is that of imports and exports. */
START_TEST(each_comes_after_those_it_refers_to)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_field_t *field = crm_resources[i]->fields;

        for (; field->name; field++) {
            int known = 0;

            if (field->type != &crm_type_ref) {
                continue;
            }
            for (int j = 0; j < i; j++) {
                known |= !strcmp(crm_resources[j]->name, field->ref);
            }
            ck_assert_msg(known, "%s.%s refers to %s, which comes later",
                          crm_resources[i]->name, field->name, field->ref);
        }
    }
}
END_TEST

/* --- bodies ----------------------------------------------------------------- */

/* Nobody may write what the service itself keeps. */
START_TEST(contract_6_2_read_only_fields)
{
    static const char *const names[] = {
        "id", "workspace_id", "created_at", "updated_at", "last_contacted_at",
        "suppressed",
        "last_activity_at", "total_deal_value", "assigned_at", "deleted_at",
    };

    for (int i = 0; crm_resources[i]; i++) {
        for (int j = 0; j < COUNT(names); j++) {
            const crm_field_t *field = crm_resource_field(crm_resources[i],
                                                          names[j]);

            ck_assert_msg(!field || !(field->flags & (CRM_F_CREATE
                                                      | CRM_F_UPDATE)),
                          "%s.%s can be written", crm_resources[i]->name,
                          names[j]);
        }
    }
}
END_TEST

/* Nothing refers to a row that was just inserted, so what is computed from rows
 * that do is null, and the answer to a POST reads no table by itself. */
START_TEST(a_create_reads_no_other_table)
{
    ck_assert_ptr_null(crm_shape_init(crm_resources, crm_check_pool()));
    for (int i = 0; crm_resources[i]; i++) {
        const crm_shape_t *shape = crm_shape_of(crm_resources[i]);

        ck_assert_msg(!strstr(shape->new_columns, "SELECT"), "%s: %s",
                      crm_resources[i]->name, shape->new_columns);
    }
    ck_assert_ptr_nonnull(strstr(crm_shape_of(&crm_resource_contact)
                                 ->row_columns, "SELECT"));
}
END_TEST

/* So a computed field of what a POST creates must take null. */
START_TEST(a_computed_field_of_what_is_created_is_nullable)
{
    static const crm_field_t fields[] = {
        {.name = "n", .type = &crm_type_number, .flags = CRM_F_DERIVED,
         .sql = "SELECT 1"},
        {.name = NULL}
    };
    static const crm_operation_t operations[] = {
        {.id = "createThing", .method = "POST", .path = "/things",
         .kind = CRM_OP_CREATE},
        {.id = NULL}
    };
    static const crm_resource_t thing = {
        .name = "thing", .fields = fields, .operations = operations,
    };
    static const crm_resource_t *const resources[] = {&thing, NULL};
    crm_error_t *error = crm_registry_init(resources, crm_check_pool());

    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->log, "CRM1002: ")
                  && strstr(error->log, "createThing: creates rows with a"
                            " computed field that is never null"), "%s",
                  error->log);
}
END_TEST

/* --- queries ---------------------------------------------------------------- */

START_TEST(every_parameter_can_be_read_and_is_there_once)
{
    for (int i = 0; crm_resources[i]; i++) {
        const crm_operation_t *operation = crm_resources[i]->operations;

        for (; operation && operation->id; operation++) {
            const crm_filter_t *filter = operation->filters;

            for (; filter && filter->field.name; filter++) {
                ck_assert_msg(filter->field.type->parse_query != NULL,
                              "%s cannot read %s", operation->id,
                              filter->field.name);
                for (const crm_filter_t *other = operation->filters;
                     other < filter; other++) {
                    ck_assert_msg(strcmp(other->field.name,
                                         filter->field.name) != 0,
                                  "%s has %s twice", operation->id,
                                  filter->field.name);
                }
            }
        }
    }
}
END_TEST

START_TEST(contract_7_orders)
{
    const crm_operation_t *list = operation_of("GET /conversations");

    ck_assert(list->ordered && !list->sorts->ascending);
    ck_assert_str_eq(list->sorts[0].name, "created_at");
    ck_assert_str_eq(list->sorts[1].name, "last_message_at");
    ck_assert_msg(list->sorts[1].nulls_last, "contract 7.10");
    ck_assert_str_eq(list->sorts[2].name, "updated_at");
    ck_assert_msg(list->sorts[2].ascending, "contract 13.3");
    ck_assert_ptr_null(list->sorts[3].keys[0]);
    list = operation_of("GET /conversations/{id}/messages");
    ck_assert(list->ordered && list->sorts->ascending);
    ck_assert(operation_of("GET /pipelines/{id}/stages")->whole);
    ck_assert(operation_of("GET /pipelines/{id}/stages")->sorts->ascending);
    list = operation_of("GET /agents");
    ck_assert(!list->ordered && !list->sorts->ascending && !list->whole);
}
END_TEST

/* --- statuses --------------------------------------------------------------- */

static const struct {
    const char *operation;
    int status, location, sequences;
} statuses[] = {
    {"POST /contacts", 201, 1, 0}, {"POST /companies", 201, 1, 0},
    {"POST /pipeline-cards", 201, 1, 0}, {"POST /activities", 201, 1, 0},
    {"POST /contacts/upsert", 200, 0, 0},
    {"POST /sequences/start", 202, 0, 1},
    {"GET /sequences/enrollments/{id}", 200, 0, 1},
    {"POST /sequences/enrollments/{id}/approve", 200, 0, 1},
    {"POST /sequences/enrollments/{id}/stop", 200, 0, 1},
    {"GET /contacts", 200, 0, 0}, {"GET /contacts/{id}", 200, 0, 0},
    {"PATCH /contacts/{id}", 200, 0, 0}, {"PATCH /companies/{id}", 200, 0, 0},
    {"PATCH /pipeline-cards/{id}", 200, 0, 0},
    {"PATCH /conversations/{id}", 200, 0, 0},
    {"DELETE /contacts/{id}", 204, 0, 0},
    {"DELETE /companies/{id}", 204, 0, 0},
    {"DELETE /pipeline-cards/{id}", 204, 0, 0},
    {"DELETE /conversations/{id}", 204, 0, 0},
};

START_TEST(contract_8_statuses_5_4_locations_3_3_plans)
{
    const crm_operation_t *operation = operation_of(statuses[_i].operation);

    ck_assert_msg(operation != NULL, "no %s", statuses[_i].operation);
    ck_assert_msg(crm_kind_of(operation)->status == statuses[_i].status,
                  "%s answers %d", statuses[_i].operation,
                  crm_kind_of(operation)->status);
    ck_assert_msg(!operation->location == !statuses[_i].location,
                  "Location of %s", statuses[_i].operation);
    ck_assert_msg(!operation->sequences == !statuses[_i].sequences,
                  "plan of %s", statuses[_i].operation);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *tables = tcase_create("tables"), *fields = tcase_create("fields");
    TCase *operations = tcase_create("operations");

    tcase_add_checked_fixture(tables, setup, NULL);
    tcase_add_test(tables, resources_and_fields_are_found_by_name);
    tcase_add_test(tables, each_comes_after_those_it_refers_to);
    tcase_add_test(fields, contract_6_2_read_only_fields);
    tcase_add_test(operations, every_parameter_can_be_read_and_is_there_once);
    tcase_add_test(operations, contract_7_orders);
    tcase_add_test(operations, a_create_reads_no_other_table);
    tcase_add_test(operations,
                   a_computed_field_of_what_is_created_is_nullable);
    tcase_add_loop_test(operations,
                        contract_8_statuses_5_4_locations_3_3_plans, 0,
                        COUNT(statuses));
    suite_add_tcase(suite, tables);
    suite_add_tcase(suite, fields);
    suite_add_tcase(suite, operations);
    return crm_check_main(suite);
}
