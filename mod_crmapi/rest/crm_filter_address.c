/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_address.c: the filter by any of the addresses of a row */
#include "crm_filter_address.h"

#include "crm_rest.h"

void crm_filter_address(crm_sql_t *sql, const crm_filter_t *filter,
                        const char *bind, const crm_call_t *call)
{
    const char *table = crm_rest(call)->endpoint->resource->name;

    crm_sql_adds(sql, " AND t.id = ANY (ARRAY(SELECT e.id FROM crmapi.", table,
                 " e WHERE " CRM_SQL_OWN("e") " AND e.", filter->column,
                 " = (SELECT ", NULL);
    crm_sql_template(sql, filter->sql, bind, "text");
    crm_sql_adds(sql, ") UNION ALL SELECT e.id FROM crmapi.", table, " e WHERE "
                 CRM_SQL_OWN_HIDDEN("e")
                 " AND e.tag_keys && (SELECT crmapi.address_keys("
                 CRM_SQL_WORKSPACE ", ARRAY[", NULL);
    crm_sql_template(sql, filter->sql, bind, "text");
    crm_sql_adds(sql, "])) AND ", filter->keys, " @> ARRAY[", NULL);
    crm_sql_template(sql, filter->sql, bind, "text");
    crm_sql_add(sql, "]))");
}
