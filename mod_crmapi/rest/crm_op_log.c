/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_log.c: logs, read by cursor only (contract 13.4) */
#include "crm_op_log.h"

#include <string.h>

#include "crm_filter.h"
#include "crm_list.h"
#include "crm_list_walk.h"
#include "crm_params.h"
#include "crm_sql_print.h"

/* The first columns of the result. Those of the resource follow, then its id.
 * If the page is empty, these are null. */
enum {
    KEPT,                       /* whether all events after the cursor are kept;
                                   null: no cursor */
    LOST,                       /* whether the database has lost what the cursor
                                   has seen: see event_lost() */
    SINCE,                      /* the log begins after this id; null: it is
                                   off */
    LAST,                       /* the id of the last row of the log */
    STOP,                       /* with filters: the id up to which the page has
                                   looked; null: LAST */
    FIRST
};

/* The number of rows that one page looks at for those that filters let
 * through: a type may be rare, and no index has it, which would cost each
 * write. */
#define LOOKED_AT "10000"

/* The setting of the transaction that has the greatest id to be shown. */
#define END_SETTING "crmapi.event_end"

static int at_end(const crm_call_t *call)
{
    return !strcmp(crm_rest(call)->cursor, CRM_LOG_END);
}

/* Return whether CALL has filters. */
static int is_filtered(const crm_call_t *call)
{
    const crm_param_t *param = crm_rest(call)->params;

    while (param->filter && !param->given) {
        param++;
    }
    return param->filter != NULL;
}

/* Add the id after which CALL's page begins. */
static void add_after(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_cursor_t *after = crm_rest(call)->after;

    crm_sql_add(sql, "greatest(f.since, ");
    crm_sql_bind(sql, after ? after->id : NULL, "uuid");
    crm_sql_add(sql, ")");
}

/* Add the greatest id to be shown: UPTO, or that of END_SETTING if it is
 * NULL. */
static void add_end(crm_sql_t *sql, const char *upto)
{
    if (upto) {
        crm_sql_bind(sql, upto, "uuid");
    }
    else {
        crm_sql_add(sql, "nullif(current_setting('" END_SETTING "', true),"
                    " '')::uuid");
    }
}

/* Add the id of STOP. UPTO: see add_end(). */
static void add_stop(crm_sql_t *sql, const crm_call_t *call, const char *upto)
{
    if (!is_filtered(call) || at_end(call)) {
        crm_sql_add(sql, "NULL::uuid");
        return;
    }
    crm_sql_adds(sql, "(SELECT x.id FROM crmapi.",
                 crm_rest(call)->endpoint->resource->name,
                 " x WHERE " CRM_SQL_OWN("x") " AND x.id > ", NULL);
    add_after(sql, call);
    crm_sql_add(sql, " AND x.id <= ");
    add_end(sql, upto);
    crm_sql_add(sql, " ORDER BY x.id OFFSET " LOOKED_AT " - 1 LIMIT 1)");
}

/* Add s: where the log and the page begin, and where they end. UPTO: see
 * add_end(). */
static void add_ends(crm_sql_t *sql, const crm_call_t *call, const char *upto)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;

    crm_sql_add(sql, "(SELECT f.since, ");
    add_after(sql, call);
    crm_sql_add(sql, " AS after, ");
    add_end(sql, upto);
    crm_sql_adds(sql, " AS upto, (SELECT x.id FROM crmapi.",
                 endpoint->resource->name, " x WHERE " CRM_SQL_OWN("x")
                 " AND x.id > f.since AND x.id <= ", NULL);
    add_end(sql, upto);
    crm_sql_add(sql, " ORDER BY x.id DESC LIMIT 1) AS last, ");
    add_stop(sql, call, upto);
    crm_sql_add(sql, " AS stop FROM ("
                CRM_SQL_EITHER("VALUES (1)", "SELECT FROM"));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_sql_adds(sql, ") one LEFT JOIN crmapi.", endpoint->operation->feed,
                 " f ON " CRM_SQL_OWN("f") " AND f.log OFFSET 0) s", NULL);
}

