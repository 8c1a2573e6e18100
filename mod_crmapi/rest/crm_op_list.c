/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_list.c: lists: filters, order, page and total in one statement */
#include "crm_op_list.h"

#include "apr_strings.h"

#include "crm_list.h"
#include "crm_list_walk.h"
#include "crm_params.h"

/* Return the resource that the path's {id} names. */
static const crm_resource_t *path_resource(const crm_endpoint_t *endpoint)
{
    const char *parent = endpoint->operation->parent;

    return parent ? crm_resource_find(parent) : endpoint->resource;
}

/* Return whether crmapi.counter has the total of CALL's list: the operation has
 * a counter, and there is no filter but the one that it counts by. Set
 * *PARENT_P to the value of that filter, or NULL. */
static int is_counted(const char **parent_p, const crm_call_t *call)
{
    *parent_p = NULL;
    if (!crm_rest(call)->endpoint->operation->counter) {
        return 0;
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (!param->given) {
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
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    const char *parent;

    if (operation->whole) {
        crm_sql_add(sql, "0");
    }
    else if (is_counted(&parent, call)) {
        crm_sql_adds(sql, "(SELECT coalesce(sum(c.n), 0)::bigint FROM"
                     " crmapi.counter c WHERE " CRM_SQL_OWN("c")
                     " AND c.kind = '", operation->counter,
                     "' AND c.parent = ", NULL);
        crm_sql_bind(sql, parent ? parent
                     : "00000000-0000-0000-0000-000000000000", "uuid");
        crm_sql_add(sql, ")");
    }
    else {
        crm_sql_add(sql, "(");
        crm_list_count(sql, call);
        crm_sql_add(sql, ")");
    }
}

/* Add LIMIT and OFFSET of CALL's page. */
static void add_page(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " LIMIT ");
    crm_list_number(sql, call, crm_rest(call)->page_size);
    if (crm_list_offset(call)) {
        crm_sql_add(sql, " OFFSET ");
        crm_list_number(sql, call, crm_list_offset(call));
    }
}

/* Return a constant LIMIT that includes every page with an offset below
 * CRM_LIST_DEEP, so that it does not change the result. The planner needs it: it
 * cannot see the bound LIMIT, assumes a tenth of all rows, and would sort them
 * instead of reading an index in order. */
static const char *inner_limit(const crm_call_t *call)
{
    apr_int64_t before = crm_list_offset(call);

    return !before ? " LIMIT " CRM_LIST_TEXT(CRM_LIST_PAGE)
           : before < CRM_LIST_DEEP
             ? " LIMIT " CRM_LIST_TEXT(CRM_LIST_DEEP) " + "
               CRM_LIST_TEXT(CRM_LIST_PAGE) : "";
}

/* Add the rows of a page, read in the order of the list. If COLLECTED, add none if s
 * says that they are taken from the matches m. */
static void add_in_order(crm_sql_t *sql, const crm_call_t *call, int collected)
{
    crm_sql_add(sql, "SELECT t.* FROM (");
    crm_list_keys(sql, call, "t.*");
    crm_list_rows(sql, call, collected);
    crm_sql_add(sql, collected ? " AND NOT found.few" : "");
    crm_list_order(sql, call, NULL, 0);
    crm_sql_adds(sql, inner_limit(call), ") t", NULL);
    add_page(sql, call);
}

/* Add the rows of a list without pages. */
static void add_whole(crm_sql_t *sql, const crm_call_t *call)
{
    crm_list_keys(sql, call, "t.*");
    crm_list_rows(sql, call, 0);
    crm_list_order(sql, call, NULL, 0);
}

/* Add the ids of a page with a deep offset. A page in the first half of found.total
 * rows is read from the beginning, others are read from the end. Both variants
 * are added; FROM_END says which one this is. The one that does not apply
 * returns no row. */
static void add_half(crm_sql_t *sql, const crm_call_t *call, int from_end)
{
    apr_int64_t before = crm_list_offset(call);

    crm_sql_add(sql, "(");
    crm_list_ids(sql, call);
    crm_sql_add(sql, " AND ");
    crm_list_number(sql, call, 2 * before);
    crm_sql_add(sql, from_end ? " > found.total" : " <= found.total");
    crm_list_order(sql, call, NULL, from_end);
    crm_sql_add(sql, from_end ? " LIMIT greatest(least(found.total - "
                : " LIMIT ");
    if (from_end) {
        crm_list_number(sql, call, before);
        crm_sql_add(sql, ", ");
    }
    crm_list_number(sql, call, crm_rest(call)->page_size);
    crm_sql_add(sql, from_end ? "), 0) OFFSET greatest(found.total - "
                : " OFFSET ");
    crm_list_number(sql, call, from_end
                    ? before + crm_rest(call)->page_size : before);
    crm_sql_add(sql, from_end ? ", 0))" : ")");
}

/* Add the rows of a page with a deep offset. The skipped rows are read from an
 * index only, and never more than half of the list. The rows are then fetched
 * by = ANY of all ids at once. A join or one look-up for each id would let a
 * planner that underestimates the workspace choose any of its indexes and scan
 * all of it, for each row. */
static void add_deep_page(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, "SELECT t.* FROM (SELECT array_agg(h.id) AS ids FROM (");
    add_half(sql, call, 0);
    crm_sql_add(sql, " UNION ALL ");
    add_half(sql, call, 1);
    crm_sql_add(sql, ") h) p, LATERAL (");
    crm_list_keys(sql, call, "t.*");
    crm_sql_adds(sql, " FROM crmapi.", crm_rest(call)->endpoint->resource->name,
                 " t WHERE " CRM_SQL_OWN("t") " AND t.id = ANY (p.ids)"
                 " OFFSET 0) t", NULL);
}

