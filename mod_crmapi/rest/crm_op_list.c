/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_list.c: lists: filters, order, page and total in one statement */
#include "crm_op_list.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_params.h"
#include "crm_rest.h"

/* Columns of a list's rows. The resource's begin at COLUMN_FIRST. */
#define COLUMN_TOTAL 0
#define COLUMN_FIRST 1

/* At this offset and above, the ids of a page are selected first, and then its
 * rows by id. That is cheaper from about 1,000 rows on. */
#define DEEP_OFFSET 1000

/* The maximum number of matches of a filter by content (tags, search) that are
 * collected. If there are more, the list is read in its order: see
 * add_by_content(). */
#define MATCHES_MAX 2000

/* The largest page_size (contract 7.2). */
#define PAGE_MAX 100

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

/* Return the resource that the path's {id} names. */
static const crm_resource_t *path_resource(const crm_endpoint_t *endpoint)
{
    const char *parent = endpoint->operation->parent;

    return parent ? crm_resource_find(parent) : endpoint->resource;
}

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

/* Add the resource's table, or its rows that KEY (may be NULL) names. A planner
 * that underestimates the workspace would otherwise scan it in the order of the
 * list and compare each id with all those named. */
static void add_table(crm_sql_t *sql, const crm_call_t *call,
                      const crm_param_t *key)
{
    const char *name = crm_rest(call)->endpoint->resource->name;

    if (!key) {
        crm_sql_adds(sql, "crmapi.", name, " t", NULL);
        return;
    }
    crm_sql_adds(sql, "(SELECT * FROM crmapi.", name,
                 " t WHERE t.workspace_id = $1::uuid", NULL);
    key->filter->add(sql, key->filter, key->bind, call);
    crm_sql_add(sql, " OFFSET 0) t");
}

/* Add " FROM ... WHERE" and all conditions. UNINDEXED: filters by content are
 * written so that their GIN index is not used. */
static void add_rows(crm_sql_t *sql, const crm_call_t *call, int unindexed)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    const crm_param_t *key = by_key(call);

    crm_sql_add(sql, " FROM ");
    add_table(sql, call, key);
    crm_sql_adds(sql, operation->from ? " " : "",
                 operation->from ? operation->from : "",
                 " WHERE t.workspace_id = $1::uuid", NULL);
    if (operation->parent) {
        crm_sql_adds(sql, " AND t.", parent_column(call), " = ", NULL);
        crm_sql_bind(sql, crm_rest(call)->path_id, "uuid");
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        const crm_filter_t *filter = param->filter;

        if (param == key) {
            continue;
        }
        if (param->given && unindexed && filter->add_unindexed) {
            filter->add_unindexed(sql, filter, param->bind, call);
        }
        else if (param->given && filter->add) {
            filter->add(sql, filter, param->bind, call);
        }
        else if (filter->absent_is_false) {
            filter->add(sql, filter, "f", call);
        }
    }
}

/* Return whether crmapi.counter has the total of CALL's list: the operation has
 * a counter, and every filter given is one that it counts by. *PARENT_P = the
 * value of that filter, or NULL. */
static int is_counted(const char **parent_p, const crm_call_t *call)
{
    *parent_p = NULL;
    if (!crm_rest(call)->endpoint->operation->counter) {
        return 0;
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
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
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
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
        add_rows(sql, call, 0);
        crm_sql_add(sql, ")");
    }
}

/* Add " ORDER BY" the sort keys, in the opposite direction if REVERSE. If ROWS
 * is not NULL, the keys are its columns o0, o1 ... */
static void add_order(crm_sql_t *sql, const crm_call_t *call, const char *rows,
                      int reverse)
{
    const crm_sort_t *sort = crm_rest(call)->sort;
    const char *direction = crm_rest(call)->ascending != reverse ? "" : " DESC";
    const char *nulls = reverse ? " NULLS FIRST, " : " NULLS LAST, ";

    crm_sql_add(sql, " ORDER BY ");
    for (int i = 0; sort->keys[i]; i++) {
        if (rows) {
            crm_sql_adds(sql, rows, ".o", apr_itoa(call->pool, i), NULL);
        }
        else {
            crm_sql_add(sql, sort->keys[i]);
        }
        crm_sql_adds(sql, direction, sort->nulls_last && !i ? nulls : ", ",
                     NULL);
    }
    crm_sql_adds(sql, rows ? rows : "t", ".id", direction, NULL);
}

