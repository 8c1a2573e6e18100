/* SPDX-License-Identifier: Apache-2.0 */
/* crm_rest.c: serving an operation: its parameters, checks and response */
#include "crm_rest.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_access.h"
#include "crm_envelope.h"
#include "crm_params.h"
#include "crm_prefer.h"
#include "crm_serve.h"
#include "crm_uuid.h"

/* Return the UUID that ARG of a path is, in POOL, NULL if it is none. */
static const char *id_of(const crm_arg_t *arg, apr_pool_t *pool)
{
    char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

    return arg->text && crm_uuid_parse(id, arg->text, arg->len) ? id : NULL;
}

crm_error_t *crm_rest_serve(crm_call_t *call)
{
    const char *prefer = crm_request_header(call->request, "Prefer");
    crm_rest_t *rest = apr_pcalloc(call->pool, sizeof(*rest));
    crm_error_t *error;

    rest->endpoint = call->route->data;
    /* contract 6.2, 7.1 */
    rest->lenient = crm_prefer_has(prefer, "handling", "lenient");
    rest->strict = call->service->settings.refuse_unknown
                   || crm_prefer_has(prefer, "handling", "strict");
    rest->path_id = id_of(&call->args[0], call->pool);
    rest->row_id = id_of(&call->args[1], call->pool);
    call->state = rest;
    if (rest->endpoint->deprecation) {
        apr_table_setn(call->response->headers, "Deprecation",
                       rest->endpoint->deprecation);
        apr_table_setn(call->response->headers, "Sunset",
                       rest->endpoint->sunset);
    }
    CRM_ERR(crm_call_dialect(call));
    error = rest->endpoint->serve(call);
    return rest->idempotency && rest->idempotency->answer
           ? crm_idempotency_replay(call) : error;
}

void crm_rest_sql(crm_sql_t *sql, const crm_call_t *call)
{
    crm_call_sql(sql, call);
    crm_sql_value(sql, call->key.workspace_id, "uuid");
    crm_sql_value(sql, call->key.terms, "uuid");
}

void crm_rest_permit(crm_sql_t *sql, const crm_call_t *call,
                     crm_permit_t place)
{
    static const unsigned char always[CRM_PERMITS] = {
        [CRM_PERMIT_KEY] = 1, [CRM_PERMIT_KEY_ONE] = 1
    };
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;
    const char *plain = endpoint->permits[CRM_PERMIT_KEY];

    if (place == CRM_PERMIT_WHERE) {
        crm_sql_either(sql, " WHERE ", "");
    }
    else if (place == CRM_PERMIT_FROM) {
        plain = "";
    }
    else if (place == CRM_PERMIT_BEFORE) {
        sql->before = endpoint->before;
    }
    if (crm_rest(call)->idempotency && !always[place] && *plain) {
        plain = CRM_PERMIT_USED " AND " CRM_IDEMPOTENCY_OPEN;
    }
    crm_sql_either(sql, plain, endpoint->permits[place]);
}

/* Return the name of RESOURCE in a sentence, in POOL: "pipeline card". */
static const char *words_of(const crm_resource_t *resource, apr_pool_t *pool)
{
    char *words = apr_pstrdup(pool, resource->name);

    for (char *c = words; *c; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    return words;
}

crm_error_t *crm_rest_no_row(const crm_call_t *call,
                             const crm_resource_t *resource, const char *what)
{
    return crm_error_createf(CRM_E_NOT_FOUND, call->pool,
                             "There is no %s with this %s%s",
                             words_of(resource, call->pool), what,
                             crm_router_hint(call->mount->router, call->path,
                                             call->args, call->pool));
}

/* Set the first part of CHECK: a row r of NAME with the id ID exists. */
static void check_row(crm_check_t *check, const char *name, const char *id)
{
    memset(check, 0, sizeof(*check));
    check->row = name;
    check->bind = id;
    check->cast = "uuid";
    check->more_sql = ")";
}

void crm_check_path_row(crm_check_t *check, const crm_call_t *call,
                        const crm_resource_t *resource)
{
    check_row(check, resource->name, crm_rest(call)->path_id);
    check->missing = resource;
}

void crm_check_path(apr_array_header_t *checks, const crm_call_t *call,
                    const crm_resource_t *resource)
{
    crm_check_path_row(apr_array_push(checks), call, resource);
}

void crm_check_path_below(apr_array_header_t *checks, const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);
    crm_check_t *check = apr_array_push(checks);

    check_row(check, rest->endpoint->resource->name, rest->row_id);
    check->more_sql = apr_pstrcat(call->pool, " AND r.",
                                  rest->endpoint->operation->parent,
                                  "_id = ?)", NULL);
    check->missing = rest->endpoint->resource;
    check->more_bind = rest->path_id;
    check->more_cast = "uuid";
}

