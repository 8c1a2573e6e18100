/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c: queries and bodies against the tables, and the SQL they make */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_access.h"
#include "crm_body.h"
#include "crm_domain.h"
#include "crm_filter.h"
#include "crm_json.h"
#include "crm_params.h"
#include "crm_rest.h"
#include "crm_sql_print.h"

#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"

static void setup(void)
{
    crm_endpoint_init(crm_domain.resources, crm_domain.handlers,
                      crm_check_pool());
}

/* Return "field; field" of ERROR's details, "" for none. */
static const char *wrong_fields(const crm_error_t *error)
{
    const char *text = "";

    for (int i = 0; error && error->details && i < error->details->nelts;
         i++) {
        text = apr_pstrcat(crm_check_pool(), text, i ? "; " : "",
                           APR_ARRAY_IDX(error->details, i,
                                         crm_detail_t).field, NULL);
    }
    return text;
}

/* ---- SQL ---- */

/* Return SQL's text as a string. */
static const char *text_of(crm_sql_t *sql)
{
    crm_stmt_t stmt;

    crm_sql_stmt(&stmt, sql);
    return stmt.sql;
}

/* ---- parameters ---- */

/* Set CALL to the GET on PATH with QUERY; return what crm_rest_params() says.
 */
static crm_error_t *read_query(crm_call_t *call, const char *path,
                               const char *query, int strict)
{
    crm_request_t *request = apr_pcalloc(crm_check_pool(), sizeof(*request));
    crm_rest_t *rest = apr_pcalloc(crm_check_pool(), sizeof(*rest));
    const crm_route_t *tables[] = {NULL, NULL};
    const crm_router_t *router;

    memset(call, 0, sizeof(*call));
    request->pool = call->pool = crm_check_pool();
    request->method = "GET";
    request->path = path;
    request->query = query;
    request->headers = apr_table_make(crm_check_pool(), 1);
    call->request = request;
    call->response = apr_pcalloc(crm_check_pool(), sizeof(*call->response));
    call->response->headers = apr_table_make(crm_check_pool(), 1);
    tables[0] = crm_endpoint_routes(crm_rest_serve, &crm_access_key,
                                    crm_check_pool());
    router = crm_router_create(tables, "", NULL, crm_check_pool());
    call->path = crm_router_find(call->args, router, path, 0);
    ck_assert_msg(call->path != NULL, "%s", path);
    rest->strict = strict;
    rest->endpoint = crm_path_route(call->path, "GET")->data;
    call->state = rest;
    return crm_rest_params(call);
}

/* A query and what is wrong with it ("" for nothing). */
static const struct {
    const char *path, *query, *wrong;
    int strict;
} queries[] = {
    {"/contacts", NULL, "", 1},
    {"/contacts", "", "", 1},
    {"/contacts", "page=1&page_size=100", "", 1},
    {"/contacts", "page=0", "page", 0},
    {"/contacts", "page=00001", "", 0},
    {"/contacts", "page=-1", "page", 0},
    {"/contacts", "page=", "page", 0},
    {"/contacts", "page", "page", 0},
    {"/contacts", "page=+1", "page", 0},
    {"/contacts", "page=1e1", "page", 0},
    {"/contacts", "page=999999999999999999999999", "page", 0},
    {"/contacts", "page_size=101", "page_size", 0},
    {"/contacts", "page=1&page=1", "page", 0},
    {"/contacts", "page=0&page_size=0&bot_id=", "page; page_size; bot_id", 0},
    {"/contacts", "search=&tags=", "", 1},
    {"/contacts", "lead_source=", "lead_source", 0},
    {"/contacts", "search=a&search=b", "search", 0},
    {"/contacts", "foo=1", "", 0},
    {"/contacts", "foo=1", "foo", 1},
    {"/agents", "sort=created_at", "", 0},
    {"/agents", "sort=created_at", "sort", 1},
    {"/contacts", "sort=updated_at&order=desc", "", 1},
    {"/contacts", "sort=last_message_at", "sort", 0},
    {"/contacts", "cursor=*&page_size=3&search=a", "", 1},
    {"/contacts", "cursor=*&page=1", "page", 0},
    {"/contacts", "cursor=*&cursor=*", "cursor", 0},
    {"/contacts", "cursor=", "cursor", 0},
    {"/contacts", "cursor=x", "cursor", 0},
    {"/contacts", "cursor=x&bot_id=", "cursor; bot_id", 0},
    /* whether it is one of this list depends on the others */
    {"/contacts", "cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&bot_id=",
     "bot_id", 0},
    {"/contacts", "ids=a,,b", "", 1},
    {"/pipelines/x/stages", "cursor=x", "cursor", 1},
    {"/contacts", "search=%00", "search", 0},
    {"/contacts", "search=%ff", "search", 0},
    {"/contacts", "foo=%ff", "", 0},
    {"/contacts", "%73earch=a", "", 1},
    {"/contacts", "SEARCH=a", "SEARCH", 1},
    {"/contacts", "bot_id=nonsense", "", 0},
    {"/contacts", "created_after=x&created_before=2026-01-01",
     "created_after", 0},
    {"/contacts/by-email", NULL, "email", 0},
    {"/contacts/by-email", "email=a@b", "", 1},
    {"/contacts/by-email", "email=a@b&page=0", "", 0},
    {"/conversations", "sort=last_message_at&order=asc", "", 1},
    {"/conversations", "sort=id", "sort", 0},
    {"/conversations", "order=up", "order", 0},
    {"/conversations", "type=fax", "type", 0},
    {"/pipelines/x/stages", "page=0", "", 0},
    {"/pipelines/x/stages", "page=0", "page", 1},
    {"/agents/x", "page=0", "", 0},
};

