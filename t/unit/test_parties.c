/* SPDX-License-Identifier: Apache-2.0 */
/* test_parties.c: contacts in memory, whose table here has hidden fields
 * between those that are shown; with rows that were made up instead of a
 * database */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_type_address.h"
#include "crm_type_list.h"
#include "parties.h"
#include "parties_sql.h"

#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"
#define WORKSPACE "0190a6f0-1c2d-7abc-8def-0123456789ac"
#define AGENT "0190a6f0-1c2d-7abc-8def-0123456789ad"

/* Taken by the linker instead of the one of contact.c. */
static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "hidden", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref,
     .flags = CRM_F_REQUIRED | CRM_F_CREATE | CRM_F_FIXED, .ref = "agent"},
    {.name = "first_name", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_WRITABLE},
    {.name = "kept", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN | CRM_F_WRITABLE},
    {.name = "last_name", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_WRITABLE},
    {.name = "emails", .type = &crm_type_emails, .flags = CRM_F_WRITABLE},
    {.name = "phone_numbers", .type = &crm_type_phones, .flags = CRM_F_WRITABLE},
    {.name = "asked", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN | CRM_F_ON_REQUEST},
    {.name = "tags", .type = &crm_type_tags, .flags = CRM_F_WRITABLE},
    {.name = "notes", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_WRITABLE},
    {.name = "custom_fields", .type = &crm_type_object, .flags = CRM_F_WRITABLE},
    {.name = "external_id", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_WRITABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

const crm_resource_t crm_resource_contact = {
    .name = "contact", .title = "Contact", .tag = "Contacts",
    .fields = fields,
};

/* The row that is in the database, by the names of its columns. */
static const struct {
    const char *name;
    const char *text;
} row[] = {
    {"id", ID}, {"workspace_id", WORKSPACE}, {"bot_id", AGENT},
    {"first_name", "Ada"}, {"last_name", "King"},
    {"emails", "[{\"email\": \"a@x\", \"is_primary\": true}]"},
    {"phone_numbers", "[]"}, {"tags", "{vip}"}, {"notes", "N"},
    {"custom_fields", "{\"a\": 1}"},
    {"created_at", "2026-01-01 00:00:00+00"},
    {"updated_at", "2026-01-02 00:00:00+00"},
};

#define LISTS "\"emails\":[{\"email\":\"a@x\",\"is_primary\":true}]," \
    "\"phone_numbers\":[]"
#define REST "\"tags\":[\"vip\"],\"notes\":\"N\"," \
    "\"custom_fields\":{\"a\":1}," \
    "\"external_id\":null"

/* ---- instead of a database ----------------------------------------------- */

static int found;               /* whether the row is found */
static apr_array_header_t *sent; /* of const char *: statements and binds */

static apr_status_t clear_result(void *result)
{
    PQclear(result);
    return APR_SUCCESS;
}

static apr_status_t put_value(void *value)
{
    json_object_put(value);
    return APR_SUCCESS;
}

/* Return a result with COUNT columns and no row. */
static PGresult *make_result(int count)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc *columns = calloc((size_t)count, sizeof(*columns));
    static char name[] = "c";

    for (int i = 0; i < count; i++) {
        columns[i].name = name;
    }
    ck_assert(PQsetResultAttrs(result, count, columns));
    free(columns);
    apr_pool_cleanup_register(crm_check_pool(), result, clear_result,
                              apr_pool_cleanup_null);
    return result;
}

static void set(PGresult *result, int column, const char *text)
{
    char *copy = apr_pstrdup(crm_check_pool(), text);

    ck_assert(PQsetvalue(result, 0, column, copy, (int)strlen(copy)));
}

/* Return what a look-up finds: the row, its columns in the order in which they
 * were asked for. */
static PGresult *look_up(void)
{
    const crm_shape_t *shape = crm_shape_of(&crm_resource_contact);
    PGresult *result = make_result(CRM_MATCH_FIRST + shape->count);

    set(result, CRM_MATCH_IDENTITY, "1");
    set(result, CRM_MATCH_NOW, "2026-02-01 00:00:00+00");
    set(result, CRM_MATCH_KEYS + CRM_IDENTITY_EMAIL, "a@x");
    for (int i = 0; found && i < shape->count; i++) {
        for (size_t n = 0; n < CRM_NELTS(row); n++) {
            if (!strcmp(row[n].name, shape->fields[i]->name)) {
                set(result, CRM_MATCH_FIRST + i, row[n].text);
            }
        }
    }
    if (found) {
        set(result, CRM_MATCH_PARTY_KEYS + CRM_IDENTITY_EMAIL, "a@x");
    }
    return result;
}

