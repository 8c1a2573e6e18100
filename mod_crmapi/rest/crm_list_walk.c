/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list_walk.c: pages of lists that a cursor names (contract 13.3) */
#include "crm_list_walk.h"

#include <string.h>

#include "apr_escape.h"

#include "crm_list.h"
#include "crm_list_lead.h"
#include "crm_params.h"
#include "crm_query.h"

/* One row more than on the largest page shows whether there is a next page. The
 * planner needs this constant in addition to the bound LIMIT: see inner_limit()
 * of crm_op_list.c. */
#define ONE_MORE " LIMIT " CRM_LIST_TEXT(CRM_LIST_PAGE) " + 1"

/* The ranges of an index that hold rows after a cursor. */
typedef enum range_t {
    WHOLE,
    AFTER,                      /* rows whose keys follow the cursor's */
    NULLS,                      /* rows without the first key, which are last */
    NULLS_AFTER                 /* those whose id follows the cursor's */
} range_t;

/* Add the cursor's value of sort key INDEX. */
static void add_value(crm_sql_t *sql, const crm_call_t *call, int index)
{
    const crm_rest_t *rest = crm_rest(call);

    crm_sql_bind(sql, rest->after->keys[index],
                 rest->sort->integers[index] ? "integer" : "timestamptz");
}

/* Add the condition that the keys of ROWS (NULL: t) follow the cursor's: a
 * comparison of rows, which an index on the keys serves. */
static void add_after(crm_sql_t *sql, const crm_call_t *call, const char *rows)
{
    const crm_rest_t *rest = crm_rest(call);
    int count;

    crm_sql_add(sql, "(");
    for (count = 0; rest->sort->keys[count]; count++) {
        crm_list_key(sql, call, rows, count);
        crm_sql_add(sql, ", ");
    }
    crm_list_key(sql, call, rows, count);
    crm_sql_add(sql, rest->ascending ? ") > (" : ") < (");
    for (int i = 0; i < count; i++) {
        add_value(sql, call, i);
        crm_sql_add(sql, ", ");
    }
    crm_sql_bind(sql, rest->after->id, "uuid");
    crm_sql_add(sql, ")");
}

/* Add " AND" the condition of RANGE. */
static void add_range_condition(crm_sql_t *sql, const crm_call_t *call,
                                range_t range)
{
    const crm_rest_t *rest = crm_rest(call);

    if (range == WHOLE) {
        return;
    }
    crm_sql_add(sql, " AND ");
    if (range == AFTER) {
        add_after(sql, call, NULL);
        if (rest->endpoint->operation->from) {
            /* keys of several tables: no index has them, but one has the
             * first */
            crm_sql_adds(sql, " AND ", rest->sort->keys[0],
                         rest->ascending ? " >= " : " <= ", NULL);
            add_value(sql, call, 0);
        }
        return;
    }
    crm_sql_adds(sql, rest->sort->keys[0], " IS NULL", NULL);
    if (range == NULLS_AFTER) {
        crm_sql_add(sql, rest->ascending ? " AND t.id > " : " AND t.id < ");
        crm_sql_bind(sql, rest->after->id, "uuid");
    }
}

/* Add the first rows of RANGE in the order of the list. With MATCHES the rows
 * count only if not all matches were collected (found.few). */
static void add_range(crm_sql_t *sql, const crm_call_t *call, range_t range,
                      int matches)
{
    crm_sql_add(sql, "(");
    crm_list_keys(sql, call, "t.*");
    crm_list_rows(sql, call, 1);
    add_range_condition(sql, call, range);
    crm_sql_add(sql, matches ? " AND NOT found.few" : "");
    crm_list_order(sql, call, NULL, 0);
    crm_sql_add(sql, ONE_MORE ")");
}

/* Add " LIMIT" of the page. */
static void add_limit(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " LIMIT ");
    crm_list_number(sql, call, crm_rest(call)->page_size + 1);
}

/* Return the range of the index in which CALL's page begins. */
static range_t first_range(const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);

    return !rest->after ? WHOLE
           : rest->sort->nulls_last && !rest->after->keys[0] ? NULLS_AFTER
           : AFTER;
}