/* Make the statement that sets END_SETTING. The rows are read by a second
 * statement, because they need a later snapshot. Citus runs it on the server of
 * the workspace, so the setting is not here: its value is the result. */
static void make_end(crm_sql_t *sql, crm_call_t *call)
{
    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT " CRM_SQL_EITHER("set_config('" END_SETTING "', ",
                                              "")
                "crmapi.event_end(" CRM_SQL_WORKSPACE ")"
                CRM_SQL_EITHER("::text, true)", " FROM"));
    crm_rest_permit(sql, call, CRM_PERMIT_FROM);
    crm_rest_permit(sql, call, CRM_PERMIT_WHERE);
}

/* Add whether the database has lost what AFTER, which may be NULL, has seen. In a
 * distributed database each server has numbers of its own: there nobody knows. */
static void add_lost(crm_sql_t *sql, const crm_cursor_t *after)
{
    if (!after) {
        crm_sql_add(sql, "false");
        return;
    }
    crm_sql_add(sql, CRM_SQL_EITHER("crmapi.event_lost(" CRM_SQL_WORKSPACE ", ", ""));
    crm_sql_bind(sql, after->id, "uuid");
    crm_sql_add(sql, CRM_SQL_EITHER(")", " IS NULL"));
}

/* Make the statement of the page. UPTO: see add_end(). If the key is valid, it
 * returns at least one row. The planner needs the constant LIMIT: see
 * inner_limit() of crm_op_list.c. */
static void make_page(crm_sql_t *sql, crm_call_t *call, const char *upto)
{
    const crm_rest_t *rest = crm_rest(call);

    crm_rest_sql(sql, call);
    crm_sql_template(sql, "SELECT s.since <= ?, ",
                     rest->after ? rest->after->id : NULL, "uuid");
    add_lost(sql, rest->after);
    crm_sql_adds(sql, " AS lost, s.since, s.last, s.stop, ",
                 rest->endpoint->shape->columns, ", t.id FROM ", NULL);
    add_ends(sql, call, upto);
    crm_sql_adds(sql, " LEFT JOIN LATERAL (SELECT t.* FROM (SELECT t.* FROM"
                 " crmapi.", rest->endpoint->resource->name,
                 " t WHERE " CRM_SQL_OWN("t") " AND s.since IS NOT NULL"
                 " AND t.id > s.after AND t.id <= coalesce(s.stop, s.upto)",
                 NULL);
    for (const crm_param_t *param = rest->params; param->filter; param++) {
        if (param->given) {
            crm_filter_add(sql, param->filter, param->bind, call);
        }
    }
    crm_sql_add(sql, " ORDER BY t.id LIMIT " CRM_LIST_TEXT(CRM_LIST_PAGE)
                " + 1) t LIMIT ");
    crm_list_number(sql, call, at_end(call) ? 0 : rest->page_size + 1);
    crm_sql_add(sql, ") t ON true");
    crm_rest_permit(sql, call, CRM_PERMIT_WHERE);
    crm_sql_add(sql, " ORDER BY t.id");
}

/* Return the later of the ids A and B, which may be NULL. */
static const char *later(const char *a, const char *b)
{
    return !a || (b && strcmp(a, b) < 0) ? b : a;
}

/* Return the id after which the next page of CALL begins: it is looked for among
 * RESULT and its rows, of which COUNT are on this page. FULL: the page has no
 * room for more. */
static const char *next_after(const crm_call_t *call, const PGresult *result,
                              int count, int full)
{
    const crm_rest_t *rest = crm_rest(call);
    const char *last = crm_db_value(result, 0, LAST);
    const char *stop = crm_db_value(result, 0, STOP);
    const char *after = rest->after ? rest->after->id
                        : crm_db_value(result, 0, SINCE);

    if (!full && (is_filtered(call) || at_end(call))) {
        return stop ? stop : later(after, last);
    }
    return count ? crm_db_value(result, count - 1,
                                FIRST + rest->endpoint->shape->count) : after;
}

