/* SPDX-License-Identifier: Apache-2.0 */
/* crm_budget.h: charging a request and setting the headers (contract 4) */
#ifndef CRM_BUDGET_H
#define CRM_BUDGET_H

#include "apr_tables.h"

#include "crm_error.h"
#include "crm_limit.h"
#include "crm_store.h"

/* The log line if there is no memory to count a request. */
#define CRM_BUDGET_FULL "CRM1003: the table of keys is full: raise " \
    "CrmApiRateLimitKeys"

/* Charge a request of CLASS to KEY, whose hash and realm the caller has set.
 * Set the rest of KEY and *VERDICT. The limit is MAX (0: unlimited), or KEY's
 * own up to CEILING (contract 14.5). If STORE is not NULL, charge the request
 * also to the budget of all hosts (contract 16.1). Add the headers of contract
 * 4.2 to HEADERS (NULL: none). Everything is allocated in POOL. Return NULL if
 * the request is admitted or the key is unknown. Errors: CRM_E_RATE_LIMITED
 * with retry_after; CRM_E_UNAVAILABLE if the request cannot be counted. */
crm_error_t *crm_budget_charge(crm_limit_verdict_t *verdict,
                               crm_limit_key_t *key, crm_limit_t *limit,
                               crm_store_t *store, crm_limit_class_t class,
                               apr_uint32_t max, apr_uint32_t ceiling,
                               apr_table_t *headers, apr_pool_t *pool);

/* Set HEADERS as crm_budget_charge() with the same parameters does, without
 * charging KEY. */
void crm_budget_show(const crm_limit_key_t *key, crm_limit_t *limit,
                     crm_store_t *store, crm_limit_class_t class,
                     apr_uint32_t max, apr_uint32_t ceiling,
                     apr_table_t *headers, apr_pool_t *pool);

#endif /* CRM_BUDGET_H */