void crm_check_ref(apr_array_header_t *checks, const char *ref,
                   const char *id, const char *path)
{
    crm_check_t *check = apr_array_push(checks);

    check_row(check, ref, id);
    check->field = path;
}

/* Seconds of a Retry-After while the API of a workspace is closed. */
#define CLOSED_SECONDS 10

/* The column of the first check. */
#define FIRST_CHECK 5

/* Query the key's state and CHECKS: columns alive, write, plan_api, plan_sequences,
 * closed, then one for each check. Each key may read. *CLAIM_P: see
 * crm_idempotency_claim_and(). */
static crm_error_t *query_checks(PGresult **result_p, PGresult **claim_p,
                                 crm_call_t *call,
                                 const apr_array_header_t *checks)
{
    crm_sql_t sql;

    crm_rest_sql(&sql, call);
    /* aggregates: there is a row, also of no key */
    crm_sql_add(&sql, "SELECT count(*) > 0, bool_or(k.write), bool_or(k.plan_api),"
                " bool_or(k.plan_sequences), bool_or(k.closed)");
    for (int i = 0; checks && i < checks->nelts; i++) {
        const crm_check_t *check = &APR_ARRAY_IDX(checks, i, crm_check_t);

        crm_sql_add(&sql, ", ");
        if (check->row) {
            crm_sql_adds(&sql, "EXISTS (SELECT FROM crmapi.", check->row,
                         " r WHERE " CRM_SQL_OWN("r") " AND r.id = ", NULL);
        }
        crm_sql_template(&sql, check->row ? "?" : check->sql, check->bind,
                         check->cast);
        crm_sql_template(&sql, check->more_sql, check->more_bind,
                         check->more_cast);
    }
    crm_sql_add(&sql, " FROM" CRM_PERMIT_ROW);
    return crm_idempotency_claim_and(result_p, claim_p, call, &sql);
}

static int is_true(const PGresult *result, int column)
{
    const char *value = crm_db_value(result, 0, column);

    return value && *value == 't';
}

crm_error_t *crm_rest_closed(const crm_call_t *call)
{
    crm_error_t *error = crm_error_create(CRM_E_UNAVAILABLE, "The workspace is"
                                          " closed at present", call->pool);

    error->retry_after = CLOSED_SECONDS;
    return error;
}

/* Return the 403 or 503 that follows from RESULT of query_checks(), or NULL. */
static crm_error_t *scope_error(crm_call_t *call, const PGresult *result)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;
    const char *message;

    if (endpoint->write && !is_true(result, 1)) {
        message = "The API key lacks the scope write";
    }
    else if (is_true(result, 4)) {
        return crm_rest_closed(call);
    }
    else if (!is_true(result, 2)) {
        message = "The workspace's plan does not include the API";
    }
    else if (endpoint->operation->sequences && !is_true(result, 3)) {
        message = "The workspace's plan does not include sequences";
    }
    else {
        return NULL;
    }
    return crm_error_create(CRM_E_FORBIDDEN, message, call->pool);
}

/* Set *INTO_P to the id of the row that the row ID of RESOURCE was merged into
 * (contract 20.5); NULL: to none. */
