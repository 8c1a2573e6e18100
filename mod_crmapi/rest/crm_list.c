/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list.c: what the statements of lists have in common */
#include "crm_list.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_filter.h"
#include "crm_filter_member.h"
#include "crm_list_lead.h"
#include "crm_params.h"

/* Return the column that refers to the parent. */
static const char *parent_column(const crm_call_t *call)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;

    return operation->parent_column ? operation->parent_column
           : apr_pstrcat(call->pool, operation->parent, "_id", NULL);
}

/* Return the filter of CALL that names rows by the primary key, or NULL. */
static const crm_param_t *by_key(const crm_call_t *call)
{
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->given && param->filter->by_key) {
            return param;
        }
    }
    return NULL;
}

/* Return whether the rows of CALL are read in the order of the resource's
 * times. */
static int by_time(const crm_call_t *call)
{
    return crm_rest(call)->sort->by_time && !by_key(call);
}

/* Return whether the resource's times have all that the conditions of CALL ask
 * for. */
static int times_suffice(const crm_call_t *call)
{
    if (!crm_rest(call)->endpoint->resource->times
        || crm_rest(call)->endpoint->operation->parent) {
        return 0;
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->given && param->filter->by != CRM_BY_NOTHING
            && !param->filter->sql_by_time) {
            return 0;
        }
    }
    return 1;
}

/* Add " FROM" the resource's times c, and if ROWS, its rows t, each by its primary
 * key: OFFSET 0 hides the table from the planner, which could otherwise begin with
 * it and sort, or read all of c for each row. */
static void add_from_times(crm_sql_t *sql, const crm_call_t *call, int rows)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;

    crm_sql_adds(sql, " FROM crmapi.", resource->times, " c", NULL);
    if (rows) {
        crm_sql_adds(sql, " CROSS JOIN LATERAL (SELECT * FROM crmapi.",
                     resource->name, " t WHERE " CRM_SQL_OWN("t")
                     " AND t.id = c.id OFFSET 0) t", NULL);
    }
}

/* Add " FROM ... WHERE" with the resource's times c, and the conditions that
 * they have. ROWS: see add_from_times(). */
static void add_times(crm_sql_t *sql, const crm_call_t *call, int rows)
{
    add_from_times(sql, call, rows);
    crm_sql_add(sql, " WHERE " CRM_SQL_OWN("c"));
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->given && param->filter->sql_by_time) {
            crm_sql_add(sql, " AND ");
            crm_sql_template(sql, param->filter->sql_by_time, param->bind,
                             param->filter->field.type->cast);
        }
    }
}

/* Add the resource's table, or only those of its rows that the filter KEY (may
 * be NULL) names. Without this, a planner that underestimates the size of the
 * workspace would scan all of it in the order of the list, and compare each id
 * with those of the filter. */
static void add_table(crm_sql_t *sql, const crm_call_t *call,
                      const crm_param_t *key)
{
    const char *name = crm_rest(call)->endpoint->resource->name;

    if (!key) {
        crm_sql_adds(sql, "crmapi.", name, " t", NULL);
        return;
    }
    crm_sql_adds(sql, "(SELECT * FROM crmapi.", name,
                 " t WHERE " CRM_SQL_OWN("t"), NULL);
    crm_filter_add(sql, key->filter, key->bind, call);
    crm_sql_add(sql, " OFFSET 0) t");
}

/* Add " FROM ... WHERE" with the resource's table t. SCOPED: see add_rows(). */
static void add_from(crm_sql_t *sql, const crm_call_t *call, int scoped)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;

    if (scoped && crm_filter_member_by_times(call)) {
        add_from_times(sql, call, 1);
        crm_sql_add(sql, " WHERE " CRM_SQL_OWN_HIDDEN("c"));
        return;
    }
    crm_sql_add(sql, " FROM ");
    add_table(sql, call, by_key(call));
    crm_sql_adds(sql, operation->from ? " " : "",
                 operation->from ? operation->from : "",
                 " WHERE ", scoped ? CRM_SQL_OWN_HIDDEN("t") : CRM_SQL_OWN("t"),
                 NULL);
    if (operation->parent) {
        crm_sql_adds(sql, " AND t.", parent_column(call), " = ", NULL);
        crm_sql_bind(sql, crm_rest(call)->path_id, "uuid");
    }
}