START_TEST(contract_7_1_what_a_query_may_say)
{
    crm_call_t call;
    crm_error_t *error = read_query(&call, queries[_i].path,
                                    queries[_i].query, queries[_i].strict);

    ck_assert_msg(!strcmp(wrong_fields(error), queries[_i].wrong),
                  "%s?%s: wrong: \"%s\", expected \"%s\"", queries[_i].path,
                  queries[_i].query ? queries[_i].query : "",
                  wrong_fields(error), queries[_i].wrong);
    ck_assert(!error == !*queries[_i].wrong);
    ck_assert(!error || error->code == CRM_E_VALIDATION);
}
END_TEST

START_TEST(contract_7_2_defaults_and_pages)
{
    crm_call_t call;

    ck_assert_ptr_null(read_query(&call, "/contacts", NULL, 0));
    ck_assert_int_eq(crm_rest(&call)->page, 1);
    ck_assert_int_eq(crm_rest(&call)->page_size, 25);
    ck_assert_int_eq(crm_rest(&call)->ascending, 0);
    ck_assert_ptr_null(read_query(&call, "/contacts",
                                  "page=7&page_size=3", 0));
    ck_assert_int_eq(crm_rest(&call)->page, 7);
    ck_assert_int_eq(crm_rest(&call)->page_size, 3);
    ck_assert_ptr_null(read_query(&call, "/conversations/x/messages", NULL,
                                  0));
    ck_assert_int_eq(crm_rest(&call)->ascending, 1);
    ck_assert_ptr_null(read_query(&call, "/conversations/x/messages",
                                  "order=desc", 0));
    ck_assert_int_eq(crm_rest(&call)->ascending, 0);
    ck_assert_ptr_null(read_query(&call, "/conversations",
                                  "sort=last_message_at", 0));
    ck_assert_str_eq(crm_rest(&call)->sort->name, "last_message_at");
}
END_TEST

START_TEST(parameters_become_binds)
{
    crm_call_t call;

    ck_assert_ptr_null(read_query(&call, "/contacts", "bot_id=" ID
                                  "&tags=a,b&created_after=2026-01-01", 0));
    ck_assert_str_eq(crm_rest_param(&call, "bot_id"), ID);
    ck_assert_str_eq(crm_rest_param(&call, "tags"), "{\"a\",\"b\"}");
    ck_assert_str_eq(crm_rest_param(&call, "created_after"),
                     "2026-01-01T00:00:00.000000Z");
    ck_assert_ptr_null(crm_rest_param(&call, "search"));
    ck_assert_ptr_null(crm_rest_param(&call, "no such"));
}
END_TEST

