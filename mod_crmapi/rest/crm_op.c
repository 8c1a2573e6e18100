/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.c: operations on one row: get, create, delete */
#include "crm_op.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_filter.h"
#include "crm_params.h"
#include "crm_rest.h"
#include "crm_uuid.h"

crm_error_t *crm_op_unexplained(crm_error_t *error)
{
    if (error && error->code == CRM_E_CONFLICT && error->sqlstate) {
        error->code = CRM_E_INTERNAL;
        error->message = crm_code_info(CRM_E_INTERNAL)->message;
    }
    return error;
}

/* Return whether ERROR is the violation of a foreign key, or of a unique one:
 * checks of the body explain it. */
static int is_checked(const crm_error_t *error)
{
    return crm_error_is(error, "23503") || crm_error_is(error, "23505");
}

/* Run SQL, which returns a row if and only if the operation was done, and set
 * *ROWS. If there is no row, run CHECKS and return the error of those that
 * fail. If none fails, the data has changed between the two statements, and SQL
 * is tried once more. */
static crm_error_t *run(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql,
                        const apr_array_header_t *checks)
{
    crm_error_t *error, *why;

    for (int i = 0; i < 2; i++) {
        error = crm_idempotency_write(rows, call, sql);
        call->answer = NULL;
        if (!error && (rows->count || call->response->sent)) {
            return NULL;
        }
        if (error && !is_checked(error)) {
            return crm_op_unexplained(error);
        }
        why = crm_rest_refuse(call, NULL, checks);
        if (why) {
            return why;
        }
    }
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
}

/* Make CALL's response of its row, the first of ROWS, if there is one. */
static int answer_row(crm_call_t *call, const crm_rows_t *rows)
{
    const crm_rest_t *rest = crm_rest(call);

    if (rows->count) {
        crm_rest_answer(call, crm_kind_of(rest->endpoint->operation)->status,
                        rows->result, rows->first);
        if (rest->location) {
            apr_table_setn(call->response->headers, "Location",
                           rest->location);
        }
    }
    return rows->count;
}

crm_error_t *crm_op_run(crm_call_t *call, crm_sql_t *sql,
                        const apr_array_header_t *checks)
{
    crm_rows_t rows;

    call->answer = answer_row;
    CRM_ERR(run(&rows, call, sql, checks));
    if (!call->response->sent) {
        answer_row(call, &rows);
    }
    crm_rows_drop(&rows);
    return NULL;
}

apr_array_header_t *crm_op_checks(crm_call_t *call)
{
    return apr_array_make(call->pool, 4, sizeof(crm_check_t));
}

/* Return whether the path of CALL's operation has an id. */
static int has_id(const crm_call_t *call)
{
    return strchr(crm_rest(call)->endpoint->operation->path, '{') != NULL;
}

int crm_op_path(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);
    const char *parent = rest->endpoint->operation->parent;
    int id;

    crm_sql_add(sql, " AND t.id = ");
    id = crm_sql_bind(sql, parent ? rest->row_id : rest->path_id, "uuid");
    if (parent) {
        crm_sql_adds(sql, " AND t.", parent, "_id = ", NULL);
        crm_sql_bind(sql, rest->path_id, "uuid");
    }
    return id;
}

void crm_op_check(apr_array_header_t *checks, const crm_call_t *call)
{
    if (crm_rest(call)->endpoint->operation->parent) {
        crm_check_path_below(checks, call);
    }
    else if (has_id(call)) {
        crm_check_path(checks, call, crm_rest(call)->endpoint->resource);
    }
}

int crm_op_where(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit)
{
    int id = 0;

    crm_sql_clause(sql, CRM_SQL_WHERE);
    crm_sql_add(sql, " WHERE " CRM_SQL_OWN("t"));
    if (has_id(call)) {
        id = crm_op_path(sql, call);
    }
    for (crm_param_t *param = crm_rest(call)->params; param && param->filter;
         param++) {
        if (param->given && param->filter->by != CRM_BY_NOTHING) {
            crm_filter_add(sql, param->filter, param->bind, call);
        }
    }
    crm_sql_add(sql, " AND ");
    crm_rest_permit(sql, call, permit);
    return id;
}

void crm_op_select(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit)
{
    const crm_shape_t *shape = crm_rest_shape(call);

    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT ");
    if (has_id(call) && shape->one_columns) {
        crm_sql_either(sql, shape->row_columns, shape->one_columns);
        permit = permit == CRM_PERMIT ? CRM_PERMIT_ONE : CRM_PERMIT_KEY_ONE;
    }
    else {
        crm_sql_add(sql, shape->row_columns);
    }
    crm_sql_adds(sql, " FROM crmapi.",
                 crm_rest(call)->endpoint->resource->name, " t", NULL);
    crm_op_where(sql, call, permit);
}

/* Serve one row, named by the path or by a parameter (by-email). */
crm_error_t *crm_op_get(crm_call_t *call)
{
    const crm_sort_t *sort = crm_rest(call)->endpoint->operation->sorts;
    crm_error_t *error = crm_rest_params(call);
    apr_array_header_t *checks = crm_op_checks(call);
    crm_rows_t rows;
    crm_sql_t sql;

    crm_op_check(checks, call);
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    crm_op_select(&sql, call, CRM_PERMIT);
    if (sort) {
        crm_sql_adds(&sql, " ORDER BY ", sort->keys[0], ", t.id LIMIT 1",
                     NULL);
    }
    call->answer = answer_row;
    CRM_ERR(crm_call_read(&rows, call, &sql, 1));
    if (!call->response->sent && !answer_row(call, &rows)) {
        error = crm_rest_refuse(call, NULL, checks);
        return error ? error
               : crm_rest_no_row(call, crm_rest(call)->endpoint->resource,
                                 crm_rest(call)->params->filter
                                 ? crm_rest(call)->params->filter->field.name
                                 : "id");
    }
    crm_rows_drop(&rows);
    return NULL;
}