static crm_error_t *find_merged(const char **into_p, crm_call_t *call,
                                const crm_resource_t *resource, const char *id)
{
    PGresult *result;
    crm_sql_t sql;

    *into_p = NULL;
    if (!resource->merged || !id) {
        return NULL;
    }
    crm_rest_sql(&sql, call);
    crm_sql_adds(&sql, "SELECT m.merged_into FROM crmapi.", resource->merged,
                 " m WHERE " CRM_SQL_OWN("m") " AND " CRM_PERMIT_USED
                 " AND m.id = ", NULL);
    crm_sql_bind(&sql, id, "uuid");
    CRM_ERR(crm_call_query(&result, call, &sql));
    *into_p = PQntuples(result) ? crm_db_value(result, 0, 0) : NULL;
    return NULL;
}

/* Return the error about the row of CHECK, which the path names and which does not
 * exist: a 410 with the Location of the row that it was merged into, else a
 * 404. */
static crm_error_t *no_row(crm_call_t *call, const crm_check_t *check)
{
    const crm_resource_t *resource = check->missing;
    const char *into;

    CRM_ERR(find_merged(&into, call, resource, crm_rest(call)->path_id));
    if (!into) {
        return crm_rest_no_row(call, resource, "id");
    }
    apr_table_setn(call->response->headers, "Location",
                   apr_pstrcat(call->pool, CRM_API_BASE,
                               resource->operations->path, "/", into, NULL));
    return crm_error_createf(CRM_E_GONE, call->pool, "The %s was merged into %s",
                             words_of(resource, call->pool), into);
}

crm_error_t *crm_rest_no_ref(const char **message_p, crm_call_t *call,
                             const char *row, const char *id)
{
    const char *into;

    CRM_ERR(find_merged(&into, call, crm_resource_find(row), id));
    *message_p = into ? apr_pstrcat(call->pool, "was merged into ", into, NULL)
                 : crm_ref_rule(row, call->pool);
    return NULL;
}

/* Add to *ERROR_P that the field of CHECK is wrong. */
static crm_error_t *add_detail(crm_error_t **error_p, crm_call_t *call,
                               const crm_check_t *check)
{
    const char *message = check->message;

    if (!message) {
        CRM_ERR(crm_rest_no_ref(&message, call, check->row, check->bind));
    }
    crm_error_detail(error_p, check->field, message, call->pool);
    return NULL;
}

/* Add the CHECKS that failed in RESULT to ERROR (NULL or a 422) and return it.
 * A failed check without a field gives a 404 instead, and a precondition a 412
 * if nothing else failed. */
static crm_error_t *failed_checks(crm_call_t *call, crm_error_t *error,
                                  const PGresult *result,
                                  const apr_array_header_t *checks)
{
    crm_error_t *precondition = NULL;

    for (int i = 0; checks && i < checks->nelts; i++) {
        const crm_check_t *check = &APR_ARRAY_IDX(checks, i, crm_check_t);

        if (is_true(result, FIRST_CHECK + i)) {
            continue;
        }
        if (check->precondition) {
            precondition = crm_error_create(CRM_E_PRECONDITION_FAILED,
                                            check->message, call->pool);
            continue;
        }
        if (!check->field) {
            return no_row(call, check);
        }
        CRM_ERR(add_detail(&error, call, check));
    }
    return error ? error : precondition;
}

crm_error_t *crm_rest_refuse(crm_call_t *call, crm_error_t *error,
                             const apr_array_header_t *checks)
{
    PGresult *result, *claim;
    crm_error_t *scope;

    CRM_ERR(query_checks(&result, &claim, call, checks));
    if (!is_true(result, 0)) {
        return crm_access_check(call);
    }
    scope = scope_error(call, result);
    if (scope) {
        return scope;
    }
    if (error && error->code != CRM_E_VALIDATION) {
        return error;
    }
    CRM_ERR(crm_idempotency_outcome(call, claim));
    return failed_checks(call, error, result, checks);
}