/* Return the condition and binds that filter NAME makes of QUERY on PATH. */
static const char *condition(const char *path, const char *query,
                             const char *name)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text;
    crm_call_t call;
    crm_sql_t sql;

    ck_assert_ptr_null(read_query(&call, path, query, 0));
    crm_sql_init(&sql, pool);
    for (crm_param_t *param = crm_rest(&call)->params; param->filter; param++) {
        if (!strcmp(param->filter->field.name, name) && param->given) {
            crm_filter_add(&sql, param->filter, param->bind, &call);
        }
    }
    text = text_of(&sql);
    for (int i = 0; i < sql.binds->nelts; i++) {
        const char *bind = APR_ARRAY_IDX(sql.binds, i, const char *);

        text = apr_pstrcat(pool, text, " [", bind ? bind : "NULL", "]", NULL);
    }
    return text;
}

START_TEST(contract_7_8_search_is_a_literal_substring)
{
    ck_assert_ptr_nonnull(strstr(condition("/agents", "search=50%25_a%5cb",
                                           "search"),
                                 " [%50\\%\\_a\\\\b%]"));
    ck_assert_ptr_nonnull(strstr(condition("/contacts",
                                           "search=%2b1+(555)-01", "search"),
                                 " [%155501%]"));
    ck_assert_ptr_null(strstr(condition("/contacts", "search=a1", "search"),
                              "[%1%]"));
    ck_assert_ptr_null(strstr(condition("/contacts", "search=--", "search"),
                              "[%%]"));
    ck_assert_str_eq(condition("/contacts", "search=", "search"), "");
}
END_TEST

START_TEST(no_value_gets_into_the_text_of_a_statement)
{
    static const char *const filters[][3] = {
        {"/contacts", "lead_source", "x'y"}, {"/contacts", "search", "x'y"},
        {"/contacts", "tags", "x'y"}, {"/companies", "domain", "x'y"},
        {"/companies", "industry", "x'y"}, {"/agents", "slug", "x'y"},
        {"/conversations", "visitor_id", "x'y"},
        {"/conversations", "assigned_to", "x'y"},
        {"/conversations/x/messages", "role", "x'y"},
    };

    for (size_t i = 0; i < CRM_NELTS(filters); i++) {
        const char *query = apr_pstrcat(crm_check_pool(), filters[i][1], "=",
                                        filters[i][2], NULL);
        const char *text = condition(filters[i][0], query, filters[i][1]);
        const char *value = strstr(text, "x'y");
        const char *binds = strstr(text, " [");

        ck_assert_msg(value && binds && value > binds, "%s: %s", query, text);
    }
}
END_TEST

START_TEST(contract_7_7_archived_false_matches_null)
{
    ck_assert_ptr_nonnull(strstr(condition("/conversations", "archived=false",
                                           "archived"), "IS NOT TRUE"));
    ck_assert_str_eq(condition("/conversations", "include_deleted=true",
                               "include_deleted"), "");
}
END_TEST

/* ---- bodies ---- */

/* Read JSON as a body of RESOURCE in MODE. Return the wrong fields. */
static const char *read_body(crm_values_t *values, const char *resource,
                             const char *json, crm_body_mode_t mode,
                             int lenient)
{
    crm_input_t input = {crm_check_pool(), NULL, lenient};
    json_object *body;
    apr_size_t offset;

    /* the binds point into the body, which goes with the pool */
    ck_assert_msg(!crm_json_parse(&body, &offset, json, strlen(json),
                                  crm_check_pool()), "%s", json);
    crm_body_read(values, &input, crm_resource_find(resource), body, mode, "");
    return wrong_fields(input.error);
}

/* Return VALUES' bind of NAME: "unsent" if it was not, "NULL" for a null. */
static const char *bind_of(const crm_values_t *values, const char *resource,
                           const char *name)
{
    const crm_resource_t *table = crm_resource_find(resource);
    long i = crm_resource_field(table, name) - table->fields;

    return !values->sent[i] ? "unsent"
           : values->binds[i] ? values->binds[i] : "NULL";
}

