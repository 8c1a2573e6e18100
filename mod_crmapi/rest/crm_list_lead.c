/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list_lead.c: the filter of a list that finds its rows first */
#include "crm_list_lead.h"

#include <string.h>

#include "crm_filter.h"
#include "crm_params.h"

/* Return whether FILTER asks for a range of its index's order. */
static int is_range(const crm_filter_t *filter)
{
    return filter->field.type == &crm_type_time;
}

/* Return the order of the index that finds PARAM's rows, or NULL. */
static const char *order_of(const crm_param_t *param)
{
    return param->filter->by == CRM_BY_BOOLEAN && *param->bind == 'f'
           ? param->filter->order_false : param->filter->order;
}

int crm_list_is_other(const crm_param_t *param, const crm_call_t *call)
{
    const char *order = order_of(param);

    return order && (crm_rest(call)->endpoint->operation->from
                     || strcmp(order, crm_rest(call)->sort->keys[0]));
}

const crm_param_t *crm_list_lead(const crm_call_t *call)
{
    const crm_param_t *lead = NULL;

    if (crm_rest(call)->endpoint->operation->parent
        || crm_list_offset(call) >= CRM_LIST_DEEP) {
        return NULL;
    }
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        const crm_filter_t *filter = param->filter;

        if (!param->given) {
            continue;
        }
        if (filter->by_key || crm_filter_functions(filter)->add_unindexed) {
            return NULL;
        }
        if (crm_list_is_other(param, call)
            && (!lead || is_range(filter) > is_range(lead->filter))) {
            lead = param;
        }
    }
    return lead;
}

/* Add the conditions of LEAD and of the filters by a range of the order of its index,
 * over the resource's times c if TIMES, or else over t. */
static void add_leading(crm_sql_t *sql, const crm_call_t *call,
                        const crm_param_t *lead, int times)
{
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        const crm_filter_t *filter = param->filter;

        if (param != lead
            && !(param->given && filter->order && is_range(filter)
                 && !strcmp(filter->order, order_of(lead)))) {
            continue;
        }
        if (times) {
            crm_sql_add(sql, " AND ");
            crm_sql_template(sql, filter->sql_by_time, param->bind,
                             filter->field.type->cast);
        }
        else {
            crm_filter_add(sql, filter, param->bind, call);
        }
    }
}

/* Add the ids of the rows that LEAD finds. The order has the planner read the
 * index: no other one gives the rows in it. */
static void add_ids(crm_sql_t *sql, const crm_call_t *call,
                    const crm_param_t *lead)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;
    const char *key = strchr(order_of(lead), '.');
    int times = resource->times && lead->filter->sql_by_time;
    const char *rows = times ? "c" : "t";

    crm_sql_adds(sql, "SELECT ", rows, ".id FROM crmapi.",
                 times ? resource->times : resource->name, " ", rows,
                 " WHERE ", rows, ".workspace_id = " CRM_SQL_WORKSPACE, NULL);
    add_leading(sql, call, lead, times);
    crm_sql_adds(sql, " ORDER BY ", rows, key, ", ", rows,
                 ".id LIMIT " CRM_LIST_TEXT(CRM_LIST_MATCHES) " + 1", NULL);
}

/* Add " WHERE" and all conditions over t. */
static void add_conditions(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_add(sql, " WHERE " CRM_SQL_OWN("t"));
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        const crm_predicate_t *functions = crm_filter_functions(param->filter);

        if (functions->add && (param->given || param->filter->absent)) {
            functions->add(sql, param->filter, param->given ? param->bind
                           : param->filter->absent, call);
        }
    }
}

void crm_list_lead_matches(crm_sql_t *sql, const crm_call_t *call,
                           const crm_param_t *lead)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;

    crm_sql_add(sql, "WITH k AS MATERIALIZED (");
    add_ids(sql, call, lead);
    crm_sql_add(sql, "), m AS MATERIALIZED (");
    crm_list_keys(sql, call, "t.*");
    crm_sql_adds(sql, " FROM k CROSS JOIN LATERAL (SELECT * FROM crmapi.",
                 crm_rest(call)->endpoint->resource->name,
                 " t WHERE " CRM_SQL_OWN("t") " AND t.id = k.id OFFSET 0) t ",
                 operation->from ? operation->from : "", NULL);
    add_conditions(sql, call);
    crm_sql_add(sql, ") ");
}

void crm_list_lead_few(crm_sql_t *sql, const crm_call_t *call,
                       crm_list_start_t *start, apr_int64_t count)
{
    if (!crm_rest(call)->endpoint->operation->from) {
        crm_sql_add(sql, "(SELECT count(*) FROM (SELECT FROM (SELECT t.*");
        crm_list_all(sql, call);
        if (start) {
            start(sql, call);
        }
        crm_list_order(sql, call, NULL, 0);
        crm_sql_add(sql, " LIMIT " CRM_LIST_TEXT(CRM_LIST_WINDOW) ") t");
        add_conditions(sql, call);
        crm_sql_add(sql, " LIMIT ");
        crm_list_number(sql, call, count);
        crm_sql_add(sql, ") w) < ");
        crm_list_number(sql, call, count);
        crm_sql_add(sql, " AND ");
    }
    crm_sql_add(sql, "(SELECT count(*) <= " CRM_LIST_TEXT(CRM_LIST_MATCHES)
                " FROM k)");
}