/* Add PARAM's condition so that no index is used for it, which would leave the rows to
 * be sorted. CASE also hides from the planner how few rows seem to match: about a
 * value that is frequent and among many it has no idea. */
static void add_hidden(crm_sql_t *sql, const crm_param_t *param,
                       const crm_call_t *call)
{
    crm_sql_add(sql, " AND CASE WHEN true");
    crm_filter_add(sql, param->filter, param->bind, call);
    crm_sql_add(sql, " THEN true END");
}

/* Add " FROM ... WHERE" and all conditions: see crm_list_rows(). If TIMES, the
 * rows are read in the order of the resource's times. If SCOPED, those filters
 * whose index has the workspace in its keys are written for it. No other index is
 * used then, also not by the workspace (CRM_SQL_OWN_HIDDEN()): the planner knows
 * neither how few rows a tag has nor how many the workspace has. */
static void add_rows(crm_sql_t *sql, const crm_call_t *call, int times,
                     int unindexed, int scoped)
{
    const crm_param_t *key = by_key(call);

    if (times) {
        add_times(sql, call, 1);
    }
    else {
        add_from(sql, call, scoped);
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        const crm_filter_t *filter = param->filter;
        const crm_predicate_t *functions = crm_filter_functions(filter);

        if (param == key || (times && filter->sql_by_time)) {
            continue;
        }
        if (scoped && crm_list_is_indexed(param, call)) {
            functions->add_scoped(sql, filter, param->bind, call);
        }
        else if (param->given && unindexed && functions->add_unindexed) {
            functions->add_unindexed(sql, filter, param->bind, call);
        }
        else if (param->given && unindexed && crm_list_is_other(param, call)) {
            add_hidden(sql, param, call);
        }
        else if (param->given && functions->add) {
            functions->add(sql, filter, param->bind, call);
        }
        else if (filter->absent && functions->add) {
            functions->add(sql, filter, filter->absent, call);
        }
    }
}

apr_int64_t crm_list_offset(const crm_call_t *call)
{
    return (crm_rest(call)->page - 1) * crm_rest(call)->page_size;
}

void crm_list_all(crm_sql_t *sql, const crm_call_t *call)
{
    if (by_time(call)) {
        add_from_times(sql, call, 1);
        crm_sql_add(sql, " WHERE " CRM_SQL_OWN("c"));
    }
    else {
        crm_sql_adds(sql, " FROM crmapi.",
                     crm_rest(call)->endpoint->resource->name,
                     " t WHERE " CRM_SQL_OWN("t"), NULL);
    }
}

void crm_list_rows(crm_sql_t *sql, const crm_call_t *call, int unindexed)
{
    add_rows(sql, call, by_time(call), unindexed, 0);
}

void crm_list_ids(crm_sql_t *sql, const crm_call_t *call)
{
    if (by_time(call) && times_suffice(call)) {
        crm_sql_add(sql, "SELECT c.id");
        add_times(sql, call, 0);
    }
    else {
        crm_list_keys(sql, call, "t.id");
        crm_list_rows(sql, call, 0);
    }
}

void crm_list_count(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, "SELECT count(*)");
    if (times_suffice(call)) {
        add_times(sql, call, 0);
    }
    else {
        add_rows(sql, call, 0, 0, 0);
    }
}