/* Add "SELECT", COLUMNS and the sort keys as o0, o1 ... */
static void add_keys(crm_sql_t *sql, const crm_call_t *call,
                     const char *columns)
{
    crm_sql_adds(sql, "SELECT ", columns, NULL);
    for (int i = 0; crm_rest(call)->sort->keys[i]; i++) {
        crm_sql_adds(sql, ", ", crm_rest(call)->sort->keys[i], " AS o",
                     apr_itoa(call->pool, i), NULL);
    }
}

/* Return the offset of the page. */
static apr_int64_t rows_before(const crm_call_t *call)
{
    return (crm_rest(call)->page - 1) * crm_rest(call)->page_size;
}

static void bind_number(crm_sql_t *sql, const crm_call_t *call, apr_int64_t n)
{
    crm_sql_bind(sql, apr_psprintf(call->pool, "%" APR_INT64_T_FMT, n),
                 "bigint");
}

/* Add LIMIT and OFFSET of CALL's page. */
static void add_page(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " LIMIT ");
    bind_number(sql, call, crm_rest(call)->page_size);
    if (rows_before(call)) {
        crm_sql_add(sql, " OFFSET ");
        bind_number(sql, call, rows_before(call));
    }
}

/* Return a constant LIMIT that includes every page with an offset below
 * DEEP_OFFSET, so that it does not change the result. The planner needs it: it
 * cannot see the bound LIMIT, assumes a tenth of all rows, and would sort them
 * instead of reading an index in order. */
static const char *inner_limit(const crm_call_t *call)
{
    apr_int64_t before = rows_before(call);

    return !before ? " LIMIT " TEXT(PAGE_MAX)
           : before < DEEP_OFFSET
             ? " LIMIT " TEXT(DEEP_OFFSET) " + " TEXT(PAGE_MAX) : "";
}

/* Add the rows of a page, read in the order of the list. If BY_CONTENT, only if
 * s says that the matches are not few. */
static void add_in_order(crm_sql_t *sql, const crm_call_t *call, int by_content)
{
    crm_sql_add(sql, "SELECT t.* FROM (");
    add_keys(sql, call, "t.*");
    add_rows(sql, call, by_content);
    crm_sql_add(sql, by_content ? " AND NOT s.few" : "");
    add_order(sql, call, NULL, 0);
    crm_sql_adds(sql, inner_limit(call), ") t", NULL);
    add_page(sql, call);
}

/* Add the rows of a list without pages. */
static void add_whole(crm_sql_t *sql, const crm_call_t *call)
{
    add_keys(sql, call, "t.*");
    add_rows(sql, call, 0);
    add_order(sql, call, NULL, 0);
}

/* Add the ids of a page with a deep offset. A page in the first half of s.total
 * rows is read from the beginning, others are read from the end. Both variants
 * are added; FROM_END says which one this is. The one that does not apply
 * returns no row. */
static void add_half(crm_sql_t *sql, const crm_call_t *call, int from_end)
{
    apr_int64_t before = rows_before(call);

    crm_sql_add(sql, "(");
    add_keys(sql, call, "t.id");
    add_rows(sql, call, 0);
    crm_sql_add(sql, " AND ");
    bind_number(sql, call, 2 * before);
    crm_sql_add(sql, from_end ? " > s.total" : " <= s.total");
    add_order(sql, call, NULL, from_end);
    crm_sql_add(sql, from_end ? " LIMIT greatest(least(s.total - "
                : " LIMIT ");
    if (from_end) {
        bind_number(sql, call, before);
        crm_sql_add(sql, ", ");
    }
    bind_number(sql, call, crm_rest(call)->page_size);
    crm_sql_add(sql, from_end ? "), 0) OFFSET greatest(s.total - "
                : " OFFSET ");
    bind_number(sql, call, from_end ? before + crm_rest(call)->page_size : before);
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
    add_keys(sql, call, "t.*");
    crm_sql_adds(sql, " FROM crmapi.", crm_rest(call)->endpoint->resource->name,
                 " t WHERE t.workspace_id = $1::uuid AND t.id = ANY (p.ids)"
                 " OFFSET 0) t", NULL);
}

/* Add the page from the collected matches m, if s says that they are few. */
static void add_few(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, "(SELECT m.* FROM m WHERE s.few");
    add_order(sql, call, "m", 0);
    add_page(sql, call);
    crm_sql_add(sql, ")");
}

/* Return whether CALL's page is one for add_deep_page(). */
static int is_deep(const crm_call_t *call)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;

    return !operation->whole && !operation->from
           && rows_before(call) >= DEEP_OFFSET;
}