/* Read the query's parameters into CALL and initialise INPUT with their
 * errors. */
static void begin_input(crm_input_t *input, crm_call_t *call)
{
    input->pool = call->pool;
    input->lenient = crm_rest(call)->lenient;
    input->error = crm_rest_params(call);
}

void crm_rest_unknown(crm_input_t *input, json_object *body, const char *known)
{
    const char *const names[] = {known, NULL};

    json_object_object_foreach(body, name, value) {
        (void)value;
        if (!known || strcmp(name, known) != 0) {
            crm_input_unknown(input, name, name, NULL, names);
        }
    }
}

/* Set *BODY_P to the body of CALL, a JSON object. */
static crm_error_t *read_object(json_object **body_p, crm_input_t *input,
                                crm_call_t *call)
{
    CRM_ERR(crm_call_json(body_p, call));
    crm_idempotency_seal(call);
    if (!json_object_is_type(*body_p, json_type_object)) {
        crm_input_error(input, "", "must be a JSON object");
        return input->error;
    }
    return NULL;
}

crm_error_t *crm_rest_no_body(crm_call_t *call)
{
    crm_input_t input;
    json_object *body;
    const char *data;
    apr_size_t len;

    begin_input(&input, call);
    CRM_ERR(crm_call_body(&data, &len, call));
    if (len) {
        CRM_ERR(read_object(&body, &input, call));
        crm_rest_unknown(&input, body, NULL);
    }
    return input.error;
}

crm_error_t *crm_rest_body(json_object **body_p, crm_input_t *input,
                           crm_call_t *call)
{
    begin_input(input, call);
    if (call->request->expects_continue
        && crm_call_is_json(call)) {
        CRM_ERR(crm_rest_refuse(call, NULL, NULL));
    }
    return read_object(body_p, input, call);
}

const char *crm_rest_param(const crm_call_t *call, const char *name)
{
    const crm_filter_t *filter = crm_rest(call)->endpoint->operation->filters;

    for (int i = 0; filter && filter[i].field.name; i++) {
        if (!strcmp(filter[i].field.name, name)) {
            return crm_rest(call)->params[i].given
                   ? crm_rest(call)->params[i].bind : NULL;
        }
    }
    return NULL;
}

const crm_shape_t *crm_rest_shape(const crm_call_t *call)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;
    const char *names = crm_rest_param(call, "include");

    return names ? crm_shape_with(endpoint->resource, names)
                 : endpoint->shape;
}

void crm_rest_tag(crm_call_t *call, const char *updated_at)
{
    crm_response_t *response = call->response;
    const crm_rest_t *rest = crm_rest(call);
    char *tag;

    if (!rest->endpoint->tagged || call->inner) {
        return;
    }
    tag = apr_palloc(call->pool, CRM_ETAG_SIZE);
    crm_etag_make(tag, updated_at, response->body.data, response->body.len);
    apr_table_setn(response->headers, "ETag", tag);
    if (rest->endpoint->write || response->status != 200) {
        return;
    }
    if (rest->match && !crm_etags_have(rest->match, tag, 0)) {
        response->status = 412;
        response->body.len = 0;
        crm_envelope_error(&response->body, crm_error_create(
                               CRM_E_PRECONDITION_FAILED, NULL, call->pool));
    }
    else if (rest->none_match && crm_etags_have(rest->none_match, tag, 1)) {
        response->status = 304;
        response->body.len = 0;
    }
}

void crm_rest_answer(crm_call_t *call, int status, const PGresult *result,
                     int row)
{
    const crm_shape_t *shape = crm_rest_shape(call);
    crm_buf_t *body = &call->response->body;

    crm_buf_puts(body, "{\"data\":");
    crm_shape_write(body, shape, result, row, 0);
    crm_buf_putc(body, '}');
    call->response->status = status;
    crm_rest_tag(call, shape->updated_at < 0 ? NULL
                 : crm_db_value(result, row, shape->updated_at));
}
