/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_list.c: lists: filters, order, page and total in one statement */
#include <string.h>

#include "apr_strings.h"

#include "crm_op.h"

/* The columns before the resource's own in a list's rows. */
#define COLUMN_TOTAL 0
#define COLUMN_FIRST 1

/* Return the resource that the path names: the parent, if it has one. */
static const crm_resource_t *path_resource(const crm_endpoint_t *endpoint)
{
    const char *parent = endpoint->operation->parent;

    return parent ? crm_resource_find(parent) : endpoint->resource;
}

/* Return the column by which rows belong to the parent. */
static const char *parent_column(const crm_call_t *call)
{
    const crm_operation_t *operation = call->endpoint->operation;

    return operation->parent_column ? operation->parent_column
           : apr_pstrcat(call->pool, operation->parent, "_id", NULL);
}

/* Add " FROM ... WHERE" all conditions on the rows. */
static void add_rows(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_operation_t *operation = call->endpoint->operation;

    crm_sql_adds(sql, " FROM crmapi.", call->endpoint->resource->name, " t",
                 operation->from ? " " : "",
                 operation->from ? operation->from : "",
                 " WHERE t.workspace_id = $1::uuid", NULL);
    if (operation->parent) {
        crm_sql_adds(sql, " AND t.", parent_column(call), " = ", NULL);
        crm_sql_bind(sql, call->path_id, "uuid");
    }
    for (crm_param_t *param = call->params; param->filter; param++) {
        const crm_filter_t *filter = param->filter;

        if (param->given && filter->add) {
            filter->add(sql, filter, param->bind, call);
        }
        else if (filter->absent_is_false) {
            filter->add(sql, filter, "f", call);
        }
    }
}

/* Return whether the counters know the total of CALL's list: it has them, and
 * no filter is given that they do not know. *PARENT_P = the agent's id if that
 * is a filter, or NULL. */
static int is_counted(const char **parent_p, const crm_call_t *call)
{
    *parent_p = NULL;
    if (!call->endpoint->operation->counter) {
        return 0;
    }
    for (crm_param_t *param = call->params; param->filter; param++) {
        if (!param->given
            || (param->filter->absent_is_false && *param->bind == 'f')) {
            continue;
        }
        if (!param->filter->counted || !param->bind) {
            return 0;
        }
        *parent_p = param->bind;
    }
    return 1;
}

/* Add a scalar expression for the list's total (contract 7.11). */
static void add_total(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_operation_t *operation = call->endpoint->operation;
    const char *parent;

    if (operation->whole) {
        crm_sql_add(sql, "0");
    }
    else if (is_counted(&parent, call)) {
        crm_sql_adds(sql, "(SELECT coalesce(sum(c.n), 0)::bigint FROM"
                     " crmapi.counter c WHERE c.workspace_id = $1::uuid"
                     " AND c.kind = '", operation->counter,
                     "' AND c.parent = ", NULL);
        crm_sql_bind(sql, parent ? parent
                     : "00000000-0000-0000-0000-000000000000", "uuid");
        crm_sql_add(sql, ")");
    }
    else {
        crm_sql_add(sql, "(SELECT count(*)");
        add_rows(sql, call);
        crm_sql_add(sql, ")");
    }
}

/* Add the keys of the order, from the select list names if OUTER. */
static void add_order(crm_sql_t *sql, const crm_call_t *call, int outer)
{
    const crm_sort_t *sort = call->sort;
    const char *direction = call->ascending ? "" : " DESC";

    crm_sql_add(sql, " ORDER BY ");
    for (int i = 0; sort->keys[i]; i++) {
        if (outer) {
            char name[16];

            apr_snprintf(name, sizeof(name), "t.o%d", i);
            crm_sql_add(sql, name);
        }
        else {
            crm_sql_add(sql, sort->keys[i]);
        }
        crm_sql_adds(sql, direction,
                     sort->nulls_last && !i ? " NULLS LAST, " : ", ", NULL);
    }
    crm_sql_adds(sql, "t.id", direction, NULL);
}

/* Add the rows of the page. */
static void add_page(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_sort_t *sort = call->sort;

    crm_sql_add(sql, "SELECT t.*");
    for (int i = 0; sort->keys[i]; i++) {
        char name[16];

        apr_snprintf(name, sizeof(name), " AS o%d", i);
        crm_sql_adds(sql, ", ", sort->keys[i], name, NULL);
    }
    add_rows(sql, call);
    add_order(sql, call, 0);
    if (!call->endpoint->operation->whole) {
        crm_sql_add(sql, " LIMIT ");
        crm_sql_bind(sql, apr_itoa(call->pool, call->page_size), "integer");
        crm_sql_add(sql, " OFFSET ");
        crm_sql_bind(sql, apr_psprintf(call->pool, "%" APR_INT64_T_FMT,
                                       (apr_int64_t)(call->page - 1)
                                       * call->page_size), "bigint");
    }
}

/* One row at least comes back if the key is alive: with the total, and all
 * null beside it if the page is empty. */
static void make_list(crm_sql_t *sql, crm_call_t *call)
{
    crm_call_sql(sql, call);
    crm_sql_adds(sql, "SELECT s.total, ", call->endpoint->shape->columns,
                 " FROM (SELECT ", NULL);
    add_total(sql, call);
    crm_sql_add(sql, " AS total) s LEFT JOIN LATERAL (");
    add_page(sql, call);
    crm_sql_add(sql, ") t ON true WHERE ");
    crm_call_permit(sql, call);
    add_order(sql, call, 1);
}

static void write_pagination(crm_buf_t *body, const crm_call_t *call,
                             apr_int64_t total)
{
    apr_int64_t size = call->page_size;

    crm_buf_printf(body, ",\"pagination\":{\"page\":%d,\"page_size\":%d"
                   ",\"total\":%" APR_INT64_T_FMT ",\"total_pages\":%"
                   APR_INT64_T_FMT "}", call->page, call->page_size, total,
                   (total + size - 1) / size);
}

static void answer(crm_call_t *call, const PGresult *result)
{
    crm_buf_t *body = &call->response->body;
    int rows = PQntuples(result);

    if (PQgetisnull(result, 0, COLUMN_FIRST)) {
        rows = 0;
    }
    crm_buf_puts(body, "{\"data\":[");
    for (int row = 0; row < rows; row++) {
        if (row) {
            crm_buf_putc(body, ',');
        }
        crm_shape_write(body, call->endpoint->shape, result, row,
                        COLUMN_FIRST);
    }
    crm_buf_putc(body, ']');
    if (!call->endpoint->operation->whole) {
        write_pagination(body, call,
                         apr_atoi64(PQgetvalue(result, 0, COLUMN_TOTAL)));
    }
    crm_buf_putc(body, '}');
    call->response->status = 200;
}

static crm_error_t *serve_list(crm_call_t *call)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_call_params(call);
    PGresult *result;
    crm_sql_t sql;

    if (call->endpoint->operation->parent) {
        crm_check_path(checks, call, path_resource(call->endpoint));
    }
    if (error) {
        return crm_call_refuse(call, error, checks);
    }
    make_list(&sql, call);
    CRM_ERR(crm_call_query(&result, call, &sql));
    if (!PQntuples(result)) {
        error = crm_call_refuse(call, NULL, checks);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    if (PQgetisnull(result, 0, COLUMN_FIRST) && checks->nelts) {
        /* Nothing there: is there a parent at all (contract 7.9)? */
        CRM_ERR(crm_call_refuse(call, NULL, checks));
    }
    answer(call, result);
    return NULL;
}

const crm_kind_t crm_op_list = {"list", 200, serve_list, 0};