/* Add the page, read in the order of the list. If nulls are last, the page may
 * be in two ranges of the index. MATCHES: as in add_range(). */
static void add_in_order(crm_sql_t *sql, const crm_call_t *call, int matches)
{
    range_t first = first_range(call);

    crm_sql_add(sql, "SELECT t.* FROM (");
    add_range(sql, call, first, matches);
    if (first == AFTER && crm_rest(call)->sort->nulls_last) {
        crm_sql_add(sql, " UNION ALL ");
        add_range(sql, call, NULLS, matches);
        crm_sql_add(sql, ") t");
        crm_list_order(sql, call, "t", 0);
    }
    else {
        crm_sql_add(sql, ") t");
    }
    add_limit(sql, call);
}

/* Add the page from the collected matches m, if found, their count, says that all
 * were collected. */
static void add_few(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);

    crm_sql_add(sql, "(SELECT m.* FROM m WHERE found.few");
    if (rest->after && rest->sort->nulls_last && !rest->after->keys[0]) {
        crm_sql_add(sql, rest->ascending ? " AND m.o0 IS NULL AND m.id > "
                    : " AND m.o0 IS NULL AND m.id < ");
        crm_sql_bind(sql, rest->after->id, "uuid");
    }
    else if (rest->after) {
        crm_sql_add(sql, " AND (");
        add_after(sql, call, "m");
        crm_sql_add(sql, rest->sort->nulls_last ? " OR m.o0 IS NULL)" : ")");
    }
    crm_list_order(sql, call, "m", 0);
    add_limit(sql, call);
    crm_sql_add(sql, ")");
}

/* Add " AND" the condition of the rows that follow the cursor, if there is one. */
static void add_start(crm_sql_t *sql, const crm_call_t *call)
{
    add_range_condition(sql, call, first_range(call));
}

/* Return whether to collect the matches of a filter: it has an index, and the
 * matches of one by content are not known to be too many. */
static int collects(const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);

    if (crm_list_lead(call)) {
        return 1;
    }
    if (rest->after && rest->after->in_order) {
        return 0;
    }
    for (const crm_param_t *param = rest->params; param->filter; param++) {
        if (crm_list_is_indexed(param, call)) {
            return 1;
        }
    }
    return 0;
}

/* Add the FROM of a list whose matches are collected: see add_collected() of
 * crm_op_list.c. */
static void add_collected(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " FROM " CRM_SQL_EITHER("(", "(SELECT f.few FROM (")
                "SELECT ");
    crm_list_few(sql, call, add_start, crm_rest(call)->page_size + 1);
    crm_sql_add(sql, " AS few" CRM_SQL_EITHER("", ") f,"));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_sql_add(sql, " OFFSET 0) found LEFT JOIN LATERAL (");
    add_few(sql, call);
    crm_sql_add(sql, " UNION ALL (");
    add_in_order(sql, call, 1);
    crm_sql_add(sql, ")");
}

void crm_walk_make(crm_sql_t *sql, crm_call_t *call)
{
    int collect = collects(call);

    crm_rest_sql(sql, call);
    if (collect) {
        crm_list_matches(sql, call);
    }
    crm_sql_adds(sql, "SELECT found.few, ", crm_rest_shape(call)->columns, NULL);
    for (int i = 0; crm_rest(call)->sort->keys[i]; i++) {
        crm_sql_add(sql, ", ");
        crm_list_key(sql, call, "t", i);
    }
    crm_sql_add(sql, ", t.id");
    if (collect) {
        add_collected(sql, call);
    }
    else {
        crm_sql_add(sql, " FROM (SELECT false AS few"
                    CRM_SQL_EITHER("", " FROM"));
        crm_rest_permit(sql, call, CRM_PERMIT_FROM);
        crm_sql_add(sql, ") found LEFT JOIN LATERAL (");
        add_in_order(sql, call, 0);
    }
    crm_sql_add(sql, ") t ON true");
    crm_rest_permit(sql, call, CRM_PERMIT_WHERE);
    crm_list_order(sql, call, "t", 0);
}