/* Return whether CALL has a filter by content. */
static int is_by_content(const crm_call_t *call)
{
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->given && param->filter->add_unindexed) {
            return 1;
        }
    }
    return 0;
}

/* Return the shape of the rows. */
static const crm_shape_t *shape_of(const crm_call_t *call)
{
    return crm_rest_param(call, "include")
           ? crm_rest(call)->endpoint->requested
           : crm_rest(call)->endpoint->shape;
}

/* Add the FROM of a list with a filter by content. The number of matches is not
 * known when the statement is planned. Therefore up to MATCHES_MAX are
 * collected first, once, with the GIN index. If these are all, their number is
 * the total, and the page is taken from them. If there are more, matches are
 * frequent, and a scan in the order of the list finds a page of them soon. */
static void add_by_content(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " FROM (SELECT f.n <= " TEXT(MATCHES_MAX) " AS few, CASE"
                " WHEN f.n <= " TEXT(MATCHES_MAX) " THEN f.n ELSE ");
    add_total(sql, call);
    crm_sql_add(sql, " END AS total FROM (SELECT count(*) AS n FROM m) f"
                " OFFSET 0) s LEFT JOIN LATERAL (");
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
    /* OFFSET 0: s.total is used several times and must be counted once */
    crm_sql_adds(sql, " AS total", is_deep(call) ? " OFFSET 0" : "",
                 ") s LEFT JOIN LATERAL (", NULL);
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
    int by_content = is_by_content(call);

    crm_rest_sql(sql, call);
    if (by_content) {
        crm_sql_add(sql, "WITH m AS MATERIALIZED (");
        add_keys(sql, call, "t.*");
        add_rows(sql, call, 0);
        crm_sql_add(sql, " LIMIT " TEXT(MATCHES_MAX) " + 1) ");
    }
    crm_sql_adds(sql, "SELECT s.total, ", shape_of(call)->columns, NULL);
    (by_content ? add_by_content : add_in_list_order)(sql, call);
    crm_sql_add(sql, ") t ON true WHERE ");
    crm_rest_permit(sql, call);
    add_order(sql, call, "t", 0);
}

static void write_pagination(crm_buf_t *body, const crm_call_t *call,
                             apr_int64_t total)
{
    apr_int64_t size = crm_rest(call)->page_size;

    crm_buf_printf(body, ",\"pagination\":{\"page\":%" APR_INT64_T_FMT
                   ",\"page_size\":%" APR_INT64_T_FMT ",\"total\":%"
                   APR_INT64_T_FMT ",\"total_pages\":%" APR_INT64_T_FMT "}",
                   crm_rest(call)->page, size, total, (total + size - 1) / size);
}

/* Return whether the page in ROWS has no rows of the resource. */
static int is_empty(const crm_rows_t *rows)
{
    return PQgetisnull(rows->result, rows->first, COLUMN_FIRST);
}

static void answer(crm_call_t *call, const crm_rows_t *rows)
{
    const crm_shape_t *shape = shape_of(call);
    crm_buf_t *body = &call->response->body;
    int count = is_empty(rows) ? 0 : rows->count;

    crm_buf_puts(body, "{\"data\":[");
    for (int i = 0; i < count; i++) {
        if (i) {
            crm_buf_putc(body, ',');
        }
        crm_shape_write(body, shape, rows->result, rows->first + i,
                        COLUMN_FIRST);
    }
    crm_buf_putc(body, ']');
    if (!crm_rest(call)->endpoint->operation->whole) {
        write_pagination(body, call,
                         apr_atoi64(PQgetvalue(rows->result, rows->first,
                                               COLUMN_TOTAL)));
    }
    crm_buf_putc(body, '}');
    call->response->status = 200;
}

/* Return whether CALL's list costs about the same for any values: a search may
 * match one row or all, and the cost of a deep page depends on its number. */
static int is_even(const crm_call_t *call)
{
    return !is_by_content(call) && !is_deep(call);
}

static crm_error_t *serve_list(crm_call_t *call)
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
    make_list(&sql, call);
    CRM_ERR(crm_call_read(&rows, call, &sql, is_even(call)));
    if (!rows.count) {
        error = crm_rest_refuse(call, NULL, checks);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    if (is_empty(&rows) && checks->nelts) {
        /* The page is empty: check that the parent exists (contract 7.9). */
        CRM_ERR(crm_rest_refuse(call, NULL, checks));
    }
    answer(call, &rows);
    crm_rows_drop(&rows);
    return NULL;
}

const crm_kind_t crm_op_list = {
    .name = "list", .status = 200, .serve = serve_list,
};