/* Return the cursor of the page after the COUNT rows of RESULT that are on
 * this one. FULL: see next_after(). */
static const char *next_cursor(const crm_call_t *call, const PGresult *result,
                               int count, int full)
{
    const crm_rest_t *rest = crm_rest(call);
    crm_cursor_t cursor;

    memset(&cursor, 0, sizeof(cursor));
    cursor.id = next_after(call, result, count, full);
    return crm_cursor_write(&cursor, rest->sort, rest->list, call->pool);
}

/* Write the page of ROWS rows of RESULT, of which the last may be one too
 * many. */
static void write_page(crm_call_t *call, const PGresult *result, int rows)
{
    const crm_shape_t *shape = crm_rest(call)->endpoint->shape;
    int size = (int)crm_rest(call)->page_size;
    int count = rows > size ? size : rows;
    int more = rows > size || !PQgetisnull(result, 0, STOP);
    const char *cursor = next_cursor(call, result, count, rows > size);
    crm_buf_t *body = &call->response->body;

    crm_buf_puts(body, "{\"data\":[");
    for (int i = 0; i < count; i++) {
        crm_buf_puts(body, i ? "," : "");
        crm_shape_write(body, shape, result, i, FIRST);
    }
    crm_buf_printf(body, "],\"pagination\":{\"page_size\":%d,\"next_cursor\":"
                   "\"%s\",\"has_more\":%s}}", size, cursor,
                   more ? "true" : "false");
    if (more) {
        apr_table_setn(call->response->headers, "Link",
                       crm_walk_link(call, cursor));
    }
    else if (!count) {
        crm_call_wait(call);
    }
}

/* Set *RESULT_P to the rows of the page, none if the key does not permit it. If the
 * page cannot see END_SETTING, this takes two round trips. */
static crm_error_t *query(PGresult **result_p, crm_call_t *call)
{
    crm_sql_t end, page, *sqls[2] = {&end, &page};
    PGresult *results[2];

    make_end(&end, call);
    if (!crm_sql_sees_settings(&end)) {
        CRM_ERR(crm_call_query(result_p, call, &end));
        if (PQntuples(*result_p)) {
            make_page(&page, call, crm_db_value(*result_p, 0, 0));
            return crm_call_query(result_p, call, &page);
        }
        return NULL;
    }
    make_page(&page, call, NULL);
    CRM_ERR(crm_call_pipeline(results, call, sqls, 2));
    *result_p = results[1];
    return NULL;
}

crm_error_t *crm_op_log(crm_call_t *call)
{
    crm_error_t *error = crm_rest_params(call);
    PGresult *result;
    const char *kept;

    if (error) {
        return crm_rest_refuse(call, error, NULL);
    }
    crm_call_watch(call, call->key.workspace_id, NULL,
                   at_end(call) ? 0 : crm_rest(call)->wait);
    CRM_ERR(query(&result, call));
    if (!PQntuples(result)) {
        error = crm_rest_refuse(call, NULL, NULL);
        return error ? error
               : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
    }
    if (PQgetisnull(result, 0, SINCE)) {
        return crm_error_create(CRM_E_CONFLICT, "Events are off: the operator"
                                " of the site turns them on", call->pool);
    }
    if (*PQgetvalue(result, 0, LOST) == 't') {
        return crm_error_create(CRM_E_GONE, "The cursor is of a later state than"
                                " the database has, which was restored or has"
                                " lost its last writes: copy the workspace"
                                " again", call->pool);
    }
    kept = crm_db_value(result, 0, KEPT);
    if (crm_rest(call)->after && (!kept || *kept != 't')) {
        return crm_error_create(CRM_E_GONE, "The events after this cursor are"
                                " no longer kept: copy the workspace again",
                                call->pool);
    }
    write_page(call, result, PQgetisnull(result, 0, FIRST)
               ? 0 : PQntuples(result));
    return NULL;
}
