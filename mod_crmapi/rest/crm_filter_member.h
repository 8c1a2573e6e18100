/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_member.h: the filter custom_fields.NAME=value (contract 20.3) */
#ifndef CRM_FILTER_MEMBER_H
#define CRM_FILTER_MEMBER_H

#include "crm_filter.h"

/* Each a crm_filter_add_t, the second one of "add_scoped". */
void crm_filter_member(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call);
void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call);

/* Return whether the rows that CALL's scoped filters select are found by the
 * resource's times c: their index is on that table. With tags, whose index is on the
 * rows themselves, it is not read: members are only compared then. */
int crm_filter_member_by_times(const crm_call_t *call);

#endif /* CRM_FILTER_MEMBER_H */
