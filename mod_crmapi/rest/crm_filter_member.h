/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_member.h: the filter custom_fields.NAME=value (contract 20.3) */
#ifndef CRM_FILTER_MEMBER_H
#define CRM_FILTER_MEMBER_H

#include "crm_call.h"
#include "crm_resource.h"

/* A value of the member of an object that a parameter names. It is that of a
 * string, and of a number, a boolean or null that is written so; equal numbers
 * are equal. */
extern const crm_type_t crm_type_member;

/* The filter by a member of custom_fields. */
#define CRM_FILTER_MEMBER \
    {.field = {.name = "custom_fields.NAME", .example = "pro", \
               .type = &crm_type_member, \
               .doc = "rows whose custom field NAME is this text, number, " \
                      "boolean or null. NAME stands for a name of at most 100 " \
                      "characters, whatever they are; up to 10 different ones " \
                      "may be sent"}, \
     .add = crm_filter_member, .add_unindexed = crm_filter_member, \
     .add_scoped = crm_filter_member_scoped, \
     .members = "custom_fields."}

/* Implementations of crm_filter_t.add, add_unindexed and add_scoped. */
void crm_filter_member(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call);
void crm_filter_member_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call);

#endif /* CRM_FILTER_MEMBER_H */
