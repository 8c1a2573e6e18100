/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.c: operations on one row: get, create, update, delete */
#include "crm_op.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_filter.h"
#include "crm_json_equal.h"
#include "crm_params.h"
#include "crm_rest.h"
#include "crm_type_list.h"
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

/* Do as run(), and make CALL's response of the row. */
static crm_error_t *run_and_answer(crm_call_t *call, crm_sql_t *sql,
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

static apr_array_header_t *new_checks(crm_call_t *call)
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

/* Add " WHERE" and its conditions: the row is the one that CALL's path and
 * filters name, and the key permits the operation, as PERMIT says. Return the
 * number of the bind that has the path's id; 0: the path has none. */
static int add_where(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit)
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

/* Make the statement that reads CALL's row if the key permits the operation, as
 * PERMIT says. */
static void make_get(crm_sql_t *sql, crm_call_t *call, crm_permit_t permit)
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
    add_where(sql, call, permit);
}

/* Serve one row, named by the path or by a parameter (by-email). */
crm_error_t *crm_op_get(crm_call_t *call)
{
    const crm_sort_t *sort = crm_rest(call)->endpoint->operation->sorts;
    crm_error_t *error = crm_rest_params(call);
    apr_array_header_t *checks = new_checks(call);
    crm_rows_t rows;
    crm_sql_t sql;

    crm_op_check(checks, call);
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    make_get(&sql, call, CRM_PERMIT);
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
    apr_array_header_t *checks = new_checks(call);
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
    return run_and_answer(call, &sql, checks);
}

/* A SET list in progress. */
typedef struct set_list_t {
    crm_sql_t *sql;
    int count;
} set_list_t;

static void begin_set(set_list_t *list, const char *column)
{
    crm_sql_adds(list->sql, list->count++ ? ", " : "", column, " = ", NULL);
}

/* Return whether CALL merges BIND, the value of FIELD, into what the row has. A null
 * clears it (RFC 7396). */
static int is_merged(const crm_call_t *call, const crm_field_t *field,
                     const char *bind)
{
    return field->type == &crm_type_object && bind != field->type->empty
           && crm_call_merges(call);
}

/* Add the value that FIELD gets from BIND. */
static void add_value(crm_sql_t *sql, const crm_call_t *call,
                      const crm_field_t *field, const char *bind)
{
    if (is_merged(call, field, bind)) {
        crm_sql_adds(sql, "crmapi.json_merge(t.", field->name, ", ", NULL);
        crm_sql_bind(sql, bind, field->type->cast);
        crm_sql_add(sql, ")");
    }
    else {
        crm_sql_bind(sql, bind, field->type->cast);
    }
}

/* Add to SQL the conditions that merged objects are not too large (contract 6.3), and
 * add to CHECKS the checks that report it if they are. A merge is done in the
 * statement, so that it loses no other change. */
static void add_sizes(crm_sql_t *sql, apr_array_header_t *checks,
                      crm_call_t *call, const crm_values_t *values)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;

    for (int i = 0; resource->fields[i].name; i++) {
        const crm_field_t *field = &resource->fields[i];
        crm_check_t *check;

        if (!values->sent[i] || !(field->flags & CRM_F_UPDATE)
            || !is_merged(call, field, values->binds[i])) {
            continue;
        }
        crm_sql_add(sql, " AND crmapi.json_fits(");
        add_value(sql, call, field, values->binds[i]);
        crm_sql_add(sql, ")");
        check = apr_array_push(checks);
        crm_check_path_row(check, call, resource);
        check->more_sql = apr_pstrcat(call->pool, " AND crmapi.json_fits("
                                      "crmapi.json_merge(r.", field->name,
                                      ", ?)))", NULL);
        check->more_bind = values->binds[i];
        check->more_cast = field->type->cast;
        check->field = field->name;
        check->message = "is larger than 64 KiB after the merge";
    }
}

/* Return whether a PATCH of VALUES sets the field INDEX of RESOURCE. */
static int is_set(const crm_resource_t *resource, const crm_values_t *values,
                  int index)
{
    return values->sent[index]
           && (resource->fields[index].flags & CRM_F_UPDATE);
}

