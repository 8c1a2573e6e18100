/* SPDX-License-Identifier: Apache-2.0 */
/* crm_call.c: what every operation does: connection, statements, refusals */
#include "crm_call.h"

#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_json.h"

crm_error_t *crm_call_conn(crm_conn_t **conn_p, crm_call_t *call)
{
    if (!call->conn) {
        apr_time_t start = apr_time_now();
        crm_error_t *error = call->service->acquire(&call->conn,
                                                    call->request->baton,
                                                    call->pool);

        call->response->db_us += apr_time_now() - start;
        CRM_ERR(error);
    }
    *conn_p = call->conn;
    return NULL;
}

void crm_call_release(crm_call_t *call)
{
    if (call->conn) {
        call->service->release(call->conn, call->request->baton);
        call->conn = NULL;
    }
}

/* Run STMT together with a statement that shows the request's id. */
static crm_error_t *query_with_id(PGresult **result_p, crm_call_t *call,
                                  crm_conn_t *conn, const crm_stmt_t *stmt)
{
    const char *name = apr_pstrcat(call->pool, "crmapi ",
                                   call->request->request_id, NULL);
    crm_stmt_t stmts[2];
    PGresult *results[2];

    stmts[0].sql = "SELECT set_config('application_name', $1, false)";
    stmts[0].count = 1;
    stmts[0].values = &name;
    stmts[1] = *stmt;
    CRM_ERR(crm_db_pipeline(results, conn, stmts, 2, call->pool));
    *result_p = results[1];
    return NULL;
}

crm_error_t *crm_call_query(PGresult **result_p, crm_call_t *call,
                            crm_sql_t *sql)
{
    crm_error_t *error;
    crm_conn_t *conn;
    crm_stmt_t stmt;
    apr_time_t start;

    CRM_ERR(crm_call_conn(&conn, call));
    crm_sql_stmt(&stmt, sql);
    start = apr_time_now();
    error = call->service->settings.request_id_in_database
            ? query_with_id(result_p, call, conn, &stmt)
            : crm_db_query(result_p, conn, &stmt, call->pool);
    call->response->db_us += apr_time_now() - start;
    return error;
}

void crm_call_sql(crm_sql_t *sql, crm_call_t *call)
{
    crm_sql_init(sql, call->pool);
    APR_ARRAY_PUSH(sql->binds, const char *) = call->key.workspace_id;
    APR_ARRAY_PUSH(sql->binds, const char *) = call->key.key_id;
}

/* Return the column of crmapi.live_key that permits OPERATION's plan. */
static const char *plan_column(const crm_operation_t *operation)
{
    return operation->sequences ? "plan_sequences" : "plan_api";
}

void crm_call_permit(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_adds(sql, "(SELECT k.", call->endpoint->write ? "write" : "read",
                 " AND k.", plan_column(call->endpoint->operation),
                 " FROM crmapi.live_key k WHERE k.workspace_id = $1::uuid"
                 " AND k.key_id = $2::uuid)", NULL);
}

/* Set the first half of CHECK to "a row r of NAME with ID exists". */
static void check_row(crm_check_t *check, const char *name, const char *id,
                      apr_pool_t *pool)
{
    memset(check, 0, sizeof(*check));
    check->sql = apr_pstrcat(pool, "EXISTS (SELECT FROM crmapi.", name,
                             " r WHERE r.workspace_id = $1::uuid"
                             " AND r.id = ?", NULL);
    check->bind = id;
    check->cast = "uuid";
    check->more_sql = ")";
}

void crm_check_path_row(crm_check_t *check, const crm_call_t *call,
                        const crm_resource_t *resource)
{
    check_row(check, resource->name, call->path_id, call->pool);
}

void crm_check_path(apr_array_header_t *checks, const crm_call_t *call,
                    const crm_resource_t *resource)
{
    crm_check_path_row(apr_array_push(checks), call, resource);
}

void crm_check_ref(apr_array_header_t *checks, const char *ref,
                   const char *id, const char *path, apr_pool_t *pool)
{
    crm_check_t *check = apr_array_push(checks);

    check_row(check, ref, id, pool);
    check->field = path;
    check->message = crm_ref_rule(ref, pool);
}

/* Ask for the key's state and CHECKS: columns alive, read, write, plan_api,
 * plan_sequences, then one for each check. */
static crm_error_t *ask(PGresult **result_p, crm_call_t *call,
                        const apr_array_header_t *checks)
{
    crm_sql_t sql;

    crm_call_sql(&sql, call);
    crm_sql_add(&sql, "SELECT k.key_id IS NOT NULL, k.read, k.write,"
                " k.plan_api, k.plan_sequences");
    for (int i = 0; checks && i < checks->nelts; i++) {
        const crm_check_t *check = &APR_ARRAY_IDX(checks, i, crm_check_t);

        crm_sql_add(&sql, ", ");
        crm_sql_template(&sql, check->sql, check->bind, check->cast);
        crm_sql_template(&sql, check->more_sql, check->more_bind,
                         check->more_cast);
    }
    crm_sql_add(&sql, " FROM (VALUES (1)) one LEFT JOIN crmapi.live_key k"
                " ON k.workspace_id = $1::uuid AND k.key_id = $2::uuid");
    return crm_call_query(result_p, call, &sql);
}

