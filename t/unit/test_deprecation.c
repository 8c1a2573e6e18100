/* SPDX-License-Identifier: Apache-2.0 */
/* test_deprecation.c: an operation that is deprecated by its table (contract
 * 13.7), which no operation of the API is at the moment */
#include "crm_check.h"

#include <string.h>

#include "crm_api.h"
#include "crm_domain.h"
#include "crm_json.h"

static crm_error_t *nothing(crm_call_t *call)
{
    crm_buf_puts(&call->response->body, "{}");
    return NULL;
}

static crm_error_t *conflict(crm_call_t *call)
{
    return crm_error_create(CRM_E_CONFLICT, NULL, call->pool);
}

#define QUIET CRM_OP_WORKSPACE
#define LOUD CRM_OP_ENROLLMENT_STOP

static const crm_handler_t handlers[CRM_OPS] = {
    [QUIET] = nothing, [LOUD] = conflict,
};

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid}, {.name = NULL}
};

/* GET /old is deprecated, and so is POST /old; GET /new is not. */
static crm_operation_t operations[] = {
    {.id = "getOld", .method = "GET", .path = "/old", .kind = QUIET,
     .summary = "Get", .deprecated = {"2027-01-31", "2028-01-31"}},
    {.id = "postOld", .method = "POST", .path = "/old", .kind = LOUD,
     .summary = "Post", .deprecated = {"2027-01-31", "2028-02-29"}},
    {.id = "getNew", .method = "GET", .path = "/new", .kind = QUIET,
     .summary = "Get"},
    {.id = NULL}
};

static const crm_resource_t thing = {
    .name = "thing", .title = "Thing", .tag = "Things", .doc = "A thing.",
    .fields = fields, .operations = operations,
};
static const crm_resource_t *const resources[] = {&thing, NULL};
static const crm_event_type_t no_events[] = {{NULL, NULL, NULL, NULL, 0}};

static crm_error_t *init(void)
{
    static const crm_domain_t domain = {
        resources, handlers, no_events, &crm_openapi_domain
    };

    return crm_api_init(&domain, crm_check_pool());
}

/* Serve METHOD PATH and return the response. */
static const crm_response_t *serve(const char *method, const char *path)
{
    apr_pool_t *pool = crm_check_pool();
    crm_request_t *request = apr_pcalloc(pool, sizeof(*request));
    crm_response_t *response = apr_pcalloc(pool, sizeof(*response));
    static const crm_service_t service;
    crm_call_t *call = apr_pcalloc(pool, sizeof(*call));

    request->headers = apr_table_make(pool, 1);
    response->headers = apr_table_make(pool, 4);
    crm_buf_init(&response->body, 16, pool);
    call->pool = pool;
    call->service = &service;
    call->request = request;
    call->response = response;
    call->path = crm_router_find(call->args, crm_api_mount.router, path, 1);
    call->route = crm_path_route(call->path, method);
    call->route->serve(call);
    return response;
}

/* An operation of a kind that nothing serves is an error at the start. */
START_TEST(each_kind_has_a_handler)
{
    static const crm_handler_t none[CRM_OPS] = {[QUIET] = nothing};
    static const crm_domain_t domain = {
        resources, none, no_events, &crm_openapi_domain
    };
    crm_error_t *error = crm_api_init(&domain, crm_check_pool());

    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->log, "postOld: nothing serves it"));
}
END_TEST

static void shows(const crm_response_t *response, const char *deprecation,
                  const char *sunset)
{
    ck_assert_pstr_eq(apr_table_get(response->headers, "Deprecation"),
                      deprecation);
    ck_assert_pstr_eq(apr_table_get(response->headers, "Sunset"), sunset);
}

START_TEST(contract_13_7_answers_say_when)
{
    ck_assert_ptr_null(init());
    shows(serve("GET", "/old"), "@1801353600",
          "Mon, 31 Jan 2028 00:00:00 GMT");
    shows(serve("HEAD", "/old"), "@1801353600",
          "Mon, 31 Jan 2028 00:00:00 GMT");
    /* errors, too */
    shows(serve("POST", "/old"), "@1801353600",
          "Tue, 29 Feb 2028 00:00:00 GMT");
    shows(serve("GET", "/new"), NULL, NULL);
}
END_TEST

/* Return the operation METHOD of PATH in the document. */
static json_object *described(const char *path, const char *method)
{
    apr_size_t len, offset;
    const char *text = crm_openapi_document(&len);
    json_object *document, *paths;

    ck_assert_ptr_null(crm_json_parse(&document, &offset, text, len,
                                      crm_check_pool()));
    paths = json_object_object_get(document, "paths");
    return json_object_object_get(json_object_object_get(paths, path), method);
}

/* Return whether OPERATION's 200 has the header NAME. */
static int declares(json_object *operation, const char *name)
{
    json_object *success = json_object_object_get(
        json_object_object_get(operation, "responses"), "200");

    return json_object_object_get_ex(
        json_object_object_get(success, "headers"), name, NULL);
}

START_TEST(contract_13_7_so_does_the_document)
{
    json_object *old, *new;

    ck_assert_ptr_null(init());
    old = described("/api/v1/old", "get");
    new = described("/api/v1/new", "get");
    ck_assert(json_object_get_boolean(json_object_object_get(old,
                                                             "deprecated")));
    ck_assert(declares(old, "Deprecation") && declares(old, "Sunset"));
    ck_assert_ptr_nonnull(new);
    ck_assert(!json_object_object_get_ex(new, "deprecated", NULL));
    ck_assert(!declares(new, "Deprecation") && !declares(new, "Sunset"));
}
END_TEST

static const struct {
    crm_deprecation_t dates;
    const char *rule;
} wrong[] = {
    {{"2027-01-31", NULL}, "without two dates"},
    {{"soon", "2028-01-31"}, "without two dates"},
    {{"2027-01-31", "2028-13-31"}, "without two dates"},
    {{"2027-01-31", "2028-01-30"}, "less than 12 months"},
    {{NULL, "2028-01-31"}, "without being deprecated"},
};

START_TEST(contract_13_7_twelve_months_lie_between)
{
    const crm_error_t *error;

    operations[0].deprecated = wrong[_i].dates;
    error = init();
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->log, wrong[_i].rule) != NULL, "%s",
                  error->log);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deprecation");
    TCase *cases = tcase_create("operations");

    tcase_add_test(cases, contract_13_7_answers_say_when);
    tcase_add_test(cases, each_kind_has_a_handler);
    tcase_add_test(cases, contract_13_7_so_does_the_document);
    tcase_add_loop_test(cases, contract_13_7_twelve_months_lie_between, 0,
                        COUNT(wrong));
    suite_add_tcase(suite, cases);
    return crm_check_main(suite);
}
