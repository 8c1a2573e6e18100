/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter_address.h: the filter by any of the addresses of a row */
#ifndef CRM_FILTER_ADDRESS_H
#define CRM_FILTER_ADDRESS_H

#include "crm_filter.h"

/* A crm_filter_add_t: a row has the address BIND, whose key is FILTER->sql.
 * FILTER->column has the key of the primary one, FILTER->keys are all. An index
 * has the primary ones, another the rest (crmapi.contact_keys()). See add_rows()
 * of crm_list.c about IS TRUE. */
void crm_filter_address(crm_sql_t *sql, const crm_filter_t *filter,
                        const char *bind, const crm_call_t *call);

#endif /* CRM_FILTER_ADDRESS_H */