/* Add the page from the collected matches m, if found, their count, says that all
 * were collected. */
static void add_few(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, "(SELECT m.* FROM m WHERE found.few");
    crm_list_order(sql, call, "m", 0);
    add_page(sql, call);
    crm_sql_add(sql, ")");
}

/* Return whether CALL's page is one for add_deep_page(). */
static int is_deep(const crm_call_t *call)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;

    return !operation->whole && !operation->from
           && crm_list_offset(call) >= CRM_LIST_DEEP;
}

/* Add the FROM of a list whose matches are collected. Their number is not known
 * when the statement is planned. Therefore up to CRM_LIST_MATCHES are collected first,
 * once, with the index of the filter. If these are all, their number is the total,
 * and the page is taken from them. If there are more, matches are frequent, and a scan
 * in the order of the list finds a page of them soon. */
static void add_collected(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " FROM (SELECT f.few, CASE WHEN f.few"
                " THEN (SELECT count(*) FROM m) ELSE ");
    add_total(sql, call);
    crm_sql_add(sql, " END AS total FROM (SELECT ");
    crm_list_few(sql, call, NULL, crm_list_offset(call)
                 + crm_rest(call)->page_size);
    crm_sql_add(sql, " AS few OFFSET 0) f");
    crm_sql_add(sql, CRM_SQL_EITHER("", ","));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_sql_add(sql, " OFFSET 0) found LEFT JOIN LATERAL (");
    add_few(sql, call);
    crm_sql_add(sql, " UNION ALL (");
    add_in_order(sql, call, 1);
    crm_sql_add(sql, ")");
}

/* Add the FROM of any other list. */
static void add_in_list_order(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " FROM (SELECT ");
    add_total(sql, call);
    /* OFFSET 0: found.total is used several times and must be counted once */
    crm_sql_add(sql, " AS total" CRM_SQL_EITHER("", " FROM"));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_sql_adds(sql, is_deep(call) ? " OFFSET 0" : "",
                 ") found LEFT JOIN LATERAL (", NULL);
    if (crm_rest(call)->endpoint->operation->whole) {
        add_whole(sql, call);
    }
    else if (is_deep(call)) {
        add_deep_page(sql, call);
    }
    else {
        add_in_order(sql, call, 0);
    }
}

/* Make the statement of the list. If the key is valid, at least one row is
 * returned: for an empty page it has the total, and null in all other
 * columns. */