/* A body and what is wrong with it. */
static const struct {
    const char *resource, *json;
    crm_body_mode_t mode;
    const char *wrong;
} bodies[] = {
    {"contact", "{\"bot_id\":\"" ID "\"}", CRM_BODY_CREATE, ""},
    {"contact", "{}", CRM_BODY_CREATE, "bot_id"},
    {"contact", "{\"bot_id\":null}", CRM_BODY_CREATE, "bot_id"},
    {"contact", "{}", CRM_BODY_UPDATE, ""},
    {"contact", "{}", CRM_BODY_MERGE, ""},
    {"contact", "{\"foo\":1,\"Bot_id\":2}", CRM_BODY_UPDATE, "foo; Bot_id"},
    {"contact", "{\"id\":1,\"workspace_id\":2,\"created_at\":3,"
     "\"updated_at\":[],\"last_contacted_at\":{}}", CRM_BODY_UPDATE, ""},
    {"contact", "{\"first_name\":null,\"company_id\":null}", CRM_BODY_UPDATE,
     ""},
    {"contact", "{\"emails\":[{\"email\":\"x\"}],\"tags\":[1]}",
     CRM_BODY_UPDATE, "emails[0].email; tags[0]"},
    {"company", "{\"bot_id\":\"" ID "\"}", CRM_BODY_CREATE, "name"},
    {"company", "{\"bot_id\":\"" ID "\",\"name\":\"\"}", CRM_BODY_CREATE,
     "name"},
    {"company", "{\"name\":null}", CRM_BODY_UPDATE, "name"},
    {"company", "{\"total_deal_value\":1}", CRM_BODY_UPDATE, ""},
    {"pipeline_card", "{}", CRM_BODY_CREATE, "pipeline_stage_id; title"},
    {"pipeline_card", "{\"order_index\":null,\"title\":null}",
     CRM_BODY_UPDATE, "order_index; title"},
    {"pipeline_card", "{\"order_index\":null,\"title\":\"x\","
     "\"pipeline_stage_id\":\"" ID "\"}", CRM_BODY_CREATE, ""},
    {"activity", "{\"activity_type\":\"note\"}", CRM_BODY_CREATE,
     "contact_id"},
    {"activity", "{\"activity_type\":\"note\",\"company_id\":\"" ID "\"}",
     CRM_BODY_CREATE, ""},
    {"activity", "{\"activity_type\":\"note\",\"contact_id\":null}",
     CRM_BODY_CREATE, "contact_id"},
    {"activity", "{\"activity_type\":\"party\",\"contact_id\":\"" ID "\"}",
     CRM_BODY_CREATE, "activity_type"},
    {"conversation", "{\"deleted\":false}", CRM_BODY_UPDATE, "deleted"},
    {"conversation", "{\"deleted\":null}", CRM_BODY_UPDATE, "deleted"},
    {"conversation", "{\"archived\":null}", CRM_BODY_UPDATE, "archived"},
    {"conversation", "{\"assigned_to\":null,\"internal_notes\":null}",
     CRM_BODY_UPDATE, ""},
    {"conversation", "{\"email\":\"not stored\",\"type\":9}",
     CRM_BODY_UPDATE, ""},
};

START_TEST(contract_6_what_a_body_may_say)
{
    crm_values_t values;
    const char *wrong = read_body(&values, bodies[_i].resource,
                                  bodies[_i].json, bodies[_i].mode, 0);

    ck_assert_msg(!strcmp(wrong, bodies[_i].wrong),
                  "%s %s: wrong: \"%s\", expected \"%s\"", bodies[_i].resource,
                  bodies[_i].json, wrong, bodies[_i].wrong);
}
END_TEST

START_TEST(contract_6_5_absent_null_and_set)
{
    static const char json[] = "{\"first_name\":null,\"last_name\":\"x\","
        "\"tags\":null,\"deal_value\":1.50,\"id\":\"x\"}";
    crm_values_t values;

    ck_assert_str_eq(read_body(&values, "contact", json, CRM_BODY_UPDATE, 0),
                     "");
    ck_assert_str_eq(bind_of(&values, "contact", "first_name"), "NULL");
    ck_assert_str_eq(bind_of(&values, "contact", "last_name"), "x");
    ck_assert_str_eq(bind_of(&values, "contact", "tags"), "{}");
    ck_assert_str_eq(bind_of(&values, "contact", "deal_value"), "1.5");
    ck_assert_str_eq(bind_of(&values, "contact", "notes"), "unsent");
    ck_assert_str_eq(bind_of(&values, "contact", "id"), "unsent");
    ck_assert_str_eq(read_body(&values, "contact", json, CRM_BODY_MERGE, 0),
                     "");
    ck_assert_str_eq(bind_of(&values, "contact", "first_name"), "NULL");
    ck_assert_str_eq(read_body(&values, "contact", "{\"bot_id\":\"" ID "\","
                               "\"first_name\":null}", CRM_BODY_CREATE, 0),
                     "");
    ck_assert_str_eq(bind_of(&values, "contact", "first_name"), "unsent");
}
END_TEST

