/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_member.c: the filter custom_fields.NAME=value (contract 20.3) */
#include "crm_filter_member.h"

void crm_filter_member(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call)
{
    (void)filter;
    (void)call;
    crm_sql_template(sql, " AND t.custom_fields @> ANY (?)", bind, "jsonb[]");
}

/* The keys are hashes: the members themselves are compared, too. As in
 * by_tags_scoped() of crm_filter.c, the keys of BIND are computed once. */
void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    crm_sql_template(sql, call->distributed
                     ? " AND t.tag_keys && crmapi.member_keys($1::uuid, ?)"
                     : " AND t.tag_keys &&"
                       " (SELECT crmapi.member_keys($1::uuid, ?))", bind,
                     "jsonb[]");
    crm_filter_member(sql, filter, bind, call);
}
