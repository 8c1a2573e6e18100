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

/* Add the condition on KEYS, a column with the keys of custom fields. As in
 * by_tags_scoped() of crm_filter.c, those of BIND are computed once. */
static void add_keys(crm_sql_t *sql, const char *keys, const char *bind)
{
    crm_sql_adds(sql, keys, " && ", NULL);
    crm_sql_template(sql, CRM_SQL_EITHER("(SELECT ", "")
                     "crmapi.member_keys(" CRM_SQL_WORKSPACE ", ?)"
                     CRM_SQL_EITHER(")", ""), bind, "jsonb[]");
}

/* The keys are hashes: the members themselves are compared, too. */
void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    const char *table = crm_rest(call)->endpoint->resource->field_keys;

    if (table) {
        crm_sql_adds(sql, " AND (t.workspace_id, t.id) IN (SELECT k.workspace_id,"
                     " k.id FROM crmapi.", table, " k WHERE "
                     CRM_SQL_EITHER("", CRM_SQL_OWN("k") " AND "), NULL);
        add_keys(sql, "k.keys", bind);
        crm_sql_add(sql, ")");
    }
    else {
        crm_sql_add(sql, " AND ");
        add_keys(sql, "t.tag_keys", bind);
    }
    crm_filter_member(sql, filter, bind, call);
}