/* The linker has crm_db_pipeline() lead here. */
__typeof__(crm_db_pipeline) __wrap_crm_db_pipeline;
crm_error_t *__wrap_crm_db_pipeline(PGresult **results, crm_conn_t *conn,
                                    const crm_stmt_t *stmts, int count,
                                    apr_pool_t *result_pool)
{
    (void)conn;
    (void)result_pool;
    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(sent, const char *) = stmts[i].sql;
        for (int n = 0; n < stmts[i].count; n++) {
            APR_ARRAY_PUSH(sent, const char *) = stmts[i].values[n];
        }
        results[i] = strstr(stmts[i].sql, "ORDER BY m.i") ? look_up()
                     : make_result(1);
    }
    return NULL;
}

static crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *pool)
{
    static int nothing;

    (void)since;
    (void)baton;
    (void)pool;
    *conn_p = (crm_conn_t *)(void *)&nothing;
    return NULL;
}

/* ---- tests --------------------------------------------------------------- */

static crm_call_t call;
static crm_values_t values;
static crm_identity_t wanted;
static crm_parties_t *parties;

/* Read BODY, then open parties that look for its contact. */
static void open_parties(const char *body, int there)
{
    static const crm_operation_t operation = {.method = "POST"};
    static const crm_endpoint_t endpoint = {
        .operation = &operation, .write = 1,
        .permits = {[CRM_PERMIT] = "true", [CRM_PERMIT_KEY] = "true"}
    };
    static crm_rest_t rest = {.endpoint = &endpoint};
    static crm_service_t service;
    static crm_request_t request = {.method = "POST"};
    static crm_response_t response;
    apr_pool_t *pool = crm_check_pool();
    json_object *object = json_tokener_parse(body);
    crm_input_t input = {pool, NULL, 0};

    apr_pool_cleanup_register(pool, object, put_value, apr_pool_cleanup_null);
    crm_shape_init(crm_resources, pool);
    service.acquire = acquire;
    call = (crm_call_t){.service = &service, .request = &request,
                        .response = &response, .pool = pool,
                        .state = &rest};
    apr_cpystrn(call.key.workspace_id, WORKSPACE,
                sizeof(call.key.workspace_id));
    sent = apr_array_make(pool, 64, sizeof(const char *));
    found = there;
    crm_body_read(&values, &input, &crm_resource_contact, object,
                  CRM_BODY_MERGE, "");
    ck_assert_ptr_null(input.error);
    crm_identity_init(&wanted, &crm_party_contacts, &values, pool);
    ck_assert_ptr_null(crm_parties_open(
        &parties, &call, &crm_party_contacts, &wanted, 1, 1,
        apr_array_make(pool, 1, sizeof(crm_ref_t)), NULL));
    sent->nelts = 0;
}

static void shows(const crm_party_t *contact, const char *json)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 64, crm_check_pool());
    crm_party_write(&buf, &crm_party_contacts, contact);
    crm_buf_putc(&buf, '\0');
    ck_assert_str_eq(buf.data, json);
}

/* Commit them: what is sent has TEXT and BIND, and nothing of hidden
 * fields. */
static void commits(const char *text, const char *bind)
{
    int seen = 0, bound = 0;

    ck_assert_ptr_null(crm_parties_commit(parties, NULL, 0));
    for (int i = 0; i < sent->nelts; i++) {
        const char *one = APR_ARRAY_IDX(sent, i, const char *);

        ck_assert_msg(!strstr(one, "hidden") && !strstr(one, "kept")
                      && !strstr(one, "asked"), "%s", one);
        seen |= strstr(one, text) != NULL;
        bound |= !strcmp(one, bind);
    }
    ck_assert_msg(seen, "%s is sent", text);
    ck_assert_msg(bound, "%s is bound", bind);
}