int crm_walk_count(const crm_call_t *call, const crm_rows_t *rows)
{
    int size = (int)crm_rest(call)->page_size;

    return rows->count > size ? size : rows->count;
}

/* Return the cursor behind row ROW of ROWS, NULL if it has none. */
static const char *cursor_of(const crm_call_t *call, const crm_rows_t *rows,
                             int row)
{
    const crm_rest_t *rest = crm_rest(call);
    int column = CRM_LIST_FIRST + crm_rest_shape(call)->count;
    const char *few = crm_db_value(rows->result, row, CRM_LIST_TOTAL);
    crm_cursor_t cursor;

    memset(&cursor, 0, sizeof(cursor));
    for (int i = 0; rest->sort->keys[i]; i++) {
        cursor.keys[i] = crm_db_value(rows->result, row, column++);
    }
    cursor.id = crm_db_value(rows->result, row, column);
    cursor.in_order = few && *few == 'f';
    return crm_cursor_write(&cursor, rest->sort, rest->list, call->pool);
}

const char *crm_walk_link(const crm_call_t *call, const char *cursor)
{
    const crm_rest_t *rest = crm_rest(call);
    const char *path = rest->endpoint->operation->path;
    const char *id = strstr(path, "{id}");
    apr_array_header_t *items;
    crm_buf_t link;

    crm_buf_init(&link, 256, call->pool);
    crm_buf_puts(&link, "<" CRM_API_BASE);
    crm_buf_add(&link, path, id ? (apr_size_t)(id - path) : strlen(path));
    if (id) {
        crm_buf_puts(&link, rest->path_id);
        crm_buf_puts(&link, id + 4);
    }
    crm_buf_puts(&link, "?cursor=");
    crm_buf_puts(&link, cursor);
    crm_query_parse(&items, call->request->query, call->pool);
    for (int i = 0; i < items->nelts; i++) {
        const crm_query_param_t *item = &APR_ARRAY_IDX(items, i,
                                                       crm_query_param_t);

        if (!item->bad && strcmp(item->name, "cursor")) {
            crm_buf_putc(&link, '&');
            crm_buf_puts(&link, apr_pescape_urlencoded(call->pool, item->name));
            crm_buf_putc(&link, '=');
            crm_buf_puts(&link, apr_pescape_urlencoded(call->pool,
                                                       item->value));
        }
    }
    crm_buf_add(&link, ">; rel=\"next\"", sizeof(">; rel=\"next\""));
    return link.data;
}

/* Set *CURSOR_P to the cursor behind the last row of ROWS that is on CALL's page.
 * If there is no row, it is the page's own. */
static crm_error_t *last_cursor(const char **cursor_p, const crm_call_t *call,
                                const crm_rows_t *rows)
{
    int count = crm_walk_count(call, rows);

    *cursor_p = PQgetisnull(rows->result, rows->first, CRM_LIST_FIRST)
                ? crm_rest(call)->cursor
                : cursor_of(call, rows, rows->first + count - 1);
    return *cursor_p ? NULL
           : crm_error_logf(CRM_E_INTERNAL, call->pool, "CRM1005: a row has "
                            "sort keys that no cursor can have");
}

crm_error_t *crm_walk_answer(crm_buf_t *body, crm_call_t *call,
                             const crm_rows_t *rows)
{
    apr_int64_t size = crm_rest(call)->page_size;
    const char *cursor;

    crm_buf_printf(body, ",\"pagination\":{\"page_size\":%" APR_INT64_T_FMT,
                   size);
    if (rows->count <= size && !crm_rest(call)->wait) {
        crm_buf_puts(body, ",\"next_cursor\":null,\"has_more\":false}");
        return NULL;
    }
    CRM_ERR(last_cursor(&cursor, call, rows));
    crm_buf_printf(body, ",\"next_cursor\":\"%s\",\"has_more\":%s}", cursor,
                   rows->count > size ? "true" : "false");
    if (rows->count > size) {
        apr_table_setn(call->response->headers, "Link",
                       crm_walk_link(call, cursor));
    }
    return NULL;
}
