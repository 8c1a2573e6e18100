/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c: paths, methods, and the tables of resources */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_route.h"

static void setup(void)
{
    crm_route_init(crm_check_pool());
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

/* Every operation of the specification, in its order. */
static const char *const operations[] = {
    "GET /agents", "GET /agents/{id}", "GET /contacts",
    "GET /contacts/by-email", "GET /contacts/{id}", "POST /contacts",
    "PATCH /contacts/{id}", "DELETE /contacts/{id}", "POST /contacts/upsert",
    "GET /contacts/{id}/activities", "GET /contacts/{id}/conversations",
    "GET /companies", "GET /companies/{id}", "POST /companies",
    "PATCH /companies/{id}", "DELETE /companies/{id}", "GET /pipelines",
    "GET /pipelines/{id}/stages", "GET /pipeline-cards",
    "GET /pipeline-cards/{id}", "POST /pipeline-cards",
    "PATCH /pipeline-cards/{id}", "DELETE /pipeline-cards/{id}",
    "POST /activities", "GET /conversations", "GET /conversations/{id}",
    "PATCH /conversations/{id}", "DELETE /conversations/{id}",
    "GET /conversations/{id}/messages", "GET /forms", "GET /forms/{id}",
    "GET /forms/{id}/submissions", "GET /submissions/{id}",
    "POST /sequences/start", "GET /sequences/enrollments/{id}",
};
#define OPERATIONS ((int)(sizeof(operations) / sizeof(*operations)))

START_TEST(the_specifications_operations_are_there)
{
    const char *space = strchr(operations[_i], ' ');
    char *method = apr_pstrmemdup(crm_check_pool(), operations[_i],
                                  (apr_size_t)(space - operations[_i]));
    const char *parameter;
    apr_size_t len;
    const crm_route_t *route = crm_route_find(&parameter, &len, space + 1);
    const crm_endpoint_t *endpoint;

    ck_assert_msg(route != NULL, "no route of %s", operations[_i]);
    endpoint = crm_route_endpoint(route, method);
    ck_assert_msg(endpoint != NULL, "no endpoint %s", operations[_i]);
    ck_assert_str_eq(endpoint->name, operations[_i]);
    ck_assert_msg(endpoint->write == (strcmp(method, "GET") != 0),
                  "scope of %s", operations[_i]);
}
END_TEST

START_TEST(nothing_else_is_there)
{
    const apr_array_header_t *routes = crm_route_all();

    for (int i = 0; i < routes->nelts; i++) {
        const crm_route_t *route = &APR_ARRAY_IDX(routes, i, crm_route_t);

        for (int j = 0; route->endpoints[j]; j++) {
            const char *name = route->endpoints[j]->name;
            int known = 0;

            for (int k = 0; k < OPERATIONS; k++) {
                known |= !strcmp(operations[k], name);
            }
            /* the extension of contract 11.12 */
            known |= !strncmp(name, "POST /sequences/enrollments/{id}/", 33);
            ck_assert_msg(known, "%s is not in the specification", name);
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
    const char *wrong = crm_registry_check(crm_check_pool());

    ck_assert_msg(!wrong, "%s", wrong);
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

/* Fields of each resource's answers, in the specification's order. */
static const struct {
    const char *resource;
    const char *fields;
} shapes[] = {
    {"agent", "id workspace_id name slug summary is_agent enabled public "
     "agent_role agent_type agent_status agent_color agent_email agent_phone "
     "chat_greeting chat_avatar_intro chat_avatar_image_url phone_greeting "
     "phone_voice_id text_greeting email_inbound email_outbound_autoreply "
     "email_outbound_email email_outbound_name booking_provider "
     "enabled_event_type_ids allow_human_takeover "
     "escalation_detection_enabled sentiment_analysis_enabled "
     "knowledge_count number_of_conversations popular_topics created_at"},
    {"contact", "id workspace_id bot_id first_name last_name emails "
     "phone_numbers company company_id job_title lead_source tags deal_value "
     "pipeline_stage_id contact_type address_line1 address_line2 city state "
     "postal_code country linkedin_url notes custom_fields last_contacted_at "
     "created_at updated_at"},
    {"company", "id workspace_id bot_id name domain website industry "
     "company_size company_type employee_count annual_revenue description "
     "emails phone_numbers tags total_deal_value pipeline_stage_id "
     "address_line1 address_line2 city state postal_code country "
     "linkedin_url notes custom_fields last_activity_at created_at "
     "updated_at"},
    {"pipeline", "id workspace_id bot_id name is_default is_private "
     "created_at updated_at"},
    {"pipeline_stage", "id bot_id pipeline_id name color order_index "
     "created_at updated_at"},
    {"pipeline_card", "id pipeline_stage_id contact_id title description tags "
     "order_index archived_at created_at updated_at"},
    {"activity", "id contact_id company_id activity_type title description "
     "due_date duration_minutes completed_at metadata created_at"},
    {"conversation", "id bot_id contact_id type email phone_number human "
     "human_takeover assigned_to assigned_at active archived archived_at "
     "deleted deleted_at internal internal_notes last_message "
     "last_message_at last_active_at sentiment_positive sentiment_score "
     "sentiment_summary audio_url minutes visitor_id created_at"},
    {"message", "id conversation_id role content content_type status "
     "tool_used tool_arguments created_at"},
    {"form", "id workspace_id bot_id name description standard_fields "
     "custom_fields survey_questions created_at updated_at"},
    {"submission", "id form_id contact_id custom_field_responses is_internal "
     "submitted_at"},
};

START_TEST(contract_9_3_every_field_of_the_specification)
{
    const crm_resource_t *resource = crm_resource_find(shapes[_i].resource);
    const char *names = "";
    const crm_shape_t *shape;

    ck_assert_ptr_nonnull(resource);
    shape = crm_shape_of(resource);
    ck_assert_ptr_nonnull(shape);
    for (int i = 0; i < shape->count; i++) {
        names = apr_pstrcat(crm_check_pool(), names, i ? " " : "",
                            shape->fields[i]->name, NULL);
    }
    ck_assert_str_eq(names, shapes[_i].fields);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof(*(table))))

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *routes = tcase_create("routes"), *tables = tcase_create("tables");

    tcase_add_unchecked_fixture(routes, setup, NULL);
    tcase_add_unchecked_fixture(tables, setup, NULL);
    tcase_add_loop_test(routes, contract_5_2_what_a_path_fits, 0,
                        COUNT(paths));
    tcase_add_loop_test(routes, the_specifications_operations_are_there, 0,
                        OPERATIONS);
    tcase_add_test(routes, nothing_else_is_there);
    tcase_add_test(routes, contract_5_1_head_is_served_by_get);
    tcase_add_test(routes, contract_5_1_allow_lists_the_methods);
    tcase_add_test(tables, the_registry_is_sound);
    tcase_add_test(tables, operation_ids_are_unique);
    tcase_add_loop_test(tables, contract_9_3_every_field_of_the_specification,
                        0, COUNT(shapes));
    suite_add_tcase(suite, routes);
    suite_add_tcase(suite, tables);
    return crm_check_main(suite);
}