void crm_list_key(crm_sql_t *sql, const crm_call_t *call, const char *rows,
                  int index)
{
    const char *key = crm_rest(call)->sort->keys[index];

    if (!key) {
        crm_sql_adds(sql, rows ? rows : by_time(call) ? "c" : "t", ".id", NULL);
    }
    else if (rows) {
        crm_sql_adds(sql, rows, ".o", apr_itoa(call->pool, index), NULL);
    }
    else if (by_time(call)) {
        crm_sql_adds(sql, "c", strchr(key, '.'), NULL);
    }
    else {
        crm_sql_add(sql, key);
    }
}

void crm_list_order(crm_sql_t *sql, const crm_call_t *call, const char *rows,
                    int reverse)
{
    const crm_sort_t *sort = crm_rest(call)->sort;
    const char *direction = crm_rest(call)->ascending != reverse ? "" : " DESC";
    const char *nulls = reverse ? " NULLS FIRST, " : " NULLS LAST, ";
    int i;

    crm_sql_add(sql, " ORDER BY ");
    for (i = 0; sort->keys[i]; i++) {
        crm_list_key(sql, call, rows, i);
        crm_sql_adds(sql, direction, sort->nulls_last && !i ? nulls : ", ",
                     NULL);
    }
    crm_list_key(sql, call, rows, i);
    crm_sql_add(sql, direction);
}

void crm_list_keys(crm_sql_t *sql, const crm_call_t *call,
                   const char *columns)
{
    crm_sql_adds(sql, "SELECT ", columns, NULL);
    for (int i = 0; crm_rest(call)->sort->keys[i]; i++) {
        crm_sql_adds(sql, ", ", crm_rest(call)->sort->keys[i], " AS o",
                     apr_itoa(call->pool, i), NULL);
    }
}

int crm_list_is_indexed(const crm_param_t *param, const crm_call_t *call)
{
    const crm_predicate_t *functions = crm_filter_functions(param->filter);

    return param->given && functions->add_unindexed
           && (!functions->indexed
               || functions->indexed(param->filter, param->bind, call->pool));
}

/* Return whether all filters of CALL that have an index for their content have one
 * with the workspace in its keys, and none names rows by the primary key.
 * Otherwise the index of all filters by content finds rows that match several of
 * them. */
static int is_scoped(const crm_call_t *call)
{
    int found = 0;

    if (by_key(call)) {
        return 0;
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (crm_list_is_indexed(param, call)) {
            if (!crm_filter_functions(param->filter)->add_scoped) {
                return 0;
            }
            found = 1;
        }
    }
    return found;
}

/* Return whether CALL has a filter by content. */
static int is_by_content(const crm_call_t *call)
{
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->given
            && crm_filter_functions(param->filter)->add_unindexed) {
            return 1;
        }
    }
    return 0;
}

int crm_list_collects(const crm_call_t *call)
{
    return is_by_content(call) || crm_list_lead(call);
}

void crm_list_matches(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_param_t *lead = crm_list_lead(call);

    if (lead) {
        crm_list_lead_matches(sql, call, lead);
        return;
    }
    crm_sql_add(sql, "WITH m AS MATERIALIZED (");
    crm_list_keys(sql, call, "t.*");
    add_rows(sql, call, 0, 0, is_scoped(call));
    crm_sql_add(sql, " LIMIT " CRM_LIST_TEXT(CRM_LIST_MATCHES) " + 1) ");
}

void crm_list_few(crm_sql_t *sql, const crm_call_t *call,
                  crm_list_start_t *start, apr_int64_t count)
{
    if (crm_list_lead(call)) {
        crm_list_lead_few(sql, call, start, count);
    }
    else {
        crm_sql_add(sql, "(SELECT count(*) <= " CRM_LIST_TEXT(CRM_LIST_MATCHES)
                    " FROM m)");
    }
}

void crm_list_number(crm_sql_t *sql, const crm_call_t *call, apr_int64_t n)
{
    crm_sql_bind(sql, apr_psprintf(call->pool, "%" APR_INT64_T_FMT, n),
                 "bigint");
}
