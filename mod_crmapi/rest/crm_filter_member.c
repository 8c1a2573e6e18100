/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_member.c: the filter custom_fields.NAME=value (contract 20.3) */
#include "crm_filter_member.h"

#include "crm_list.h"

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

/* Return whether CALL has a filter of the kind BY that an index serves. */
static int has(const crm_call_t *call, crm_filter_by_t by)
{
    const crm_param_t *param = crm_rest(call)->params;

    while (param->filter && (param->filter->by != by
                             || !crm_list_is_indexed(param, call))) {
        param++;
    }
    return param->filter != NULL;
}

int crm_filter_member_by_times(const crm_call_t *call)
{
    return crm_rest(call)->endpoint->resource->times
           && has(call, CRM_BY_MEMBER) && !has(call, CRM_BY_TAGS);
}

void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    if (crm_filter_member_by_times(call)) {
        crm_sql_template(sql, " AND c." INDEXED, bind, "jsonb[]");
    }
    else if (!crm_rest(call)->endpoint->resource->times) {
        crm_sql_template(sql, " AND t." INDEXED, bind, "jsonb[]");
    }
    crm_filter_member(sql, filter, bind, call);
}
