/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_update.c: changing a row: PATCH */
#include "crm_op_update.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_json_equal.h"
#include "crm_op.h"
#include "crm_rest.h"
#include "crm_type_list.h"

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
        crm_op_select(sql, call, CRM_PERMIT);
        add_fixed(sql, checks, call, values);
        crm_op_match(sql, checks, call);
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
    row = crm_op_where(sql, call, CRM_PERMIT);
    add_fixed(sql, checks, call, values);
    add_sizes(sql, checks, call, values);
    matched = crm_op_match(sql, checks, call);
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

    crm_op_select(&sql, call, CRM_PERMIT_KEY);
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
    apr_array_header_t *checks = crm_op_checks(call);
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
    return crm_op_run(call, &sql, checks);
}