/* Read the parameters and the body of CALL, a create, into *VALUES. */
static crm_error_t *read_body(crm_values_t *values, crm_call_t *call)
{
    json_object *body;
    crm_input_t input;

    memset(values, 0, sizeof(*values));
    CRM_ERR(crm_rest_body(&body, &input, call));
    crm_body_read(values, &input, crm_rest(call)->endpoint->resource, body,
                  CRM_BODY_CREATE, "");
    return input.error;
}

/* Make the statement that inserts VALUES as a row with the id ID. */
static void make_insert(crm_sql_t *sql, crm_call_t *call,
                        const crm_values_t *values, const char *id)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    int row;

    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "INSERT INTO crmapi.", resource->name,
                 " AS t (workspace_id, id", NULL);
    for (int i = 0; resource->fields[i].name; i++) {
        if (resource->fields[i].flags & CRM_F_CREATE) {
            crm_sql_adds(sql, ", ", resource->fields[i].name, NULL);
        }
    }
    crm_sql_add(sql, ") SELECT " CRM_SQL_EITHER(CRM_SQL_WORKSPACE,
                                                "k.workspace_id") ", ");
    row = crm_sql_bind(sql, id, "uuid");
    for (int i = 0; resource->fields[i].name; i++) {
        if (resource->fields[i].flags & CRM_F_CREATE) {
            crm_sql_add(sql, ", ");
            crm_sql_bind(sql, values->binds[i],
                         resource->fields[i].type->cast);
        }
    }
    crm_sql_clause(sql, CRM_SQL_FROM);
    crm_sql_add(sql, CRM_SQL_EITHER("", " FROM"));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_sql_clause(sql, CRM_SQL_WHERE);
    crm_rest_permit(sql, call, CRM_PERMIT_WHERE);
    crm_sql_clause(sql, CRM_SQL_RETURNING);
    crm_sql_adds(sql, " RETURNING ",
                 crm_rest(call)->endpoint->shape->new_columns, NULL);
    crm_sql_write(sql, row, NULL);
}

crm_error_t *crm_op_create(crm_call_t *call)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    int status = crm_kind_of(operation)->status;
    apr_array_header_t *checks = crm_op_checks(call);
    char *id = apr_palloc(call->pool, CRM_UUID_LEN + 1);
    crm_values_t values;
    crm_error_t *error = read_body(&values, call);
    crm_sql_t sql;

    if (values.binds) {
        crm_body_checks(checks, &values, crm_rest(call)->endpoint->resource,
                        CRM_BODY_CREATE, NULL, call->pool);
    }
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    crm_uuid_v7(id);
    if (operation->location) {
        crm_rest(call)->location = apr_pstrcat(call->pool, CRM_API_BASE,
                                               operation->path, "/", id, NULL);
    }
    make_insert(&sql, call, &values, id);
    crm_idempotency_keep_row(&sql, call, status, crm_rest(call)->location,
                             crm_rest(call)->endpoint->shape);
    return crm_op_run(call, &sql, checks);
}

/* Add to SQL that the row has, or with NONE has not, the updated_at of one of TAGS,
 * and add to CHECKS the check that reports if it is not so. Without a value nothing
 * is other than all. */
static void add_condition(crm_sql_t *sql, apr_array_header_t *checks,
                          crm_call_t *call, const crm_etags_t *tags, int none)
{
    const char *rule = none ? "updated_at <> ALL (?)" : "updated_at = ANY (?)";
    crm_check_t *check = apr_array_push(checks);

    crm_check_path_row(check, call, crm_rest(call)->endpoint->resource);
    check->more_sql = apr_pstrcat(call->pool, " AND r.", rule, ")", NULL);
    check->more_bind = tags->any ? NULL : crm_etags_times(tags, none,
                                                          call->pool);
    check->more_cast = "timestamptz[]";
    check->precondition = 1;
    check->message = none ? "The resource matches If-None-Match" : NULL;
    crm_sql_add(sql, " AND t.");
    crm_sql_template(sql, rule, check->more_bind, check->more_cast);
}

int crm_op_match(crm_sql_t *sql, apr_array_header_t *checks,
                 crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);
    int match = rest->match && !rest->match->any;

    if (match) {
        add_condition(sql, checks, call, rest->match, 0);
    }
    if (rest->none_match) {
        add_condition(sql, checks, call, rest->none_match, 1);
    }
    return match || rest->none_match;
}

crm_error_t *crm_op_delete(crm_call_t *call)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    apr_array_header_t *checks = crm_op_checks(call);
    crm_error_t *error = crm_rest_params(call);
    crm_rows_t rows;
    crm_sql_t sql;

    crm_check_path(checks, call, resource);
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    crm_rest_sql(&sql, call);
    if (resource->soft_delete) {
        crm_sql_adds(&sql, "UPDATE crmapi.", resource->name, " t SET ",
                     resource->soft_delete, NULL);
    }
    else {
        crm_sql_adds(&sql, "DELETE FROM crmapi.", resource->name, " t",
                     NULL);
    }
    crm_op_where(&sql, call, CRM_PERMIT);
    crm_op_match(&sql, checks, call);
    crm_sql_add(&sql, " RETURNING t.id");
    crm_idempotency_keep_row(&sql, call, 204, NULL, NULL);
    CRM_ERR(run(&rows, call, &sql, checks));
    call->response->status = 204;
    return NULL;
}