START_TEST(contract_6_2_lenient_bodies)
{
    crm_values_t values;

    ck_assert_str_eq(read_body(&values, "contact", "{\"foo\":1,\"notes\":2}",
                               CRM_BODY_UPDATE, 1), "notes");
}
END_TEST

START_TEST(errors_have_the_prefix)
{
    crm_input_t input = {crm_check_pool(), NULL, 0};
    json_object *body = json_tokener_parse("{\"foo\":1,\"notes\":2,"
                                           "\"emails\":[\"x\"]}");
    crm_values_t values;

    crm_body_read(&values, &input, crm_resource_find("contact"), body,
                  CRM_BODY_MERGE, "contacts[3].");
    ck_assert_str_eq(wrong_fields(input.error), "contacts[3].foo; "
                     "contacts[3].notes; contacts[3].emails[0]");
    json_object_put(body);
}
END_TEST

/* Return the fields of the checks on the references in JSON, a body of a
 * contact in MODE. */
static const char *checked(const char *json, crm_body_mode_t mode)
{
    apr_array_header_t *checks = apr_array_make(crm_check_pool(), 4,
                                                sizeof(crm_check_t));
    const char *fields = "";
    crm_values_t values;

    read_body(&values, "contact", json, mode, 0);
    crm_body_checks(checks, &values, crm_resource_find("contact"), mode,
                    NULL, crm_check_pool());
    for (int i = 0; i < checks->nelts; i++) {
        const crm_check_t *check = &APR_ARRAY_IDX(checks, i, crm_check_t);

        fields = apr_pstrcat(crm_check_pool(), fields, i ? "; " : "",
                             check->field, NULL);
        ck_assert_str_eq(check->bind, ID);
        ck_assert_ptr_nonnull(crm_resource_find(check->row));
    }
    return fields;
}

START_TEST(contract_6_8_references_are_checked)
{
    ck_assert_str_eq(checked("{\"bot_id\":\"" ID "\",\"company_id\":\"" ID
                             "\",\"notes\":\"x\"}", CRM_BODY_CREATE),
                     "bot_id; company_id");
    ck_assert_str_eq(checked("{\"bot_id\":\"" ID "\",\"company_id\":\"" ID
                             "\",\"pipeline_stage_id\":null}",
                             CRM_BODY_UPDATE), "company_id");
    ck_assert_str_eq(checked("{\"notes\":\"x\"}", CRM_BODY_UPDATE), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *query = tcase_create("query");
    TCase *body = tcase_create("body");

    tcase_add_unchecked_fixture(query, setup, NULL);
    tcase_add_loop_test(query, contract_7_1_what_a_query_may_say, 0,
                        COUNT(queries));
    tcase_add_test(query, contract_7_2_defaults_and_pages);
    tcase_add_test(query, parameters_become_binds);
    tcase_add_test(query, contract_7_8_search_is_a_literal_substring);
    tcase_add_test(query, no_value_gets_into_the_text_of_a_statement);
    tcase_add_test(query, contract_7_7_archived_false_matches_null);
    tcase_add_loop_test(body, contract_6_what_a_body_may_say, 0,
                        COUNT(bodies));
    tcase_add_test(body, contract_6_5_absent_null_and_set);
    tcase_add_test(body, contract_6_2_lenient_bodies);
    tcase_add_test(body, errors_have_the_prefix);
    tcase_add_test(body, contract_6_8_references_are_checked);
    suite_add_tcase(suite, query);
    suite_add_tcase(suite, body);
    return crm_check_main(suite);
}