/* Set the fields that follow a field that was sent (crm_field_t.follow). */
static void set_followers(set_list_t *list, const crm_resource_t *resource,
                          const crm_values_t *values)
{
    for (int i = 0; resource->fields[i].name; i++) {
        const crm_field_t *field = &resource->fields[i];
        const crm_field_t *leader;
        long index;

        if (!field->follow || is_set(resource, values, i)) {
            continue;
        }
        leader = crm_resource_field(resource, field->follow);
        index = leader - resource->fields;
        if (is_set(resource, values, (int)index)) {
            begin_set(list, field->name);
            crm_sql_template(list->sql, field->follow_sql,
                             values->binds[index], leader->type->cast);
        }
    }
}

/* Set updated_at. It changes only if another field changes, and it always
 * increases (contract 6.6). */
static void set_updated_at(set_list_t *list, const crm_call_t *call,
                           const crm_values_t *values)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    const char *separator = "";

    begin_set(list, "updated_at");
    crm_sql_add(list->sql, "CASE WHEN ");
    for (int i = 0; resource->fields[i].name; i++) {
        if (is_set(resource, values, i)) {
            crm_sql_adds(list->sql, separator, "t.", resource->fields[i].name,
                         " IS DISTINCT FROM ", NULL);
            add_value(list->sql, call, &resource->fields[i],
                      values->binds[i]);
            separator = " OR ";
        }
    }
    crm_sql_add(list->sql, " THEN " CRM_SQL_LATER " ELSE t.updated_at END");
}

/* Add to SQL the condition that FIELD, which is CRM_F_FIXED, has the value BIND
 * (NULL: null), and add to CHECKS the check that reports a difference. */
static void add_fixed_field(crm_sql_t *sql, apr_array_header_t *checks,
                            crm_call_t *call, const crm_field_t *field,
                            const char *bind)
{
    const char *rule = apr_pstrcat(call->pool, field->name,
                                   bind ? " = ?" : " IS NULL", NULL);
    crm_check_t *check = apr_array_push(checks);

    crm_sql_add(sql, " AND t.");
    crm_sql_template(sql, rule, bind, field->type->cast);
    crm_check_path_row(check, call, crm_rest(call)->endpoint->resource);
    check->more_sql = apr_pstrcat(call->pool, " AND r.", rule, ")", NULL);
    check->more_bind = bind;
    check->more_cast = field->type->cast;
    check->field = field->name;
    check->message = "cannot be changed";
}

/* Add to SQL the conditions that CRM_F_FIXED fields have the values sent, and
 * add to CHECKS the checks that report a difference. */
static void add_fixed(crm_sql_t *sql, apr_array_header_t *checks,
                      crm_call_t *call, const crm_values_t *values)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;

    for (int i = 0; resource->fields[i].name; i++) {
        if (values->sent[i] && resource->fields[i].flags & CRM_F_FIXED) {
            add_fixed_field(sql, checks, call, &resource->fields[i],
                            values->binds[i]);
        }
    }
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

/* Add to SQL and CHECKS the conditions of CALL's If-Match and If-None-Match
 * (contract 13.2; RFC 9110, 13.1). Return 0 if there is none. */
static int add_match(crm_sql_t *sql, apr_array_header_t *checks,
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

/* Make the statement that updates the row with VALUES. If VALUES has nothing to
 * store, it only selects the row. */
static void make_update(crm_sql_t *sql, apr_array_header_t *checks,
                        crm_call_t *call, const crm_values_t *values)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    const crm_shape_t *shape = crm_rest(call)->endpoint->shape;
    set_list_t list = {sql, 0};
    int count = 0, row, matched;

    for (int i = 0; resource->fields[i].name; i++) {
        count += is_set(resource, values, i);
    }
    if (!count) {
        make_get(sql, call, CRM_PERMIT);
        add_fixed(sql, checks, call, values);
        add_match(sql, checks, call);
        return;
    }
    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "UPDATE crmapi.", resource->name, " t SET ", NULL);
    for (int i = 0; resource->fields[i].name; i++) {
        if (is_set(resource, values, i)) {
            begin_set(&list, resource->fields[i].name);
            add_value(sql, call, &resource->fields[i], values->binds[i]);
        }
    }
    set_followers(&list, resource, values);
    if (shape->updated_at >= 0) {
        set_updated_at(&list, call, values);
    }
    row = add_where(sql, call, CRM_PERMIT);
    add_fixed(sql, checks, call, values);
    add_sizes(sql, checks, call, values);
    matched = add_match(sql, checks, call);
    crm_sql_clause(sql, CRM_SQL_RETURNING);
    crm_sql_adds(sql, " RETURNING ", shape->row_columns, NULL);
    if (!matched) {
        crm_sql_write(sql, row, resource->name);
    }
}