START_TEST(a_contact_of_the_database_is_shown_as_it_is)
{
    crm_party_t *contact;

    open_parties("{\"emails\":[\"a@x\"]}", 1);
    contact = crm_parties_match(parties, &wanted);
    ck_assert_ptr_nonnull(contact);
    ck_assert_str_eq(contact->id, ID);
    ck_assert_str_eq(contact->created_at, "2026-01-01T00:00:00.000Z");
    for (size_t n = 0; n < CRM_NELTS(row); n++) {
        ck_assert_str_eq(contact->binds[crm_contact_index(row[n].name)],
                         row[n].text);
    }
    shows(contact, "{\"id\":\"" ID "\",\"workspace_id\":\"" WORKSPACE "\","
          "\"bot_id\":\"" AGENT "\",\"first_name\":\"Ada\",\"last_name\":"
          "\"King\"," LISTS "," REST ",\"created_at\":"
          "\"2026-01-01T00:00:00.000Z\",\"updated_at\":"
          "\"2026-01-02T00:00:00.000Z\"}");
}
END_TEST

START_TEST(a_changed_contact_has_its_fields_in_their_places)
{
    crm_party_t *contact;

    open_parties("{\"last_name\":\"L\",\"emails\":[\"a@x\"]}", 1);
    contact = crm_parties_match(parties, &wanted);
    crm_parties_update(parties, &wanted, contact, &values);
    ck_assert_int_eq(contact->changed, 1);
    shows(contact, "{\"id\":\"" ID "\",\"workspace_id\":\"" WORKSPACE "\","
          "\"bot_id\":\"" AGENT "\",\"first_name\":\"Ada\",\"last_name\":"
          "\"L\"," LISTS "," REST ",\"created_at\":"
          "\"2026-01-01T00:00:00.000Z\",\"updated_at\":"
          "\"2026-02-01T00:00:00.000Z\"}");
    commits("SET last_name = r.last_name, updated_at = r.updated_at FROM (SELECT"
            " x.id, x.last_name, x.updated_at FROM unnest($1::uuid[],"
            " $2::text[], $3::timestamptz[]) x (id, last_name, updated_at)"
            " OFFSET 0) r WHERE", "{\"L\"}");
}
END_TEST

START_TEST(a_new_contact_has_its_fields_in_their_places)
{
    crm_party_t *contact;

    open_parties("{\"first_name\":\"New\",\"emails\":[\"a@x\"],\"tags\":"
                 "[\"vip\"],\"notes\":\"N\",\"custom_fields\":{\"a\":1}}", 0);
    ck_assert_ptr_null(crm_parties_match(parties, &wanted));
    contact = crm_parties_create(parties, &wanted, &values, AGENT);
    shows(contact, apr_pstrcat(crm_check_pool(), "{\"id\":\"", contact->id,
          "\",\"workspace_id\":\"" WORKSPACE "\",\"bot_id\":\"" AGENT "\","
          "\"first_name\":\"New\",\"last_name\":null," LISTS "," REST
          ",\"created_at\":\"2026-02-01T00:00:00.000Z\",\"updated_at\":"
          "\"2026-02-01T00:00:00.000Z\"}", NULL));
    ck_assert_ptr_eq(crm_parties_match(parties, &wanted), contact);
    commits("(workspace_id, id, bot_id, first_name, emails, phone_numbers, tags,"
            " notes, custom_fields, created_at, updated_at) SELECT $1::uuid,"
            " r.id, r.bot_id, r.first_name, r.emails, r.phone_numbers,"
            " r.tags, r.notes, r.custom_fields, r.created_at, r.updated_at"
            " FROM (SELECT x.id, x.bot_id, x.first_name, x.emails,"
            " x.phone_numbers, x.tags::text[] AS tags, x.notes,",
            "{\"New\"}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parties");
    TCase *hidden = tcase_create("hidden");

    tcase_add_test(hidden, a_contact_of_the_database_is_shown_as_it_is);
    tcase_add_test(hidden, a_changed_contact_has_its_fields_in_their_places);
    tcase_add_test(hidden, a_new_contact_has_its_fields_in_their_places);
    suite_add_tcase(suite, hidden);
    return crm_check_main(suite);
}