static int is_true(const PGresult *result, int column)
{
    const char *value = crm_db_value(result, 0, column);

    return value && *value == 't';
}

/* Return the 401 or 403 that RESULT of ask() calls for, or NULL. */
static crm_error_t *forbidden(crm_call_t *call, const PGresult *result)
{
    const crm_endpoint_t *endpoint = call->endpoint;
    const char *message;

    if (!is_true(result, 1) && !is_true(result, 2)) {
        message = "The API key has no scope";
    }
    else if (endpoint->write && !is_true(result, 2)) {
        message = "The API key lacks the scope write";
    }
    else if (!is_true(result, 3)) {
        message = "The workspace's plan does not include the API";
    }
    else if (endpoint->operation->sequences && !is_true(result, 4)) {
        message = "The workspace's plan does not include sequences";
    }
    else {
        return NULL;
    }
    return crm_error_create(CRM_E_FORBIDDEN, message, call->pool);
}

/* Errors of contract 2 that come before the 403. */
static int precedes_scope(const crm_error_t *error)
{
    return error && (error->code == CRM_E_RATE_LIMITED
                     || error->code == CRM_E_METHOD_NOT_ALLOWED
                     || error->code == CRM_E_NOT_FOUND);
}

/* Add the failed CHECKS of RESULT to ERROR (NULL or a 422); a failed check
 * without a field makes it a 404 instead. */
static crm_error_t *failed_checks(crm_call_t *call, crm_error_t *error,
                                  const PGresult *result,
                                  const apr_array_header_t *checks)
{
    for (int i = 0; checks && i < checks->nelts; i++) {
        const crm_check_t *check = &APR_ARRAY_IDX(checks, i, crm_check_t);

        if (is_true(result, 5 + i)) {
            continue;
        }
        if (!check->field) {
            return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
        }
        crm_error_detail(&error, check->field, check->message, call->pool);
    }
    return error;
}

crm_error_t *crm_call_refuse(crm_call_t *call, crm_error_t *error,
                             const apr_array_header_t *checks)
{
    PGresult *result;
    crm_error_t *scope;

    CRM_ERR(ask(&result, call, checks));
    if (!is_true(result, 0)) {
        crm_limit_forget(call->service->limit,
                         call->key.hash, call->key.realm);
        return crm_error_create(CRM_E_UNAUTHORIZED, NULL, call->pool);
    }
    if (precedes_scope(error) || !call->endpoint) {
        return error;
    }
    scope = forbidden(call, result);
    if (scope) {
        return scope;
    }
    if (error && error->code != CRM_E_VALIDATION) {
        return error;
    }
    return failed_checks(call, error, result, checks);
}

/* Set *VALUE_P to the JSON of CALL's body. */
static crm_error_t *read_json(json_object **value_p, crm_call_t *call)
{
    const crm_request_t *request = call->request;
    const char *data;
    apr_size_t len;

    if (!crm_json_is_type(request->content_type)) {
        return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, NULL,
                                call->pool);
    }
    if (request->asks_first) {
        CRM_ERR(crm_call_refuse(call, NULL, NULL));
    }
    CRM_ERR(call->service->read_body(&data, &len, request->baton,
                                     call->pool));
    return crm_json_body(value_p, data, len, call->pool);
}

crm_error_t *crm_call_body(json_object **body_p, crm_input_t *input,
                           crm_call_t *call)
{
    input->pool = call->pool;
    input->lenient = call->lenient;
    input->error = crm_call_params(call);
    CRM_ERR(read_json(body_p, call));
    if (!json_object_is_type(*body_p, json_type_object)) {
        crm_input_wrong(input, "", "must be a JSON object");
        return input->error;
    }
    return NULL;
}

const char *crm_call_param(const crm_call_t *call, const char *name)
{
    const crm_filter_t *filter = call->endpoint->operation->filters;

    for (int i = 0; filter && filter[i].field.name; i++) {
        if (!strcmp(filter[i].field.name, name)) {
            return call->params[i].given ? call->params[i].bind : NULL;
        }
    }
    return NULL;
}

void crm_call_answer(crm_call_t *call, int status, const PGresult *result,
                     int row, int first_column)
{
    crm_buf_t *body = &call->response->body;

    crm_buf_puts(body, "{\"data\":");
    crm_shape_write(body, call->endpoint->shape, result, row, first_column);
    crm_buf_putc(body, '}');
    call->response->status = status;
}