/* Remove from BODY, a JSON object, the fields of RESOURCE that are equal in
 * SHOWN. Return whether there were any. */
static int remove_equal(json_object *body, json_object *shown,
                        const crm_resource_t *resource, apr_pool_t *pool)
{
    int count = 0;

    for (int i = 0; resource->fields[i].name; i++) {
        const char *name = resource->fields[i].name;
        json_object *sent, *is;

        if (json_object_object_get_ex(body, name, &sent)
            && json_object_object_get_ex(shown, name, &is)
            && crm_json_equal(json_object_to_json_string(sent),
                              json_object_to_json_string(is), pool)) {
            json_object_object_del(body, name);
            count++;
        }
    }
    return count;
}

/* Read BODY, which was refused with ERROR, into *VALUES again, without the
 * fields that have the values that the row shows now: those are never an error
 * (contract 6.2). Return what is still one. */
static crm_error_t *read_changed(crm_values_t *values, crm_call_t *call,
                                 json_object *body, crm_error_t *error)
{
    const crm_rest_t *rest = crm_rest(call);
    crm_input_t input = {call->pool, NULL, rest->lenient};
    json_object *shown;
    crm_rows_t rows;
    crm_sql_t sql;
    crm_buf_t buf;
    int removed;

    make_get(&sql, call, CRM_PERMIT_KEY);
    CRM_ERR(crm_call_read(&rows, call, &sql, 1));
    if (!rows.count) {
        return error;
    }
    crm_buf_init(&buf, 1024, call->pool);
    crm_shape_write(&buf, rest->endpoint->shape, rows.result, rows.first, 0);
    crm_buf_putc(&buf, '\0');
    crm_rows_drop(&rows);
    shown = json_tokener_parse(buf.data);
    removed = remove_equal(body, shown, rest->endpoint->resource,
                           call->pool);
    json_object_put(shown);
    if (removed) {
        crm_body_read(values, &input, rest->endpoint->resource, body,
                      CRM_BODY_UPDATE, "");
        return input.error;
    }
    return error;
}

/* Read the parameters and the body of CALL, a PATCH, into *VALUES. */
static crm_error_t *read_patch(crm_values_t *values, crm_call_t *call)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    json_object *body;
    crm_input_t input;
    int refused;

    memset(values, 0, sizeof(*values));
    CRM_ERR(crm_rest_body(&body, &input, call));
    refused = input.error != NULL;
    crm_body_read(values, &input, resource, body, CRM_BODY_UPDATE, "");
    return input.error && !refused && crm_rest(call)->path_id
           ? read_changed(values, call, body, input.error) : input.error;
}

crm_error_t *crm_op_update(crm_call_t *call)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    int status = crm_kind_of(crm_rest(call)->endpoint->operation)->status;
    apr_array_header_t *checks = new_checks(call);
    crm_values_t values;
    crm_error_t *error = read_patch(&values, call);
    crm_sql_t sql;

    crm_check_path(checks, call, resource);
    if (values.binds && crm_rest(call)->path_id) {
        crm_body_checks(checks, &values, resource, CRM_BODY_UPDATE,
                        crm_rest(call)->path_id, call->pool);
        make_update(&sql, checks, call, &values);
        crm_idempotency_keep_row(&sql, call, status, NULL,
                                 crm_rest(call)->endpoint->shape);
    }
    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, checks);
    }
    return run_and_answer(call, &sql, checks);
}

crm_error_t *crm_op_delete(crm_call_t *call)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    apr_array_header_t *checks = new_checks(call);
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
    add_where(&sql, call, CRM_PERMIT);
    add_match(&sql, checks, call);
    crm_sql_add(&sql, " RETURNING t.id");
    crm_idempotency_keep_row(&sql, call, 204, NULL, NULL);
    CRM_ERR(run(&rows, call, &sql, checks));
    call->response->status = 204;
    return NULL;
}
