/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list_lead.h: the filter of a list that finds its rows first */
#ifndef CRM_LIST_LEAD_H
#define CRM_LIST_LEAD_H

#include "crm_list.h"

/* Return whether PARAM has an index in another order than the list of CALL, or one of
 * several tables: the planner may begin with another one. */
int crm_list_is_other(const crm_param_t *param, const crm_call_t *call);

/* Return the filter of CALL's list whose index has another order than the list, or
 * NULL. There is none where a filter by content or by the primary key finds the
 * rows, below a parent, and on a page that few rows do not have. */
const crm_param_t *crm_list_lead(const crm_call_t *call);

/* Add "WITH k, m": in k the ids of rows that LEAD, the result of crm_list_lead(),
 * finds, and at most one more than CRM_LIST_MATCHES; in m those rows that match
 * all filters, with their sort keys, in no order. */
void crm_list_lead_matches(crm_sql_t *sql, const crm_call_t *call,
                           const crm_param_t *lead);

/* Add the condition that k has all rows that its filter finds, and that the list's
 * order does not soon give the first COUNT rows after START (may be NULL). It does
 * where many rows match: reading them all is not worth it then. */
void crm_list_lead_few(crm_sql_t *sql, const crm_call_t *call,
                       crm_list_start_t *start, apr_int64_t count);

#endif /* CRM_LIST_LEAD_H */
