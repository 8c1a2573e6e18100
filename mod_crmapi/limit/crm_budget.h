/* SPDX-License-Identifier: Apache-2.0 */
/* crm_budget.h: charging a request and setting the headers (contract 4) */
#ifndef CRM_BUDGET_H
#define CRM_BUDGET_H

#include "apr_tables.h"

#include "crm_error.h"
#include "crm_limit.h"

/* Charge a request of CLASS under MAX (0: unlimited) to the key of HASH in
 * REALM by crm_limit_admit(), which sets *VERDICT and KEY_OUT. Add the headers
 * of contract 4.2 to HEADERS (NULL: none). Everything is allocated in POOL.
 * Return NULL if the request is admitted or the key is not known. Errors:
 * CRM_E_RATE_LIMITED with retry_after. */
crm_error_t *crm_budget_charge(crm_limit_verdict_t *verdict,
                               crm_limit_key_t *key_out, crm_limit_t *limit,
                               const unsigned char hash[32],
                               apr_uint32_t realm, crm_limit_class_t class,
                               apr_uint32_t max, apr_table_t *headers,
                               apr_pool_t *pool);

#endif /* CRM_BUDGET_H */