static void make_list(crm_sql_t *sql, crm_call_t *call)
{
    int collected = crm_list_collects(call);

    crm_rest_sql(sql, call);
    if (collected) {
        crm_list_matches(sql, call);
    }
    crm_sql_adds(sql, "SELECT found.total, ", crm_rest_shape(call)->columns, NULL);
    (collected ? add_collected : add_in_list_order)(sql, call);
    crm_sql_add(sql, ") t ON true");
    crm_rest_permit(sql, call, CRM_PERMIT_WHERE);
    crm_list_order(sql, call, "t", 0);
}

static void write_pagination(crm_buf_t *body, const crm_call_t *call,
                             apr_int64_t total)
{
    apr_int64_t size = crm_rest(call)->page_size;

    crm_buf_printf(body, ",\"pagination\":{\"page\":%" APR_INT64_T_FMT
                   ",\"page_size\":%" APR_INT64_T_FMT ",\"total\":%"
                   APR_INT64_T_FMT ",\"total_pages\":%" APR_INT64_T_FMT "}",
                   crm_rest(call)->page, size, total,
                   (total + size - 1) / size);
}

/* Return whether the page in ROWS has no rows of the resource. */
static int is_empty(const crm_rows_t *rows)
{
    return PQgetisnull(rows->result, rows->first, CRM_LIST_FIRST);
}

/* Return how many of ROWS are on the page. */
static int count_of(const crm_call_t *call, const crm_rows_t *rows)
{
    return is_empty(rows) ? 0
           : crm_rest(call)->cursor ? crm_walk_count(call, rows) : rows->count;
}

static crm_error_t *answer(crm_call_t *call, const crm_rows_t *rows)
{
    const crm_shape_t *shape = crm_rest_shape(call);
    crm_buf_t *body = &call->response->body;
    int count = count_of(call, rows);

    crm_buf_puts(body, "{\"data\":[");
    for (int i = 0; i < count; i++) {
        if (i) {
            crm_buf_putc(body, ',');
        }
        crm_shape_write(body, shape, rows->result, rows->first + i,
                        CRM_LIST_FIRST);
    }
    crm_buf_putc(body, ']');
    if (crm_rest(call)->cursor) {
        CRM_ERR(crm_walk_answer(body, call, rows));
    }
    else if (!crm_rest(call)->endpoint->operation->whole) {
        write_pagination(body, call,
                         apr_atoi64(PQgetvalue(rows->result, rows->first,
                                               CRM_LIST_TOTAL)));
    }
    crm_buf_putc(body, '}');
    call->response->status = 200;
    return NULL;
}

/* Make CALL's response of ROWS, unless a part of it needs another statement. */
static int answer_page(crm_call_t *call, const crm_rows_t *rows)
{
    return rows->count
           && !(is_empty(rows) && crm_rest(call)->endpoint->operation->parent)
           && !answer(call, rows);
}

/* Return whether CALL's list costs about the same for all values. That is not
 * so for a filter, which may match one row or all, nor for a deep page, whose
 * cost depends on its number. */
static int is_even(const crm_call_t *call)
{
    return !crm_list_collects(call) && !is_deep(call);
}

crm_error_t *crm_op_list(crm_call_t *call)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_rest_params(call);
    crm_rows_t rows;
    crm_sql_t sql;

    if (crm_rest(call)->endpoint->operation->parent) {
        crm_check_path(checks, call, path_resource(crm_rest(call)->endpoint));
    }
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    crm_call_watch(call, call->key.workspace_id, NULL,
                   crm_rest(call)->wait);
    (crm_rest(call)->cursor ? crm_walk_make : make_list)(&sql, call);
    call->answer = crm_rest(call)->wait ? NULL : answer_page;
    CRM_ERR(crm_call_read(&rows, call, &sql, is_even(call)));
    if (call->response->sent) {
        return NULL;
    }
    if (!rows.count) {
        error = crm_rest_refuse(call, NULL, checks);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    if (is_empty(&rows) && checks->nelts) {
        /* The page is empty: check that the parent exists (contract 7.9). */
        CRM_ERR(crm_rest_refuse(call, NULL, checks));
    }
    if (is_empty(&rows)) {
        crm_call_wait(call);
    }
    error = answer(call, &rows);
    crm_rows_drop(&rows);
    return error;
}
