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
void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    static const char condition[] =
        "indexed_fields @@ " CRM_SQL_EITHER("(SELECT ", "")
        "crmapi.fields_wanted(" CRM_SQL_WORKSPACE ", ?)" CRM_SQL_EITHER(")", "");
    const char *table = crm_rest(call)->endpoint->resource->times;

    if (table) {
        crm_sql_adds(sql, " AND (t.workspace_id, t.id) IN (SELECT k.workspace_id,"
                     " k.id FROM crmapi.", table, " k WHERE "
                     CRM_SQL_EITHER("", CRM_SQL_OWN("k") " AND ") "k.", NULL);
        crm_sql_template(sql, condition, bind, "jsonb[]");
        crm_sql_add(sql, ")");
    }
    else {
        crm_sql_add(sql, " AND t.");
        crm_sql_template(sql, condition, bind, "jsonb[]");
    }
    crm_filter_member(sql, filter, bind, call);
}
