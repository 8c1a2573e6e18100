/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_member.c: the filter custom_fields.NAME=value (contract 20.3) */
#include "crm_filter_member.h"

#include "crm_rest.h"

void crm_filter_member(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call)
{
    (void)filter;
    (void)call;
    crm_sql_template(sql, " AND t.custom_fields @> ANY (?)", bind, "jsonb[]");
}

/* What the index has of custom fields is less than they are: they themselves are
 * compared, too. As in by_tags_scoped() of crm_filter.c, what is looked for is computed
 * once. */
#define INDEXED "indexed_fields @@ " CRM_SQL_EITHER("(SELECT ", "") \
    "crmapi.fields_wanted(" CRM_SQL_WORKSPACE ", ?)" CRM_SQL_EITHER(")", "")

/* Return whether CALL asks for tags. */
static int has_tags(const crm_call_t *call)
{
    const crm_param_t *param = crm_rest(call)->params;

    while (param->filter
           && (param->filter->by != CRM_BY_TAGS || !param->given)) {
        param++;
    }
    return param->filter != NULL;
}

/* Add to SQL that a row of the table TIMES has all members that CALL asks FILTER
 * for. It is one subquery: the planner takes what one finds for a few rows, and
 * would read another one for each of them. With tags, whose index finds rows, too,
 * it is no join, but a set that is made once (IS TRUE). */
static void add_times(crm_sql_t *sql, const crm_filter_t *filter,
                      const char *times, const crm_call_t *call)
{
    const char *and = CRM_SQL_EITHER("", CRM_SQL_OWN("k") " AND ") "k." INDEXED;

    crm_sql_adds(sql, " AND ((t.workspace_id, t.id) IN (SELECT k.workspace_id,"
                 " k.id FROM crmapi.", times, " k WHERE ", NULL);
    for (crm_param_t *param = crm_rest(call)->params; param->filter; param++) {
        if (param->filter == filter && param->given) {
            crm_sql_template(sql, and, param->bind, "jsonb[]");
            and = " AND k." INDEXED;
        }
    }
    crm_sql_add(sql, has_tags(call) ? ")) IS TRUE" : "))");
}

/* Return whether BIND is that of the first member that CALL asks FILTER for. */
static int is_first(const crm_filter_t *filter, const char *bind,
                    const crm_call_t *call)
{
    const crm_param_t *param = crm_rest(call)->params;

    while (param->filter != filter || !param->given) {
        param++;
    }
    return param->bind == bind;
}

void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    const char *times = crm_rest(call)->endpoint->resource->times;

    if (!times) {
        crm_sql_template(sql, " AND t." INDEXED, bind, "jsonb[]");
    }
    else if (is_first(filter, bind, call)) {
        add_times(sql, filter, times, call);
    }
    crm_filter_member(sql, filter, bind, call);
}
